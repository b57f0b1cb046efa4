/**
 * One thing has many spellings: `HTTP://Host:80/a/../b` and `http://host/b`, `/bin/rm` and `rm`, `./a//b` and `a/b`. Rules compare those
 * that mean the same.
 */
import { posix } from 'node:path';

export interface Forms {
  /** Never empty: what the word means, in each reading that those who are given it may have. */
  readonly strict: readonly string[];
  /** What it may come to as well. */
  readonly loose: readonly string[];
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
