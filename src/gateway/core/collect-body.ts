/**
 * Bodies of requests, collected once the client was let in.
 *
 * @rule gateway/bounded-bodies: Without a token nothing of a body is read. With one each is within the limit of its path, those of one
 *   token within a share, and all within what a gateway may hold at once. (test: test/gateway/collect-body.test.ts)
 */
import type { Context, MiddlewareHandler } from 'hono';
import type { GatewayVariables } from '../context.js';
import type { Principal } from '../access/principal.js';
import { GatewayError } from './errors.js';

/** What all requests of a gateway together may hold as bytes of bodies; what is parsed of them is a small multiple. */
export const MAX_HELD_BYTES = 256 * 1024 * 1024;
/** What those of one token may hold of it: eight of the largest. */
const MAX_HELD_PER_TOKEN = 80 * 1024 * 1024;
/** A body of this declared length is counted whole, and read by its route. */
const SMALL_BYTES = 16 * 1024;

export interface CollectOptions {
  /** Most bytes of a body by path; undefined: the route reads its body itself as it comes. */
  readonly limit: (path: string) => number | undefined;
  readonly tooLarge: (context: Context, maxBytes: number) => Response;
  readonly maxHeldBytes?: number;
}

export function collectBodies({ limit, tooLarge, maxHeldBytes = MAX_HELD_BYTES }: CollectOptions): MiddlewareHandler<GatewayVariables> {
  const held = createHeldBytes(maxHeldBytes, Math.min(MAX_HELD_PER_TOKEN, maxHeldBytes));
  return async (context, next) => {
    const maxBytes = limit(context.req.path);
    if (maxBytes === undefined || !hasBody(context)) return next();
    const declared = declaredBytes(context);
    if (declared !== undefined && declared > maxBytes) return tooLarge(context, maxBytes);
    const share = held.open((context.get('principal') as Principal | undefined)?.name ?? '');
    try {
      if (declared !== undefined && declared <= SMALL_BYTES) share.take(declared);
      else {
        const body = await collect(context.req.raw.body, maxBytes, (bytes) => share.take(bytes));
        if (body === undefined) return tooLarge(context, maxBytes);
        context.req.raw = new Request(context.req.raw, { body });
      }
      return await next();
    } finally {
      share.close();
    }
  };
}

/** Whether the request comes with a body that a route may read. In a server that is not Node's it may state no length. */
export function hasBody(context: Context): boolean {
  if (['GET', 'HEAD'].includes(context.req.method)) return false;
  return declaredBytes(context) !== 0 && (declaredBytes(context) !== undefined || context.req.raw.body !== null);
}

/** Undefined: it is not known before it has come. */
function declaredBytes(context: Context): number | undefined {
  const length = context.req.header('content-length');
  return length === undefined || context.req.header('transfer-encoding') !== undefined ? undefined : Number(length);
}

/** Undefined: there are more bytes than `maxBytes`. */
async function collect(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  take: (bytes: number) => void,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    take(chunk.length);
    chunks.push(chunk);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

interface Share {
  /** Throws 503 where the gateway, and 429 where the token holds as much as it may. */
  take(bytes: number): void;
  /** Gives back what it has taken. */
  close(): void;
}

function createHeldBytes(maxBytes: number, maxPerToken: number): { open(token: string): Share } {
  const byToken = new Map<string, number>();
  let all = 0;
  return {
    open(token) {
      let mine = 0;
      return {
        take(bytes) {
          const ofToken = (byToken.get(token) ?? 0) + bytes;
          if (ofToken > maxPerToken) {
            const message = `requests of this token that are being read hold ${maxPerToken} bytes: wait until some of them are answered`;
            throw new GatewayError({ status: 429, type: 'too-many-requests', message, retryAfter: 1 });
          }
          if (all + bytes > maxBytes) {
            const message = `requests that are being read hold ${maxBytes} bytes, which is what this gateway may: try again in a moment`;
            throw new GatewayError({ status: 503, type: 'busy', message, retryAfter: 1 });
          }
          byToken.set(token, ofToken);
          all += bytes;
          mine += bytes;
        },
        close() {
          const rest = (byToken.get(token) ?? 0) - mine;
          if (rest <= 0) byToken.delete(token);
          else byToken.set(token, rest);
          all -= mine;
          mine = 0;
        },
      };
    },
  };
}
