/** The lives of a conversation as files have them: each is a folder. */
import { readdir, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isAbsent, isForeign, toUnavailable } from './errors.js';
import type { FileHandles } from './handles.js';
import { conversationDir, conversationsDir, toFileName } from './paths.js';
import type { LifeStorage } from '../collections/lives.js';
import type { ConversationKey } from '../store.js';
import { errorCode } from '../../platform/errors.js';

export function createFileLifeStorage(dir: string, handles: Pick<FileHandles, 'forget'>): Omit<LifeStorage, 'archiveShared'> {
  return {
    async list({ namespace, conversation, scope, tree = false }) {
      const scopes = scope === undefined ? await namesIn(join(dir, 'agents')) : [toFileName(scope)];
      const found: ConversationKey[] = [];
      for (const name of scopes) {
        const of = decodeURIComponent(name);
        const folder = conversationsDir(dir, { scope: of });
        const below = tree ? (await namesIn(folder)).flatMap((known) => subAgentIn(known, conversation) ?? []) : [];
        for (const each of [conversation, ...below]) {
          for (const life of await namesIn(join(folder, toFileName(each)))) {
            found.push({ namespace, conversation: each, scope: of, life: decodeURIComponent(life) });
          }
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
        if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(errorCode(error) ?? '')) throw toUnavailable(attempt, folder, error);
      }
    },
  };
}

/** The id of a conversation whose folder it is, where that is one of the sub-agents of another. */
function subAgentIn(name: string, conversation: string): string | undefined {
  // A long name ends in a hash, which no id can be read from: ids of sub-agents as deep as they go are shorter.
  if (!name.startsWith(toFileName(`${conversation}:`)) || name.includes('~')) return undefined;
  return decodeURIComponent(name);
}

/** The names in a folder; none where there is no folder. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    if (isAbsent(error) || isForeign(error)) return [];
    throw toUnavailable('look for lives', folder, error);
  }
}
