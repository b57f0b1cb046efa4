/**
 * All keys of an installation come from `PERDURA_SECRET`: by HKDF (RFC 5869), each for one purpose, so that what one opens opens nothing else.
 * Values that leave this process and come back, or lie in a store, are sealed with one of them (AES-256-GCM).
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

export type KeyPurpose =
  /** Signs what a run hands to the next. */
  | 'state'
  /** Hashes ids of tenants' conversations. */
  | 'tenant-ids'
  /** What browsers are given: codes of links, sessions, and what must be known when a person comes back from signing in. */
  | 'gateway-code'
  | 'gateway-session'
  | 'gateway-sign-in'
  /** What an MCP client brings back with what its person has decided. */
  | 'mcp-call'
  /** Seals what MCP servers have given for a scope or a tenant, in the store, and the links by which people sign in there. */
  | 'mcp-sign-in'
  /** The root of what encrypts stores and payloads (at-rest.ts), where no other key is given for that. */
  | 'at-rest'
  /** Signs what an erasure has done (client/erasure/receipt.ts). */
  | 'receipt';

/** 32 bytes, the same in every process that has the secret. */
export function deriveKey(secret: string, purpose: KeyPurpose): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `perdura ${purpose} v1`, 32));
}

export interface Seal {
  /** Makes a text of visible characters, which a cookie and a URL can carry. */
  close(content: object, seconds: number): string;
  /** Undefined where it was not made here, or has ended. `until`: when it ends, in epoch milliseconds. */
  open(sealed: string): { readonly content: unknown; readonly until: number } | undefined;
}

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
const MAX_SEALED = 4_000;

/** `secrets`: the first closes, each opens what has at most `maxSealed` characters. */
export function createSeal(secrets: readonly [string, ...string[]], purpose: KeyPurpose, maxSealed = MAX_SEALED): Seal {
  const keys = secrets.map((secret) => deriveKey(secret, purpose));
  const [newest = deriveKey(secrets[0], purpose)] = keys;
  return {
    close(content, seconds) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(CIPHER, newest, iv);
      const text = JSON.stringify({ content, until: Date.now() + seconds * 1_000 });
      const closed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), closed]).toString('base64url');
    },
    open(sealed) {
      if (!/^[\w-]+$/.test(sealed) || sealed.length > maxSealed) return undefined;
      const bytes = Buffer.from(sealed, 'base64url');
      if (bytes.length <= IV_BYTES + TAG_BYTES) return undefined;
      const text = keys.map((key) => decipher(key, bytes)).find((one) => one !== undefined);
      if (text === undefined) return undefined;
      const { content, until } = JSON.parse(text) as { readonly content: unknown; readonly until: number };
      return until > Date.now() ? { content, until } : undefined;
    },
  };
}

function decipher(key: Buffer, bytes: Buffer): string | undefined {
  const cipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
  cipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  try {
    return Buffer.concat([cipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), cipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}
