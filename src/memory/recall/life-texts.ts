/** What a life has beside its messages: summaries of older turns, and what its agent has put away. */
import type { ItemRecord } from '../../records/memory/agent-memory.js';
import type { ConversationKey, EpisodeRecord, Store } from '../../stores/store.js';
import { readPages } from '../past-life.js';
import { currentLine, episodesInSight, slotsIn } from '../prefix.js';
import { named, type NamedText } from './indexed-texts.js';
import { lineName } from './lines.js';

/** Those that no rewind has taken back, with what each stands for. */
export async function episodeTexts(store: Store, key: ConversationKey): Promise<(NamedText & Pick<EpisodeRecord, 'slots'>)[]> {
  const [{ episodes }, cuts] = await Promise.all([store.episodes.list(key), store.lives.cuts(key)]);
  return episodesInSight(episodes, cuts).map(({ id, ts, summary, turn_ids, slots }) => ({
    ...named('episode', id, {
      ...{ line: lineName(key, 'episode'), ts, text: summary, trust: 'model' },
      ...{ conversation: key.conversation, turn: turn_ids[0] },
    }),
    slots,
  }));
}

/** What its agent stored itself: results of tools are found as messages. Nothing tells where the agent has it from. */
export async function itemTexts(store: Store, key: ConversationKey): Promise<NamedText[]> {
  const { items } = await store.items.list(key);
  const stored = items.filter(({ source }) => source === 'user');
  if (stored.length === 0) return [];
  const isThere = await slotsThatCount(store, key);
  const texts = stored.map(async ({ id, ts, slot, content }: ItemRecord): Promise<NamedText[]> => {
    const text = slot === undefined || isThere(slot) ? await store.bodies.get(key, content.ref) : undefined;
    if (text === undefined) return [];
    const { conversation } = key;
    return [named('item', id, { line: lineName(key, 'item'), ts, text, trust: 'tool:store_in_memory', conversation })];
  });
  return (await Promise.all(texts)).flat();
}

/** Which slots no rewind has cut. */
export async function slotsThatCount(store: Store, key: ConversationKey): Promise<(slot: number) => boolean> {
  const cuts = await store.lives.cuts(key);
  if (cuts.length === 0) return () => true;
  const { entries } = await readPages(store, key);
  const now = new Set(slotsIn(currentLine(entries, cuts)));
  return (slot) => now.has(slot);
}
