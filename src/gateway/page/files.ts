/** The page as it was built, in memory: it is small, and a path can then name nothing but its own files. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { gzipSync } from 'node:zlib';

export interface PageFile {
  readonly type: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Absent where that would not be smaller. */
  readonly gzipped?: Uint8Array<ArrayBuffer>;
  readonly etag: string;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** It is made by us and has a few hundred kilobytes: more is another folder. */
const MAX_FILES = 500;

/** By their paths below the page, such as `assets/index-4f3a.js`; empty where the folder is not there. */
export function readPageFiles(folder: string): ReadonlyMap<string, PageFile> {
  const found = new Map<string, PageFile>();
  for (const path of listed(folder).slice(0, MAX_FILES)) {
    const type = TYPES[extname(path)];
    if (type === undefined || !statSync(join(folder, path)).isFile()) continue;
    found.set(path.split(sep).join('/'), toFile(type, readFileSync(join(folder, path))));
  }
  return found;
}

export function toFile(type: string, content: Buffer): PageFile {
  const gzipped = gzipSync(content, { level: 9 });
  return {
    type,
    bytes: new Uint8Array(content),
    ...(gzipped.length < content.length && { gzipped: new Uint8Array(gzipped) }),
    etag: `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`,
  };
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' });
  } catch {
    return [];
  }
}
