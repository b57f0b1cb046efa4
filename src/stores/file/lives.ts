/** The lives of a conversation as files have them: each is a folder. */
import { readdir, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf, isAbsent, isForeign, toUnavailable } from './errors.js';
import type { FileHandles } from './handles.js';
import { conversationDir, conversationsDir, toFileName } from './paths.js';
import type { LifeStorage } from '../collections/lives.js';
import type { ConversationKey, Entries } from '../store.js';

export function createFileLifeStorage(
  dir: string,
  { archive }: Pick<Entries, 'archive'>,
  handles: Pick<FileHandles, 'forget'>,
): LifeStorage {
  return {
    archiveShared: (key, archived) => archive(key, archived, 0),

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

    async remove(key, attempt) {
      const folder = conversationDir(dir, key);
      handles.forget(folder);
      try {
        await rm(folder, { recursive: true, force: true, maxRetries: 3 });
        await rmdir(dirname(folder));
      } catch (error) {
        // Other lives lie there.
        if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(codeOf(error) ?? '')) throw toUnavailable(attempt, folder, error);
      }
    },
  };
}

/** What lies in a folder; nothing where it is none. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    if (isAbsent(error) || isForeign(error)) return [];
    throw toUnavailable('look for lives', folder, error);
  }
}
