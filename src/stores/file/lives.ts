/**
 * How lives stand on each other, in files of the life's folder: lineage.jsonl is where it begins, cuts.jsonl what rewinds have cut,
 * forks.jsonl who shares its entries.
 */
import { readdir, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Beginning, Cut } from '../../records/lives.js';
import { codeOf, isAbsent, isForeign, toUnavailable } from './errors.js';
import type { FileHandles } from './handles.js';
import { changeList, readList, type ListFile } from './lists.js';
import { conversationDir, conversationsDir, toFileName } from './paths.js';
import { decodeBeginning, decodeCut, decodeFork, type Fork } from '../codecs/lives-codec.js';
import type { ConversationKey, Entries, Lives } from '../store.js';

export function createFileLives(dir: string, { archive }: Pick<Entries, 'archive'>, handles: Pick<FileHandles, 'forget'>): Lives {
  const beginnings = (key: ConversationKey): ListFile<Beginning> => listIn(dir, key, 'lineage', decodeBeginning);
  const cutsOf = (key: ConversationKey): ListFile<Cut> => listIn(dir, key, 'cuts', decodeCut);
  const forksOf = (key: ConversationKey): ListFile<Fork> => listIn(dir, key, 'forks', decodeFork);

  const lives: Lives = {
    async begin(key, beginning) {
      const { conversation, life, scope, namespace } = key;
      const attempt = `write where ${conversation} begins`;
      // First the other lives are told: one that is shared must not be deleted.
      for (const source of beginning.shared) {
        const file = forksOf({ ...source, namespace });
        await inWords(file, attempt, () =>
          changeList(file, (forks) => (forks.some((fork) => isSame(fork, key)) ? undefined : [...forks, { conversation, life, scope }])),
        );
      }
      const file = beginnings(key);
      await inWords(file, attempt, () => changeList(file, (known) => (known.length > 0 ? undefined : [beginning])));
      if (beginning.archived.length > 0) await archive(key, beginning.archived, 0);
    },

    async beginning(key) {
      const file = beginnings(key);
      const { items } = await inWords(file, `read where ${key.conversation} begins`, () => readList(file));
      return items[0];
    },

    async forks(key) {
      const file = forksOf(key);
      const { items } = await inWords(file, `read the forks of ${key.conversation}`, () => readList(file));
      const there = await Promise.all(items.map((fork) => lives.beginning({ ...fork, namespace: key.namespace })));
      return items.filter((_, i) => there[i] !== undefined).map(({ conversation, life }) => ({ conversation, life }));
    },

    async cut(key, cut) {
      const file = cutsOf(key);
      await inWords(file, `cut turns out of ${key.conversation}`, () =>
        changeList(file, (cuts) => (cuts.some(({ id }) => id === cut.id) ? undefined : [...cuts, cut])),
      );
    },

    async cuts(key) {
      const file = cutsOf(key);
      const { items } = await inWords(file, `read the branches of ${key.conversation}`, () => readList(file));
      return [...items].sort((a, b) => a.branch - b.branch);
    },

    async list({ namespace, conversation, scope }) {
      const scopes = scope === undefined ? await namesIn(join(dir, 'agents')) : [toFileName(scope)];
      const found: ConversationKey[] = [];
      for (const name of scopes) {
        const of = decodeURIComponent(name);
        for (const life of await namesIn(join(conversationsDir(dir, { scope: of }), toFileName(conversation)))) {
          found.push({ namespace, conversation, scope: of, life: decodeURIComponent(life) });
        }
      }
      return found;
    },

    async delete(key) {
      const beginning = await lives.beginning(key);
      for (const source of beginning?.shared ?? []) {
        const file = forksOf({ ...source, namespace: key.namespace });
        // Of a life that is gone nothing is made again.
        if ((await readList(file)).items.length === 0) continue;
        await inWords(file, `delete ${key.conversation}`, () => changeList(file, (forks) => forks.filter((fork) => !isSame(fork, key))));
      }
      const folder = conversationDir(dir, key);
      handles.forget(folder);
      try {
        await rm(folder, { recursive: true, force: true, maxRetries: 3 });
        await rmdir(dirname(folder));
      } catch (error) {
        // Other lives lie there.
        if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(codeOf(error) ?? ''))
          throw toUnavailable(`delete ${key.conversation}`, folder, error);
      }
    },
  };
  return lives;
}

function listIn<Item>(dir: string, key: ConversationKey, name: string, decode: (line: string) => Item | undefined): ListFile<Item> {
  const folder = conversationDir(dir, key);
  return { path: join(folder, `${name}.jsonl`), lock: join(folder, `${name}.lock`), decode, encode: (item) => JSON.stringify(item) };
}

function isSame(fork: Fork, { conversation, life }: ConversationKey): boolean {
  return fork.conversation === conversation && fork.life === life;
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    if (isAbsent(error) || isForeign(error)) return [];
    throw toUnavailable('look for lives', folder, error);
  }
}

async function inWords<Item, T>({ path }: ListFile<Item>, attempt: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toUnavailable(attempt, path, error);
  }
}
