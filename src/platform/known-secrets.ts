/**
 * Secrets that are known by their values, found and taken out wherever they are: literally, and in the spellings that they travel in
 * (URL, JSON, base64 and base64url at any place of a longer text, hex).
 */

export const REDACTED = '[redacted]';

/** Shorter ones would take whole words out of every line. */
const SHORTEST = 4;
/** Shorter ones are in other words by chance: they are neither looked for in other alphabets nor held against what leaves. */
const MIN_SURE = 8;

export interface KnownSecrets {
  /** Values that nothing shows from now on. */
  add(secrets: readonly string[]): void;
  /** Without them. */
  text(text: string): string;
  /** Whether one of some length is in it. */
  isIn(text: string): boolean;
}

export function createKnownSecrets(secrets: readonly string[] = []): KnownSecrets {
  // Longest first: one may be the beginning of another.
  let known: readonly string[] = [];
  let sure: readonly string[] = [];
  const add = (more: readonly string[]): void => {
    const added = more.filter((secret) => secret.length >= SHORTEST);
    known = [...new Set([...known, ...added.flatMap(spellings)])].sort((a, b) => b.length - a.length);
    sure = [...new Set([...sure, ...added.filter((secret) => secret.length >= MIN_SURE).flatMap(spellings)])];
  };
  add(secrets);
  return {
    add,
    text: (text) => known.reduce((rest, secret) => rest.replaceAll(secret, REDACTED), text),
    isIn: (text) => [text, withoutEscapes(text)].some((read) => sure.some((secret) => read.includes(secret))),
  };
}

function spellings(secret: string): string[] {
  const inUrl = encodeURIComponent(secret.toWellFormed());
  const plain = [secret, inUrl, lowerEscapes(inUrl), JSON.stringify(secret).slice(1, -1)];
  if (secret.length < MIN_SURE) return plain;
  const bytes = Buffer.from(secret);
  const hex = bytes.toString('hex');
  const escaped = hex.replace(/../g, '%$&');
  return [...plain, hex, hex.toUpperCase(), escaped, escaped.toUpperCase(), ...inBase64(bytes)];
}

/** Its base64 in any text around it: of three bytes each, the secret begins at the first, second or third. */
function inBase64(secret: Buffer): string[] {
  return [0, 2, 3].flatMap((head, before) => {
    const all = Buffer.concat([Buffer.alloc(before), secret]);
    // The last sign may depend on what follows.
    const end = Math.floor((all.length * 4) / 3);
    const standard = all.toString('base64').slice(head, end);
    return [standard, standard.replaceAll('+', '-').replaceAll('/', '_')];
  });
}

function lowerEscapes(text: string): string {
  return text.replace(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase());
}

/** Where a part of the letters is written as escapes. A run of them at once: one by one, a megabyte takes most of a second. */
export function withoutEscapes(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('latin1'));
}

/** Settings of programs are known by name alone: which of their values is a secret. */
export function isSecretSetting(name: string, value: string): boolean {
  if (value.length < MIN_SURE || /^([~./]|[A-Za-z]:\\)/.test(value)) return false;
  return /(^|[_-])(key|apikey|token|secret|password|passwd|pass|pat|credentials?|auth|authorization|cookie|dsn)(s?$|[_-])/i.test(
    name.trim(),
  );
}
