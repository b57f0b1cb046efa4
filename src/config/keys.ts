/**
 * The secret of the installation, and the keys that encrypt what is stored (platform/at-rest.ts), from where `PERDURA_ENCRYPTION` says: the secret of the installation, a file, or
 * a program that asks a key management service. The first key encrypts, each decrypts. Errors show no key.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { KEY_BYTES } from '../platform/at-rest.js';
import { z } from 'zod';
import { ConfigError, errorCode } from '../platform/errors.js';
import { deriveKey } from '../platform/seal.js';
import { decodeText } from '../records/file-type.js';

/** What all keys of an installation are derived from (platform/seal.ts). */
export interface Secrets {
  /** The first signs and seals, each is good for a check. */
  readonly all: readonly [string, ...string[]];
  /** Ids of tenants come from this one, for good. */
  readonly ids: string;
  /** For as long as workers without a secret still run. */
  readonly acceptsUnsigned: boolean;
}

const IDS = 'ids:';
export const secretsSetting = z.string().transform((text, context): Secrets => {
  const parts = text.split(',').map((one) => one.trim());
  const marked = parts.find((one) => one.startsWith(IDS))?.slice(IDS.length);
  const [newest, ...older] = parts.filter((one) => one !== 'unsigned' && !one.startsWith(IDS));
  const isSecret = (one: string | undefined): one is string => one !== undefined && /^[\x21-\x7e]{32,256}$/.test(one);
  const refuse = (message: string): never => {
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  };
  if (!isSecret(newest) || !older.every(isSecret) || (marked !== undefined && !isSecret(marked)))
    return refuse('a secret of at least 32 characters, such as what `openssl rand -hex 32` prints');
  if (older.length > 0 && marked === undefined)
    return refuse('with `,ids:SECRET` at its end where there are several: the oldest, from which the ids of tenants come for good');
  return { all: [newest, ...older], ids: marked ?? newest, acceptsUnsigned: parts.includes('unsigned') };
});

/** Where the keys come from that encrypt what is stored. */
export type EncryptionSetting =
  | { readonly from: 'secret' }
  | { readonly from: 'file'; readonly path: string }
  | { readonly from: 'command'; readonly words: readonly [string, ...string[]] };

export const encryptionSetting = z.string().transform((text, context): EncryptionSetting | undefined => {
  const [, from = '', rest = ''] = /^([a-z]+)(?::\s*(.+))?$/s.exec(text) ?? [];
  const [program, ...others] = rest.split(/\s+/);
  if (from === 'off' && rest === '') return undefined;
  if (from === 'secret' && rest === '') return { from };
  if (from === 'file' && rest !== '') return { from, path: rest };
  if (from === 'command' && program) return { from, words: [program, ...others] };
  const message = 'off, secret (the keys come from PERDURA_SECRET), file:PATH or command:PROGRAM ARGUMENT … (each a key a line)';
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
});

/** The newest first, 32 bytes each; none where nothing is encrypted. Throws `ConfigError`. */
export type EncryptionRoots = () => readonly Uint8Array[];

interface Given {
  readonly encryption?: EncryptionSetting | undefined;
  readonly secrets?: Secrets | undefined;
}

const COMMAND_MS = 10_000;
const MAX_BYTES = 64 * 1024;
const MAX_KEYS = 100;
const HOW = 'one key a line, the newest first: 32 bytes in hex or base64, such as what `openssl rand -hex 32` prints';

/** Looks once, when it is needed first: commands that open no store ask no service. */
export function createEncryptionRoots(given: Given, cwd: string): EncryptionRoots {
  let roots: readonly Uint8Array[] | undefined;
  return () => (roots ??= readRoots(given, cwd));
}

function readRoots({ encryption, secrets }: Given, cwd: string): readonly Uint8Array[] {
  switch (encryption?.from) {
    case undefined:
      return [];
    case 'secret':
      if (secrets === undefined)
        throw refuse('secret', 'needs PERDURA_SECRET, which is not set: all processes of the installation need the same one');
      return secrets.all.map((secret) => deriveKey(secret, 'at-rest'));
    case 'file':
      return parseKeys(readKeyFile(resolve(cwd, encryption.path)), `file:${encryption.path}`);
    case 'command':
      return parseKeys(runForKeys(encryption.words, cwd), `command:${encryption.words[0]}`);
    default:
      return encryption satisfies never;
  }
}

function readKeyFile(path: string): string {
  try {
    return decodeText(readFileSync(path));
  } catch (error) {
    throw refuse(
      `file:${path}`,
      `cannot be read (${errorCode(error) ?? 'unknown'}): make the file readable for this user, or name another one`,
    );
  }
}

function runForKeys([program, ...words]: readonly [string, ...string[]], cwd: string): string {
  try {
    return execFileSync(program, words, {
      cwd,
      timeout: COMMAND_MS,
      maxBuffer: MAX_BYTES,
      stdio: ['ignore', 'pipe', 'inherit'],
      encoding: 'utf8',
    });
  } catch (error) {
    const { status } = error as { readonly status?: number | null };
    const why = typeof status === 'number' ? `ended with ${status}` : (errorCode(error) ?? 'did not end');
    throw refuse(`command:${program}`, `gave no keys (${why}): run it by hand; it has ${COMMAND_MS / 1000} s and prints ${HOW}`);
  }
}

function parseKeys(text: string, from: string): readonly Uint8Array[] {
  const lines = text.split(/\r?\n/).map((line, i) => ({ text: line.trim(), number: i + 1 }));
  const given = lines.filter((line) => line.text !== '' && !line.text.startsWith('#'));
  if (given.length === 0 || given.length > MAX_KEYS) throw refuse(from, `has ${given.length} keys: write ${HOW}`);
  return given.map((line) => {
    const key = toKey(line.text);
    if (key === undefined) throw refuse(from, `has no key in line ${line.number}: write ${HOW}`);
    return key;
  });
}

function toKey(text: string): Buffer | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex');
  const key = Buffer.from(text, 'base64');
  return /^[\w+/-]{43}=?$/.test(text) && key.length === KEY_BYTES ? key : undefined;
}

function refuse(from: string, why: string): ConfigError {
  return new ConfigError(`PERDURA_ENCRYPTION=${from} cannot be used: it ${why}`);
}
