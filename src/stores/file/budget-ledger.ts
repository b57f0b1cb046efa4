/** The ledger of a shared budget (records/shared-budget.ts), folded from lines of the journal of the conversation that has the budget. */
import {
  addAmounts,
  isUsedUp,
  LEASE_MS,
  missingIn,
  NOTHING_USED,
  type Amount,
  type Limit,
  type Room,
  type RoomClaim,
} from '../../records/shared-budget.js';
import { isRecord } from '../../platform/json.js';

/** What one line says: everything that it changes, and nothing that was so before. */
export interface BudgetLine {
  readonly v: 1;
  readonly kind: 'budget';
  readonly limit?: Limit;
  readonly used?: readonly (readonly [member: string, amount: Amount])[];
  /** Of members that are not known. */
  readonly more?: Amount;
  readonly reserved?: { readonly id: string; readonly estimate: Amount; readonly at: number };
  readonly settled?: { readonly id: string; readonly amount: Amount; readonly member?: string };
  readonly released?: string;
}

export interface BudgetLedger {
  limit: Limit | undefined;
  used: Amount;
  readonly members: Map<string, Amount>;
  readonly settled: Set<string>;
  readonly open: Map<string, { readonly estimate: Amount; readonly at: number }>;
}

export function emptyLedger(): BudgetLedger {
  return { limit: undefined, used: NOTHING_USED, members: new Map(), settled: new Set(), open: new Map() };
}

export function foldBudget(ledger: BudgetLedger, { limit, used = [], more, reserved, settled, released }: BudgetLine): void {
  if (limit && limit.at > (ledger.limit?.at ?? -1)) ledger.limit = limit;
  for (const [member, amount] of used) add(ledger, amount, member);
  if (more) add(ledger, more);
  if (reserved && !ledger.settled.has(reserved.id)) ledger.open.set(reserved.id, reserved);
  if (settled && !ledger.settled.has(settled.id)) {
    ledger.settled.add(settled.id);
    ledger.open.delete(settled.id);
    add(ledger, settled.amount, settled.member);
  }
  if (released !== undefined) ledger.open.delete(released);
}

function add(ledger: BudgetLedger, amount: Amount, member?: string): void {
  ledger.used = addAmounts(ledger.used, amount);
  if (member !== undefined) ledger.members.set(member, addAmounts(ledger.members.get(member) ?? NOTHING_USED, amount));
}

/** The answer to a claim (shared-budget.ts), and what is to be written with it; no line where nothing is new. */
export function claimRoom(ledger: BudgetLedger, claim: RoomClaim): { readonly room: Room; readonly line?: BudgetLine } {
  const { id, estimate, now, waits } = claim;
  const { limit: said, at } = claim;
  const limit = at > (ledger.limit?.at ?? -1) ? { limit: said, at } : undefined;
  const gaps = claim.used.map(([member, amount]) => [member, missingIn(ledger.members.get(member) ?? NOTHING_USED, amount)] as const);
  const used = gaps.filter(([, amount]) => !isNothing(amount));
  const known = used.reduce((sum, [, amount]) => addAmounts(sum, amount), ledger.used);
  const more = missingIn(known, claim.atLeast);
  const sum = addAmounts(known, more);
  const inForce = (limit ?? ledger.limit)?.limit ?? {};

  const isKnown = ledger.settled.has(id) || isOpen(ledger.open.get(id), now);
  const open = [...ledger.open].reduce((all, [, one]) => (isOpen(one, now) ? addAmounts(all, one.estimate) : all), NOTHING_USED);
  // Also of one that is known: it is another attempt that asks, and it has not called yet.
  const isOver = isUsedUp(sum, inForce);
  const isBusy = waits && !isKnown && isUsedUp(addAmounts(sum, open), inForce);
  const status = isOver ? 'used-up' : isBusy ? 'busy' : 'granted';
  const news = {
    ...(limit && { limit }),
    ...(used.length > 0 && { used }),
    ...(!isNothing(more) && { more }),
    ...(status === 'granted' && !isKnown && { reserved: { id, estimate, at: now } }),
    ...(isOver && ledger.open.has(id) && { released: id }),
  };
  return { room: { status, used: sum, limit: inForce }, ...(Object.keys(news).length > 0 && { line: { v: 1, kind: 'budget', ...news } }) };
}

function isOpen(reserved: { readonly at: number } | undefined, now: number): boolean {
  return reserved !== undefined && reserved.at + LEASE_MS > now;
}

function isNothing({ tokens, nanoUsd }: Amount): boolean {
  return tokens === 0 && nanoUsd === 0;
}

/** Checked here and nowhere else: whether a line of the journal is of a budget. */
export function isBudgetLine(line: { readonly [field: string]: unknown }): boolean {
  const { limit, used = [], more, reserved, settled, released } = line as { readonly [field: string]: unknown };
  return (
    (limit === undefined || (isRecord(limit) && Number.isFinite(limit['at']) && isRecord(limit['limit']))) &&
    Array.isArray(used) &&
    used.every((one) => Array.isArray(one) && typeof one[0] === 'string' && isAmount(one[1])) &&
    (more === undefined || isAmount(more)) &&
    (reserved === undefined ||
      (isRecord(reserved) && typeof reserved['id'] === 'string' && isAmount(reserved['estimate']) && Number.isFinite(reserved['at']))) &&
    (settled === undefined || (isRecord(settled) && typeof settled['id'] === 'string' && isAmount(settled['amount']))) &&
    (released === undefined || typeof released === 'string')
  );
}

function isAmount(value: unknown): boolean {
  return isRecord(value) && Number.isSafeInteger(value['tokens']) && Number.isSafeInteger(value['nanoUsd']);
}
