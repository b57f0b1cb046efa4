/**
 * Files that are sent first and named afterwards, by a reference.
 *
 * A deleted conversation leaves no file behind, and an expiry takes no file that a conversation has.
 * An upload that is partial, too large, of a wrong type or empty leaves nothing.
 *
 * @rule client/upload-of-owner: A reference to an upload belongs to one tenant, or to none; another tenant's reads as unknown. (test:
 *   test/stores/uploads-contract.ts)
 * @rule client/bytes-in-one-place: The bytes of an upload are in one place: with the upload until a conversation uses it, then among the
 *   bodies of those conversations. (test: test/stores/uploads-contract.ts)
 */
import { createHash } from 'node:crypto';
import { detectBinaryType, createTextCheck, START_BYTES, TAKEN_FILES, TEXT_TYPE, detectFileType } from '../records/file-type.js';
import type { MediaSource } from '../records/message.js';
import type { Message } from '../conversation/protocol/contract.js';
import type { Decision } from '../conversation/protocol/human-input.js';
import type { ConversationKey, Store, Upload, UploadOwner, UploadUse } from '../stores/store.js';
import { ClientError } from './errors.js';

/** As references look. */
export const UPLOAD_ID = /^att_[0-9a-f]{32}$/;

export const DEFAULT_UPLOAD_BYTES = 10 * 1024 * 1024;
const HOUR_MS = 60 * 60 * 1000;
/** For so long an upload that no conversation uses is kept. */
const UNUSED_MS = 24 * HOUR_MS;
/** So long after its last use a reference can be named again. The bytes are the conversation's and stay as long as that. */
const USED_MS = 30 * 24 * HOUR_MS;
/** Of one owner, of the files that no conversation has used: nothing else bounds these. */
const MAX_WAITING = 1_000;
const MAX_WAITING_BYTES = 512 * 1024 * 1024;
/** Of the files that the conversations of a tenant keep, where no setting says another number. */
export const DEFAULT_KEPT_BYTES = 1024 * 1024 * 1024;
/** Parts may be of one byte each: so many are written at once. */
const WRITTEN_BYTES = 256 * 1024;
/** Of two uses at once one may take the bytes away from where the other looks; then they are where the first has put them. */
const LOOKS = 3;

/** A file that waits to be named in a message. */
export interface UploadedFile {
  /** The reference. */
  readonly ref: string;
  /** By its content. */
  readonly mediaType: string;
  readonly bytes: number;
  readonly sha256: string;
  /** From when it cannot be named any more; ISO 8601. The copy of a conversation stays. */
  readonly expiresAt: string;
  /** A conversation has it. */
  readonly used: boolean;
}

/** Whose upload it is. */
export interface OfTenant {
  /** Default: of no tenant. */
  readonly tenant?: string;
}

/** What an upload must be. */
export interface UploadOptions extends OfTenant {
  /** Default: DEFAULT_UPLOAD_BYTES. */
  readonly maxBytes?: number;
  /** What the bytes must have, in hex: others are refused with `invalid`. */
  readonly sha256?: string;
  /** How long it waits to be used, in milliseconds; default: 24 hours. */
  readonly keepMs?: number;
}

/** Of one conversation. */
const MAX_KEPT_FILES = 10_000;
/** How much the conversations of one tenant, and those of none together, may keep of files, in bytes as they are stored. */
export interface FilesQuota {
  readonly keptBytes: number;
}

/** Pictures for messages, uploaded ahead of them. */
export interface UploadsClient {
  /**
   * Keeps a picture (PNG, JPEG, GIF, WebP), a PDF or a text, by its content, for a message that will name it. The same bytes again are the
   * same reference, and wait anew. Fails with `invalid`, `too-large`, `media-type`, or `queue-full` where too much waits already; or as
   * `parts` does.
   */
  upload(parts: AsyncIterable<Uint8Array>, options?: UploadOptions): Promise<UploadedFile>;
  /** Fails with `not-found`. */
  uploaded(ref: string, options?: OfTenant): Promise<UploadedFile>;
  /** The bytes as they came. Fails with `not-found`. */
  uploadedBytes(ref: string, options?: OfTenant): Promise<Buffer>;
  /** Makes it a body of the conversation, for the `images` or `documents` of a message to it. */
  attachUploaded(id: string, ref: string, options?: OfTenant): Promise<MediaSource & { readonly ref: string }>;
  /** @internal Whether conversations may keep so many bytes of files more, as they are stored (base64). Fails with `too-large`. */
  checkRoomForFiles(bytes: number, options?: OfTenant): Promise<void>;
  /** Removes what has expired; answers how many. A store that does so itself has none. */
  sweepUploads(): Promise<number>;
}

export interface UploadsAccess extends FilesQuota {
  readonly namespace: string;
  readonly store: () => Promise<Store>;
  readonly keyOf: (id: string) => Promise<ConversationKey>;
}

interface Found {
  readonly upload: Upload;
  readonly base64: string;
  /** A conversation has it. */
  readonly isUsed: boolean;
}

export function createUploads({ namespace, store: opened, keyOf, keptBytes }: UploadsAccess): UploadsClient {
  let swept = 0;
  /** `serveGateway` sweeps by the clock; a custom server has this sweep alone, at most once an hour. */
  const sweepNowAndThen = async (): Promise<void> => {
    if (Date.now() - swept < HOUR_MS) return;
    swept = Date.now();
    await (await opened()).uploads.sweep().catch(() => undefined);
  };
  const toOwner = ({ tenant = '' }: OfTenant = {}): UploadOwner => ({ namespace, tenant });

  /** Where its bytes are, as base64, and what it is. */
  const look = async (owner: UploadOwner, ref: string): Promise<Found | undefined> => {
    const { uploads, bodies } = await opened();
    for (let looks = 0; looks < LOOKS && UPLOAD_ID.test(ref); looks += 1) {
      const upload = await uploads.find(owner, ref);
      if (upload === undefined) break;
      const waiting = await uploads.bytes(owner, ref);
      if (waiting !== undefined) return { upload, base64: waiting.toString('base64'), isUsed: false };
      for (const { ref: body, ...life } of upload.uses) {
        const base64 = await bodies.get({ namespace, ...life }, body);
        if (base64 !== undefined) return { upload, base64, isUsed: true };
      }
    }
    return undefined;
  };
  const find = async (owner: UploadOwner, ref: string): Promise<Found> => {
    const found = await look(owner, ref);
    if (found === undefined) throw new ClientError('not-found', noUpload(ref));
    return found;
  };

  return {
    async upload(parts, { maxBytes = DEFAULT_UPLOAD_BYTES, keepMs = UNUSED_MS, sha256: expected, ...of } = {}) {
      await sweepNowAndThen();
      const { uploads } = await opened();
      const owner = toOwner(of);
      const waiting = await uploads.waiting(owner);
      const waitingBytes = Math.min(MAX_WAITING_BYTES, keptBytes);
      if (waiting.count >= MAX_WAITING || waiting.bytes >= waitingBytes) {
        const most = `${MAX_WAITING} files and ${waitingBytes} bytes`;
        throw new ClientError(
          'queue-full',
          `cannot keep a file: ${waiting.count} wait to be used by a message, ${most} may; name them, or wait until they expire`,
        );
      }
      // What comes is of an unknown size, and may be as large as is taken at all.
      if (maxBytes > (await uploads.room())) throw storeIsFull(maxBytes);
      const draft = await uploads.begin(owner);
      try {
        const { mediaType, size, sha256 } = await receive(parts, maxBytes, (bytes) => draft.append(bytes));
        if (expected !== undefined && expected !== sha256)
          throw new ClientError(
            'invalid',
            'cannot keep this file: it came otherwise than it was sent, its SHA-256 is another; send it again',
          );
        const id = toUploadId(owner, sha256);
        const at = Date.now();
        const known = await look(owner, id);
        // A conversation has these bytes (client/bytes-in-one-place).
        if (known?.isUsed === true) {
          await draft.discard();
          return toUploadedFile(known);
        }
        const upload = { id, mediaType, size, sha256, at, expiresAt: at + keepMs };
        await draft.keep(upload);
        return toUploadedFile({ upload, isUsed: false });
      } catch (error) {
        await draft.discard().catch(() => undefined);
        throw error;
      }
    },

    async uploaded(ref, of) {
      const owner = toOwner(of);
      const upload = UPLOAD_ID.test(ref) ? await (await opened()).uploads.find(owner, ref) : undefined;
      // An unused file is there; the conversations that have a used one may be deleted.
      if (upload?.uses.length === 0) return toUploadedFile({ upload, isUsed: false });
      return toUploadedFile(await find(owner, ref));
    },

    async uploadedBytes(ref, of) {
      return Buffer.from((await find(toOwner(of), ref)).base64, 'base64');
    },

    async attachUploaded(id, ref, of) {
      const owner = toOwner(of);
      const { upload, base64 } = await find(owner, ref);
      const store = await opened();
      const key = await keyOf(id);
      const { ref: body } = await keepFile(store, key, base64, { keptBytes });
      const { conversation, life, scope } = key;
      const use: UploadUse = { conversation, life, scope, ref: body };
      await store.uploads.use(owner, ref, use, Date.now() + USED_MS);
      return { mediaType: upload.mediaType, ref: body };
    },

    async checkRoomForFiles(bytes, of) {
      const { uploads } = await opened();
      const kept = bytes === 0 ? 0 : await uploads.kept(toOwner(of));
      if (bytes > 0 && kept + bytes > keptBytes) throw quotaReached(bytes, { kept, keptBytes });
      if (bytes > 0 && bytes > (await uploads.room())) throw storeIsFull(bytes);
    },

    sweepUploads: async () => (await opened()).uploads.sweep(),
  };
}

/** The same words whether another owner has it or not (client/upload-of-owner). */
function noUpload(ref: string): string {
  return `there is no attachment ${JSON.stringify(ref.slice(0, 80))}: it was never sent, has expired, or went with its conversation; send the file again`;
}

interface Received {
  readonly mediaType: string;
  readonly size: number;
  readonly sha256: string;
}

/** Refuses as soon as it can. */
async function receive(parts: AsyncIterable<Uint8Array>, maxBytes: number, write: (bytes: Uint8Array) => Promise<void>): Promise<Received> {
  const hash = createHash('sha256');
  let pending: Uint8Array[] = [];
  let size = 0;
  let written = 0;
  let mediaType: string | undefined;
  const isText = createTextCheck();
  const flush = async (): Promise<void> => {
    if (size === written) return;
    const bytes = Buffer.concat(pending);
    mediaType ??= detectBinaryType(bytes) ?? TEXT_TYPE;
    if (mediaType === TEXT_TYPE && !isText(bytes)) throw notTaken();
    hash.update(bytes);
    await write(bytes);
    written = size;
    pending = [];
  };
  for await (const part of parts) {
    size += part.byteLength;
    if (size > maxBytes)
      throw new ClientError(
        'too-large',
        `cannot keep this file: it has more than ${maxBytes} bytes, the most that are taken here (\`perdura serve --max-attachment\`)`,
      );
    pending.push(part);
    if (size - written >= (mediaType === undefined ? START_BYTES : WRITTEN_BYTES)) await flush();
  }
  await flush();
  if (mediaType === TEXT_TYPE && !isText()) throw notTaken();
  if (mediaType === undefined)
    throw new ClientError('invalid', 'cannot keep this file: it is empty; the body of the request must be the file itself');
  return { mediaType, size, sha256: hash.digest('hex') };
}

function notTaken(): ClientError {
  return new ClientError('media-type', `cannot keep this file: by its content it is no ${TAKEN_FILES}`);
}

/** The same for the same bytes of an owner, and another one for another's. */
function toUploadId({ namespace, tenant }: UploadOwner, sha256: string): string {
  const hash = createHash('sha256').update(JSON.stringify(['perdura upload 1', namespace, tenant, sha256]));
  return `att_${hash.digest('hex').slice(0, 32)}`;
}

function toUploadedFile({ upload, isUsed }: Pick<Found, 'isUsed'> & { readonly upload: Omit<Upload, 'uses'> }): UploadedFile {
  const { id, mediaType, size, sha256, expiresAt } = upload;
  return { ref: id, mediaType, bytes: size, sha256, expiresAt: new Date(expiresAt).toISOString(), used: isUsed };
}

// Pictures and documents beside a message: they are kept in the store, and the message has a reference, so that Temporal's history stays
// small.

/** What the largest of the providers takes, as base64. */
export const MAX_ATTACHMENT_BYTES = 10 * 1024 * 1024;

export interface AttachClient {
  /**
   * Keeps a picture (PNG, JPEG, GIF, WebP, by its content) or a PDF with a conversation, for the `images` or the `documents` of a message
   * to it. The same file again is the same one. Fails with `invalid` for anything else, and beyond 10 MiB, and with `too-large` where the
   * conversations of its tenant keep too much already; text belongs in the message itself.
   */
  attach(id: string, file: Uint8Array): Promise<MediaSource & { readonly ref: string }>;
  /** @internal Counts what a message to the conversation brings itself, as base64, among what it keeps. Fails with `too-large`. */
  countFile(id: string, base64: string): Promise<void>;
  /** @internal Keeps what a result of a client's tool brings for the rest of its turn (`Decision.wishes`). */
  keepWishes(id: string, wishes: Pick<Message, 'tools' | 'output'>): Promise<NonNullable<Decision['wishes']>>;
}

export interface AttachAccess extends FilesQuota {
  readonly store: () => Promise<Store>;
  readonly keyOf: (id: string) => Promise<ConversationKey>;
}

export function createAttach({ store, keyOf, keptBytes }: AttachAccess): AttachClient {
  return {
    async attach(id, file) {
      const attempt = `cannot attach ${file.byteLength} bytes to ${id}`;
      if (file.byteLength > MAX_ATTACHMENT_BYTES)
        throw new ClientError('too-large', `${attempt}: at most ${MAX_ATTACHMENT_BYTES} are kept`);
      const mediaType = detectFileType(file);
      if (mediaType === undefined) throw new ClientError('media-type', `${attempt}: they are no PNG, JPEG, GIF or WebP picture and no PDF`);
      if (mediaType === TEXT_TYPE)
        throw new ClientError('media-type', `${attempt}: they are text, which belongs in the text of the message`);
      const key = await keyOf(id);
      const { ref } = await keepFile(await store(), key, Buffer.from(file).toString('base64'), { keptBytes });
      return { mediaType, ref };
    },

    async countFile(id, base64) {
      await countKept(await store(), await keyOf(id), base64, { keptBytes });
    },

    async keepWishes(id, { tools, output }) {
      const [{ bodies }, key] = await Promise.all([store(), keyOf(id)]);
      const keep = async (value: unknown): Promise<string> => (await bodies.put(key, JSON.stringify(value))).ref;
      return { ...(tools && { toolsRef: await keep(tools) }), ...(output && { outputRef: await keep(output) }) };
    },
  };
}

/** As a body of the conversation, once it is counted. */
async function keepFile(store: Store, key: ConversationKey, base64: string, quota: FilesQuota): Promise<{ readonly ref: string }> {
  await countKept(store, key, base64, quota);
  return store.bodies.put(key, base64).catch(async (error: unknown) => {
    // The deletion may have come before it was counted.
    if (error instanceof Error && error.name === 'LifeDeleted') await store.uploads.release(key);
    throw error;
  });
}

/** Throws `too-large` before anything is written. The same file of the same conversation again is counted already. */
async function countKept({ uploads }: Store, key: ConversationKey, base64: string, { keptBytes }: FilesQuota): Promise<void> {
  const size = base64.length;
  if (size > (await uploads.room())) throw storeIsFull(size);
  const file = createHash('sha256').update(base64).digest('hex').slice(0, 32);
  const { status, kept } = await uploads.count(key, { file, size, limit: keptBytes, maxFiles: MAX_KEPT_FILES });
  if (status === 'full') throw quotaReached(size, { kept, keptBytes });
  if (status === 'many') {
    const what = `cannot keep another file: its conversation has ${MAX_KEPT_FILES}, and no more are kept`;
    throw new ClientError('too-large', `${what}; go on in another conversation`);
  }
}

function quotaReached(bytes: number, { kept, keptBytes }: FilesQuota & { readonly kept: number }): ClientError {
  return new ClientError(
    'too-large',
    `cannot keep ${bytes} more bytes of files: conversations keep ${kept} of at most ${keptBytes}; delete some that are over ` +
      '(`perdura delete`), send less, or raise PERDURA_FILES_QUOTA',
  );
}

function storeIsFull(bytes: number): ClientError {
  return new ClientError(
    'too-large',
    `cannot keep ${bytes} more bytes of files: the store is nearly full, and what is left is for messages; delete conversations that are over ` +
      '(`perdura delete`), or give the store more memory',
  );
}
