/**
 * Datasets: cases in files of the project, `evals/datasets/NAME.jsonl`, a case a line in the order of their ids, so that two branches that
 * add cases merge. People edit and merge them: what is wrong in one is named by file and line.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { ConfigError, errorCode, errorMessage } from '../platform/errors.js';
import { withSortedKeys } from '../platform/json.js';
import { counted } from '../records/text.js';
import type { DatasetCase } from './index.js';
import { recordedTurnSchema } from './recorded.js';

/** Of a dataset and of a label. */
const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/i;
/** UTF-8 bytes. */
const MAX_CASE = 1024 * 1024;
const MAX_FILE = 256 * 1024 * 1024;
const SUFFIX = '.jsonl';
/** Ten seconds in all for another writer, whose work takes milliseconds. */
const TRY_AGAIN_MS = 50;
const MAX_TRIES = 200;

const caseSchema = z.strictObject({
  id: z.string().regex(/^[^\s/]{1,200}\/turn_\d{4,15}$/, 'must be CONVERSATION/TURN, such as conv-3f2a/turn_0003'),
  agent: z.string().min(1).max(64),
  labels: z.array(z.string().regex(NAME)).max(50),
  before: z.array(recordedTurnSchema),
  turn: recordedTurnSchema,
});

export interface DatasetSummary {
  readonly name: string;
  readonly cases: number;
  /** How many cases have each. */
  readonly labels: Readonly<Record<string, number>>;
}

export function datasetFile(project: string, name: string): string {
  if (!NAME.test(name))
    throw new ConfigError(
      `${JSON.stringify(name)} is no name of a dataset: write 1 to 64 letters, digits, ".", "_" or "-", the first a letter or digit`,
    );
  return join(project, 'evals', 'datasets', `${name}${SUFFIX}`);
}

/** Throws `ConfigError`; with `mayBeAbsent` a dataset that is not there has no case. */
export async function readDataset(project: string, name: string, { mayBeAbsent = false } = {}): Promise<readonly DatasetCase[]> {
  const file = datasetFile(project, name);
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    if (errorCode(cause) !== 'ENOENT') throw new ConfigError(`cannot read the dataset ${file}: ${errorMessage(cause)}`, { cause });
    if (mayBeAbsent) return '';
    throw new ConfigError(
      `there is no dataset ${name}: ${file} is not there; \`perdura dataset add ID --turn N --name ${name}\` begins it`,
      { cause },
    );
  });
  if (text.length > MAX_FILE)
    throw new ConfigError(`${file} is larger than ${MAX_FILE / 1024 / 1024} MiB, which is more than a dataset may be: split it`);
  const lines = new Map<string, number>();
  return text.split('\n').flatMap((line, at): DatasetCase[] => {
    if (line.trim() === '') return [];
    const place = `${file}:${at + 1}`;
    if (/^(<{7}|={7}|>{7}|\|{7})( |$)/.test(line))
      throw new ConfigError(`${place} is what git leaves where two versions meet: keep the lines of both, without its marks`);
    const one = readCase(line, place);
    const first = lines.get(one.id);
    if (first !== undefined) throw new ConfigError(`${place} has the case ${one.id} again, which is in line ${first}: keep one of them`);
    lines.set(one.id, at + 1);
    return [one];
  });
}

function readCase(line: string, place: string): DatasetCase {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new ConfigError(`${place} is no JSON: ${errorMessage(cause)}; a case is one JSON object on one line`, { cause });
  }
  const read = caseSchema.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new ConfigError(`${place} is no case: ${issue?.path.join('.') || 'it'}: ${issue?.message ?? 'not as a case is'}`);
}

export interface Added {
  readonly file: string;
  readonly cases: number;
  readonly isNew: boolean;
  /** Of the case, with those that it had. */
  readonly labels: readonly string[];
}

/** A case that is there already stays one, with the labels of both. Throws `ConfigError`. */
export async function addCase(project: string, name: string, given: DatasetCase): Promise<Added> {
  const wrong = given.labels.find((label) => !NAME.test(label));
  if (wrong !== undefined) throw new ConfigError(`${JSON.stringify(wrong)} is no label: write 1 to 64 letters, digits, ".", "_" or "-"`);
  const bytes = Buffer.byteLength(JSON.stringify(given));
  if (bytes > MAX_CASE)
    throw new ConfigError(
      `${given.id} takes ${bytes} bytes with the turns before it, and a case has at most ${MAX_CASE}: take fewer of them (--before)`,
    );
  const file = datasetFile(project, name);
  return change(file, async () => {
    const cases = await readDataset(project, name, { mayBeAbsent: true });
    const before = cases.find(({ id }) => id === given.id);
    const labels = [...new Set([...(before?.labels ?? []), ...given.labels])].sort();
    const all = [...cases.filter((one) => one !== before), { ...given, labels }];
    return { cases: all, answer: { file, cases: all.length, isNew: before === undefined, labels } };
  });
}

/** Throws `ConfigError` where it has no such case. */
export async function removeCase(project: string, name: string, id: string): Promise<Pick<Added, 'file' | 'cases'>> {
  // What is not there is not made for this.
  await readDataset(project, name);
  const file = datasetFile(project, name);
  return change(file, async () => {
    const cases = await readDataset(project, name);
    const left = cases.filter((one) => one.id !== id);
    if (left.length === cases.length)
      throw new ConfigError(
        `the dataset ${name} has no case ${id}: \`perdura dataset show ${name}\` lists its ${counted(cases.length, 'case')}`,
      );
    return { cases: left, answer: { file, cases: left.length } };
  });
}

/** In alphabetical order. Throws `ConfigError` for the first that cannot be read. */
export async function listDatasets(project: string): Promise<readonly DatasetSummary[]> {
  const names = await readdir(join(project, 'evals', 'datasets')).catch((cause: unknown) => {
    if (errorCode(cause) === 'ENOENT') return [];
    throw new ConfigError(`cannot list the datasets of ${project}: ${errorMessage(cause)}`, { cause });
  });
  const found = names.filter((one) => one.endsWith(SUFFIX)).map((one) => one.slice(0, -SUFFIX.length));
  const summaries: DatasetSummary[] = [];
  for (const name of found.filter((one) => NAME.test(one)).sort()) {
    const cases = await readDataset(project, name);
    const labels = new Map<string, number>();
    for (const label of cases.flatMap((one) => one.labels)) labels.set(label, (labels.get(label) ?? 0) + 1);
    summaries.push({ name, cases: cases.length, labels: Object.fromEntries([...labels].sort(([a], [b]) => (a < b ? -1 : 1))) });
  }
  return summaries;
}

/**
 * One writer at a time, of this process or another: the new file is made first, which only one can do, and takes the old one's place at the
 * end. A reader never sees half of a file.
 */
async function change<T>(file: string, decide: () => Promise<{ readonly cases: readonly DatasetCase[]; readonly answer: T }>): Promise<T> {
  const fresh = `${file}.new`;
  await takeTurn(file, fresh);
  try {
    const { cases, answer } = await decide();
    const sorted = [...cases].sort((a, b) => (a.id < b.id ? -1 : 1));
    await writeFile(fresh, sorted.map((one) => `${JSON.stringify(withSortedKeys(one))}\n`).join(''));
    await rename(fresh, file);
    return answer;
  } catch (cause) {
    await rm(fresh, { force: true });
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(`cannot write the dataset ${file}: ${errorMessage(cause)}`, { cause });
  }
}

async function takeTurn(file: string, fresh: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await mkdir(dirname(file), { recursive: true });
      await writeFile(fresh, '', { flag: 'wx' });
      return;
    } catch (cause) {
      if (errorCode(cause) !== 'EEXIST') throw new ConfigError(`cannot write the dataset ${file}: ${errorMessage(cause)}`, { cause });
      if (tries >= MAX_TRIES)
        throw new ConfigError(`${fresh} is there: another program writes this dataset, or has died in it; remove it if none does`, {
          cause,
        });
      await sleep(TRY_AGAIN_MS);
    }
  }
}
