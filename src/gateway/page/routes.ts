/**
 * The page for people, at `/` for browsers. Nothing of it needs a token: it is the same for every reader, and requests the rest from the
 * native API.
 */
import { join, extname, sep } from 'node:path';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { GatewayApp, GatewayContext } from '../context.js';

/** Where the package has it: `dist/web`. */
export const OWN_PAGE = join(__dirname, '..', '..', 'web');

/**
 * Scripts, styles and requests of this very gateway; pictures also as data. Text of a model cannot run, load or send anything, even where it
 * would get past the cleaning in the page.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types perdura dompurify',
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=(), usb=()',
};

/** Names of these files have a hash of what is in them. */
const HASHED = /^assets\//;
const FOR_A_YEAR = 'public, max-age=31536000, immutable';

export function addPage(app: GatewayApp, { folder, basePath }: { readonly folder: string; readonly basePath: string }): void {
  const files = readPageFiles(folder);
  const index = files.get('index.html');
  if (index === undefined) return;
  const page = placed(index, basePath);
  app.get('/', (context, next) => {
    context.header('vary', 'accept', { append: true });
    return (context.req.header('accept') ?? '').includes('text/html') ? answer(context, page, 'no-cache') : next();
  });
  for (const [path, file] of files) {
    if (path !== 'index.html') app.get(`/${path}`, (context) => answer(context, file, HASHED.test(path) ? FOR_A_YEAR : 'no-cache'));
  }
}

/** The addresses in the page are relative, so `/perdura` without a slash at its end would lead them astray. */
function placed(index: PageFile, basePath: string): PageFile {
  if (basePath === '') return index;
  const html = Buffer.from(index.bytes)
    .toString()
    .replaceAll(/(src|href)="\.\//g, `$1="${basePath}/`);
  return toFile(index.type, Buffer.from(html));
}

function answer(context: GatewayContext, { type, bytes, gzipped, etag }: PageFile, cache: string): Response {
  for (const [name, value] of Object.entries(HEADERS)) context.header(name, value);
  context.header('cache-control', cache);
  context.header('vary', 'accept-encoding', { append: true });
  context.header('etag', etag);
  if (context.req.header('if-none-match')?.includes(etag)) return context.body(null, 304);
  const takesGzip = /\bgzip\b/.test(context.req.header('accept-encoding') ?? '');
  if (gzipped === undefined || !takesGzip) return context.body(bytes, 200, { 'content-type': type });
  return context.body(gzipped, 200, { 'content-type': type, 'content-encoding': 'gzip' });
}

// The page as it was built, in memory: it is small, and a path can then name nothing but files of the page.

interface PageFile {
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
function readPageFiles(folder: string): ReadonlyMap<string, PageFile> {
  const found = new Map<string, PageFile>();
  for (const path of listed(folder).slice(0, MAX_FILES)) {
    const type = TYPES[extname(path)];
    if (type === undefined || !statSync(join(folder, path)).isFile()) continue;
    found.set(path.split(sep).join('/'), toFile(type, readFileSync(join(folder, path))));
  }
  return found;
}

function toFile(type: string, content: Buffer): PageFile {
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
