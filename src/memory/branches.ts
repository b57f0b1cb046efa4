/** A conversation's turns as they stand now, and those that rewinds have cut out. */
import type { Entry } from '../records/message.js';
import { listSlots } from '../records/slots.js';
import { turnId, turnNumber } from '../records/identity.js';
import { byTurn, type TurnEnd } from '../records/turn-end.js';
import type { ConversationKey, Store } from '../stores/store.js';
import { readEntries } from './past-life.js';
import { currentLine, slotsIn, groupTurns } from './prefix.js';

/** Turns that a rewind has cut; any of them can be forked from. */
export interface Branch {
  readonly branch: number;
  /** The last turn that stayed. */
  readonly after: string;
  readonly turns: readonly string[];
  readonly at: Date;
}

export async function readCurrent(store: Store, key: ConversationKey, after = 0): Promise<Entry[]> {
  const [{ entries }, cuts] = await Promise.all([readEntries(store, key, { after }), store.lives.cuts(key)]);
  if (cuts.length === 0) return entries;
  // Which turn follows which is seen from the whole alone.
  const whole = after === 0 ? entries : (await readEntries(store, key)).entries;
  const now = new Set(slotsIn(currentLine(whole, cuts)));
  return entries.filter(({ slot }) => now.has(slot));
}

/** The last ones before a slot; `previous` is the slot before which the next ones lie, null where there are none. */
export async function readLatest(
  store: Store,
  key: ConversationKey,
  { last, before = Infinity }: { readonly last: number; readonly before?: number },
): Promise<{ readonly entries: Entry[]; readonly previous: number | null }> {
  if ((await store.lives.cuts(key)).length > 0) {
    const all = (await readCurrent(store, key)).filter(({ slot }) => slot < before);
    const entries = all.slice(-last);
    return { entries, previous: all.length > entries.length ? (entries[0]?.slot ?? null) : null };
  }
  const { last: highest } = await store.entries.page(key, 0, 1);
  const until = Math.min(highest, before - 1);
  const after = Math.max(0, until - last);
  const { entries } = await readEntries(store, key, { after, until });
  return { entries, previous: after > 0 ? after + 1 : null };
}

/** Undefined when there is no such branch. */
export async function readBranch(store: Store, key: ConversationKey, branch: number): Promise<Entry[] | undefined> {
  const cut = (await store.lives.cuts(key)).find((one) => one.branch === branch);
  if (!cut) return undefined;
  const slots = new Set(listSlots(cut.slots));
  return (await readEntries(store, key)).entries.filter(({ slot }) => slots.has(slot));
}

export async function readBranches(store: Store, key: ConversationKey): Promise<Branch[]> {
  const cuts = await store.lives.cuts(key);
  const branches = await Promise.all(
    cuts.map(async ({ branch, to, slots, at }) => {
      const entries = (await store.entries.read(key, listSlots(slots))).flatMap((entry) => entry ?? []);
      const turns = groupTurns(entries)
        .map(({ number }) => turnId(number))
        .sort((a, b) => turnNumber(a) - turnNumber(b));
      return { branch, after: turnId(to), turns, at: new Date(at * 1000) };
    }),
  ); // A rewind back into a branch may have cut nothing.
  return branches.filter(({ turns }) => turns.length > 0);
}

/** A turn of another life is numbered below all turns of this one: it is shared up to where this one began. */
export async function readTurnEnds(store: Store, key: ConversationKey): Promise<TurnEnd[]> {
  const [turnEnds, beginning] = await Promise.all([store.turnEnds.list(key), store.lives.beginning(key)]);
  if (!beginning) return turnEnds;
  const shared = await Promise.all(
    beginning.shared.map(({ conversation, life, scope }) => store.turnEnds.list({ ...key, conversation, life, scope })),
  );
  const turns = new Set(turnEnds.map(({ turn }) => turn));
  return [...shared.flat().filter(({ turn }) => turnNumber(turn) <= beginning.turn && !turns.has(turn)), ...turnEnds].sort(byTurn);
}
