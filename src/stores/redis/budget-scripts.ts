/** The ledger of a shared budget (records/shared-budget.ts), as scripts: what stores/file/budget-ledger.ts does in TypeScript. */

/** Lua's own way to write a number loses digits from 1e14 on. */
const ADD = `
local function add(ledger, member, tokens, nano)
  for what, amount in pairs({tokens = tokens, nano = nano}) do
    if amount > 0 then
      local text = string.format('%.0f', amount)
      redis.call('HINCRBY', ledger, what, text)
      if member ~= '' then redis.call('HINCRBY', ledger, what .. ':' .. member, text) end
    end
  end
end
local function read(ledger, ...)
  local values = redis.call('HMGET', ledger, ...)
  for i, value in ipairs(values) do values[i] = tonumber(value or 0) or 0 end
  return values
end
local function limit(ledger, at, tokens, nano)
  local known = redis.call('HGET', ledger, 'limit-at')
  if tonumber(at) > (tonumber(known or -1) or -1) then
    redis.call('HSET', ledger, 'limit-at', at, 'max-tokens', tokens, 'max-nano', nano)
  end
end
`;

/**
 * KEYS: budget, budget-open. ARGV: id, now, tokens and cost that it is expected to take, 1 where it waits, milliseconds of a lease, the
 * limit's time, tokens and cost ('' none), tokens and cost that were used at least; then member, tokens, cost of each that is known.
 * Answers with the status, what is used, and the limit.
 */
const RESERVE = `${ADD}
local ledger, open = KEYS[1], KEYS[2]
local id, now, tokens, nano, waits, lease = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1', tonumber(ARGV[6])
redis.call('HLEN', open)
limit(ledger, ARGV[7], ARGV[8], ARGV[9])
for i = 12, #ARGV, 3 do
  local known = read(ledger, 'tokens:' .. ARGV[i], 'nano:' .. ARGV[i])
  add(ledger, ARGV[i], tonumber(ARGV[i + 1]) - known[1], tonumber(ARGV[i + 2]) - known[2])
end
local used = read(ledger, 'tokens', 'nano')
add(ledger, '', tonumber(ARGV[10]) - used[1], tonumber(ARGV[11]) - used[2])
used = redis.call('HMGET', ledger, 'tokens', 'nano', 'max-tokens', 'max-nano')
local usedTokens, usedNano, maxTokens, maxNano = tonumber(used[1] or 0), tonumber(used[2] or 0), used[3] or '', used[4] or ''
local function answer(status)
  return {status, string.format('%.0f', usedTokens), string.format('%.0f', usedNano), maxTokens, maxNano}
end
local function isUsedUp(t, n)
  return (maxTokens ~= '' and t >= tonumber(maxTokens)) or (maxNano ~= '' and n >= tonumber(maxNano))
end

-- Also of one that is known: it is another attempt that asks, and it has not called yet.
if isUsedUp(usedTokens, usedNano) then
  redis.call('HDEL', open, id)
  return answer('used-up')
end
if redis.call('HEXISTS', ledger, 'settled:' .. id) == 1 then return answer('granted') end
local openTokens, openNano = 0, 0
local all = redis.call('HGETALL', open)
for i = 1, #all, 2 do
  local t, n, at = string.match(all[i + 1], '^(%d+) (%d+) (%d+)$')
  if not at or tonumber(at) + lease <= now then
    redis.call('HDEL', open, all[i])
  elseif all[i] == id then
    return answer('granted')
  else
    openTokens, openNano = openTokens + tonumber(t), openNano + tonumber(n)
  end
end
if waits and isUsedUp(usedTokens + openTokens, usedNano + openNano) then return answer('busy') end
redis.call('HSET', open, id, string.format('%.0f %.0f %.0f', tokens, nano, now))
return answer('granted')
`;

/** KEYS: budget, budget-open. ARGV: id, member or '', tokens, cost. */
const SETTLE = `${ADD}
redis.call('HLEN', KEYS[2])
if redis.call('HSETNX', KEYS[1], 'settled:' .. ARGV[1], '1') == 1 then add(KEYS[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])) end
redis.call('HDEL', KEYS[2], ARGV[1])
return ''
`;

/** KEYS: budget. ARGV: time, tokens and cost of a limit ('' none). */
const LIMIT = `${ADD}
limit(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
return ''
`;

export const BUDGET_SCRIPTS = {
  perduraReserveRoom: { lua: RESERVE, numberOfKeys: 2 },
  perduraSettleRoom: { lua: SETTLE, numberOfKeys: 2 },
  perduraLimitRoom: { lua: LIMIT, numberOfKeys: 1 },
} as const;

export interface BudgetScriptAnswers {
  readonly perduraReserveRoom: readonly [
    status: 'granted' | 'busy' | 'used-up',
    tokens: string,
    nano: string,
    maxTokens: string,
    maxNano: string,
  ];
  readonly perduraSettleRoom: string;
  readonly perduraLimitRoom: string;
}
