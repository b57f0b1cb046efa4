/** Whose items a session sees: its own, and those of the sessions that a rewind past `/new` went back into; none that a rewind has cut. */
import type { Cut } from '../../records/lives.js';
import { withSlot, type SlotRange } from '../../records/slots.js';
import type { ConversationKey, Store } from '../../stores/store.js';
import { cutBefore } from '../prefix.js';

/** Of an item or an entry; `slot` is absent for what no call has stored. */
export type IsSeen = (one: { readonly session: number; readonly slot?: number }) => boolean;

export async function seenBy(store: Pick<Store, 'lives' | 'entries'>, key: ConversationKey, session: number): Promise<IsSeen> {
  const [cuts, beginning] = await Promise.all([store.lives.cuts(key), store.lives.beginning(key)]);
  const groups = (beginning?.joined ?? []).map((one) => [one.session, ...one.of]);
  const sessions = new Set([session]);
  for (const at of sessions) {
    for (const number of groups.find((group) => group.includes(at)) ?? []) sessions.add(number);
    const kept = cuts.filter((cut) => cut.session === at).map(({ begun }) => begun);
    for (const entry of await store.entries.read(key, kept)) if (entry && entry.session < at) sessions.add(entry.session);
  }
  // What an origin has cut since is still here.
  const here = await slotsInLine(store, key, cuts);
  const isCut = (slot: number): boolean => cuts.some(({ slots }) => slots.some(holds(slot))) && !here.some(holds(slot));
  return ({ session: of, slot }) => sessions.has(of) && (slot === undefined || !isCut(slot));
}

/** Where the conversation stands now; a rewind may have gone back into what another one had cut. As `lineTo` in prefix.ts, by slots. */
async function slotsInLine(store: Pick<Store, 'entries'>, key: ConversationKey, cuts: readonly Cut[]): Promise<SlotRange[]> {
  const here: SlotRange[] = [];
  for (let upper = Infinity; ;) {
    const cut = cutBefore(cuts, upper);
    here.push([(cut?.slot ?? -1) + 1, upper]);
    if (!cut) return here;
    here.push(...(await restOfTurn(store, key, cut)));
    upper = cut.begun;
  }
}

const PAGE = 500;

/** Slots of the turn that a rewind goes on from, after its first answer. */
async function restOfTurn({ entries }: Pick<Store, 'entries'>, key: ConversationKey, { begun, slot: last }: Cut): Promise<SlotRange[]> {
  const [first] = await entries.read(key, [begun]);
  const slots: number[] = [];
  for (let after = begun; first !== undefined && after < last; after += PAGE) {
    const page = await entries.page(key, after, Math.min(PAGE, last - after));
    slots.push(...page.entries.filter(({ turn }) => turn === first.turn).map(({ slot }) => slot));
  }
  return slots.reduce<readonly SlotRange[]>(withSlot, []) as SlotRange[];
}

function holds(slot: number): (range: SlotRange) => boolean {
  return ([first, last]) => first <= slot && slot <= last;
}
