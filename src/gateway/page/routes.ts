/** The page for people, at `/` for browsers. Nothing of it needs a token: it is the same for everybody, and asks the native API for the rest. */
import { join } from 'node:path';
import type { GatewayApp, GatewayContext } from '../context.js';
import { readPageFiles, toFile, type PageFile } from './files.js';

/** Where the package has it: `dist/web`. */
export const OWN_PAGE = join(__dirname, '..', '..', 'web');

/**
 * Scripts, styles and requests of this very gateway; pictures also as data. What a model says cannot run, load or send anything, even where
 * it would get past the page's own cleaning.
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

/** Its own addresses are relative, so `/perdura` without a slash at its end would lead them astray. */
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
