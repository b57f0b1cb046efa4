/**
 * Small collections as files of one record per line that are read whole and written whole: beside, synced, renamed, under a lock. Lines
 * that are not ours stay where they are.
 */
import { open, readFile, rename, unlink } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { describeErrors, isAbsent, isForeign } from './errors.js';
import { withLock } from './lock.js';
import { conversationDir, scopeDir, toFileName } from './paths.js';
import type { OpenCollection, Place, RecordCodec, Records } from '../collections/collection.js';

interface ListFile<Item> extends Pick<RecordCodec<Item>, 'encode' | 'decode'> {
  readonly path: string;
  readonly lock: string;
}

export function createFileCollections(dir: string): OpenCollection {
  return (place, { encode, decode }) => {
    const path = pathOf(dir, place);
    const file = { path: `${path}.jsonl`, lock: `${path}.lock`, encode, decode };
    return {
      read: (attempt, foreign = 'skip') => describeErrors(file.path, attempt, () => readList(file, foreign)),
      change: (attempt, decide) => describeErrors(file.path, attempt, () => changeList(file, (items) => decide(items, []))),
    };
  };
}

function pathOf(dir: string, place: Place): string {
  switch (place.name) {
    case 'episodes':
      return join(conversationDir(dir, place.key), 'episodic');
    case 'lineage':
    case 'cuts':
    case 'forks':
    case 'turn-ends':
      return join(conversationDir(dir, place.key), place.name);
    case 'facts':
      return join(scopeDir(dir, place.key), 'semantic');
    case 'removed-facts':
      return join(scopeDir(dir, place.key), 'semantic_removed');
    case 'deleted':
      return join(dir, 'deleted', toFileName(place.key.conversation));
    case 'pins':
      return join(dir, 'pins', toFileName(place.key.agent));
    default:
      return join(scopeDir(dir, place.key), place.name);
  }
}

async function readList<Item>(file: ListFile<Item>, foreign: 'skip' | 'refuse'): Promise<Records<Item>> {
  try {
    const lines = await readLines(file);
    const items = lines.flatMap(({ item }) => (item === undefined ? [] : [item]));
    return { items, skipped: lines.length - items.length };
  } catch (error) {
    if (foreign === 'skip' && isForeign(error)) return { items: [], skipped: 1 };
    throw error;
  }
}

/** Writes what `change` answers in place of the items; undefined leaves the file as it is. */
function changeList<Item>(
  file: ListFile<Item>,
  change: (items: readonly Item[]) => readonly Item[] | undefined | Promise<readonly Item[] | undefined>,
): Promise<void> {
  return withLock(file.lock, async () => {
    const lines = await readLines(file);
    const changed = await change(lines.flatMap(({ item }) => (item === undefined ? [] : [item])));
    if (changed === undefined) return;
    const texts = new Map(lines.map(({ item, text }) => [item, text]));
    const foreign = lines.filter(({ item }) => item === undefined).map(({ text }) => text);
    const ours = changed.map((item) => texts.get(item) ?? file.encode(item));
    await replaceFile(file.path, [...foreign, ...ours].map((line) => `${line}\n`).join(''));
  });
}

/** All of `content` or what was there before: on the disk once it resolves. With `mode` the file has these permissions, whatever the umask. */
export async function replaceFile(path: string, content: string | Buffer, mode?: number): Promise<void> {
  const beside = `${path}.${randomUUID()}.tmp`;
  try {
    const file = await open(beside, 'wx');
    try {
      await file.writeFile(content);
      if (mode !== undefined) await file.chmod(mode);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(beside, path);
  } catch (error) {
    await unlink(beside).catch(() => undefined);
    throw error;
  }
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function readLines<Item>({ path, decode }: ListFile<Item>): Promise<{ readonly text: string; readonly item: Item | undefined }[]> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (isAbsent(error)) return '';
    throw error;
  });
  return text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [{ text: line, item: decode(line) }]));
}
