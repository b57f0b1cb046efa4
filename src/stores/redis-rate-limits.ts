/**
 * Limits of providers in Redis, each under `perdura:{r:<provider/model#account>}:<what>` (rate-limits.ts has the port and the rules), where
 * `<what>` is
 *
 *   state    what a call changes, by MessagePack: cjson would round the numbers
 *   tickets  hash, id of a call -> its place in line
 *   line     sorted set by name: share, number in it, id
 *   leases   hash, id of a call that has room -> what was taken for it
 *   ends     sorted set, `t` and a ticket's id or `l` and a lease's -> when it ends
 *   same     hash, share and conversation -> calls that wait
 *
 * Nothing of it is needed once no call waits. The script says in Lua what `take`, `learn` and `release` do to a state: each decision must be
 * one step for all workers. The contract test runs both over the same random calls.
 */
import type { Redis } from 'ioredis';
import { escapedForKey, literally } from './redis/keys.js';
import { scanKeys, type RedisLink } from './redis/link.js';
import { LEASE_MS, LIMIT_KINDS } from '../records/rate-limit.js';
import { showLimiter, toFlow, type LimiterState } from './limiter-state.js';
import {
  BACKGROUND_COST,
  BY_ANSWERS,
  BY_REFUSALS,
  BY_SETTING,
  FIRST_DURATION_MS,
  FIRST_GUESS,
  FORGOTTEN_MS,
  GRACE_MS,
  LATE_MS,
  LEARNS_FROM,
  MAX_GUESS,
  MIN_RATIO,
  MAX_WAIT_MS,
  MIN_WAIT_MS,
  MAX_RATIO,
  RESERVE,
  withPeriods,
  type RateLimits,
  type Taken,
} from './rate-limits.js';

const COMMAND = 'perduraLimit';
type LimitingRedis = { readonly [COMMAND]: (...args: string[]) => Promise<readonly (string | number)[]> };

const WHAT = ['state', 'tickets', 'line', 'leases', 'ends', 'same'] as const;

/** KEYS: state, tickets, line, leases, ends, same. ARGV: what to do, now or '' for this server's clock, what is given as JSON. */
const LIMIT = `
local doing, given = ARGV[1], cjson.decode(ARGV[3])
local now = tonumber(ARGV[2])
if not now then
  local clock = redis.call('TIME')
  now = clock[1] * 1000 + math.floor(clock[2] / 1000)
end
local KINDS = {${LIMIT_KINDS.map((kind) => `'${kind}'`).join(', ')}}
local stored = redis.call('GET', KEYS[1])
local state = stored and cmsgpack.unpack(stored)
  or {at = now, virtual = 0, blocked = 0, duration = ${FIRST_DURATION_MS}, number = 0, head = '', headCost = 0, buckets = {}, flows = {}}
local buckets = state.buckets

local function toReserve(limit) return math.floor(limit * ${RESERVE}) end
local function weigh(name) return string.sub(name, 1, 1) == '-' and ${BACKGROUND_COST} or 1 end
local function unpacked(key, id)
  local text = redis.call('HGET', key, id)
  return text and cmsgpack.unpack(text)
end

local function waitingIn()
  local sum = 0
  for _, flow in pairs(state.flows) do sum = sum + flow.count end
  return sum
end

local function stepOut(id, ticket)
  redis.call('ZREM', KEYS[3], ticket.member)
  if state.head == id then state.head = '' end
  local flow = state.flows[ticket.flow]
  if not flow then return end
  flow.count = flow.count - 1
  flow.cost = flow.count == 0 and 0 or flow.cost - ticket.cost
  if waitingIn() == 0 then
    state.flows, state.virtual = {}, 0
  elseif flow.count == 0 and flow.start <= state.virtual then
    state.flows[ticket.flow] = nil
  end
end

local function leave(id)
  local ticket = unpacked(KEYS[2], id)
  if not ticket then return end
  redis.call('HDEL', KEYS[2], id)
  redis.call('ZREM', KEYS[5], 't' .. id)
  if redis.call('HINCRBY', KEYS[6], ticket.same, -1) <= 0 then redis.call('HDEL', KEYS[6], ticket.same) end
  if not ticket.isLate then stepOut(id, ticket) end
end

local function putTicket(id, ticket)
  redis.call('HSET', KEYS[2], id, cmsgpack.pack(ticket))
  redis.call('ZADD', KEYS[5], string.format('%.0f', ticket.ends), 't' .. id)
end

local function setBack()
  local ahead, last = state.at - now, now + ${LEASE_MS}
  state.at = now
  state.blocked = state.blocked - ahead
  for _, one in pairs(buckets) do one.seenAt = one.seenAt - ahead end
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], '(' .. string.format('%.0f', last), '+inf')) do
    redis.call('ZADD', KEYS[5], string.format('%.0f', last), name)
  end
end

local function late(id, since)
  local ticket = unpacked(KEYS[2], id)
  if not ticket then return end
  if not ticket.isLate then
    stepOut(id, ticket)
    ticket.isLate, ticket.ends = true, since + ${GRACE_MS - LATE_MS}
    putTicket(id, ticket)
  end
  if ticket.ends < now then leave(id) end
end

local function pass()
  if state.at > now then setBack() end
  local since = now - state.at
  state.at = now
  for _, one in pairs(buckets) do one.level = math.min(one.limit, one.level + one.rate * since) end
  local ended = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', '(' .. string.format('%.0f', now), 'WITHSCORES')
  for i = 1, #ended, 2 do
    local name, id = ended[i], string.sub(ended[i], 2)
    redis.call('ZREM', KEYS[5], name)
    if string.sub(name, 1, 1) == 't' then late(id, tonumber(ended[i + 1])) else redis.call('HDEL', KEYS[4], id) end
  end
end

local function newBucket(limit, rate, level, source)
  return {limit = limit, rate = rate, level = level, ratio = 1, source = source, estimated = 0, seen = -1, seenAt = 0, seenEstimated = 0}
end

local function resize(known, limit, rate, source)
  if limit > known.limit then known.level = known.level + limit - known.limit end
  known.limit, known.rate, known.source, known.level = limit, rate, source, math.min(limit, known.level)
end

local function setLimits(set)
  for _, kind in ipairs(KINDS) do
    local limit = set[kind]
    if limit then
      local known, rate = buckets[kind], kind == 'streams' and 0 or limit / 60000
      if not known then
        buckets[kind] = newBucket(limit, rate, limit, ${BY_SETTING})
      elseif known.limit > limit or known.source == ${BY_SETTING} then
        resize(known, limit, rate, ${BY_SETTING})
      end
    end
  end
end

local function enter(id, name, conversation, cost)
  local known = unpacked(KEYS[2], id)
  if known and not known.isLate then
    local flow = state.flows[known.flow]
    if flow then flow.cost = flow.cost + cost - known.cost end
    known.cost = cost
    return known
  end
  if known then name = known.flow end
  local flow = state.flows[name] or {start = state.virtual, count = 0, cost = 0}
  state.flows[name] = flow
  if flow.count == 0 then flow.start = math.max(flow.start, state.virtual) end
  if known then
    known.isLate, known.cost = nil, cost
    flow.count = flow.count + 1
    flow.cost = flow.cost + cost
    redis.call('ZADD', KEYS[3], 0, known.member)
    return known
  end
  local same = name .. '\\0' .. conversation
  local before = redis.call('HINCRBY', KEYS[6], same, 1) - 1
  state.number = state.number + 1
  local member = name .. '\\0' .. string.format('%015.0f', state.number + before * flow.count) .. '\\0' .. id
  flow.count = flow.count + 1
  flow.cost = flow.cost + cost
  redis.call('ZADD', KEYS[3], 0, member)
  return {flow = name, same = same, member = member, cost = cost, ends = state.at + ${MAX_WAIT_MS}}
end

local function findPlace(id, name, ticket)
  local flow = state.flows[name]
  local before = redis.call('ZLEXCOUNT', KEYS[3], '[' .. name .. '\\0', '(' .. ticket.member)
  local average = flow.cost / flow.count
  local start = flow.start + before * average * weigh(name)
  local ahead, aheadMs = before, before * average
  local names = {}
  for other in pairs(state.flows) do names[#names + 1] = other end
  table.sort(names)
  for _, other in ipairs(names) do
    local one = state.flows[other]
    if other ~= name and one.count > 0 then
      local each = one.cost / one.count
      local steps = (start - one.start) / (each * weigh(other))
      local first = math.min(one.count, math.max(0, other < name and math.floor(steps) + 1 or math.ceil(steps)))
      ahead = ahead + first
      aheadMs = aheadMs + first * each
    end
  end
  if ahead > 0 and state.head ~= '' and state.head ~= id then aheadMs = math.max(aheadMs, state.headCost) end
  return ahead + 1, aheadMs
end

local function putLease(id, lease)
  redis.call('HSET', KEYS[4], id, cmsgpack.pack(lease))
  redis.call('ZADD', KEYS[5], string.format('%.0f', lease.ends), 'l' .. id)
end

local function take()
  setLimits(given.set)
  local id, name = given.id, given.flow
  local lease = unpacked(KEYS[4], id)
  if lease then
    lease.ends = now + ${LEASE_MS}
    putLease(id, lease)
    return {'granted'}
  end
  if next(buckets) == nil and state.blocked <= now then return {'free'} end
  local base = {
    requests = 1, input = given.input, output = given.output, tokens = given.input + given.output, streams = 1
  }
  local need, cost, slack = {}, 1, 1e12
  for _, kind in ipairs(KINDS) do
    local one = buckets[kind]
    if one then
      local isStreams = kind == 'streams'
      local most = isStreams and one.limit or one.limit - toReserve(one.limit)
      need[kind] = isStreams and 1 or math.min(most, base[kind] * one.ratio)
      local speed = isStreams and one.limit / state.duration or one.rate
      local left = isStreams and one.limit - redis.call('HLEN', KEYS[4]) or one.level - toReserve(one.limit)
      cost = math.max(cost, need[kind] / speed)
      slack = math.min(slack, (left - need[kind]) / speed)
    end
  end
  local ticket = enter(id, name, given.conversation, cost)
  name = ticket.flow
  local position, aheadMs = findPlace(id, name, ticket)
  local wait = math.max(aheadMs - slack, state.blocked - now + (state.blocked > now and aheadMs or 0))
  if wait <= 0 then
    local flow = state.flows[name]
    state.virtual = math.max(state.virtual, flow.start)
    flow.start = flow.start + cost * weigh(name)
    putTicket(id, ticket)
    leave(id)
    lease = {base = {}, need = {}, estimated = {}, at = now, ends = now + ${LEASE_MS}, isHeard = 0}
    for _, kind in ipairs(KINDS) do
      local one = buckets[kind]
      if one then
        if kind ~= 'streams' then one.level = one.level - need[kind] end
        one.estimated = one.estimated + base[kind]
        lease.base[kind], lease.need[kind], lease.estimated[kind] = base[kind], need[kind], one.estimated
      end
    end
    putLease(id, lease)
    return {'granted'}
  end
  if position == 1 then state.head, state.headCost = id, cost end
  local ms = math.min(${MAX_WAIT_MS}, math.max(${MIN_WAIT_MS}, math.ceil(wait)))
  ticket.ends = now + ms + ${LATE_MS}
  putTicket(id, ticket)
  return {'wait', position, waitingIn(), ms, string.format('%.0f', math.ceil(wait))}
end

local function learnRatio(known, estimated, remaining)
  local more = estimated - known.seenEstimated
  if known.seen >= 0 and (more <= 0 or more * known.ratio < known.limit * ${LEARNS_FROM}) then return end
  local filled = known.seen + known.rate * (now - known.seenAt)
  if known.seen >= 0 and filled < known.limit then
    local ratio = math.min(${MAX_RATIO}, math.max(${MIN_RATIO}, (filled - remaining) / more))
    known.ratio = known.ratio * 0.7 + ratio * 0.3
  end
  known.seen, known.seenAt, known.seenEstimated = remaining, now, estimated
end

local function learn()
  local id = given.id
  local lease = unpacked(KEYS[4], id)
  local all = {}
  local texts = redis.call('HGETALL', KEYS[4])
  for i = 1, #texts, 2 do all[texts[i]] = cmsgpack.unpack(texts[i + 1]) end
  for _, kind in ipairs(KINDS) do
    local told = given.seen[kind]
    if told and kind ~= 'streams' then
      local most = given.set[kind] or told.limit
      local limit = math.min(most, told.limit)
      local source = limit < told.limit and ${BY_SETTING} or ${BY_ANSWERS}
      local remaining = math.max(0, told.remaining - (told.limit - limit))
      local rate = limit / (source == ${BY_SETTING} and 60000 or told.perMs)
      local known = buckets[kind]
      local estimated = lease and lease.estimated[kind]
      if not known then
        buckets[kind] = newBucket(limit, rate, remaining, source)
      else
        if known.limit ~= limit or known.source ~= source or told.perMs ~= 60000 then resize(known, limit, rate, source) end
        if not estimated then
          known.level = math.min(known.level, remaining)
        else
          local unseen = known.estimated - estimated
          for other, one in pairs(all) do
            local isBefore = (one.estimated[kind] or 0) <= estimated
            if isBefore and (kind == 'output' or (other ~= id and one.isHeard == 0)) then unseen = unseen + (one.base[kind] or 0) end
          end
          local least = remaining - unseen * known.ratio
          local highest = remaining + known.rate * math.max(0, now - lease.at)
          known.level = math.min(known.limit, highest, math.max(least, known.level))
          if kind ~= 'requests' then learnRatio(known, estimated, remaining) end
        end
      end
    end
  end
  if lease then
    lease.isHeard = 1
    putLease(id, lease)
  end
end

local function slowDown(lease)
  for _, one in pairs(buckets) do
    if one.source ~= ${BY_REFUSALS} then return end
  end
  local known = buckets.streams
  if not known then
    buckets.streams = newBucket(${FIRST_GUESS}, 0, ${FIRST_GUESS}, ${BY_REFUSALS})
    buckets.streams.seenAt = state.at
  elseif lease and lease.at > known.seenAt then
    known.limit, known.seenAt = math.max(1, known.limit / 2), state.at
  end
end

local function speedUp()
  local known = buckets.streams
  if not known or known.source ~= ${BY_REFUSALS} then return end
  if known.limit >= ${MAX_GUESS} then buckets.streams = nil else known.limit = known.limit + 1 / known.limit end
end

local function release()
  local id = given.id
  leave(id)
  local lease = unpacked(KEYS[4], id)
  redis.call('HDEL', KEYS[4], id)
  redis.call('ZREM', KEYS[5], 'l' .. id)
  if given.refusedMs then
    state.blocked = math.max(state.blocked, now + given.refusedMs)
    slowDown(lease)
    return
  end
  speedUp()
  if not lease then return end
  state.duration = math.max(100, state.duration * 0.9 + (now - lease.at) * 0.1)
  if lease.isHeard == 1 or not given.input or not given.output then return end
  local used = {input = given.input, output = given.output, tokens = given.input + given.output}
  for kind, count in pairs(used) do
    local known, base, need = buckets[kind], lease.base[kind], lease.need[kind]
    if known and base and need and base > 0 then
      known.level = math.min(known.limit, known.level + need - count)
      known.ratio = known.ratio * 0.9 + 0.1 * math.min(${MAX_RATIO}, math.max(${MIN_RATIO}, count / base))
    end
  end
end

pass()
local answer
if doing == 'take' then answer = take()
elseif doing == 'learn' then learn()
elseif doing == 'release' then release()
else return {cjson.encode(state), redis.call('HLEN', KEYS[4]), string.format('%.0f', now)} end
-- A provider that says nothing of limits leaves nothing here.
if stored or next(buckets) ~= nil or state.blocked > now then
  redis.call('SET', KEYS[1], cmsgpack.pack(state), 'PX', ${FORGOTTEN_MS})
  for i = 2, 6 do redis.call('PEXPIRE', KEYS[i], ${FORGOTTEN_MS}) end
end
return answer or {}
`;

/** `clock`: of tests; else Redis has the time, since the clocks of machines differ. */
export function createRedisRateLimits(link: RedisLink, clock?: () => number): RateLimits {
  // A cluster takes it as a server does.
  (link.redis as unknown as Pick<Redis, 'defineCommand'>).defineCommand(COMMAND, { lua: LIMIT, numberOfKeys: WHAT.length });
  const run = (attempt: string, of: string, doing: string, given: object): Promise<unknown> =>
    link.ask(`${attempt} ${of}`, (redis) =>
      (redis as unknown as LimitingRedis)[COMMAND](
        ...WHAT.map((what) => limitKey(of, what)),
        doing,
        clock ? String(clock()) : '',
        JSON.stringify(given),
      ),
    );
  return {
    async take(of, claim) {
      const { tenant: _tenant, isBackground: _isBackground, ...rest } = claim;
      const [status, position, waiting, ms, expectedMs] = (await run('take room of', of, 'take', { ...rest, flow: toFlow(claim) })) as [
        Taken['status'],
        ...number[],
      ];
      if (status !== 'wait') return { status };
      return { status, position: Number(position), waiting: Number(waiting), ms: Number(ms), expectedMs: Number(expectedMs) };
    },

    async learn(of, id, seen, set) {
      await run('note what is left of', of, 'learn', { id, seen: withPeriods(seen), set });
    },

    async release(of, id, outcome) {
      await run('give back room of', of, 'release', { id, ...outcome });
    },

    async list() {
      const attempt = 'see the limits of providers';
      const names = new Set<string>();
      for await (const key of scanKeys(link, attempt, literally('perdura:{r:'))) {
        const of = /^perdura:\{r:([^}]*)\}:state$/.exec(key)?.[1];
        if (of !== undefined) names.add(decodeURIComponent(of));
      }
      return Promise.all(
        [...names].sort().map(async (of) => {
          const [state, streams, now] = (await run('see the limits of', of, 'show', {})) as [string, number, string];
          return showLimiter(of, JSON.parse(state) as Omit<LimiterState, 'tickets' | 'leases'>, streams, Number(now));
        }),
      );
    },
  };
}

function limitKey(of: string, what: (typeof WHAT)[number]): string {
  return `perdura:{r:${escapedForKey(of)}}:${what}`;
}
