/**
 * The steps around every write to a life, in any store.
 *
 * A write to a deleted life does not stay: a worker may still be at work when a conversation is deleted.
 *
 * - The tombstone is written before anything is removed, and checked after each write. So a late write is removed with the rest, or sees
 *   the tombstone and is removed here; there is no lock, and no write waits before it is made.
 * - A store that checks in the step that writes needs that only for rare writes; its refusal is put into words here.
 * - Reads are as of any life that does not exist.
 *
 * Which lives of a scope were written to is noted beside the write, so that an index need not look at every life there is.
 *
 * @rule stores/note-after-write: The note comes after its write, and before the answer: a process that reads the notes and then the lives
 *   misses no answered write. If a writer died before its note, its write was never answered, and comes again with the note. (test:
 *   test/stores/scopes-contract.ts)
 * @rule stores/lost-notes-cost-a-look: Notes may be lost at any time; then a search looks at all lives. (test:
 *   test/stores/scopes-contract.ts)
 */
import { deletedAt } from './collections/lives.js';
import { LifeDeleted, type ConversationKey, type Lives, type Store } from './store.js';

type Ports = Pick<
  Store,
  'entries' | 'bodies' | 'items' | 'effects' | 'writes' | 'lives' | 'feed' | 'episodes' | 'turnEnds' | 'budgets' | 'vectors'
>;
type Write<Args extends readonly unknown[], Result> = (key: ConversationKey, ...args: Args) => Promise<Result>;
type Wrap = <Args extends readonly unknown[], Result>(write: Write<Args, Result>) => Write<Args, Result>;
/** Names of methods, by port. */
type Methods = { readonly [Port in keyof Ports]?: readonly (keyof Ports[Port])[] };

/** Checked, and noted, by Redis in the step that writes. */
const FREQUENT = {
  entries: ['record', 'append', 'archive', 'restore'],
  bodies: ['put'],
  items: ['put', 'remove', 'cite'],
  effects: ['reserve', 'commit', 'fence'],
  writes: ['apply'],
  feed: ['publish'],
  budgets: ['reserve', 'settle', 'release', 'limit'],
} as const satisfies Methods;
const RARE = {
  effects: ['spend'],
  lives: ['begin', 'cut', 'claim'],
  episodes: ['add', 'remove'],
  turnEnds: ['add'],
  vectors: ['add'],
} as const satisfies Methods;
const NOTED = {
  items: ['put', 'remove'],
  lives: ['begin', 'cut', 'delete'],
  episodes: ['add', 'remove'],
  vectors: ['add', 'keep'],
} as const satisfies Methods;

export interface LifeGuard {
  /** Makes of a write to a life one that throws LifeDeleted, and leaves nothing, where the life was deleted. */
  readonly after: Wrap;
  readonly onFailure: Wrap;
}

export interface Removal {
  /** Everything of one life. */
  readonly remove: (key: ConversationKey) => Promise<void>;
  /** Whether a store that looks itself has found a tombstone. */
  readonly isRefusal?: (error: unknown) => boolean;
}

export function createLifeGuard(lives: Pick<Lives, 'deleted'>, { remove, isRefusal = () => false }: Removal): LifeGuard {
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

export interface LifeWrites {
  readonly guard: LifeGuard;
  readonly note: (key: ConversationKey) => Promise<void> | void;
  /** The store looks for tombstones, and notes entries, in the steps that it takes most often. */
  readonly byItself: boolean;
}

/** Notes first, so that what a guard removes is noted by its removal. */
export function withLifeWrites<S extends Ports>(store: S, { guard, note, byItself }: LifeWrites): S {
  const after =
    <Args extends readonly unknown[], Result>(write: Write<Args, Result>, changes: (...args: Args) => boolean = () => true) =>
    async (key: ConversationKey, ...args: Args): Promise<Result> => {
      const result = await write(key, ...args);
      if (changes(...args)) await note(key);
      return result;
    };
  const { entries, effects, writes } = store;
  const entriesNoted: Partial<Ports> = {
    entries: {
      ...entries,
      record: after((key, given) => entries.record(key, given)),
      append: after((key, given) => entries.append(key, given)),
    },
    effects: {
      ...effects,
      commit: after(
        (key, claim, result, given, extras) => effects.commit(key, claim, result, given, extras),
        (_claim, _result, given, extras) => given.length + (extras?.items?.length ?? 0) > 0,
      ),
    },
    writes: {
      apply: after(
        (key, batch) => writes.apply(key, batch),
        ({ record = [], append = [] }) => record.length + append.length > 0,
      ),
    },
  };
  const noted = wrapMethods({ ...store, ...(!byItself && entriesNoted) }, NOTED, (write) => after(write));
  return wrapMethods(wrapMethods(noted, RARE, guard.after), FREQUENT, byItself ? guard.onFailure : guard.after);
}

function wrapMethods<S extends Ports>(store: S, methods: Methods, wrap: Wrap): S {
  const ports = Object.entries(methods).map(([name, names]) => {
    const port = store[name as keyof Ports] as unknown as { readonly [method: string]: Write<readonly unknown[], unknown> };
    const wrapped = (names as readonly string[]).map((method) => {
      const write: Write<readonly unknown[], unknown> = async (key, ...args) => port[method]?.(key, ...args);
      return [method, wrap(write)] as const;
    });
    return [name, { ...port, ...Object.fromEntries(wrapped) }] as const;
  });
  return { ...store, ...Object.fromEntries(ports) };
}
