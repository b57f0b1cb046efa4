/**
 * Which turns long-term memory has been given, over all lives that share them. A turn is claimed where its entries lie, by the first request
 * that comes to it; the memory workflow of the scope takes one request at a time, so two never claim at once.
 *
 * @rule memory/turn-claimed-once: Each turn is consolidated by one request, whichever lives, branches, forks and resumed conversations have
 *   it. A turn that none has claimed is due in every life that goes on from it. (test: test/workflows/consolidated-once.test.ts)
 */
import { listSlots, toRanges } from '../../records/slots.js';
import type { WindowTurn } from '../../conversation/state/compaction-state.js';
import { isPinned, type Entry } from '../../records/message.js';
import { countMessages } from '../../memory/consolidation/message-lines.js';
import { slotsIn, sortedRanges, type PastTurn } from '../../memory/prefix.js';
import type { ConversationKey, Store } from '../../stores/store.js';

type Lives = Pick<Store, 'lives'>;

/** Each is a part of a step's result, and what is imported may have any number. */
const MAX_WINDOW = 5_000;

/** Entries of turns that no other request has; they are this one's from now on. The same request gets the same again. */
export async function claimTurns(store: Lives, key: ConversationKey, id: string, entries: readonly Entry[]): Promise<Entry[]> {
  const owners = await findOwners(
    store,
    key,
    entries.map(({ slot }) => slot),
  );
  const others = await claimedSlots(store, owners, id);
  const taken = new Set(entries.flatMap(({ slot, turn }) => (others.has(slot) ? [turn] : [])));
  const free = entries.filter(({ turn }) => !taken.has(turn));
  const slots = new Set(free.map(({ slot }) => slot));
  for (const { owner, slots: owned } of owners) {
    const claimed = owned.filter((slot) => slots.has(slot));
    if (claimed.length > 0) await store.lives.claim(owner, { v: 1, id, slots: sortedRanges(claimed) });
  }
  return free;
}

/** Turns of a session that no request has, the newest of very many. */
export async function listUnclaimed(store: Lives, key: ConversationKey, session: readonly PastTurn[]): Promise<WindowTurn[]> {
  const claimed = await claimedSlots(store, await findOwners(store, key, slotsIn(session)));
  const left = session.filter(({ number, entries }) => number > 0 && !entries.some(({ slot }) => claimed.has(slot))).slice(-MAX_WINDOW);
  return left.map(({ number, entries: all }) => {
    // Such a chunk stays until a reducer removes it (context/chunk-is-entry).
    const entries = all.filter(({ message }) => !isPinned(message));
    return { turn: number, messages: countMessages(entries), slots: toRanges(entries.map(({ slot }) => slot)) };
  });
}

/** A life that reads these from another one copies what was claimed of them too. */
export async function copyClaims(
  { lives }: Lives,
  from: ConversationKey,
  { to, slots }: { readonly to: ConversationKey; readonly slots: ReadonlySet<number> },
): Promise<void> {
  for (const claim of await lives.claims(from)) {
    const copied = listSlots(claim.slots).filter((slot) => slots.has(slot));
    if (copied.length > 0) await lives.claim(to, { ...claim, slots: toRanges(copied) });
  }
}

interface Owned {
  readonly owner: ConversationKey;
  readonly slots: readonly number[];
}

/** The lives in which entries lie. */
async function findOwners({ lives }: Lives, key: ConversationKey, slots: readonly number[]): Promise<Owned[]> {
  const left = new Set(slots);
  const shared = ((await lives.beginning(key))?.shared ?? []).map(({ slots: ranges, conversation, life, scope }): Owned => {
    const owner = { namespace: key.namespace, conversation, life, scope };
    return { owner, slots: listSlots(ranges).filter((slot) => left.delete(slot)) };
  });
  return [...shared, { owner: key, slots: [...left] }].filter((one) => one.slots.length > 0);
}

async function claimedSlots({ lives }: Lives, owners: readonly Owned[], except?: string): Promise<Set<number>> {
  const claimed = new Set<number>();
  for (const { owner, slots } of owners) {
    const wanted = new Set(slots);
    for (const { id, slots: ranges } of await lives.claims(owner)) {
      if (id !== except) for (const slot of listSlots(ranges)) if (wanted.has(slot)) claimed.add(slot);
    }
  }
  return claimed;
}
