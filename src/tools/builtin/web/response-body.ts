/** What a server sent: how much of it is read, whether it is text, and in which encoding. */
import type { Response } from 'undici';

export interface Body {
  readonly bytes: Buffer;
  /** True where the server would have sent more. */
  readonly isCut: boolean;
}

export interface Kind {
  /** Without parameters; empty where the server named none. */
  readonly type: string;
  readonly charset?: string;
  readonly isHtml: boolean;
}

const SNIFF_BYTES = 8 * 1024;

export function kindOf(response: Response): Kind {
  const [type = '', ...parameters] = (response.headers.get('content-type') ?? '').slice(0, 200).toLowerCase().split(';');
  const charset = parameters.map((parameter) => /^\s*charset\s*=\s*"?([^"\s]+)"?\s*$/.exec(parameter)?.[1]).find(Boolean);
  const plain = type.trim().replace(/[^a-z0-9!#$&^_.+/-]/g, '');
  return { type: plain, charset, isHtml: plain === 'text/html' || plain === 'application/xhtml+xml' };
}

/** After decompression; stops as soon as there is more than `most`. */
export async function readBody(response: Response, most: number): Promise<Body> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  if (response.body === null) return { bytes: Buffer.alloc(0), isCut: false };
  for await (const chunk of response.body) {
    const buffer = Buffer.from(chunk as Uint8Array);
    chunks.push(buffer.subarray(0, most - bytes));
    bytes += buffer.length;
    // Leaving the loop cancels the rest.
    if (bytes > most) return { bytes: Buffer.concat(chunks), isCut: true };
  }
  return { bytes: Buffer.concat(chunks), isCut: false };
}

export function isText(bytes: Buffer, { type }: Kind): boolean {
  const start = bytes.subarray(0, SNIFF_BYTES);
  const isWide = (start[0] === 0xff && start[1] === 0xfe) || (start[0] === 0xfe && start[1] === 0xff);
  if (start.includes(0) && !isWide) return false;
  if (/^text\/|[/+](json|xml|yaml)$|javascript|x-ndjson|xhtml/.test(type)) return true;
  if (type !== '' && type !== 'application/octet-stream' && /^(image|audio|video|font|application)\//.test(type)) {
    return /x-(sh|yaml|toml|www-form-urlencoded)|sql|graphql/.test(type);
  }
  return !new TextDecoder().decode(start.subarray(0, Math.max(0, start.length - 3))).includes('\ufffd');
}

/** By its mark, by what the server says, by what the page says of itself; UTF-8 otherwise. */
export function decodeBody(bytes: Buffer, { charset, isHtml }: Kind): string {
  const start = bytes.subarray(0, 2).toString('hex');
  const marked = start === 'fffe' ? 'utf-16le' : start === 'feff' ? 'utf-16be' : undefined;
  const named = isHtml
    ? /<meta[^>]{0,200}charset\s*=\s*["']?([a-z0-9_-]{2,40})/i.exec(bytes.subarray(0, 2048).toString('latin1'))?.[1]
    : undefined;
  for (const encoding of [marked, charset, named]) {
    try {
      if (encoding !== undefined) return new TextDecoder(encoding).decode(bytes);
    } catch {
      // A name that nobody knows: the next one.
    }
  }
  return new TextDecoder().decode(bytes);
}
