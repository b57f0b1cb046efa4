/**
 * Values that a gateway hands out and gets back: sealed, so that only the gateways of one installation can have made them, and with an
 * expiry. Each use has a separate key, so that a value for one use opens nothing else.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

export interface Seal {
  /** Makes a text of visible characters, which a cookie and a URL can carry. */
  close(content: object, seconds: number): string;
  /** Undefined where it was not made here, or has ended. */
  open(sealed: string): unknown;
}

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
const MAX_SEALED = 4_000;

export function createSeal(secret: string, use: 'code' | 'session' | 'sign-in'): Seal {
  const key = Buffer.from(hkdfSync('sha256', secret, '', `perdura gateway ${use} v1`, 32));
  return {
    close(content, seconds) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(CIPHER, key, iv);
      const text = JSON.stringify({ content, until: Date.now() + seconds * 1_000 });
      const closed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), closed]).toString('base64url');
    },
    open(sealed) {
      if (!/^[\w-]+$/.test(sealed) || sealed.length > MAX_SEALED) return undefined;
      const bytes = Buffer.from(sealed, 'base64url');
      if (bytes.length <= IV_BYTES + TAG_BYTES) return undefined;
      const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      try {
        const text = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8');
        const { content, until } = JSON.parse(text) as { readonly content: unknown; readonly until: number };
        return until > Date.now() ? content : undefined;
      } catch {
        return undefined;
      }
    },
  };
}
