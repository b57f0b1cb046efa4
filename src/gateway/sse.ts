/** Server-sent events, as long as a client reads them. */
import type { Context } from 'hono';
import { streamSSE } from 'hono/streaming';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GatewayVariables } from './context.js';

export interface ServerEvent {
  readonly id?: string;
  readonly event?: string;
  readonly data: string;
}

/** Proxies close what is silent for a minute. */
const HEARTBEAT_MS = 15_000;
/** A client that does not read costs a connection and nothing more; one that is gone without closing it is noticed here. */
const MAX_STALL_MS = 60_000;

/**
 * `events` gets a signal that ends with the client's connection, with the gateway, or with the token. What it throws before its first event
 * is the request's answer; later it becomes a last event made by `failed`.
 */
export async function sendEvents(
  context: Context<GatewayVariables>,
  events: (signal: AbortSignal) => AsyncIterable<ServerEvent>,
  failed: (error: unknown) => ServerEvent | undefined,
  { stallMs = MAX_STALL_MS }: { readonly stallMs?: number } = {},
): Promise<Response> {
  const gone = new AbortController();
  const watch = context.get('admission').watch();
  const signal = AbortSignal.any([gone.signal, context.get('closing'), watch.signal]);
  context.req.raw.signal.addEventListener('abort', () => gone.abort(), { once: true });
  const iterator = events(signal)[Symbol.asyncIterator]();
  const first = iterator.next();
  // A refusal is a status, not an event: it is known at once. What takes longer has begun.
  first.catch(() => undefined);
  await Promise.race([first, sleep(EARLY_MS)]).catch((error: unknown) => {
    watch.stop();
    throw error;
  });
  context.header('x-accel-buffering', 'no');
  context.header('cache-control', 'no-cache, no-transform');
  const { streams } = context.get('metrics');
  return streamSSE(context, async (stream) => {
    streams.inc();
    stream.onAbort(() => gone.abort());
    const heartbeat = setInterval(() => void stream.write(': ping\n\n'), HEARTBEAT_MS);
    const write = async (event: ServerEvent): Promise<void> => {
      let timer: NodeJS.Timeout | undefined;
      const stalled = new Promise<void>((resolve) => {
        timer = setTimeout(() => {
          gone.abort();
          stream.abort();
          drop(context);
          resolve();
        }, stallMs);
      });
      try {
        await Promise.race([stream.writeSSE(event), stalled]);
      } finally {
        clearTimeout(timer);
      }
    };
    try {
      for (let next = await first; next.done !== true; next = await iterator.next()) {
        await write(next.value);
        if (signal.aborted) break;
      }
      watch.signal.throwIfAborted();
      if (!signal.aborted) context.get('delivered')?.();
    } catch (error) {
      const last = gone.signal.aborted ? undefined : failed(watch.signal.aborted ? watch.signal.reason : error);
      if (last) await write({ ...last, data: context.get('redact')(last.data) });
    } finally {
      watch.stop();
      clearInterval(heartbeat);
      streams.dec();
      gone.abort();
      await iterator.return?.(undefined).catch(() => undefined);
    }
  });
}

/** Closes the connection, else the written bytes wait for a client that does not read. */
function drop(context: Context): void {
  const { outgoing } = (context.env ?? {}) as { outgoing?: { destroy?: () => void } };
  outgoing?.destroy?.();
}

/** For how long a stream waits for a refusal before it begins. */
const EARLY_MS = 200;
