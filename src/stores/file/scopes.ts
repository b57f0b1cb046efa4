/** Which lives a scope has in files, by the sizes and times of what lies there; and the index of what was said in them. */
import { readdirSync, statSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import { changesSince } from './changes.js';
import { isAbsent, isForeign, toUnavailable } from './errors.js';
import { replaceFile } from './lists.js';
import { namesIn } from './lives.js';
import { conversationDir, conversationsDir, scopeDir } from './paths.js';
import { VECTORS } from './vectors.js';
import type { LifeName, MarkedLife, ScopeKey, Scopes } from '../store.js';

const PART = /^search-index\.([\w-]+)\.bin$/;
const OF_LIFE = ['journal.jsonl', 'cuts.jsonl', 'episodic.jsonl', VECTORS];
const OF_SCOPE = /^(?:MEMORY\.md|HISTORY.*\.md|semantic\.jsonl|forgotten\.jsonl)$/;
const ABSENT = '-';
/** Conversations that are looked at before others of this process have their turn. To wait for each of so many small looks costs more than they do. */
const AT_ONCE = 32;

export function createFileScopes(dir: string): Scopes {
  return {
    async marks(key, since) {
      const folder = scopeDir(dir, key);
      try {
        // Before the lives (stores/note-after-write).
        const { cursor, lives: changed } = changesSince(dir, key, since);
        const names = (await namesIn(folder)).filter((name) => OF_SCOPE.test(name));
        return {
          documents: names.map((name) => markOf(join(folder, name))).join(' '),
          lives: changed === undefined ? await livesIn(dir, key) : await livesOf(dir, key, changed),
          ...(changed && { changed }),
          cursor,
        };
      } catch (error) {
        throw toUnavailable(`look what was said in ${key.scope}`, folder, error);
      }
    },

    async indexParts(key) {
      const folder = scopeDir(dir, key);
      try {
        return (await namesIn(folder)).flatMap((name) => PART.exec(name)?.[1] ?? []);
      } catch (error) {
        throw toUnavailable(`look for the index of ${key.scope}`, folder, error);
      }
    },

    async readIndex(key, part) {
      const file = join(scopeDir(dir, key), fileOf(part));
      try {
        return await readFile(file);
      } catch (error) {
        if (isAbsent(error) || isForeign(error)) return undefined;
        throw toUnavailable(`read the index of ${key.scope}`, file, error);
      }
    },

    async writeIndex(key, part, bytes) {
      const file = join(scopeDir(dir, key), fileOf(part));
      try {
        await mkdir(scopeDir(dir, key), { recursive: true });
        await replaceFile(file, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
      } catch (error) {
        throw toUnavailable(`write the index of ${key.scope}`, file, error);
      }
    },

    async removeIndex(key, parts) {
      const files = parts.map((part) => join(scopeDir(dir, key), fileOf(part)));
      try {
        await Promise.all(files.map((file) => rm(file, { force: true })));
      } catch (error) {
        throw toUnavailable(`remove the index of ${key.scope}`, scopeDir(dir, key), error);
      }
    },
  };
}

function fileOf(part: string): string {
  return `search-index.${part}.bin`;
}

async function livesOf(dir: string, key: ScopeKey, names: readonly LifeName[]): Promise<MarkedLife[]> {
  const keys = new Map(names.map(({ conversation, life }) => [JSON.stringify([conversation, life]), { ...key, conversation, life }]));
  const found: MarkedLife[] = [];
  for (const [i, of] of [...keys.values()].entries()) {
    if (i % AT_ONCE === AT_ONCE - 1) await nextTick();
    const mark = markOfLife(conversationDir(dir, of));
    if (mark !== undefined) found.push({ key: of, mark });
  }
  return found;
}

/** Undefined where there are no entries. */
function markOfLife(folder: string): string | undefined {
  const marks = OF_LIFE.map((name) => markOf(join(folder, name)));
  return marks[0] === ABSENT ? undefined : marks.join(' ');
}

async function livesIn(dir: string, key: ScopeKey): Promise<MarkedLife[]> {
  const folder = conversationsDir(dir, key);
  const conversations = (await namesIn(folder)).filter(isReadable);
  const found: MarkedLife[] = [];
  for (const [i, conversation] of conversations.entries()) {
    if (i % AT_ONCE === AT_ONCE - 1) await nextTick();
    for (const life of unlessGone(() => readdirSync(join(folder, conversation)), []).filter(isReadable)) {
      const mark = markOfLife(join(folder, conversation, life));
      if (mark === undefined) continue;
      found.push({ key: { ...key, conversation: decodeURIComponent(conversation), life: decodeURIComponent(life) }, mark });
    }
  }
  return found;
}

/** A long name ends in a hash, which no id can be read from; others are somebody else's. */
function isReadable(name: string): boolean {
  return !name.includes('~') && !/%(?![\dA-F]{2})/.test(name);
}

function markOf(file: string): string {
  const stat = unlessGone(() => statSync(file, { throwIfNoEntry: false }), undefined);
  return stat === undefined ? ABSENT : `${stat.size}@${stat.mtimeMs}`;
}

function unlessGone<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch (error) {
    if (isAbsent(error) || isForeign(error)) return otherwise;
    throw error;
  }
}
