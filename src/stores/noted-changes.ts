/**
 * Which lives of a scope were written to is noted beside the write, so that an index need not look at every life there is.
 *
 * @rule stores/note-after-write: The note comes after its write, and before the answer: a process that reads the notes and then the lives
 *   misses no answered write. If a writer died before its note, its write was never answered, and comes again with the note. (test:
 *   test/stores/scopes-contract.ts)
 * @rule stores/lost-notes-cost-a-look: Notes may be lost at any time; then a search looks at all lives. (test:
 *   test/stores/scopes-contract.ts)
 */
import type { ConversationKey, Store } from './store.js';

type Noted = Pick<Store, 'entries' | 'items' | 'effects' | 'writes' | 'lives' | 'episodes' | 'vectors'>;
type Note = (key: ConversationKey) => Promise<void> | void;

/** `byItself`: the store notes by itself what it writes most often, entries. */
export function withChangesNoted<S extends Noted>(store: S, note: Note, { byItself }: { readonly byItself: boolean }): S {
  const { entries, items, effects, writes, lives, episodes, vectors } = store;
  const noted =
    <Args extends readonly unknown[], Result>(
      write: (key: ConversationKey, ...args: Args) => Promise<Result>,
      changes: (...args: Args) => boolean = () => true,
    ) =>
    async (key: ConversationKey, ...args: Args): Promise<Result> => {
      const result = await write(key, ...args);
      if (changes(...args)) await note(key);
      return result;
    };
  const ofEntries: Partial<Noted> = byItself
    ? {}
    : {
        entries: {
          ...entries,
          record: noted((key, given) => entries.record(key, given)),
          append: noted((key, given) => entries.append(key, given)),
        },
        effects: {
          ...effects,
          commit: noted(
            (key, claim, result, given, extras) => effects.commit(key, claim, result, given, extras),
            (_claim, _result, given, extras) => given.length + (extras?.items?.length ?? 0) > 0,
          ),
        },
        writes: {
          apply: noted(
            (key, batch) => writes.apply(key, batch),
            ({ record = [], append = [] }) => record.length + append.length > 0,
          ),
        },
      };
  return {
    ...store,
    ...ofEntries,
    items: {
      ...items,
      put: noted((key, given) => items.put(key, given)),
      remove: noted((key, ids) => items.remove(key, ids)),
    },
    lives: {
      ...lives,
      begin: noted((key, beginning) => lives.begin(key, beginning)),
      cut: noted((key, cut) => lives.cut(key, cut)),
      delete: noted((key) => lives.delete(key)),
    },
    episodes: {
      ...episodes,
      add: noted((key, episode) => episodes.add(key, episode)),
      remove: noted((key, id) => episodes.remove(key, id)),
    },
    vectors: {
      ...vectors,
      add: noted((key, given) => vectors.add(key, given)),
      keep: noted((key, texts) => vectors.keep(key, texts)),
    },
  };
}
