/** The scripts of MEMORY.md, HISTORY and what lies beside them, under the rules of scripts.ts. */

/**
 * KEYS[1] memory, KEYS[2] changes. ARGV: id, version that it is made from, version, text, change. `edited` when the text is not the
 * one that was written last: a person was there, and that is reported first.
 */
const WRITE_MEMORY = `
local id, from, version, text = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local known = redis.call('HMGET', KEYS[1], 'id:' .. id, 'version', 'text', 'sum')
redis.call('LLEN', KEYS[2])
if known[1] then return {'written', known[1]} end
if redis.sha1hex(known[3] or '') ~= (known[4] or redis.sha1hex('')) then return {'edited'} end
if (known[2] or 'empty') ~= from then return {'conflict', known[2] or 'empty', known[3] or ''} end
redis.call('HSET', KEYS[1], 'id:' .. id, version, 'version', version, 'text', text, 'sum', redis.sha1hex(text), 'text:' .. version, text)
redis.call('RPUSH', KEYS[2], ARGV[5])
return {'written', version}
`;

/** KEYS[1] memory, KEYS[2] changes. ARGV: version before, text as it is, its version, change. 0 when it is another by now. */
const SEE_HAND = `
local now = redis.call('HMGET', KEYS[1], 'version', 'text')
redis.call('LLEN', KEYS[2])
if (now[1] or 'empty') ~= ARGV[1] or (now[2] or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[3], 'sum', redis.sha1hex(ARGV[2]), 'text:' .. ARGV[3], ARGV[2])
redis.call('RPUSH', KEYS[2], ARGV[4])
return 1
`;

/**
 * KEYS[1] history, KEYS[2] history-order. ARGV: kind, id, milliseconds, entry, '1' when the entry says what it supersedes. A summary
 * that does not, but should, is not written: the answer is `fallback` and the time of the raw fallback, which stays what it is.
 */
const APPEND_HISTORY = `
local kind, id = ARGV[1], ARGV[2]
local last = tonumber(redis.call('HGET', KEYS[1], 'last') or 0) or 0
redis.call('ZCARD', KEYS[2])
local function numberOf(other) return redis.call('HGET', KEYS[1], 'of:' .. other .. ':' .. id) end
if numberOf(kind) then return {'known'} end
if kind == 'raw-fallback' and numberOf('summary') then return {'superseded'} end
local fallback = kind == 'summary' and numberOf('raw-fallback')
local since = fallback and redis.call('ZSCORE', KEYS[2], fallback)
if since and ARGV[5] ~= '1' then return {'fallback', since} end
-- Of one width, so that entries of the same time lie in the order of writing.
local number = string.format('%010d', last + 1)
redis.call('HSET', KEYS[1], 'last', string.format('%d', last + 1), 'entry:' .. number, ARGV[4], 'of:' .. kind .. ':' .. id, number)
redis.call('ZADD', KEYS[2], ARGV[3], number)
return {'appended'}
`;

/** KEYS[1] list. ARGV: place from 0 (the list only grows at its end), what it was, what it becomes, and so on. Answers how many are others by now. */
const REPLACE_ITEMS = `
local others = 0
for i = 1, #ARGV, 3 do
  local now = redis.call('LINDEX', KEYS[1], ARGV[i])
  if now == ARGV[i + 1] then redis.call('LSET', KEYS[1], ARGV[i], ARGV[i + 2])
  elseif now and now ~= ARGV[i + 2] then others = others + 1 end
end
return others
`;

export const DOCUMENT_SCRIPTS = {
  perduraWriteMemory: { lua: WRITE_MEMORY, numberOfKeys: 2 },
  perduraSeeHand: { lua: SEE_HAND, numberOfKeys: 2 },
  perduraAppendHistory: { lua: APPEND_HISTORY, numberOfKeys: 2 },
  perduraReplaceItems: { lua: REPLACE_ITEMS, numberOfKeys: 1 },
} as const;

export interface DocumentScriptAnswers {
  readonly perduraWriteMemory: readonly ['written', string] | readonly ['edited'] | readonly ['conflict', string, string];
  readonly perduraSeeHand: number;
  readonly perduraAppendHistory: readonly ['known' | 'superseded' | 'appended'] | readonly ['fallback', string];
  readonly perduraReplaceItems: number;
}
