/**
 * Encryption of what a store keeps: AES-256-GCM (NIST SP 800-38D) with a random nonce for each text, by keys that the operator has. The first
 * key seals, each opens; a key's id comes from the key, so that two keys never have one id. What is not sealed is read as it is: a store can
 * be sealed while it is used. Without keys nothing is sealed, and what is sealed is refused rather than taken for damage.
 *
 * A sealed text is one line, `pe1:<key id>:<base64url of nonce, tag and ciphertext>`, behind which a label may stand that stays readable.
 * Bytes are frames, each `PE1\0`, key id, length, nonce, tag and ciphertext. A plain text that looks like one of these is written behind
 * `pe0:`, plain bytes behind `PE0\0`.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { setImmediate as nextTick } from 'node:timers/promises';

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
export const KEY_BYTES = 32;

/** What a text or a frame is sealed for. A key for one purpose opens nothing of the other. */
export type AtRestPurpose = 'store' | 'temporal';

/** The key is not here: nothing was lost, and nothing may be written in its place. The message says which key, and what to do. */
export class KeyMissing extends Error {
  override readonly name = 'KeyMissing';
}

/** The key is here, and the bytes are not those that it sealed. */
export class SealBroken extends Error {
  override readonly name = 'SealBroken';
}

/** One key, ready for use. `id` has eight hex digits. */
export interface AtRestKey {
  readonly id: string;
  readonly key: Buffer;
}

/** `roots`: 32 bytes each, the newest first. */
export function deriveAtRestKeys(roots: readonly Uint8Array[], purpose: AtRestPurpose): readonly AtRestKey[] {
  return roots.map((root) => {
    const key = Buffer.from(hkdfSync('sha256', root, '', `perdura/at-rest/${purpose}/v1`, KEY_BYTES));
    return { id: atRestKeyId(root), key };
  });
}

/** Names a root key in files, payloads and messages; it says nothing of the key. */
export function atRestKeyId(root: Uint8Array): string {
  return createHmac('sha256', root).update('perdura/key-id/v1').digest('hex').slice(0, 8);
}

/** Nonce, ciphertext, tag: the order that Temporal's samples of codecs have. `bound`: what must be the same when it is opened. */
export function encrypt({ key }: AtRestKey, bytes: Uint8Array, bound = ''): Buffer {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv);
  if (bound !== '') cipher.setAAD(Buffer.from(bound));
  return Buffer.concat([iv, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
}

/** Throws `SealBroken`. */
export function decrypt({ id, key }: AtRestKey, sealed: Uint8Array, bound = ''): Buffer {
  if (sealed.length < IV_BYTES + TAG_BYTES) throw new SealBroken(`what key ${id} has sealed is too short`);
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  if (bound !== '') decipher.setAAD(Buffer.from(bound));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch (cause) {
    throw new SealBroken(`what key ${id} has sealed was changed since`, { cause });
  }
}

export function keyMissing(id: string, known: readonly { readonly id: string }[]): KeyMissing {
  const here = known.length === 0 ? 'no key is set' : `this process has ${known.map((key) => key.id).join(', ')}`;
  return new KeyMissing(`it is encrypted with key ${id}, and ${here}: add that key to what PERDURA_ENCRYPTION names, then retry`);
}

/** How a store writes texts and bytes, and reads them back. */
export interface AtRest {
  readonly isOn: boolean;
  /** One line without blanks, where it is on. `label` is readable, and cannot be changed unseen. */
  seal(text: string | Uint8Array, label?: string): string;
  /** Throws `KeyMissing` and `SealBroken`. */
  open(stored: string): string;
  /** The same for records, of which a damaged one is one that cannot be read: it comes back as it is stored. Throws `KeyMissing`. */
  openRecord(stored: string): string;
  /** A document that people may have added lines to: each sealed line becomes what was sealed. Throws `KeyMissing` and `SealBroken`. */
  openLines(stored: Buffer): Buffer;
  sealLines(text: string | Uint8Array): string | Uint8Array;
  /** `isNext`: they follow others, in one file or value. */
  sealBytes(bytes: Uint8Array, isNext?: boolean): Promise<Buffer>;
  openBytes(stored: Buffer): Promise<Buffer>;
  /**
   * A record as it would be stored now; undefined where it is, or was damaged. `label`: from what was sealed. Throws `KeyMissing`.
   */
  reseal(stored: string, label?: (text: string) => string): string | undefined;
  /** Whether it would be stored in another way now: it is plain and should be sealed, or an older key has sealed it. */
  isStale(stored: string): boolean;
  areStale(stored: Buffer): boolean;
}

const SEALED = 'pe1:';
const PLAIN = 'pe0:';
const LOOKS_SEALED = /^pe[01]:/;
const LINE_LOOKS_SEALED = /(?<=^|\n)(?=pe[01]:)/g;
/** In a document, a line that begins so by chance, or on purpose, is no sealed one. */
const SEALED_LINE = /^pe1:[0-9a-f]{8}:[\w-]{38,}$/;
const SEALED_FRAME = Buffer.from('PE1\0');
const PLAIN_BYTES = Buffer.from('PE0\0');
const ID_LENGTH = 8;
const HEAD_BYTES = SEALED_FRAME.length + ID_LENGTH + 4;
const FRAME_BYTES = 1024 * 1024;
const FRAMES_AT_ONCE = 16;
const NEWLINE = 0x0a;

export function isSealed(stored: string): boolean {
  return stored.startsWith(SEALED);
}

/** `keys` of the purpose `store`, the newest first; none: plain. */
export function createAtRest(keys: readonly AtRestKey[] = []): AtRest {
  const [newest] = keys;
  const byId = new Map(keys.map((key) => [key.id, key]));
  const findKey = (id: string): AtRestKey => {
    const key = byId.get(id);
    if (key === undefined) throw keyMissing(id, keys);
    return key;
  };

  const seal = (text: string | Uint8Array, given = ''): string => {
    // As it comes back from bytes.
    const label = given.toWellFormed();
    if (newest === undefined) return escapePlain(typeof text === 'string' ? text : Buffer.from(text).toString('utf8'));
    const bytes = typeof text === 'string' ? Buffer.from(text, 'utf8') : text;
    const sealed = encrypt(newest, bytes, label).toString('base64url');
    return label === '' ? `${SEALED}${newest.id}:${sealed}` : `${SEALED}${newest.id}:${sealed}:${label}`;
  };

  const unseal = (stored: string): Buffer => {
    const idEnd = stored.indexOf(':', SEALED.length);
    const id = stored.slice(SEALED.length, idEnd < 0 ? undefined : idEnd);
    if (!/^[0-9a-f]{8}$/.test(id)) throw new SealBroken('it begins as what is encrypted, and has no id of a key');
    const end = stored.indexOf(':', idEnd + 1);
    const sealed = Buffer.from(stored.slice(idEnd + 1, end < 0 ? undefined : end), 'base64url');
    return decrypt(findKey(id), sealed, end < 0 ? '' : stored.slice(end + 1));
  };

  const open = (stored: string): string => {
    if (stored.startsWith(SEALED)) return unseal(stored).toString('utf8');
    return stored.startsWith(PLAIN) ? stored.slice(PLAIN.length) : stored;
  };

  const isStale = (stored: string): boolean => newest !== undefined && !stored.startsWith(`${SEALED}${newest.id}:`);

  return {
    isOn: newest !== undefined,
    seal,
    open,

    openRecord(stored) {
      try {
        return open(stored);
      } catch (error) {
        if (error instanceof SealBroken) return stored;
        throw error;
      }
    },

    reseal(stored, label) {
      if (!isStale(stored)) return undefined;
      try {
        const text = open(stored);
        return seal(text, label?.(text));
      } catch (error) {
        if (error instanceof SealBroken) return undefined;
        throw error;
      }
    },

    openLines(stored) {
      if (!stored.includes('pe1:') && !stored.includes('pe0:')) return stored;
      const parts: Uint8Array[] = [];
      for (let from = 0; from < stored.length;) {
        const newline = stored.indexOf(NEWLINE, from);
        const to = newline < 0 ? stored.length : newline + 1;
        const line = stored.subarray(from, to);
        const text = line.toString('latin1').replace(/\r?\n$/, '');
        if (SEALED_LINE.test(text)) parts.push(unseal(text));
        else parts.push(text.startsWith(PLAIN) ? line.subarray(PLAIN.length) : line);
        from = to;
      }
      return Buffer.concat(parts);
    },

    sealLines(text) {
      if (newest !== undefined) return text.length === 0 ? '' : `${seal(text)}\n`;
      // As `openLines` has lines: a line ends with a newline alone.
      if (typeof text === 'string') return text.replace(LINE_LOOKS_SEALED, PLAIN);
      const bytes = toBuffer(text).toString('latin1');
      const escaped = bytes.replace(LINE_LOOKS_SEALED, PLAIN);
      return escaped === bytes ? text : Buffer.from(escaped, 'latin1');
    },

    async sealBytes(bytes, isNext = false) {
      if (newest === undefined) {
        if (isNext) return toBuffer(bytes);
        const looksSealed = bytes.length < PLAIN_BYTES.length || (bytes[0] === PLAIN_BYTES[0] && bytes[1] === PLAIN_BYTES[1]);
        return looksSealed ? Buffer.concat([PLAIN_BYTES, bytes]) : toBuffer(bytes);
      }
      const frames: Buffer[] = [];
      for (let from = 0; from < bytes.length || frames.length === 0; from += FRAME_BYTES) {
        if (frames.length > 0 && (frames.length / 3) % FRAMES_AT_ONCE === 0) await nextTick();
        const sealed = encrypt(newest, bytes.subarray(from, from + FRAME_BYTES));
        const head = Buffer.alloc(4);
        head.writeUInt32BE(sealed.length);
        frames.push(SEALED_FRAME, Buffer.concat([Buffer.from(newest.id), head]), sealed);
      }
      return Buffer.concat(frames);
    },

    async openBytes(stored) {
      if (startsWith(stored, PLAIN_BYTES)) return stored.subarray(PLAIN_BYTES.length);
      if (!startsWith(stored, SEALED_FRAME)) return stored;
      const parts: Buffer[] = [];
      for (let at = 0; at < stored.length;) {
        if (parts.length > 0 && parts.length % FRAMES_AT_ONCE === 0) await nextTick();
        const frame = stored.subarray(at);
        if (!startsWith(frame, SEALED_FRAME) || frame.length < HEAD_BYTES) throw new SealBroken('a piece of it is not encrypted');
        const length = frame.readUInt32BE(HEAD_BYTES - 4);
        if (frame.length < HEAD_BYTES + length) throw new SealBroken('a piece of it is missing');
        parts.push(decrypt(findKey(idIn(frame)), frame.subarray(HEAD_BYTES, HEAD_BYTES + length)));
        at += HEAD_BYTES + length;
      }
      return Buffer.concat(parts);
    },

    isStale,

    areStale(stored) {
      if (newest === undefined) return false;
      for (let at = 0; at < stored.length;) {
        const frame = stored.subarray(at);
        if (!startsWith(frame, SEALED_FRAME) || frame.length < HEAD_BYTES || idIn(frame) !== newest.id) return true;
        at += HEAD_BYTES + frame.readUInt32BE(HEAD_BYTES - 4);
      }
      return false;
    },
  };
}

function escapePlain(text: string): string {
  return LOOKS_SEALED.test(text) ? `${PLAIN}${text}` : text;
}

function idIn(frame: Buffer): string {
  return frame.toString('latin1', SEALED_FRAME.length, SEALED_FRAME.length + ID_LENGTH);
}

function startsWith(bytes: Buffer, beginning: Buffer): boolean {
  return bytes.length >= beginning.length && bytes.subarray(0, beginning.length).equals(beginning);
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
