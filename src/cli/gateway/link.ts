/** A link that lets a browser in: its code opens once, within a minute, and stands where no server and no log sees it. */
import type { Browsers } from '../../gateway/access/entrance.js';

/** Undefined where the gateway's own token does not open. */
export function linkOf(served: string, browsers: Browsers): string | undefined {
  const code = browsers.createCode();
  if (code === undefined) return undefined;
  const url = new URL(served);
  // "All addresses" is none that a browser can open.
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = '127.0.0.1';
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  url.hash = `code=${code}`;
  return url.href;
}
