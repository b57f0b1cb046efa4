/**
 * A backup on a disk:
 *
 *   backup.json        of which store it is, when it was begun and finished
 *   files.jsonl        one line for each finished file: its name, length, SHA-256, and the parts that are in it whole
 *   000001.parts, …    records, as blocks of compressed lines (brotli), each behind its length; encrypted as the store is
 *
 * A file counts once its line is on the disk, so that a backup that was cut short goes on after the last whole file.
 */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { link, mkdir, open, readFile, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress, constants } from 'node:zlib';
import { z } from 'zod';
import { KeyMissing, SealBroken, type AtRest } from '../../platform/at-rest.js';
import { errorCode, errorMessage } from '../../platform/errors.js';
import { decodeJson } from '../codecs.js';
import { namesIn, replaceFile, syncFolder } from '../file/lines.js';
import { namePart, readRecord, type Part, type PartRecord } from './parts.js';

const compress = promisify(brotliCompress);
const decompress = promisify(brotliDecompress);

export const FORMAT = 1;
const BLOCK_BYTES = 1024 * 1024;
const FILE_BYTES = 16 * 1024 * 1024;
/** Of one block, unpacked: a damaged length must not fill the memory. */
const MAX_BLOCK = 512 * 1024 * 1024;
const QUALITY = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };
const HEAD = 4;

const headSchema = z.object({
  v: z.number(),
  program: z.string(),
  store: z.string(),
  kind: z.string(),
  namespace: z.string(),
  begun: z.string(),
  finished: z.string().optional(),
  files: z.number().optional(),
  /** Of files.jsonl, when it was finished. */
  sha256: z.string().optional(),
});
/** Of which store it is, and when it was made. Times are ISO. */
export type BackupHead = z.output<typeof headSchema>;

const fileSchema = z.object({ file: z.string().regex(/^\d{6,}\.parts$/), bytes: z.number(), sha256: z.string(), parts: z.string() });
const partSchema = z.union([
  z.object({ kind: z.literal('life'), scope: z.string(), conversation: z.string(), life: z.string() }),
  z.object({ kind: z.literal('scope'), scope: z.string() }),
  z.object({ kind: z.enum(['deleted', 'pins', 'sign-ins']), name: z.string() }),
]);

export interface BackupFile {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly parts: readonly Part[];
}

/** The folder, or what is in it, cannot be used; the message says why, and what to do. */
export class BackupRefused extends Error {
  override readonly name = 'BackupRefused';
}

/** Undefined where there is none. */
export async function readHead(dir: string): Promise<BackupHead | undefined> {
  const text = await readFile(join(dir, 'backup.json'), 'utf8').catch((cause: unknown) => {
    if (errorCode(cause) === 'ENOENT') return undefined;
    throw refuse(dir, 'read', cause);
  });
  if (text === undefined) return undefined;
  const version = decodeJson(text);
  if (typeof version === 'object' && version !== null && 'v' in version && typeof version.v === 'number' && version.v > FORMAT)
    throw new BackupRefused(
      `cannot read ${dir}: it was written by a newer perdura (format ${version.v}, known is ${FORMAT}); update this one`,
    );
  const head = headSchema.safeParse(version).data;
  if (head === undefined) throw new BackupRefused(`cannot read ${join(dir, 'backup.json')}: it is damaged; put it back from a copy`);
  return head;
}

/** Those that are finished. A line that cannot be read is an error where the backup was finished, and else torn. */
export async function readFiles(dir: string, head: BackupHead, atRest: AtRest): Promise<BackupFile[]> {
  const path = join(dir, 'files.jsonl');
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    if (errorCode(cause) === 'ENOENT' && head.finished === undefined) return '';
    throw refuse(path, 'read', cause);
  });
  if (head.sha256 !== undefined && sha256(text) !== head.sha256)
    throw new BackupRefused(`cannot read ${path}: it is not as it was written (its SHA-256 is another); put it back from a copy`);
  return text.split('\n').flatMap((line) => {
    const read = fileSchema.safeParse(decodeJson(line)).data;
    if (read === undefined) return [];
    const { parts: sealed, ...file } = read;
    return [{ ...file, parts: z.array(partSchema).parse(JSON.parse(openText(path, atRest, sealed))) }];
  });
}

export interface BackupWriter {
  /** Parts that are in whole files already. */
  readonly known: ReadonlySet<string>;
  /** Answers with how many bytes are on the disk by now. */
  add(part: Part, records: AsyncIterable<PartRecord>, isGone: () => Promise<boolean>): Promise<number>;
  /** `bytes`: of all its files. */
  finish(now: Date): Promise<BackupHead & { readonly bytes: number }>;
}

/** Goes on where an earlier one was cut short. Throws `BackupRefused`. */
export async function openWriter(dir: string, wanted: Omit<BackupHead, 'v'>, atRest: AtRest): Promise<BackupWriter> {
  const { head, files } = await begin(dir, wanted, atRest);
  const known = new Set(files.flatMap(({ parts }) => parts.map(namePart)));
  let written = files.reduce((sum, { bytes }) => sum + bytes, 0);
  let current: FileWriter | undefined;

  const end = async (): Promise<void> => {
    const done = await current?.end();
    current = undefined;
    if (done === undefined) return;
    files.push(done);
    written += done.bytes;
    const line = JSON.stringify({ ...done, parts: atRest.seal(JSON.stringify(done.parts)) });
    await describeDisk(dir, () => append(join(dir, 'files.jsonl'), line));
  };

  return {
    known,

    add: (part, records, isGone) =>
      describeDisk(dir, async () => {
        current ??= await createFile(dir, files.length + 1, atRest);
        await current.line({ kind: 'part', part });
        for await (const record of records) await current.line(record);
        // What was deleted while it was read does not come back.
        if (await isGone()) await current.line({ kind: 'gone', part });
        current.ended(part);
        if (current.size() >= FILE_BYTES) await end();
        return written + (current?.size() ?? 0);
      }).catch(async (error: unknown) => {
        await current?.discard();
        current = undefined;
        throw error;
      }),

    async finish(now) {
      await end();
      const listed = await readFile(join(dir, 'files.jsonl'), 'utf8').catch(() => '');
      const finished = { ...head, finished: now.toISOString(), files: files.length, sha256: sha256(listed) };
      await describeDisk(dir, () => replaceFile(join(dir, 'backup.json'), `${JSON.stringify(finished, null, 2)}\n`));
      return { ...finished, bytes: written };
    },
  };
}

async function begin(dir: string, wanted: Omit<BackupHead, 'v'>, atRest: AtRest): Promise<{ head: BackupHead; files: BackupFile[] }> {
  await describeDisk(dir, () => mkdir(dir, { recursive: true, mode: 0o700 }));
  const there = await readHead(dir);
  if (there === undefined) {
    const head = { v: FORMAT, ...wanted };
    await describeDisk(dir, () => replaceFile(join(dir, 'backup.json'), `${JSON.stringify(head, null, 2)}\n`));
    return { head, files: [] };
  }
  if (there.store !== wanted.store || there.namespace !== wanted.namespace)
    throw new BackupRefused(
      `cannot go on with ${dir}: it is of the store ${there.store}, namespace ${there.namespace}, and this one is ${wanted.store}, ${wanted.namespace}; name another folder`,
    );
  if (there.finished !== undefined)
    throw new BackupRefused(`${dir} has a backup that was finished at ${there.finished}: name another folder`);
  const files = await readFiles(dir, there, atRest);
  // What was cut short goes: files without a line, and half a line.
  const whole = new Set(files.map(({ file }) => file));
  for (const name of await namesIn(dir))
    if (/\.tmp$|^\d+\.parts$/.test(name) && !whole.has(name)) await describeDisk(dir, () => rm(join(dir, name), { force: true }));
  await describeDisk(dir, () =>
    replaceFile(
      join(dir, 'files.jsonl'),
      files.map((file) => `${JSON.stringify({ ...file, parts: atRest.seal(JSON.stringify(file.parts)) })}\n`).join(''),
    ),
  );
  return { head: there, files };
}

interface FileWriter {
  line(record: object): Promise<void>;
  ended(part: Part): void;
  size(): number;
  end(): Promise<BackupFile>;
  discard(): Promise<void>;
}

async function createFile(dir: string, number: number, atRest: AtRest): Promise<FileWriter> {
  const file = `${String(number).padStart(6, '0')}.parts`;
  const beside = join(dir, `${file}.${process.pid}.tmp`);
  const handle = await open(beside, 'wx', 0o600);
  const hash = createHash('sha256');
  const parts: Part[] = [];
  let lines: string[] = [];
  let [waiting, bytes] = [0, 0];
  const flush = async (): Promise<void> => {
    if (lines.length === 0) return;
    const block = await atRest.sealBytes(await compress(Buffer.from(lines.join('')), QUALITY));
    const head = Buffer.alloc(HEAD);
    head.writeUInt32BE(block.length);
    await writeAll(handle, Buffer.concat([head, block]), hash);
    bytes += HEAD + block.length;
    lines = [];
    waiting = 0;
  };
  return {
    async line(record) {
      const line = `${JSON.stringify(record)}\n`;
      lines.push(line);
      waiting += line.length;
      if (waiting >= BLOCK_BYTES) await flush();
    },
    ended: (part) => void parts.push(part),
    size: () => bytes,
    async end() {
      await flush();
      await handle.sync();
      await handle.close();
      // Not renamed: of two backups that write here at once the second must not replace what the first has listed.
      await link(beside, join(dir, file));
      await rm(beside);
      await syncFolder(dir);
      return { file, bytes, sha256: hash.digest('hex'), parts };
    },
    async discard() {
      await handle.close().catch(() => undefined);
      await rm(beside, { force: true });
    },
  };
}

async function writeAll(handle: FileHandle, bytes: Buffer, hash: Hash): Promise<void> {
  hash.update(bytes);
  // `write` may write less than it was given where the disk is full.
  for (let at = 0; at < bytes.length;) at += (await handle.write(bytes, at)).bytesWritten;
}

async function append(path: string, line: string): Promise<void> {
  const file = await open(path, 'a', 0o600);
  try {
    await file.appendFile(`${line}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Why a file is not as it was written; undefined where it is. */
export async function findDamage(dir: string, { file, bytes, sha256: wanted }: BackupFile): Promise<string | undefined> {
  const path = join(dir, file);
  const hash = createHash('sha256');
  let length = 0;
  try {
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
      hash.update(chunk);
      length += chunk.byteLength;
    }
  } catch (error) {
    return errorCode(error) === 'ENOENT' ? `${file} is missing` : `${file} cannot be read: ${errorMessage(error)}`;
  }
  if (length !== bytes) return `${file} has ${length} bytes, and was written with ${bytes}`;
  return hash.digest('hex') === wanted ? undefined : `${file} was changed since: its SHA-256 is another`;
}

/** Each part with its records, which are to be read before the next one; without those that were deleted meanwhile. */
export async function* readParts(
  dir: string,
  { file }: BackupFile,
  atRest: AtRest,
): AsyncIterable<{ readonly part: Part; readonly records: AsyncIterable<PartRecord> }> {
  const path = join(dir, file);
  const gone = new Set<string>();
  for await (const line of readLines(path, atRest)) {
    const record = readMark(line);
    if (record?.kind === 'gone') gone.add(namePart(record.part));
  }
  const lines = readLines(path, atRest)[Symbol.asyncIterator]();
  let next = await lines.next();
  const follow = async function* (): AsyncIterable<PartRecord> {
    for (; next.done !== true && readMark(next.value) === undefined; next = await lines.next()) {
      const record = readRecord(next.value);
      if (record !== undefined) yield record;
    }
  };
  while (next.done !== true) {
    const mark = readMark(next.value);
    next = await lines.next();
    if (mark === undefined || mark.kind === 'gone') continue;
    const records = follow();
    if (!gone.has(namePart(mark.part))) yield { part: mark.part, records };
    // What was not wanted, or not read to its end.
    for await (const _ of follow());
  }
}

const markSchema = z.object({ kind: z.enum(['part', 'gone']), part: partSchema });

function readMark(line: string): z.output<typeof markSchema> | undefined {
  if (!line.startsWith('{"kind":"part"') && !line.startsWith('{"kind":"gone"')) return undefined;
  return markSchema.safeParse(decodeJson(line)).data;
}

async function* readLines(path: string, atRest: AtRest): AsyncIterable<string> {
  const handle = await open(path, 'r');
  try {
    for (let at = 0; ;) {
      const head = Buffer.alloc(HEAD);
      if ((await handle.read(head, 0, HEAD, at)).bytesRead < HEAD) return;
      const block = Buffer.alloc(Math.min(head.readUInt32BE(), MAX_BLOCK));
      const { bytesRead } = await handle.read(block, 0, block.length, at + HEAD);
      if (bytesRead < block.length) throw new BackupRefused(`cannot read ${path}: it ends in the middle`);
      at += HEAD + block.length;
      const text = (await unpack(path, atRest, block)).toString('utf8');
      for (const line of text.split('\n')) if (line !== '') yield line;
    }
  } finally {
    await handle.close();
  }
}

async function unpack(path: string, atRest: AtRest, block: Buffer): Promise<Buffer> {
  try {
    return await decompress(await atRest.openBytes(block), { maxOutputLength: MAX_BLOCK });
  } catch (cause) {
    throw describeSeal(path, cause);
  }
}

function openText(path: string, atRest: AtRest, sealed: string): string {
  try {
    return atRest.open(sealed);
  } catch (cause) {
    throw describeSeal(path, cause);
  }
}

function describeSeal(path: string, cause: unknown): BackupRefused {
  if (cause instanceof KeyMissing || cause instanceof SealBroken)
    return new BackupRefused(`cannot read ${path}: ${cause.message}`, { cause });
  return new BackupRefused(`cannot read ${path}: it is damaged (${errorMessage(cause)}); put it back from a copy`, { cause });
}

/** What the disk refuses, in words: a backup that is run again goes on after its last whole file. */
async function describeDisk<T>(dir: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (errorCode(cause) === undefined || errorCode(cause) === 'ECONNREFUSED') throw cause;
    throw refuse(dir, 'write', cause);
  }
}

function refuse(path: string, what: 'read' | 'write', cause: unknown): BackupRefused {
  const isFull = ['ENOSPC', 'EDQUOT'].includes(errorCode(cause) ?? '');
  const isTaken = ['EEXIST', 'ENOENT'].includes(errorCode(cause) ?? '') && what === 'write';
  const advice = isTaken
    ? `another backup seems to be written there at this moment (${errorMessage(cause)}): wait for it, or name another folder`
    : isFull
      ? 'the disk is full: free space there, and run the same command again, which goes on where this one ended'
      : errorMessage(cause);
  return new BackupRefused(`cannot ${what} ${path}: ${advice}`, { cause });
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
