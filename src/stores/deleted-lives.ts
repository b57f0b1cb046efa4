/**
 * What is written to a deleted life does not stay: a worker may still be at work when a conversation is deleted.
 *
 * - The tombstone is written before anything is removed, and checked after each write. So a late write is removed with the rest, or sees
 *   the tombstone and is removed here; there is no lock, and no write waits before it is made.
 * - A store that checks by itself, in the step that writes, needs that only for rare writes; its refusal is put into words here.
 * - Reads are as of any life that does not exist.
 */
import { deletedAt } from './collections/lives.js';
import { LifeDeleted, type ConversationKey, type Lives, type Store } from './store.js';

type Guarded = Pick<
  Store,
  'entries' | 'bodies' | 'items' | 'effects' | 'writes' | 'lives' | 'feed' | 'episodes' | 'turnEnds' | 'budgets' | 'vectors'
>;

/** Makes of a method that writes to a life one that throws LifeDeleted, and leaves nothing, where the life was deleted. */
type Guard = <Args extends readonly unknown[], Result>(
  write: (key: ConversationKey, ...args: Args) => Promise<Result>,
) => (key: ConversationKey, ...args: Args) => Promise<Result>;

export interface DeletedGuard {
  readonly after: Guard;
  readonly onFailure: Guard;
}

export interface Removal {
  /** Everything of one life. */
  readonly remove: (key: ConversationKey) => Promise<void>;
  /** Whether a store that looks itself has found a tombstone. */
  readonly isRefusal?: (error: unknown) => boolean;
}

export function createDeletedGuard(lives: Pick<Lives, 'deleted'>, { remove, isRefusal = () => false }: Removal): DeletedGuard {
  const refuse = async (key: ConversationKey): Promise<void> => {
    const at = await deletedAt(lives, key);
    if (at === undefined) return;
    await remove(key);
    throw new LifeDeleted(`write to ${key.conversation}`, { conversation: key.conversation, at });
  };
  return {
    after:
      (write) =>
      async (key, ...args) => {
        const result = await write(key, ...args);
        await refuse(key);
        return result;
      },
    onFailure:
      (write) =>
      async (key, ...args) => {
        try {
          return await write(key, ...args);
        } catch (error) {
          // Not after each failure: a store that is away would be waited for twice.
          if (isRefusal(error)) await refuse(key);
          throw error;
        }
      },
  };
}

/** `byItself`: the store looks for tombstones in the step that writes entries, effects, items, long texts and live events. */
export function withDeletedGuarded<S extends Guarded>(
  store: S,
  { after, onFailure }: DeletedGuard,
  { byItself }: { readonly byItself: boolean },
): S {
  const { entries, bodies, items, effects, writes, lives, feed, episodes, turnEnds, budgets, vectors } = store;
  const often = byItself ? onFailure : after;
  return {
    ...store,
    entries: {
      ...entries,
      record: often((key, given) => entries.record(key, given)),
      append: often((key, given) => entries.append(key, given)),
      archive: often((key, slots, move) => entries.archive(key, slots, move)),
      restore: often((key, slots, move) => entries.restore(key, slots, move)),
    },
    bodies: { ...bodies, put: often((key, text) => bodies.put(key, text)) },
    items: {
      ...items,
      put: often((key, given) => items.put(key, given)),
      remove: after((key, ids) => items.remove(key, ids)),
      cite: after((key, id, citation) => items.cite(key, id, citation)),
    },
    effects: {
      reserve: often((key, claim, attempt) => effects.reserve(key, claim, attempt)),
      commit: often((key, claim, result, given, extras) => effects.commit(key, claim, result, given, extras)),
      fence: often((key, ids) => effects.fence(key, ids)),
      spend: after((key, id, spending) => effects.spend(key, id, spending)),
    },
    writes: { apply: often((key, batch) => writes.apply(key, batch)) },
    lives: {
      ...lives,
      begin: after((key, beginning) => lives.begin(key, beginning)),
      cut: after((key, cut) => lives.cut(key, cut)),
    },
    feed: { ...feed, publish: often((key, events) => feed.publish(key, events)) },
    episodes: {
      ...episodes,
      add: after((key, episode) => episodes.add(key, episode)),
      remove: after((key, id) => episodes.remove(key, id)),
    },
    turnEnds: { ...turnEnds, add: after((key, ends) => turnEnds.add(key, ends)) },
    vectors: { ...vectors, add: after((key, given) => vectors.add(key, given)) },
    budgets: {
      reserve: after((key, claim) => budgets.reserve(key, claim)),
      settle: after((key, id, amount, member) => budgets.settle(key, id, amount, member)),
      release: after((key, id) => budgets.release(key, id)),
      limit: after((key, limit) => budgets.limit(key, limit)),
    },
  };
}
