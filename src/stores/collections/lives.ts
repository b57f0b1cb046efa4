/** How lives stand on each other: where each begins, what rewinds have cut of it, and who shares its entries. */
import type { Beginning, Cut } from '../../records/lives.js';
import type { SlotRange } from '../../records/slots.js';
import { decodeBeginning, decodeCut, decodeFork, type Fork } from '../codecs/lives-codec.js';
import { addOnce, type OpenCollection, type RecordCodec } from './collection.js';
import type { ConversationKey, Lives } from '../store.js';

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

  const lives: Lives = {
    async begin(key, beginning) {
      const { conversation, life, scope, namespace } = key;
      const attempt = `write where ${conversation} begins`;
      // First the other lives get to know: one that is shared must not be deleted.
      for (const source of beginning.shared) {
        await addOnce(forksOf({ ...source, namespace }), idOfFork, attempt, { conversation, life, scope });
      }
      await addOnce(beginningOf(key), idOfBeginning, attempt, beginning);
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
  };
  return lives;
}
