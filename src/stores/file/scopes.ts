/** Which lives a scope has in files, by the sizes and times of what lies there; and the index of what was said in them. */
import { mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isAbsent, isForeign, toUnavailable } from './errors.js';
import { replaceFile } from './lists.js';
import { namesIn } from './lives.js';
import { conversationsDir, scopeDir } from './paths.js';
import type { MarkedLife, ScopeKey, Scopes } from '../store.js';

const INDEX = 'search-index.bin';
const OF_LIFE = ['journal.jsonl', 'cuts.jsonl', 'episodic.jsonl'];
const OF_SCOPE = /^(?:MEMORY\.md|HISTORY.*\.md|semantic\.jsonl|forgotten\.jsonl)$/;
/** Folders that are looked at at the same time. */
const AT_ONCE = 64;

export function createFileScopes(dir: string): Scopes {
  return {
    async marks(key) {
      const folder = scopeDir(dir, key);
      try {
        const names = (await namesIn(folder)).filter((name) => OF_SCOPE.test(name));
        return {
          documents: (await Promise.all(names.map((name) => markOf(join(folder, name))))).join(' '),
          lives: await livesIn(dir, key),
        };
      } catch (error) {
        throw toUnavailable(`look what was said in ${key.scope}`, folder, error);
      }
    },

    async readIndex(key) {
      const file = join(scopeDir(dir, key), INDEX);
      try {
        return await readFile(file);
      } catch (error) {
        if (isAbsent(error) || isForeign(error)) return undefined;
        throw toUnavailable(`read the index of ${key.scope}`, file, error);
      }
    },

    async writeIndex(key, bytes) {
      const file = join(scopeDir(dir, key), INDEX);
      try {
        await mkdir(scopeDir(dir, key), { recursive: true });
        await replaceFile(file, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
      } catch (error) {
        throw toUnavailable(`write the index of ${key.scope}`, file, error);
      }
    },
  };
}

async function livesIn(dir: string, key: ScopeKey): Promise<MarkedLife[]> {
  const folder = conversationsDir(dir, key);
  const conversations = (await namesIn(folder)).filter(isReadable);
  const found: MarkedLife[] = [];
  for (let at = 0; at < conversations.length; at += AT_ONCE) {
    const some = conversations.slice(at, at + AT_ONCE).map(async (conversation) => {
      const lives = (await namesIn(join(folder, conversation))).filter(isReadable);
      return Promise.all(
        lives.map(async (life): Promise<MarkedLife> => {
          const marks = await Promise.all(OF_LIFE.map((name) => markOf(join(folder, conversation, life, name))));
          return { key: { ...key, conversation: decodeURIComponent(conversation), life: decodeURIComponent(life) }, mark: marks.join(' ') };
        }),
      );
    });
    found.push(...(await Promise.all(some)).flat());
  }
  return found.filter(({ mark }) => !mark.startsWith('-'));
}

/** A long name ends in a hash, which no id can be read from; others are somebody else's. */
function isReadable(name: string): boolean {
  return !name.includes('~') && !/%(?![\dA-F]{2})/.test(name);
}

async function markOf(file: string): Promise<string> {
  try {
    const { size, mtimeMs } = await stat(file);
    return `${size}@${mtimeMs}`;
  } catch (error) {
    if (isAbsent(error) || isForeign(error)) return '-';
    throw error;
  }
}
