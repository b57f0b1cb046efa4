/** What a search needs of a scope in files: which lives there are, what was written in them since, and the parts of its index. */
import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync, unlinkSync, writeSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import { SealBroken, type AtRest } from '../../platform/at-rest.js';
import { describeErrors, isAbsent, isForeign } from './errors.js';
import { countErasures, eraseScope } from './erasure.js';
import { namesIn, replaceFile } from './lines.js';
import { conversationDir, conversationsDir, fromFileName, scopeDir } from './paths.js';
import type { ConversationKey, LifeName, ScopeKey } from '../store.js';
import type { MarkedLife, Scopes } from '../memory-ports.js';

const PART = /^search-index\.([\w-]+)\.bin$/;
const OF_LIFE = ['journal.jsonl', 'cuts.jsonl', 'episodic.jsonl', 'vectors.jsonl'];
const OF_SCOPE = /^(?:MEMORY\.md|HISTORY.*\.md|semantic\.jsonl|forgotten\.jsonl)$/;
const ABSENT = '-';
/**
 * Conversations that are looked at before others of this process have their turn. To wait for each of so many small looks costs more than
 * they do.
 */
const AT_ONCE = 32;

export function createFileScopes(dir: string, atRest: AtRest): Scopes {
  const partPath = (key: ScopeKey, part: string): string => join(scopeDir(dir, key), `search-index.${part}.bin`);
  return {
    list: () =>
      describeErrors(join(dir, 'agents'), 'look which scopes there are', async () => {
        const found: string[] = [];
        for (const name of await namesIn(join(dir, 'agents'))) {
          const scope = fromFileName(name);
          if (scope !== undefined && (await isInUse(join(dir, 'agents', name)))) found.push(scope);
        }
        return found.sort();
      }),

    marks: (key, since) =>
      describeErrors(scopeDir(dir, key), `look what was written in ${key.scope}`, async () => {
        const folder = scopeDir(dir, key);
        const erasures = countErasures(dir, key);
        // Before the lives (stores/note-after-write).
        const { cursor, lives: changed } = changesSince(dir, key, since);
        const names = (await namesIn(folder)).filter((name) => OF_SCOPE.test(name));
        return {
          documents: names.map((name) => readMark(join(folder, name))).join(' '),
          lives: changed === undefined ? await livesIn(dir, key) : await findLives(dir, key, changed),
          ...(changed && { changed }),
          cursor,
          erasures,
        };
      }),

    async indexParts(key) {
      return (await namesIn(scopeDir(dir, key))).flatMap((name) => PART.exec(name)?.[1] ?? []);
    },

    readIndex: (key, part) =>
      describeErrors(partPath(key, part), `read the index of ${key.scope}`, () =>
        readFile(partPath(key, part))
          .then(atRest.openBytes)
          .catch((error: unknown) => {
            // It is made again.
            if (isAbsent(error) || isForeign(error) || error instanceof SealBroken) return undefined;
            throw error;
          }),
      ),

    writeIndex: (key, part, bytes) =>
      describeErrors(partPath(key, part), `write the index of ${key.scope}`, async () => {
        await mkdir(scopeDir(dir, key), { recursive: true });
        await replaceFile(partPath(key, part), await atRest.sealBytes(bytes));
      }),

    removeIndex: (key, parts) =>
      describeErrors(scopeDir(dir, key), `remove the index of ${key.scope}`, async () => {
        await Promise.all(parts.map((part) => rm(partPath(key, part), { force: true })));
      }),

    lives: (key) =>
      describeErrors(conversationsDir(dir, key), `look which lives ${key.scope} has`, async () => {
        const folder = conversationsDir(dir, key);
        const found: ConversationKey[] = [];
        for (const conversation of (await namesIn(folder)).filter(isReadable)) {
          for (const life of (await namesIn(join(folder, conversation))).filter(isReadable))
            found.push({ ...key, conversation: decodeURIComponent(conversation), life: decodeURIComponent(life) });
        }
        return found;
      }),

    erase: (key, writers) => eraseScope(dir, key, writers),
    erasures: (key) => Promise.resolve(countErasures(dir, key)),
  };
}

/** Notes and folders that a late writer has left are nothing. */
async function isInUse(folder: string): Promise<boolean> {
  const names = await namesIn(folder);
  if (names.some((name) => name !== 'conversations' && name !== NAME && !name.endsWith('.lock'))) return true;
  return (await namesIn(join(folder, 'conversations'))).length > 0;
}

async function findLives(dir: string, key: ScopeKey, names: readonly LifeName[]): Promise<MarkedLife[]> {
  const keys = new Map(names.map(({ conversation, life }) => [JSON.stringify([conversation, life]), { ...key, conversation, life }]));
  const found: MarkedLife[] = [];
  for (const [i, of] of [...keys.values()].entries()) {
    if (i % AT_ONCE === AT_ONCE - 1) await nextTick();
    const mark = readLifeMark(conversationDir(dir, of));
    if (mark !== undefined) found.push({ key: of, mark });
  }
  return found;
}

/** Undefined where there are no entries. */
function readLifeMark(folder: string): string | undefined {
  const marks = OF_LIFE.map((name) => readMark(join(folder, name)));
  return marks[0] === ABSENT ? undefined : marks.join(' ');
}

async function livesIn(dir: string, key: ScopeKey): Promise<MarkedLife[]> {
  const folder = conversationsDir(dir, key);
  const conversations = (await namesIn(folder)).filter(isReadable);
  const found: MarkedLife[] = [];
  for (const [i, conversation] of conversations.entries()) {
    if (i % AT_ONCE === AT_ONCE - 1) await nextTick();
    for (const life of unlessGone(() => readdirSync(join(folder, conversation)), []).filter(isReadable)) {
      const mark = readLifeMark(join(folder, conversation, life));
      if (mark === undefined) continue;
      found.push({ key: { ...key, conversation: decodeURIComponent(conversation), life: decodeURIComponent(life) }, mark });
    }
  }
  return found;
}

/** A long name ends in a hash, from which no id can be read; other names are of files that Perdura did not make. */
function isReadable(name: string): boolean {
  return !name.includes('~') && !/%(?![\dA-F]{2})/.test(name);
}

function readMark(file: string): string {
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

/**
 * Notes of which lives of a scope were written to (life-writes.ts): a file of lines, one for each write, that begins anew when it is long.
 * A reader that has read up to some place reads on from there; if it is another file by now, all lives are looked at. The file is opened
 * for each note, after the write, so that a reader that finds the file gone sees the write of a note in it.
 */
const NAME = 'changes.log';
const MAX_BYTES = 1024 * 1024;

/** Never throws: if a note cannot be written, the file goes, and a search looks at all lives (stores/lost-notes-cost-a-look). */
export function noteChange(dir: string, key: ConversationKey): void {
  const path = join(scopeDir(dir, key), NAME);
  try {
    const file = openSync(path, 'a');
    try {
      writeSync(file, `${JSON.stringify([key.conversation, key.life])}\n`);
      if (fstatSync(file).size > MAX_BYTES) unlinkSync(path);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (!isAbsent(error)) remove(path);
  }
}

interface Changes {
  /** Where to read on; '' where there are no notes. */
  readonly cursor: string;
  /** Undefined: not known. */
  readonly lives: readonly LifeName[] | undefined;
}

function changesSince(dir: string, key: ScopeKey, since: string | undefined): Changes {
  const path = join(scopeDir(dir, key), NAME);
  try {
    const file = openSync(path, 'r');
    try {
      const { ino, birthtimeMs, size } = fstatSync(file);
      // A number of a file is used again.
      const name = `${ino}.${birthtimeMs}`;
      const [before, from = '0'] = since?.split('@') ?? [];
      const begin = before === name ? Number(from) : NaN;
      if (!(begin <= size)) return { cursor: `${name}@${size}`, lives: undefined };
      const bytes = Buffer.alloc(size - begin);
      const read = readSync(file, bytes, 0, bytes.length, begin);
      const end = bytes.subarray(0, read).lastIndexOf(0x0a) + 1;
      const lines = bytes.toString('utf8', 0, end).split('\n');
      return { cursor: `${name}@${begin + end}`, lives: lines.flatMap((line) => readLife(line) ?? []) };
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (isAbsent(error) || isForeign(error)) return { cursor: '', lives: undefined };
    throw error;
  }
}

function readLife(line: string): LifeName | undefined {
  try {
    const [conversation, life] = JSON.parse(line) as unknown[];
    return typeof conversation === 'string' && typeof life === 'string' ? { conversation, life } : undefined;
  } catch {
    return undefined;
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It is gone, or the disk is: then the writes themselves fail.
  }
}
