/** Whose items a session sees: its own, and those of the sessions that a rewind past `/new` went back into; none that a rewind has cut. */
import type { SlotRange } from '../../records/slots.js';
import type { ConversationKey, Store } from '../../stores/store.js';

/** Of an item or an entry; `slot` is absent for what no call has stored. */
export type IsSeen = (one: { readonly session: number; readonly slot?: number }) => boolean;

export async function seenBy(store: Pick<Store, 'lives' | 'entries'>, key: ConversationKey, session: number): Promise<IsSeen> {
  const [own, beginning] = await Promise.all([store.lives.cuts(key), store.lives.beginning(key)]);
  const origins = (beginning?.shared ?? []).map(({ conversation, life, scope }) => ({ ...key, conversation, life, scope }));
  const cuts = [...own, ...(await Promise.all(origins.map((origin) => store.lives.cuts(origin)))).flat()];
  const sessions = new Set([session]);
  for (const at of sessions) {
    const kept = cuts.filter((cut) => cut.session === at).map(({ begun }) => begun);
    for (const entry of await store.entries.read(key, kept)) if (entry && entry.session < at) sessions.add(entry.session);
  }
  // What an origin has cut since is still here.
  const isCut = (slot: number): boolean => own.some(({ slots }) => slots.some(holds(slot)));
  return ({ session: of, slot }) => sessions.has(of) && (slot === undefined || !isCut(slot));
}

function holds(slot: number): (range: SlotRange) => boolean {
  return ([first, last]) => first <= slot && slot <= last;
}
