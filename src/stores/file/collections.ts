/**
 * Small collections as files of one record per line that are read whole and written whole: beside, synced, renamed, under a lock. Lines
 * that are not ours stay where they are.
 */
import { statSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describeErrors, isForeign, unlessAbsent } from './errors.js';
import { removeFile, replaceFile } from './lines.js';
import { withLock as withPlainLock, type WithLock } from './lock.js';
import { conversationDir, scopeDir, toFileName, uploadsDir } from './paths.js';
import type { AtRest } from '../../platform/at-rest.js';
import {
  isOfScope,
  sealedCodec,
  type Decide,
  type OpenCollection,
  type Place,
  type RecordCodec,
  type Records,
} from '../collections/collection.js';
import { refuseErased } from './erasure.js';

interface ListFile<Item> extends RecordCodec<Item> {
  readonly path: string;
}

export function createFileCollections(dir: string, atRest: AtRest, withLock: WithLock = withPlainLock): OpenCollection {
  return (place, plain) => {
    const codec = sealedCodec(plain, atRest);
    const path = toPath(dir, place);
    const file = { path: `${path}.jsonl`, ...codec };
    return {
      read: (attempt, foreign = 'skip', ids) => describeErrors(file.path, attempt, () => readList(file, foreign, ids && new Set(ids))),
      change: (attempt, decide, ids) =>
        describeErrors(file.path, attempt, () =>
          withLock(`${path}.lock`, async () => {
            if (isOfScope(place)) refuseErased(dir, place.key, attempt);
            await changeList(file, decide, ids && new Set(ids));
          }),
        ),
    };
  };
}

function toPath(dir: string, place: Place): string {
  switch (place.name) {
    case 'episodes':
      return join(conversationDir(dir, place.key), 'episodic');
    case 'lineage':
    case 'cuts':
    case 'claims':
    case 'forks':
    case 'turn-ends':
    case 'vectors':
    case 'counted-by':
    case 'archives':
      return join(conversationDir(dir, place.key), place.name);
    case 'facts':
      return join(scopeDir(dir, place.key), 'semantic');
    case 'removed-facts':
      return join(scopeDir(dir, place.key), 'semantic_removed');
    case 'deleted':
      return join(dir, 'deleted', toFileName(place.key.conversation));
    case 'upload':
      return join(uploadsDir(dir, place.key), 'known', toFileName(place.key.id));
    case 'waiting-uploads':
      return join(uploadsDir(dir, place.key), 'waiting');
    case 'kept-files':
      return join(uploadsDir(dir, place.key), 'kept');
    case 'tenant-spendings':
      return join(uploadsDir(dir, place.key), 'spent');
    case 'sign-ins':
      return join(dir, 'sign-ins', toFileName(place.key.owner));
    case 'pins':
      return join(dir, 'pins', toFileName(place.key.agent));
    default:
      return join(scopeDir(dir, place.key), place.name);
  }
}

async function readList<Item>(file: ListFile<Item>, foreign: 'skip' | 'refuse', ids?: ReadonlySet<string>): Promise<Records<Item>> {
  try {
    const lines = await readLines(file);
    const items = lines.flatMap(({ item }) => (item === undefined ? [] : [item]));
    return { items: ids ? items.filter((item) => ids.has(file.identify(item))) : items, skipped: lines.length - items.length };
  } catch (error) {
    if (foreign === 'skip' && isForeign(error)) return { items: [], skipped: 1 };
    throw error;
  }
}

/** Under the lock. Records that do not depend on others are appended (`ids`); what belongs together is there in one step, in a new file. */
async function changeList<Item>(file: ListFile<Item>, decide: Decide<Item>, ids?: ReadonlySet<string>): Promise<void> {
  const lines = await readLines(file);
  const isSeen = ({ item }: (typeof lines)[number]): boolean => item !== undefined && (ids === undefined || ids.has(file.identify(item)));
  const seen = lines.flatMap((line) => (line.item !== undefined && isSeen(line) ? [line.item] : []));
  const changed = await decide(seen, []);
  if (changed === undefined) return;
  const texts = new Map(lines.map(({ item, text }) => [item, text]));
  const toText = (item: Item): string => `${texts.get(item) ?? file.encode(item)}\n`;
  if (ids && lines.length > 0 && seen.every((item, i) => changed[i] === item)) {
    await appendLines(file.path, changed.slice(seen.length).map(toText).join(''));
    return;
  }
  const others = lines.filter((line) => !isSeen(line)).map(({ text }) => `${text}\n`);
  const content = [...others, ...changed.map(toText)].join('');
  await (content === '' ? removeFile(file.path) : replaceFile(file.path, content));
}

/** A torn line is ended first (file/torn-line-ended-first). */
async function appendLines(path: string, lines: string): Promise<void> {
  if (lines === '') return;
  const file = await open(path, 'a+');
  try {
    const { size } = await file.stat();
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
    await file.appendFile((size > 0 && buffer[0] !== 0x0a ? '\n' : '') + lines);
    await file.datasync();
  } finally {
    await file.close();
  }
}

async function readLines<Item>({ path, decode }: ListFile<Item>): Promise<{ readonly text: string; readonly item: Item | undefined }[]> {
  // Most are not there, and every turn looks for some: a failure in the thread pool costs ten times this.
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return [];
  const text = (await unlessAbsent(readFile(path, 'utf8'))) ?? '';
  return text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [{ text: line, item: decode(line) }]));
}
