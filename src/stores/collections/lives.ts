/** How lives stand on each other: where each begins, what rewinds have cut of it, and who shares its entries. */
import type { Beginning, Cut } from '../../records/lives.js';
import type { SlotRange } from '../../records/slots.js';
import { decodeBeginning, decodeCut, decodeDeleted, decodeFork, type DeletedRecord, type Fork } from '../codecs/lives-codec.js';
import { addOnce, type OpenCollection, type RecordCodec } from './collection.js';
import { LifeDeleted, type ConversationKey, type ConversationName, type Lives } from '../store.js';

const idOfCut = ({ id }: Cut): string => id;
const idOfFork = ({ conversation, life }: Pick<Fork, 'conversation' | 'life'>): string => `${conversation}/${life}`;
const idOfBeginning = (): string => 'beginning';

const BEGINNINGS: RecordCodec<Beginning> = {
  idOf: idOfBeginning,
  encode: (beginning) => JSON.stringify(beginning),
  decode: decodeBeginning,
};
const CUTS: RecordCodec<Cut> = { idOf: idOfCut, encode: (cut) => JSON.stringify(cut), decode: decodeCut };
const FORKS: RecordCodec<Fork> = { idOf: idOfFork, encode: (fork) => JSON.stringify(fork), decode: decodeFork };

const DELETED: RecordCodec<DeletedRecord> = {
  idOf: ({ life }) => life,
  encode: (deleted) => JSON.stringify(deleted),
  decode: decodeDeleted,
};

/** What each store does in its own way. */
export interface LifeStorage {
  readonly list: Lives['list'];
  /** Marks what a life shares of others as archived there already. */
  archiveShared(key: ConversationKey, archived: readonly SlotRange[]): Promise<void>;
  /** Everything of one life. */
  remove(key: ConversationKey, attempt: string): Promise<void>;
}

export function createLives(open: OpenCollection, { list, archiveShared, remove }: LifeStorage): Lives {
  const beginningOf = (key: ConversationKey) => open({ name: 'lineage', key }, BEGINNINGS);
  const cutsOf = (key: ConversationKey) => open({ name: 'cuts', key }, CUTS);
  const forksOf = (key: ConversationKey) => open({ name: 'forks', key }, FORKS);
  const tombstones = createTombstones(open);

  const lives: Lives = {
    async begin(key, beginning) {
      const { conversation, life, scope, namespace } = key;
      const attempt = `write where ${conversation} begins`;
      // First the other lives get to know: one that is shared must not be deleted.
      for (const source of beginning.shared) {
        await addOnce(forksOf({ ...source, namespace }), idOfFork, attempt, { conversation, life, scope });
      }
      await addOnce(beginningOf(key), idOfBeginning, attempt, beginning);
      // Last: who deletes one of them has marked it before the look for forks, so one of the two is refused.
      for (const source of beginning.shared) {
        const at = await deletedAt(lives, { ...source, namespace });
        if (at === undefined) continue;
        await lives.delete(key);
        throw new LifeDeleted(attempt, { conversation: source.conversation, at });
      }
      if (beginning.archived.length > 0) await archiveShared(key, beginning.archived);
    },

    async beginning(key) {
      return (await beginningOf(key).read(`read where ${key.conversation} begins`)).items[0];
    },

    async forks(key) {
      const { items } = await forksOf(key).read(`read the forks of ${key.conversation}`);
      const there = await Promise.all(items.map((fork) => lives.beginning({ ...fork, namespace: key.namespace })));
      return items.filter((_, i) => there[i] !== undefined).map(({ conversation, life }) => ({ conversation, life }));
    },

    cut: (key, cut) => addOnce(cutsOf(key), idOfCut, `cut turns out of ${key.conversation}`, cut),

    async cuts(key) {
      const { items } = await cutsOf(key).read(`read the branches of ${key.conversation}`);
      return [...items].sort((a, b) => a.branch - b.branch);
    },

    list,

    async delete(key) {
      const attempt = `delete ${key.conversation}`;
      const beginning = await lives.beginning(key);
      for (const source of beginning?.shared ?? []) {
        const forks = forksOf({ ...source, namespace: key.namespace });
        // Of a life that is gone nothing is made again.
        if ((await forks.read(attempt)).items.length === 0) continue;
        await forks.change(attempt, (known) => known.filter((fork) => idOfFork(fork) !== idOfFork(key)));
      }
      await remove(key, attempt);
    },

    ...tombstones,
  };
  return lives;
}

export function createTombstones(open: OpenCollection): Pick<Lives, 'markDeleted' | 'unmarkDeleted' | 'deleted'> {
  const deletedOf = ({ namespace, conversation }: ConversationName) => open({ name: 'deleted', key: { namespace, conversation } }, DELETED);
  return {
    async markDeleted(of, marked) {
      await deletedOf(of).change(`delete ${of.conversation}`, (known) => {
        const fresh = marked.filter(({ life }) => !known.some((one) => one.life === life));
        return fresh.length === 0 ? undefined : [...known, ...fresh.map(({ life, at }) => ({ v: 1 as const, life, at }))];
      });
    },

    async unmarkDeleted(of, marked) {
      await deletedOf(of).change(`keep ${of.conversation}`, (known) => {
        const left = known.filter(({ life }) => !marked.includes(life));
        return left.length === known.length ? undefined : left;
      });
    },

    async deleted(of) {
      // What cannot be read must not pass for "not deleted".
      const { items } = await deletedOf(of).read(`look whether ${of.conversation} was deleted`, 'refuse');
      return items.map(({ life, at }) => ({ life, at }));
    },
  };
}

/** Epoch seconds; undefined for a life that was not deleted. */
export async function deletedAt({ deleted }: Pick<Lives, 'deleted'>, key: ConversationKey): Promise<number | undefined> {
  return (await deleted(key)).find(({ life }) => life === key.life)?.at;
}
