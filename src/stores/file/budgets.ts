/** Shared budgets in files: their ledgers are lines of the journal of the conversation that has the budget (budget-ledger.ts). */
import { claimRoom, type BudgetLedger, type BudgetLine } from './budget-ledger.js';
import type { Budgets, ConversationKey } from '../store.js';
import type { Room } from '../../records/shared-budget.js';

/** Under the journal's lock: what `line` says is written where it says something. */
export type WriteBudget = (key: ConversationKey, attempt: string, line: (ledger: BudgetLedger) => BudgetLine | undefined) => Promise<void>;

export function createFileBudgets(write: WriteBudget): Budgets {
  return {
    async reserve(key, claim) {
      let room: Room | undefined;
      await write(key, `reserve ${claim.id} in the budget`, (ledger) => {
        const claimed = claimRoom(ledger, claim);
        room = claimed.room;
        return claimed.line;
      });
      if (!room) throw new Error(`the budget of ${key.conversation} was not looked at`);
      return room;
    },

    settle: (key, id, amount, member) =>
      write(key, `settle ${id} in the budget`, ({ settled }) =>
        settled.has(id) ? undefined : { v: 1, kind: 'budget', settled: { id, amount, ...(member !== undefined && { member }) } },
      ),

    release: (key, id) =>
      write(key, `release ${id} in the budget`, ({ open }) => (open.has(id) ? { v: 1, kind: 'budget', released: id } : undefined)),

    limit: (key, limit) =>
      write(key, 'set the budget', (ledger) =>
        limit.at > (ledger.limit?.at ?? -1) ? { v: 1, kind: 'budget', limit: { limit: limit.limit, at: limit.at } } : undefined,
      ),
  };
}
