/**
 * Writes again, with the newest key, what the files have in plain words or by an older key. While workers run: each file is replaced under
 * the lock of its writers, who find that it is another one and read it again.
 */
import { readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { AtRest } from '../../platform/at-rest.js';
import type { Resealed, ScopeKey } from '../store.js';
import { describeErrors, isForeign, unlessAbsent } from './errors.js';
import { namesIn, replaceFile } from './lines.js';
import type { WithLock } from './lock.js';
import { fromFileName } from './paths.js';

const ATTEMPT = 'encrypt anew what is stored';
/** Under the lock of documents, and with what they know of each other (documents.ts). */
const DOCUMENTS = /^(?:MEMORY\.md|HISTORY.*\.md|memory-changes\.jsonl|history\.jsonl|memory-versions)$/;
/** For people and grep; what is encrypted has none. */
const READABLE = /^raw_traces(?:_archive)?\.jsonl$/;
const INDEX = /^search-index\..*\.bin$/;

interface Files {
  readonly dir: string;
  readonly atRest: AtRest;
  readonly withLock: WithLock;
  readonly documents: { reseal(key: ScopeKey): Promise<number> };
}

/** One folder after the other. */
export async function* resealFiles(files: Files): AsyncIterable<Resealed> {
  const { dir } = files;
  for (const name of await namesIn(join(dir, 'agents'))) {
    const folder = join(dir, 'agents', name);
    const scope = fromFileName(name);
    const words = scope === undefined ? 0 : await files.documents.reseal({ namespace: '', scope });
    yield { place: folder, values: words + (await resealFolder(files, folder, isOfScope)), left: 0 };
    for (const conversation of await namesIn(join(folder, 'conversations'))) {
      for (const life of await namesIn(join(folder, 'conversations', conversation)))
        yield* resealLife(files, join(folder, 'conversations', conversation, life));
    }
  }
  for (const name of ['deleted', 'pins', 'sign-ins'])
    yield { place: join(dir, name), values: await resealFolder(files, join(dir, name)), left: 0 };
  for (const namespace of await namesIn(join(dir, 'uploads'))) {
    for (const tenant of await namesIn(join(dir, 'uploads', namespace)))
      yield* resealUploads(files, join(dir, 'uploads', namespace, tenant));
  }
}

const isOfScope = (name: string): boolean => !DOCUMENTS.test(name);

async function* resealLife(files: Files, folder: string): AsyncIterable<Resealed> {
  let values = await resealFolder(files, folder);
  for (const name of await namesIn(join(folder, 'bodies'))) values += await resealWhole(files, join(folder, 'bodies', name));
  if (values > 0) yield { place: folder, values, left: 0 };
}

async function* resealUploads(files: Files, folder: string): AsyncIterable<Resealed> {
  let values = (await resealFolder(files, folder)) + (await resealFolder(files, join(folder, 'known')));
  for (const name of await namesIn(join(folder, 'waiting'))) values += await resealBytes(files, join(folder, 'waiting', name));
  if (values > 0) yield { place: folder, values, left: 0 };
}

/** Its files of lines, each under the lock that its writers take. */
async function resealFolder(files: Files, folder: string, isWanted: (name: string) => boolean = () => true): Promise<number> {
  let values = 0;
  for (const name of (await namesIn(folder)).filter(isWanted)) {
    const path = join(folder, name);
    if (READABLE.test(name) || INDEX.test(name)) values += await removeStale(files, path);
    else if (name.endsWith('.jsonl')) values += await underLock(files, path, findLock(path, name));
  }
  return values;
}

function findLock(path: string, name: string): string {
  return name === 'journal.jsonl' ? join(dirname(path), 'lock') : path.replace(/\.jsonl$/, '.lock');
}

function underLock({ withLock, atRest }: Files, path: string, lock: string): Promise<number> {
  return describeErrors(path, ATTEMPT, () => withLock(lock, () => resealLines(path, atRest)));
}

/** Under the lock of its writers. Answers how many lines. */
export async function resealLines(path: string, atRest: AtRest): Promise<number> {
  const lines = (await readText(path)).split('\n');
  // What stands behind the last newline is torn, or not ended yet: its writer ends it.
  const torn = lines.pop() ?? '';
  let values = 0;
  const after = lines.map((stored) => {
    const anew = stored.trim() === '' ? undefined : atRest.reseal(stored);
    if (anew !== undefined) values += 1;
    return anew ?? stored;
  });
  if (values > 0) await replaceFile(path, [...after, torn].join('\n'));
  return values;
}

async function resealWhole({ atRest }: Files, path: string): Promise<number> {
  return describeErrors(path, ATTEMPT, async () => {
    const stored = await readText(path);
    // Removed meanwhile, or another program's folder.
    if (stored === '') return 0;
    const anew = atRest.reseal(stored);
    // Its name is the hash of its text: another writer writes the same.
    if (anew !== undefined) await replaceFile(path, anew);
    return anew === undefined ? 0 : 1;
  });
}

async function resealBytes({ atRest }: Files, path: string): Promise<number> {
  return describeErrors(path, ATTEMPT, async () => {
    const stored = await unlessAbsent(readFile(path));
    if (stored === undefined || !atRest.areStale(stored)) return 0;
    await replaceFile(path, await atRest.sealBytes(await atRest.openBytes(stored)));
    return 1;
  });
}

async function removeStale({ atRest }: Files, path: string): Promise<number> {
  return describeErrors(path, ATTEMPT, async () => {
    const stored = await unlessAbsent(readFile(path));
    if (stored === undefined || !atRest.areStale(stored)) return 0;
    await rm(path, { force: true });
    return 1;
  });
}

async function readText(path: string): Promise<string> {
  return (
    (await unlessAbsent(
      readFile(path, 'utf8').catch((error: unknown) => {
        if (isForeign(error)) return '';
        throw error;
      }),
    )) ?? ''
  );
}
