/**
 * Which calls are one and the same, for a person who has allowed one of them for good. Every argument counts, and each in the form that
 * rules compare (`canonicalForms`): another spelling of one path or address is the same call, another `cwd`, another `stdin` or an
 * argument more is another one. Nothing here is a pattern: `*` is a star.
 */
import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import type { JsonValue } from '../records/message.js';
import type { Examined } from './tool.js';
import { isRecord } from '../platform/json.js';

/** The default where a call names none. */
const DEFAULTS: Readonly<Record<string, string>> = { cwd: '.', stdin: '' };

/** `real`: where paths lead, as the tool has found. */
export function canonicalCall(tool: string, input: JsonValue, real: Examined['real'] = {}): string {
  if (!isRecord(input)) return JSON.stringify([tool, input]);
  const given = input as Readonly<Record<string, JsonValue>>;
  const fields = [...new Set([...Object.keys(given), ...Object.keys(DEFAULTS)])].sort();
  return JSON.stringify([
    tool,
    fields.map((field) => [field, canonical(field, Object.hasOwn(given, field) ? given[field] : DEFAULTS[field], real)]),
  ]);
}

/** The same in 32 characters, for state and history. */
export function callIdentity(...of: Parameters<typeof canonicalCall>): string {
  return createHash('sha256')
    .update(canonicalCall(...of))
    .digest('hex')
    .slice(0, 32);
}

function canonical(field: string, value: JsonValue | undefined, real: Readonly<Record<string, string>>): JsonValue {
  if (typeof value === 'string') {
    // What carries something beside the thing that it names is the same call only to the letter.
    if (!isPlain(value)) return { raw: value };
    return Object.hasOwn(real, field) ? [real[field] ?? value] : canonicalForms(field, value).strict;
  }
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map((one) => [canonical(field, one, {})]);
  if (typeof value !== 'object' || value === null) return value ?? null;
  const fields = value as Readonly<Record<string, JsonValue>>;
  // Beneath the first level a field's name says nothing to rules.
  return {
    of: Object.keys(fields)
      .sort()
      .map((name) => [name, canonical('', fields[name], {})]),
  };
}

// One thing has many spellings: `HTTP://Host:80/a/../b` and `http://host/b`, `/bin/rm` and `rm`, `./a//b` and `a/b`. Rules compare those
// that mean the same.

interface Forms {
  /** Never empty: what the word means, in each reading that those who are given it may have. */
  readonly strict: readonly string[];
  /** What it may come to as well. */
  readonly loose: readonly string[];
}

/**
 * Whether a word names a thing and carries nothing beside it: no control character or invisible one, no blank at an end, and of an address
 * neither user name nor fragment. Those are cut off where the thing is compared, and still reach the program that is called.
 */
export function isPlain(word: string): boolean {
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(word) || word !== word.trim()) return false;
  if (!/^[a-z][a-z0-9+.-]*:/i.test(word) || !URL.canParse(word)) return true;
  const { username, password, hash } = new URL(word);
  return username === '' && password === '' && hash === '' && !word.includes('#');
}

/** `field`: the argument's name, by which commands and paths are known. */
export function canonicalForms(field: string, word: string): Forms {
  const url = asUrl(word);
  if (url) return { strict: [...new Set([url, readAgain(url)])], loose: [] };
  if (field === 'command') {
    const path = canonicalProgram(word);
    const name = posix.basename(path);
    // `RM` is `rm` where the file system says so.
    return { strict: [path], loose: [name, name.toLowerCase(), name.toLowerCase().replace(/\.(exe|com|bat|cmd)$/, '')] };
  }
  if (field === 'path' || field === 'cwd') return { strict: [withoutEnd(posix.normalize(word))], loose: [word.toLowerCase()] };
  return { strict: [word], loose: [] };
}

/** Scheme and host as they are compared; the rest as it stands, since `*` may be anywhere. */
export function canonicalPattern(pattern: string): string {
  return pattern.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, (start) =>
    start
      .toLowerCase()
      .replace(/^(http:.*):80$/, '$1')
      .replace(/^(https:.*):443$/, '$1'),
  );
}

/** As it is requested: without name and password, fragment, default port, dot segments and needless escapes. */
function asUrl(word: string): string | undefined {
  if (!/^[\u0000-\u0020]*[a-z][a-z0-9+.\t\n\r-]*:/i.test(word) || !URL.canParse(word)) return undefined;
  const url = new URL(word);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined;
  url.username = '';
  url.password = '';
  url.hash = '';
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.replace(/\.+$/, '');
  const plain = url.href.replace(/%[0-9a-f]{2}/gi, (escape) => {
    const character = String.fromCharCode(parseInt(escape.slice(1), 16));
    return /[A-Za-z0-9._~-]/.test(character) ? character : escape.toUpperCase();
  });
  // What was an escape may have been a dot segment.
  return new URL(plain).href;
}

/** As a server reads it that decodes slashes and backslashes before it resolves dots. */
function readAgain(url: string): string {
  return new URL(url.replace(/%2f|%5c/gi, '/').replace(/%2e/gi, '.')).href;
}

/** A name is looked for along PATH; `./git` is another program than `git`. */
function canonicalProgram(word: string): string {
  const path = posix.normalize(word);
  if (!word.includes('/')) return word;
  return path.includes('/') ? path : `./${path}`;
}

function withoutEnd(path: string): string {
  return path.length > 1 ? path.replace(/\/$/, '') : path;
}
