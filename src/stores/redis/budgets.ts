/**
 * Shared budgets in Redis. Who works under one is in another cluster slot than its ledger: a reservation is a write of its own, idempotent
 * by its id, and no part of the write of the step that wants it.
 */
import type { Budget } from '../../records/identity.js';
import { LEASE_MS, toNanoUsd, toUsd } from '../../records/shared-budget.js';
import { keyOf } from './keys.js';
import type { RedisLink } from './link.js';
import type { Budgets, ConversationKey } from '../store.js';

export function createRedisBudgets(link: RedisLink): Budgets {
  return {
    async reserve(key, { id, estimate, now, used, atLeast, waits, ...of }) {
      const [status, tokens, nano, maxTokens, maxNano] = await link.ask(`reserve ${id} in the budget of ${key.conversation}`, (redis) =>
        redis.perduraReserveRoom(
          ...keysOf(key),
          id,
          ...[now, estimate.tokens, estimate.nanoUsd].map(String),
          waits ? '1' : '0',
          String(LEASE_MS),
          String(of.at),
          ...limitOf(of.limit),
          ...[atLeast.tokens, atLeast.nanoUsd].map(String),
          ...used.flatMap(([member, amount]) => [member, String(amount.tokens), String(amount.nanoUsd)]),
        ),
      );
      const limit: Budget = {
        ...(maxTokens !== '' && { maxTokens: Number(maxTokens) }),
        ...(maxNano !== '' && { maxCostUsd: toUsd({ tokens: 0, nanoUsd: Number(maxNano) }) }),
      };
      return { status, used: { tokens: Number(tokens), nanoUsd: Number(nano) }, limit };
    },

    async settle(key, id, amount, member = '') {
      await link.ask(`settle ${id} in the budget of ${key.conversation}`, (redis) =>
        redis.perduraSettleRoom(...keysOf(key), id, member, String(amount.tokens), String(amount.nanoUsd)),
      );
    },

    async release(key, id) {
      await link.ask(`release ${id} in the budget of ${key.conversation}`, (redis) => redis.hdel(keyOf(key, 'budget-open'), id));
    },

    async limit(key, { limit, at }) {
      await link.ask(`set the budget of ${key.conversation}`, (redis) =>
        redis.perduraLimitRoom(keyOf(key, 'budget'), String(at), ...limitOf(limit)),
      );
    },
  };
}

function keysOf(key: ConversationKey): [string, string] {
  return [keyOf(key, 'budget'), keyOf(key, 'budget-open')];
}

function limitOf({ maxTokens, maxCostUsd }: Budget): [string, string] {
  return [maxTokens === undefined ? '' : String(maxTokens), maxCostUsd === undefined ? '' : String(toNanoUsd(maxCostUsd))];
}
