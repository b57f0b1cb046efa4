/**
 * Budgets that a step shares with other conversations (records/shared-budget.ts): a step reserves room before the call, and settles it
 * after the commit. Without shared budgets it does not ask the store.
 */
import { log } from '@temporalio/activity';
import { overSharedBudget } from '../../conversation/context/call-gate.js';
import type { StepFailure } from '../../conversation/outbox/writes.js';
import type { TurnError } from '../../conversation/protocol/contract.js';
import { costUsd } from '../../models/known-models.js';
import type { Usage } from '../../records/message.js';
import { toAmount, type Amount, type Room, type SharedBudget, type Shares } from '../../records/shared-budget.js';
import type { ConversationKey } from '../../stores/store.js';
import type { ConversationDependencies } from '../dependencies.js';
import { retryWrite } from '../effect.js';

/** Assumed tokens of an answer that is not there yet. */
const EXPECTED_ANSWER = 1_000;
/**
 * Milliseconds that a call waits for others to settle; after that it goes as far as the limit itself lets it (records/budget-bounds-calls).
 */
const WAITS_MS = 20_000;
const [FIRST_PAUSE_MS, LAST_PAUSE_MS] = [50, 500];

export type TakenRoom =
  | { readonly kind: 'taken' }
  | { readonly kind: 'used-up'; readonly why: TurnError }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'failed'; readonly failure: StepFailure };

export interface ReservedBudgets {
  /** Throws StoreUnavailable. */
  reserve(expected: { readonly model: string; readonly promptTokens: number }, signal: AbortSignal): Promise<TakenRoom>;
  /** Never throws: the next call brings back a missing amount (records/budget-comes-back). */
  settle(usage: Usage): Promise<void>;
  /** Settles the cost of an attempt without an answer; `attempt`: its unique id. Never throws. */
  settleFailed(attempt: string, usage: Usage): Promise<void>;
  /** After a failure. Never throws. */
  release(): Promise<void>;
}

/** `call`: the effect's id. */
export function sharedBudgets(
  { store, key, models }: Pick<ConversationDependencies, 'store' | 'key' | 'models'>,
  shares: Shares | undefined,
  call: string,
): ReservedBudgets {
  const id = `${key.life}/${call}`;
  const { budgets = [], own } = shares ?? {};
  const toKey = ({ conversation, life }: SharedBudget): ConversationKey => ({ ...key, conversation, life });

  const claim = (budget: SharedBudget, estimate: Amount, waits: boolean): Promise<Room> => {
    const { limit, at, all } = budget;
    const members = [[budget.life, budget.own], ...(own ? [[key.life, own] as const] : [])] as const;
    const used = budget.life === key.life ? members.slice(1) : members;
    return retryWrite(() => store.budgets.reserve(toKey(budget), { id, estimate, now: Date.now(), limit, at, used, atLeast: all, waits }));
  };
  const everywhere = async (what: string, write: (where: ConversationKey) => Promise<void>): Promise<void> => {
    await Promise.all(
      budgets.map((budget) =>
        retryWrite(() => write(toKey(budget))).catch((error: unknown) => {
          log.warn(`a shared budget could not be ${what}`, { of: budget.conversation, call: id, error: String(error) });
        }),
      ),
    );
  };

  return {
    async reserve({ model, promptTokens }, signal) {
      const usage = { inputTokens: promptTokens, cachedTokens: 0, outputTokens: EXPECTED_ANSWER };
      const estimate = toAmount({ ...usage, costUsd: costUsd(models.limits(model), usage) });
      const until = Date.now() + WAITS_MS;
      for (let pause = FIRST_PAUSE_MS; budgets.length > 0; pause = Math.min(LAST_PAUSE_MS, pause * 2)) {
        if (signal.aborted) return { kind: 'stopped' };
        const rooms = await Promise.all(budgets.map((budget) => claim(budget, estimate, Date.now() < until)));
        const over = rooms.findIndex(({ status }) => status === 'used-up');
        if (rooms.every(({ status }) => status === 'granted')) break;
        await everywhere('released', (where) => store.budgets.release(where, id));
        const [room, budget] = [rooms[over], budgets[over]];
        if (room && budget) return { kind: 'used-up', why: overSharedBudget(room.used, room.limit, budget.conversation) };
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
      return { kind: 'taken' };
    },

    settle: (usage) => everywhere('settled', (where) => store.budgets.settle(where, id, toAmount(usage), key.life)),

    // Counts for no member: the conversation does not know this cost, and will not report it again.
    settleFailed: (attempt, usage) => everywhere('settled', (where) => store.budgets.settle(where, `${id}/${attempt}`, toAmount(usage))),

    release: () => everywhere('released', (where) => store.budgets.release(where, id)),
  };
}
