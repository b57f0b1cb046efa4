/**
 * The scripts that Redis runs in one step. Each script is one port call and one round trip.
 *
 * Results and entries go through as text; `cjson` would turn `[]` into `{}`.
 *
 * @rule redis/script-twice-is-once: Applying a script twice with the same arguments equals applying it once: ioredis sends a command again
 *   if its reply was lost (measured: RPUSH, XADD, INCR, MULTI all doubled). (test: test/stores/redis/redis.test.ts)
 * @rule redis/reads-before-writes: Lua is isolated but not rolled back, so a script touches every key by a read first: a wrong type fails
 *   before any write. (test: test/stores/redis/redis.test.ts)
 */
import { REMEMBERED_EVENT_IDS } from '../store.js';

/** As what Redis answers where a life was deleted. */
export const DELETED = 'DELETED the conversation was deleted';

/** The last key names the lives of the conversation that were deleted; the life is in the name of each other key. */
const NOT_DELETED = `
if redis.call('HEXISTS', KEYS[#KEYS], string.match(KEYS[1], '}:([^:]*):')) == 1 then
  return redis.error_reply('${DELETED}')
end
`;

/** The last key names who may not write to the scope any more, the last argument who writes, or is ''. */
const NOT_ERASED = `
local writer = table.remove(ARGV)
if writer ~= '' and redis.call('HEXISTS', KEYS[#KEYS], writer) == 1 then return redis.error_reply('${DELETED}') end
`;

/** Entries come as slot, JSON, message id, turn; the last two are '' where there is none. */
const PUT_ENTRIES = `
-- What is encrypted cannot be looked into: its label is the message's id (platform/at-rest.ts).
local function readable(text)
  local label = string.match(text, '^pe1:[^:]*:[^:]*:?(.*)$')
  if label then return {messageId = label ~= '' and label or nil} end
  local ok, entry = pcall(cjson.decode, text)
  return ok and type(entry) == 'table' and entry.v ~= nil and entry.message ~= nil and entry
end

-- Answers how many of the slots were empty. What cannot be read counts as empty.
local function put(entries, messages, from, to)
  if from > to then return 0 end
  local last = tonumber(redis.call('HGET', entries, 'last') or 0) or 0
  local highest, added = last, 0
  for i = from, to, 4 do
    local slot, json, id, turn = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
    local isThere = true
    if redis.call('HSETNX', entries, slot, json) == 1 then
      added = added + 1
    else
      local there = readable(redis.call('HGET', entries, slot))
      if not there then
        redis.call('HSET', entries, slot, json)
        added = added + 1
      else
        isThere = there.messageId == id
      end
    end
    if id ~= '' and isThere then redis.call('HSETNX', messages, id, slot .. ' ' .. turn) end
    if tonumber(slot) > highest then highest = tonumber(slot) end
  end
  if highest > last then redis.call('HSET', entries, 'last', string.format('%d', highest)) end
  return added
end
`;

/**
 * Events come as id or '', JSON. The last batch ids are remembered, because events without an id have no other name by which their
 * resending could be known (redis/script-twice-is-once). Cursors: (stores/birth-names-the-feed, stores/gaps-show).
 */
const PUBLISH_EVENTS = `
local function publish(feed, batches, ids, batch, now, most, ttl, from, to)
  if from > to then return end
  local last = redis.call('XREVRANGE', feed, '+', '-', 'COUNT', 1)[1]
  if batch ~= '' then
    if redis.call('LPOS', batches, batch) then return end
    redis.call('LPUSH', batches, batch)
    redis.call('LTRIM', batches, 0, 127)
    redis.call('EXPIRE', batches, ttl)
  end
  local birth, n = now, 0
  if last then birth, n = string.match(last[1], '^(%d+)%-(%d+)$') end
  local named, published = 0, 0
  for i = from, to, 2 do
    local id = ARGV[i]
    if id == '' or not redis.call('LPOS', ids, id) then
      n = n + 1
      redis.call('XADD', feed, 'MAXLEN', '~', most, string.format('%s-%d', birth, n), 'event', ARGV[i + 1])
      published = published + 1
      if id ~= '' then
        redis.call('LPUSH', ids, id)
        named = named + 1
      end
    end
  end
  if named > 0 then
    redis.call('LTRIM', ids, 0, math.max(named, ${REMEMBERED_EVENT_IDS}) - 1)
    redis.call('EXPIRE', ids, ttl)
  end
  if published > 0 then redis.call('EXPIRE', feed, ttl) end
end

-- What fails here must not fail what is written beside it.
local function publishBeside(...) pcall(publish, ...) end
`;

/**
 * KEYS: entries, messages, effects, feed, feed-batches, feed-ids, deleted. ARGV: how many messages, fences, entries and events there are; id,
 * hash and attempt of the reservation ('' for none); batch id, now, most events, seconds to live; then messages, fences,
 * entries, events. Answers with '' or "slot turn" of the first for each message, the committed result or '' of each fence, the
 * reservation, how many entries were added, and how many there are (-1: not counted).
 */
const WRITE = `${NOT_DELETED}${PUT_ENTRIES}${PUBLISH_EVENTS}
local entries, messages, effects = KEYS[1], KEYS[2], KEYS[3]
local id, hash, attempt = ARGV[5], ARGV[6], ARGV[7]
local firstFence = 12 + 4 * tonumber(ARGV[1])
local firstEntry = firstFence + tonumber(ARGV[2])
local firstEvent = firstEntry + 4 * tonumber(ARGV[3])
local afterEvents = firstEvent + 2 * tonumber(ARGV[4])

-- (redis/reads-before-writes)
if firstFence > 12 or firstEvent > firstEntry then
  redis.call('HLEN', entries)
  redis.call('HLEN', messages)
end
if firstEntry > firstFence or id ~= '' then redis.call('HLEN', effects) end

local function firstElsewhere(i)
  local first = ARGV[i + 2] ~= '' and redis.call('HGET', messages, ARGV[i + 2])
  return first and first ~= ARGV[i] .. ' ' .. ARGV[i + 3] and first
end
local added = 0
for i = 12, firstFence - 1, 4 do
  if not firstElsewhere(i) then added = added + put(entries, messages, i, i + 3) end
end

local fenced = {}
for i = firstFence, firstEntry - 1 do
  local result = redis.call('HGET', effects, 'result:' .. ARGV[i])
  if not result then redis.call('HSETNX', effects, 'fenced:' .. ARGV[i], '1') end
  fenced[#fenced + 1] = result or ''
end

added = added + put(entries, messages, firstEntry, firstEvent - 1)
publishBeside(KEYS[4], KEYS[5], KEYS[6], ARGV[8], ARGV[9], ARGV[10], ARGV[11], firstEvent, afterEvents - 1)

-- The ordinal of an attempt is its place among all that reserved, so it never changes.
local function reserve()
  local known = redis.call('HMGET', effects, 'fenced:' .. id, 'hash:' .. id, 'result:' .. id, 'attempts:' .. id)
  if known[1] then return {'fenced'} end
  if known[2] and known[2] ~= hash then return {'conflict'} end
  if known[3] then return {'committed', known[3]} end
  local earlier = 0
  for other in string.gmatch(known[4] or '', '[^\\n]+') do
    if other == attempt then return {'reserved', tostring(earlier)} end
    earlier = earlier + 1
  end
  redis.call('HSET', effects, 'hash:' .. id, hash, 'attempts:' .. id, (known[4] or '') .. attempt .. '\\n')
  return {'reserved', tostring(earlier)}
end

local function all()
  local hasEntries = firstFence > 12 or firstEvent > firstEntry
  return hasEntries and redis.call('HLEN', entries) or -1
end
-- Looked up at the end, so that the same batch again answers the same.
local recorded = {}
for i = 12, firstFence - 1, 4 do recorded[#recorded + 1] = firstElsewhere(i) or '' end
return {recorded, fenced, id == '' and {} or reserve(), added, all()}
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

/** Items come as id, JSON. The first one of an id counts, unless it is unreadable. */
const PUT_ITEMS = `
local function putItems(key, from, to)
  if from > to then return end
  redis.call('HLEN', key)
  for i = from, to, 2 do
    if redis.call('HSETNX', key, ARGV[i], ARGV[i + 1]) == 0 then
      local there = redis.call('HGET', key, ARGV[i])
      if string.sub(there, 1, 4) ~= 'pe1:' and not pcall(cjson.decode, there) then redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
    end
  end
end
`;

/**
 * KEYS: entries, messages, effects, items, feed, feed-batches, feed-ids, spendings, deleted. ARGV: id, hash, result, what was spent or '',
 * number of items, number of entries, batch id, now, most events, seconds to live; then items, entries, events. Answers with the status
 * and the result, which is '' when it is the one given, how many entries were added, and how many there are (-1: not counted).
 */
const COMMIT = `${NOT_DELETED}${PUT_ENTRIES}${PUT_ITEMS}${PUBLISH_EVENTS}
local entries, messages, effects, items = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, hash, result, spent = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local firstEntry = 11 + 2 * tonumber(ARGV[5])
local firstEvent = firstEntry + 4 * tonumber(ARGV[6])
local function announce()
  publishBeside(KEYS[5], KEYS[6], KEYS[7], ARGV[7], ARGV[8], ARGV[9], ARGV[10], firstEvent, #ARGV)
end

-- Where something foreign is in its place the price is lost, and not the answer.
local function note()
  if spent ~= '' then redis.pcall('HSETNX', KEYS[8], id, spent) end
end

local known = redis.call('HMGET', effects, 'fenced:' .. id, 'hash:' .. id, 'result:' .. id)
if known[1] then
  note()
  return {'fenced', '', 0, -1}
end
if known[2] and known[2] ~= hash then return {'conflict', '', 0, -1} end
if known[3] then
  announce()
  return {'committed', known[3], 0, -1}
end
if firstEntry > 11 then redis.call('HLEN', items) end
if firstEvent > firstEntry then
  redis.call('HLEN', entries)
  redis.call('HLEN', messages)
end
local added = put(entries, messages, firstEntry, firstEvent - 1)
putItems(items, 11, firstEntry - 1)
redis.call('HSET', effects, 'hash:' .. id, hash, 'result:' .. id, result)
note()
announce()
return {'committed', '', added, firstEvent > firstEntry and redis.call('HLEN', entries) or -1}
`;

/** KEYS: feed, feed-batches, feed-ids, deleted. ARGV: batch id, now, most events, seconds to live, events. */
const PUBLISH = `${NOT_DELETED}${PUBLISH_EVENTS}
publish(KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3], ARGV[4], 5, #ARGV)
return ''
`;

/**
 * KEYS: archived, entries, deleted. ARGV: '1' to archive and '0' to restore, number of the move, slots. The highest move is the field
 * `move` of the entries.
 */
const MOVE = `${NOT_DELETED}
local archived, entries, toArchive, move = KEYS[1], KEYS[2], ARGV[1] == '1', tonumber(ARGV[2])
redis.call('SCARD', archived)
local highest = tonumber(redis.call('HGET', entries, 'move') or -1) or -1
if move < highest then return '' end
for i = 3, #ARGV do redis.call(toArchive and 'SADD' or 'SREM', archived, ARGV[i]) end
if move > highest then redis.call('HSET', entries, 'move', ARGV[2]) end
return ''
`;

/** KEYS: bodies, deleted. ARGV: SHA-256, text. */
const PUT_BODY = `${NOT_DELETED}
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return ''
`;

/**
 * KEYS: set of a scope's lives, sorted set of those that were written to, erased. ARGV: a life, its id. Each write has another number; of
 * who was erased nothing is noted.
 */
const NOTE = `
if redis.call('HEXISTS', KEYS[3], ARGV[2]) == 1 then return 0 end
redis.call('SADD', KEYS[1], ARGV[1])
local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
redis.call('ZADD', KEYS[2], (tonumber(last[2]) or 0) + 1, ARGV[1])
return 1
`;

/**
 * KEYS[1] hash. ARGV: when it expires, epoch milliseconds, or ''; then field, what it was, what it becomes, and so on; '' where there is
 * nothing. All of it, or nothing and 0 when one has become something else by now.
 */
const CHANGE = `
for i = 2, #ARGV, 3 do
  local now = redis.call('HGET', KEYS[1], ARGV[i]) or ''
  if now ~= ARGV[i + 1] and now ~= ARGV[i + 2] then return 0 end
end
for i = 2, #ARGV, 3 do
  if ARGV[i + 2] == '' then redis.call('HDEL', KEYS[1], ARGV[i]) else redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 2]) end
end
if ARGV[1] ~= '' then redis.call('PEXPIREAT', KEYS[1], ARGV[1]) end
return 1
`;

// MEMORY.md, HISTORY and their changes.

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

/** KEYS[1] memory, KEYS[2] changes. ARGV: version before, text as it is, its version, change, text as it is to be. 0 when another by now. */
const SEE_HAND = `
local now = redis.call('HMGET', KEYS[1], 'version', 'text')
redis.call('LLEN', KEYS[2])
if (now[1] or 'empty') ~= ARGV[1] or (now[2] or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[3], 'text', ARGV[5], 'sum', redis.sha1hex(ARGV[5]), 'text:' .. ARGV[3], ARGV[5])
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
local function findNumber(other) return redis.call('HGET', KEYS[1], 'of:' .. other .. ':' .. id) end
if findNumber(kind) then return {'known'} end
if kind == 'raw-fallback' and findNumber('summary') then return {'superseded'} end
local fallback = kind == 'summary' and findNumber('raw-fallback')
local since = fallback and redis.call('ZSCORE', KEYS[2], fallback)
if since and ARGV[5] ~= '1' then return {'fallback', since} end
-- Of one width, so that entries of the same time lie in the order of writing.
local number = string.format('%010d', last + 1)
redis.call('HSET', KEYS[1], 'last', string.format('%d', last + 1), 'entry:' .. number, ARGV[4], 'of:' .. kind .. ':' .. id, number)
redis.call('ZADD', KEYS[2], ARGV[3], number)
return {'appended'}
`;

/**
 * KEYS[1] list. ARGV: place from 0 (the list only grows at its end), what it was, what it becomes, and so on. Answers how many are others
 * by now.
 */
const REPLACE_ITEMS = `
local others = 0
for i = 1, #ARGV, 3 do
  local now = redis.call('LINDEX', KEYS[1], ARGV[i])
  if now == ARGV[i + 1] then redis.call('LSET', KEYS[1], ARGV[i], ARGV[i + 2])
  elseif now and now ~= ARGV[i + 2] then others = others + 1 end
end
return others
`;

/** In the shape of ioredis' option `scripts`. */
export const SCRIPTS = {
  perduraWrite: { lua: WRITE, numberOfKeys: 7 },
  perduraAbsent: { lua: ABSENT, numberOfKeys: 1 },
  perduraCommit: { lua: COMMIT, numberOfKeys: 9 },
  perduraPublish: { lua: PUBLISH, numberOfKeys: 4 },
  perduraMove: { lua: MOVE, numberOfKeys: 3 },
  perduraPutBody: { lua: PUT_BODY, numberOfKeys: 2 },
  perduraChange: { lua: CHANGE, numberOfKeys: 1 },
  perduraChangeLife: { lua: `${NOT_DELETED}${CHANGE}`, numberOfKeys: 2 },
  perduraNote: { lua: NOTE, numberOfKeys: 3 },
  perduraChangeScope: { lua: `${NOT_ERASED}${CHANGE}`, numberOfKeys: 2 },
  perduraWriteMemory: { lua: `${NOT_ERASED}${WRITE_MEMORY}`, numberOfKeys: 3 },
  perduraSeeHand: { lua: SEE_HAND, numberOfKeys: 2 },
  perduraAppendHistory: { lua: `${NOT_ERASED}${APPEND_HISTORY}`, numberOfKeys: 3 },
  perduraReplaceItems: { lua: REPLACE_ITEMS, numberOfKeys: 1 },
} as const;

/** The answers of the scripts. */
export interface ScriptAnswers {
  readonly perduraWrite: readonly [
    recorded: readonly string[],
    fenced: readonly string[],
    reservation: readonly [] | readonly ['fenced' | 'conflict'] | readonly ['committed' | 'reserved', string],
    added: number,
    all: number,
  ];
  readonly perduraAbsent: number;
  readonly perduraCommit: readonly [status: 'fenced' | 'conflict' | 'committed', result: string, added: number, all: number];
  readonly perduraPublish: string;
  readonly perduraMove: string;
  readonly perduraPutBody: string;
  readonly perduraChange: number;
  readonly perduraChangeLife: number;
  readonly perduraChangeScope: number;
  readonly perduraNote: number;
  readonly perduraWriteMemory: readonly ['written', string] | readonly ['edited'] | readonly ['conflict', string, string];
  readonly perduraSeeHand: number;
  readonly perduraAppendHistory: readonly ['known' | 'superseded' | 'appended'] | readonly ['fallback', string];
  readonly perduraReplaceItems: number;
}
