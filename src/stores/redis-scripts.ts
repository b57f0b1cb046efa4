/**
 * What Redis runs in one step. Each script is one port call and one round trip.
 *
 * L1  Applying a script twice with the same arguments equals applying it once: ioredis sends a command again when its reply
 *     was lost (measured: RPUSH, XADD, INCR, MULTI all doubled).
 * L2  Lua is isolated but not rolled back, so a script touches every key by a read first: a wrong type speaks before
 *     anything has been written.
 * L3  Results and entries go through as text; `cjson` would turn `[]` into `{}`.
 */
import { DOCUMENT_SCRIPTS, type DocumentScriptAnswers } from './redis-document-scripts.js';

/** KEYS[1] entries, KEYS[2] messages. Entries come as slot, JSON, message id, turn; the last two are '' where there is none. */
const PUT_ENTRIES = `
local function readable(text)
  local ok, entry = pcall(cjson.decode, text)
  return ok and type(entry) == 'table' and entry.v ~= nil and entry.message ~= nil and entry
end

local function put(from)
  local last = tonumber(redis.call('HGET', KEYS[1], 'last') or 0) or 0
  redis.call('HLEN', KEYS[2])
  for i = from, #ARGV, 4 do
    local slot, json, id, turn = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
    if redis.call('HSETNX', KEYS[1], slot, json) == 0 then
      local there = readable(redis.call('HGET', KEYS[1], slot))
      -- What nobody can read counts as empty, and so does a message that no task counted.
      if not there or (id == '' and type(there.messageId) == 'string') then redis.call('HSET', KEYS[1], slot, json) end
    end
    if id ~= '' then redis.call('HSETNX', KEYS[2], id, slot .. ' ' .. turn) end
    if tonumber(slot) > last then last = tonumber(slot) end
  end
  redis.call('HSET', KEYS[1], 'last', string.format('%d', last))
end
`;

/** ARGV: the slot that it may be moved from or '', one entry. Answers '' when it is written, the first one's "slot turn" for a duplicate, or 'taken'. */
const RECORD = `${PUT_ENTRIES}
local movedFrom, slot, id, turn = ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local function idAt(place)
  local text = redis.call('HGET', KEYS[1], place)
  local entry = text and readable(text)
  return entry and (type(entry.messageId) == 'string' and entry.messageId or '')
end
local first = id ~= '' and redis.call('HGET', KEYS[2], id)
local was = first and first ~= slot .. ' ' .. turn and string.match(first, '^(%d+) ')
if was and was ~= movedFrom then return first end
local lying = idAt(slot)
if lying and lying ~= id then return 'taken' end
if was then
  if idAt(was) == id then redis.call('HDEL', KEYS[1], was) end
  redis.call('HDEL', KEYS[2], id)
end
put(2)
return ''
`;

const APPEND = `${PUT_ENTRIES}
put(1)
return ''
`;

/** KEYS[1] entries. ARGV: first and last slot of each range. Answers how many of them are not there. */
const ABSENT = `
local absent = 0
for i = 1, #ARGV, 2 do
  for slot = tonumber(ARGV[i]), tonumber(ARGV[i + 1]) do
    absent = absent + 1 - redis.call('HEXISTS', KEYS[1], string.format('%d', slot))
  end
end
return absent
`;

/** KEYS[1] effects. ARGV: id, hash, attempt. The ordinal of an attempt is its place among all that reserved, so it never changes. */
const RESERVE = `
local id, hash, attempt = ARGV[1], ARGV[2], ARGV[3]
local known = redis.call('HMGET', KEYS[1], 'fenced:' .. id, 'hash:' .. id, 'result:' .. id, 'attempts:' .. id)
if known[1] then return {'fenced'} end
if known[2] and known[2] ~= hash then return {'conflict'} end
if known[3] then return {'committed', known[3]} end
local earlier = 0
for other in string.gmatch(known[4] or '', '[^\\n]+') do
  if other == attempt then return {'reserved', tostring(earlier)} end
  earlier = earlier + 1
end
redis.call('HSET', KEYS[1], 'hash:' .. id, hash, 'attempts:' .. id, (known[4] or '') .. attempt .. '\\n')
return {'reserved', tostring(earlier)}
`;

/** Items come as id, JSON. The first one of an id counts, unless nobody can read it; '' stands for one that was removed. */
const PUT_ITEMS = `
local function putItems(key, from, to)
  if from > to then return end
  redis.call('HLEN', key)
  for i = from, to, 2 do
    if redis.call('HSETNX', key, ARGV[i], ARGV[i + 1]) == 0 then
      local there = redis.call('HGET', key, ARGV[i])
      if there ~= '' and not pcall(cjson.decode, there) then redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
    end
  end
end
`;

/** KEYS[1] items. ARGV: items. */
const PUT_ITEMS_ALONE = `${PUT_ITEMS}
putItems(KEYS[1], 1, #ARGV)
return ''
`;

/**
 * KEYS[1] entries, KEYS[2] messages, KEYS[3] effects, KEYS[4] items. ARGV: id, hash, result, usage or '', number of items, items, entries.
 * A result that is ours is not sent back.
 */
const COMMIT = `${PUT_ENTRIES}${PUT_ITEMS}
local id, hash, result, usage = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local lastItem = 5 + 2 * tonumber(ARGV[5])
local known = redis.call('HMGET', KEYS[3], 'fenced:' .. id, 'hash:' .. id, 'result:' .. id)
if known[1] then
  if usage ~= '' then redis.call('HSETNX', KEYS[3], 'usage:' .. id, usage) end
  return {'fenced'}
end
if known[2] and known[2] ~= hash then return {'conflict'} end
if known[3] then return {'committed', known[3]} end
if lastItem > 5 then redis.call('HLEN', KEYS[4]) end
if #ARGV > lastItem then put(lastItem + 1) end
putItems(KEYS[4], 6, lastItem)
redis.call('HSET', KEYS[3], 'hash:' .. id, hash, 'result:' .. id, result)
if usage ~= '' then redis.call('HSETNX', KEYS[3], 'usage:' .. id, usage) end
return {'committed'}
`;

/** KEYS[1] effects. ARGV: ids. Answers, in their order, the committed result or ''. */
const FENCE = `
local answers = {}
for i, id in ipairs(ARGV) do
  local result = redis.call('HGET', KEYS[1], 'result:' .. id)
  if not result then redis.call('HSETNX', KEYS[1], 'fenced:' .. id, '1') end
  answers[i] = result or ''
end
return answers
`;

/**
 * KEYS[1] feed, KEYS[2] batches. ARGV: batch id, now, most events kept, seconds to live, events. The last batch ids are remembered,
 * because a batch has no other name by which its resending could be known (L1). Cursors: C1, C2 in feed-cursor.ts.
 */
const PUBLISH = `
local batch, now, most, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if redis.call('LPOS', KEYS[2], batch) then return '' end
local birth, n = now, 0
if last then
  birth, n = string.match(last[1], '^(%d+)%-(%d+)$')
end
for i = 5, #ARGV do
  n = n + 1
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', most, string.format('%s-%d', birth, n), 'event', ARGV[i])
end
redis.call('LPUSH', KEYS[2], batch)
redis.call('LTRIM', KEYS[2], 0, 127)
redis.call('EXPIRE', KEYS[1], ttl)
redis.call('EXPIRE', KEYS[2], ttl)
return ''
`;

/** KEYS[1] episodes. ARGV: id, JSON. The first one counts, unless nobody can read it. */
const ADD_EPISODE = `
local function readable(text)
  local ok, episode = pcall(cjson.decode, text)
  return ok and type(episode) == 'table' and episode.v ~= nil and episode.summary ~= nil
end
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 and not readable(redis.call('HGET', KEYS[1], ARGV[1])) then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
end
return ''
`;

/**
 * KEYS[1] facts, KEYS[2] fact-index. ARGV: batch, then hash of the words, JSON, salience, confidence of each. Answers with id, JSON
 * and rank of the batch's items. Salience and confidence lie beside the JSON, as they rise and it must stay as it is (L3).
 */
const ADD_FACTS = `
local facts, index, batch = KEYS[1], KEYS[2], 'batch:' .. ARGV[1]
local function readable(id)
  local ok, fact = pcall(cjson.decode, redis.call('HGET', facts, id) or '')
  return ok and type(fact) == 'table' and type(fact.fact) == 'string'
end
local function raise(id, salience, confidence)
  local s, c = string.match(redis.call('HGET', facts, 'rank:' .. id) or '', '^(%S+) (%S+)$')
  if s and tonumber(s) >= tonumber(salience) then salience = s end
  if c and tonumber(c) >= tonumber(confidence) then confidence = c end
  redis.call('HSET', facts, 'rank:' .. id, salience .. ' ' .. confidence)
end

redis.call('HLEN', facts)
local known = redis.call('HGET', index, batch)
local ids = {}
if known then
  for id in string.gmatch(known, '%S+') do ids[#ids + 1] = id end
else
  local last = tonumber(redis.call('HGET', index, 'last') or 0) or 0
  local seen = {}
  for i = 2, #ARGV, 4 do
    local words, json, salience, confidence = 'text:' .. ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
    local id = redis.call('HGET', index, words)
    if not id or not readable(id) then
      repeat
        last = last + 1
        id = string.format('sem_%04d', last)
      until redis.call('HSETNX', facts, id, json) == 1
      redis.call('HSET', index, words, id, 'words-of:' .. id, words)
    end
    raise(id, salience, confidence)
    if not seen[id] then ids[#ids + 1] = id end
    seen[id] = true
  end
  table.sort(ids, function(a, b) return tonumber(string.sub(a, 5)) < tonumber(string.sub(b, 5)) end)
  redis.call('HSET', index, 'last', string.format('%d', last), batch, table.concat(ids, ' '))
end

local answer = {}
for _, id in ipairs(ids) do
  local json = redis.call('HGET', facts, id)
  if json then
    answer[#answer + 1] = id
    answer[#answer + 1] = json
    answer[#answer + 1] = redis.call('HGET', facts, 'rank:' .. id) or ''
  end
end
return answer
`;

/** KEYS[1] facts, KEYS[2] fact-index. ARGV: ids. What numbers and batches there were stays in the index. */
const REMOVE_FACTS = `
redis.call('HLEN', KEYS[1])
for _, id in ipairs(ARGV) do
  local words = redis.call('HGET', KEYS[2], 'words-of:' .. id)
  if words and redis.call('HGET', KEYS[2], words) == id then redis.call('HDEL', KEYS[2], words) end
  redis.call('HDEL', KEYS[2], 'words-of:' .. id)
  redis.call('HDEL', KEYS[1], id, 'rank:' .. id)
end
return ''
`;

/** In the shape of ioredis' option `scripts`. */
export const SCRIPTS = {
  perduraRecord: { lua: RECORD, numberOfKeys: 2 },
  perduraAppend: { lua: APPEND, numberOfKeys: 2 },
  perduraAbsent: { lua: ABSENT, numberOfKeys: 1 },
  perduraReserve: { lua: RESERVE, numberOfKeys: 1 },
  perduraCommit: { lua: COMMIT, numberOfKeys: 4 },
  perduraPutItems: { lua: PUT_ITEMS_ALONE, numberOfKeys: 1 },
  perduraFence: { lua: FENCE, numberOfKeys: 1 },
  perduraPublish: { lua: PUBLISH, numberOfKeys: 2 },
  perduraAddEpisode: { lua: ADD_EPISODE, numberOfKeys: 1 },
  perduraAddFacts: { lua: ADD_FACTS, numberOfKeys: 2 },
  perduraRemoveFacts: { lua: REMOVE_FACTS, numberOfKeys: 2 },
  ...DOCUMENT_SCRIPTS,
} as const;

/** What they answer. */
export interface ScriptAnswers extends DocumentScriptAnswers {
  readonly perduraRecord: string;
  readonly perduraAppend: string;
  readonly perduraAbsent: number;
  readonly perduraReserve: readonly ['fenced' | 'conflict'] | readonly ['committed' | 'reserved', string];
  readonly perduraCommit: readonly ['fenced' | 'conflict' | 'committed', string?];
  readonly perduraPutItems: string;
  readonly perduraFence: readonly string[];
  readonly perduraPublish: string;
  readonly perduraAddEpisode: string;
  readonly perduraAddFacts: readonly string[];
  readonly perduraRemoveFacts: string;
}
