/**
 * One call of a model, whatever its SDK: what all providers have in common.
 *
 * - One call is one request: Temporal is the only layer that retries.
 * - No call hangs: silence, a drip and a flood of bytes all end it.
 * - It throws only ModelFailure or ModelInterrupted, and never shows a key.
 * - An HTTP response is judged here, before the SDK rewords it: its status, its headers, and whether anything came at all.
 */
import type { Answer } from './draft.js';
import { type Provider, toModelFailure } from './failure.js';
import { ModelFailure, ModelInterrupted, type ModelRequest, type ModelResponse, type Served, type StreamOptions } from './model.js';
import { Refusal, toRefusal, Unreachable } from './refusal.js';
import { asObject, asText } from './wire.js';
import { readLimits } from '../records/rate-limit.js';
import { createHash } from 'node:crypto';

/** Of a provider that asks for a key. */
export interface KeyedOptions {
  /** Without one every call fails with `missing-key`. */
  readonly apiKey?: string;
  /** Default: the public API. */
  readonly baseURL?: string;
  readonly fetch?: typeof fetch;
}

/** Names a key, which nothing shows: no one finds the key by it. */
export function toAccount(apiKey: string): { readonly account?: string } {
  return apiKey === '' ? {} : { account: createHash('sha256').update('perdura account ').update(apiKey).digest('hex').slice(0, 12) };
}

export interface GuardedCall<Event> {
  readonly provider: Provider;
  readonly request: ModelRequest;
  readonly options: StreamOptions;
  readonly answer: Answer<Event>;
  /** Default: the platform's. */
  readonly fetch?: typeof fetch;
  /** A server of the user may read a long prompt for minutes: unless they say otherwise, only the whole call's time bounds that wait. */
  readonly isSlowToBegin?: boolean;
  /** Asks, and gives the events of the answer as they come. */
  readonly ask: (channel: HttpChannel) => AsyncIterable<Event>;
}

/** What a client of an SDK is given to speak through. */
export interface HttpChannel {
  readonly signal: AbortSignal;
  readonly fetch: typeof fetch;
  /** For an SDK that sends by itself: sees the response before it does. */
  watch(send: () => Promise<Response>): Promise<Response>;
  /** Why the last request was refused, for those who make it in another form. */
  takeRefusal(): Refusal | undefined;
  /** For an SDK that shows no response, only what it reads from one: something of about this size came. Zero: only that it began. */
  saw(bytes: number): void;
  /** Headers of the answer, for an SDK that sends by itself and shows them. */
  sawHeaders(headers: Headers): void;
}

const IDLE_MS = 60_000;
const TOTAL_MS = 600_000;
/** Several times what the longest answer takes as events; stops a bomb while it is small. */
const MAX_BYTES = 32 * 1024 * 1024;
/** For the end of the body after the end of the answer. */
const LAST_BYTES_MS = 500;

export async function guardedCall<Event>(call: GuardedCall<Event>): Promise<ModelResponse> {
  const { provider, request, options, answer } = call;
  const { signal } = options;
  try {
    const { silence = {}, totalMs = TOTAL_MS, idleMs = silence.betweenBytesMs } = options;
    const firstMs = options.idleMs ?? silence.firstByteMs ?? (call.isSlowToBegin === true ? totalMs : IDLE_MS);
    return await guarded({ signal, idleMs, firstMs, totalMs, fetch: call.fetch, ...pickHooks(options) }, async (channel, watchdog) => {
      await read(call.ask(channel), named(answer, options), channel, watchdog);
      return answer.response();
    });
  } catch (error) {
    if (signal.aborted) throw interrupted(answer);
    const { reason, answered } = error as Failed;
    throw toModelFailure(reason, { provider, model: request.model, answered, ...(answered && { usage: answer.soFar().usage }) });
  }
}

function pickHooks({ onServed, onLimits }: StreamOptions): Pick<StreamOptions, 'onServed' | 'onLimits'> {
  return { ...(onServed && { onServed }), ...(onLimits && { onLimits }) };
}

/** The id of an answer and its model come with the first event that has them, in every protocol. */
function named<Event>(answer: Answer<Event>, { onServed }: StreamOptions): Answer<Event> {
  if (!onServed) return answer;
  let isNamed = false;
  const take = (event: Event): void => {
    const served = isNamed ? {} : servedBy(event);
    isNamed ||= served.model !== undefined;
    if (isNamed && served.model !== undefined) onServed(served);
    answer.take(event);
  };
  return { ...answer, take };
}

function servedBy(event: unknown): Served {
  const { message, response, ...whole } = asObject(event);
  // Messages, Responses, the rest.
  const one = [message, response].map(asObject).find(({ model }) => asText(model) !== '') ?? whole;
  const id = asText(one.id) || asText(one.responseId);
  const model = asText(one.model) || asText(one.modelVersion) || asText(one.modelId);
  return { ...(id !== '' && { id }), ...(model !== '' && { model }) };
}

/** A request whose answer comes at once, with the same guards. Throws ModelFailure; what aborted `signal` where that is why. */
export async function guardedRequest<T>(
  {
    provider,
    model,
    ...limits
  }: {
    readonly provider: Provider;
    readonly model: string;
    readonly signal: AbortSignal;
    readonly totalMs?: number;
    readonly fetch?: typeof fetch | undefined;
  },
  ask: (channel: HttpChannel) => Promise<T>,
): Promise<T> {
  try {
    // All of it comes at once: until then there is silence.
    return await guarded({ ...limits, idleMs: limits.totalMs ?? TOTAL_MS }, ask);
  } catch (error) {
    limits.signal.throwIfAborted();
    const { reason, answered } = error as Failed;
    throw toModelFailure(reason, { provider, model, answered });
  }
}

/** Why a guarded call came to nothing, and whether an answer had begun to come. */
class Failed extends Error {
  constructor(
    readonly reason: unknown,
    readonly answered: boolean,
  ) {
    super('a guarded call failed');
  }
}

/** Throws `Failed`. */
async function guarded<T>(
  {
    signal,
    idleMs = IDLE_MS,
    firstMs = idleMs,
    totalMs = TOTAL_MS,
    fetch: platformFetch = fetch,
    ...hooks
  }: {
    readonly signal: AbortSignal;
    readonly idleMs?: number;
    readonly firstMs?: number | undefined;
    readonly totalMs?: number;
    readonly fetch?: typeof fetch | undefined;
  } & Pick<StreamOptions, 'onServed' | 'onLimits'>,
  run: (channel: WatchedChannel, watchdog: Watchdog) => Promise<T>,
): Promise<T> {
  const limits = { idleMs, firstMs, totalMs, maxBytes: MAX_BYTES };
  const watchdog = startWatchdog(signal, limits);
  const channel = createChannel(watchdog, platformFetch, hooks);
  try {
    signal.throwIfAborted();
    return await run(channel, watchdog);
  } catch (error) {
    throw new Failed(overLimit(watchdog, limits) ?? channel.trouble() ?? error, channel.hasAnswered());
  } finally {
    watchdog.stop();
  }
}

async function read<Event>(
  events: AsyncIterable<Event>,
  answer: Answer<Event>,
  channel: WatchedChannel,
  watchdog: Watchdog,
): Promise<void> {
  let taken = 0;
  try {
    for await (const event of events) {
      if (answer.isWhole()) continue;
      answer.take(event);
      taken++;
      if (answer.isWhole()) watchdog.allow(LAST_BYTES_MS);
    }
    answer.end();
  } catch (error) {
    // What happens to the connection after the last word does not matter.
    const isNone = taken === 0 && !(error instanceof Refusal);
    if (!answer.isWhole()) throw (isNone && noStream(channel.contentType(), error)) || error;
  }
  if (!answer.isWhole() && taken === 0) throw noStream(channel.contentType()) ?? new ModelFailure('broken-stream', 'the answer is empty');
}

/** A captive portal answers everything with its login page. */
function noStream(contentType: string | undefined, cause?: unknown): ModelFailure | undefined {
  if (contentType === undefined || /event-stream|ndjson/.test(contentType)) return undefined;
  return new ModelFailure('broken-stream', `the answer is no event stream but ${contentType || 'nothing'}`, { cause });
}

interface WatchedChannel extends HttpChannel {
  /** What went wrong with the request itself. */
  trouble(): Error | undefined;
  /** Undefined where no response was seen. */
  contentType(): string | undefined;
  hasAnswered(): boolean;
}

function createChannel(
  watchdog: Watchdog,
  platformFetch: typeof fetch,
  { onServed, onLimits }: Pick<StreamOptions, 'onServed' | 'onLimits'>,
): WatchedChannel {
  let trouble: Error | undefined;
  let contentType: string | undefined;
  let hasAnswered = false;
  const sawHeaders = (headers: Headers): void => onLimits?.(readLimits(headers, Date.now()));
  const watch = async (send: () => Promise<Response>): Promise<Response> => {
    const sent = await send().catch((cause: unknown) => {
      throw (trouble = new Unreachable(cause));
    });
    // An SDK that sends by itself shows the address only here.
    if (sent.url !== '') onServed?.({ url: sent.url });
    sawHeaders(sent.headers);
    const response = counted(sent, watchdog);
    if (!response.ok) {
      const { status, headers } = response;
      throw (trouble = toRefusal(await response.text(), { status, headers, now: Date.now() }));
    }
    contentType = response.headers.get('content-type') ?? '';
    hasAnswered = true;
    return response;
  };
  return {
    signal: watchdog.signal,
    watch,
    takeRefusal: () => {
      const refusal = trouble instanceof Refusal ? trouble : undefined;
      if (refusal) trouble = undefined;
      return refusal;
    },
    fetch: (input, init) => {
      onServed?.({ url: input instanceof Request ? input.url : String(input) });
      const signal = init?.signal ? AbortSignal.any([init.signal, watchdog.signal]) : watchdog.signal;
      return watch(() => platformFetch(input, { ...init, signal }));
    },
    saw: (bytes) => {
      hasAnswered = true;
      watchdog.sawBytes(bytes);
    },
    sawHeaders,
    trouble: () => trouble,
    hasAnswered: () => hasAnswered,
    contentType: () => contentType,
  };
}

function overLimit(watchdog: Watchdog, { idleMs, firstMs, totalMs, maxBytes }: WatchdogLimits): ModelFailure | undefined {
  const limit = watchdog.expired();
  switch (limit) {
    case 'idle':
      return new ModelFailure('timeout', `nothing came for ${(watchdog.hasBegun() ? idleMs : firstMs) / 1000} s`);
    case 'total':
      return new ModelFailure('timeout', `it took longer than ${totalMs / 1000} s`);
    case 'bytes':
      return new ModelFailure('broken-stream', `it sent more than ${maxBytes / 1024 / 1024} MiB`);
    case undefined:
      return undefined;
    default:
      return limit satisfies never;
  }
}

function interrupted<Event>(answer: Answer<Event>): ModelInterrupted {
  const { blocks, usage } = answer.soFar();
  return new ModelInterrupted(blocks, usage);
}

/**
 * Ends a call that hangs. An SDK's timeout covers the wait for headers only, so that a stream which falls silent
 * would hang for ever, and one that drips pings too.
 */
interface Watchdog {
  /** Aborted by the caller, or by a limit. */
  readonly signal: AbortSignal;
  /** Which limit was passed, if one was. */
  expired(): 'idle' | 'total' | 'bytes' | undefined;
  /** Whether bytes of an answer have come. */
  hasBegun(): boolean;
  /** Bytes came: the idle limit begins anew, the total one does not. */
  sawBytes(count: number): void;
  /** The answer is complete: what is left of the body gets this long, so that its connection can be used again. */
  allow(ms: number): void;
  stop(): void;
}

interface WatchdogLimits {
  readonly idleMs: number;
  /** In place of the idle limit, until bytes have come. */
  readonly firstMs: number;
  readonly totalMs: number;
  /** Of the decompressed body. */
  readonly maxBytes: number;
}

function startWatchdog(caller: AbortSignal, { idleMs, firstMs, totalMs, maxBytes }: WatchdogLimits): Watchdog {
  const abort = new AbortController();
  let expired: 'idle' | 'total' | 'bytes' | undefined;
  let bytes = 0;
  const expire = (limit: 'idle' | 'total' | 'bytes'): void => {
    expired ??= limit;
    abort.abort();
  };
  let idle = setTimeout(() => expire('idle'), firstMs);
  const total = setTimeout(() => expire('total'), totalMs);
  let last: NodeJS.Timeout | undefined;
  return {
    signal: AbortSignal.any([caller, abort.signal]),
    expired: () => expired,
    hasBegun: () => bytes > 0,
    sawBytes(count) {
      const isFirst = bytes === 0 && count > 0;
      bytes += count;
      if (bytes > maxBytes) return expire('bytes');
      if (!isFirst) return void idle.refresh();
      clearTimeout(idle);
      idle = setTimeout(() => expire('idle'), idleMs);
    },
    allow(ms) {
      last ??= setTimeout(() => expire('total'), ms);
    },
    stop() {
      clearTimeout(idle);
      clearTimeout(total);
      clearTimeout(last);
      // An SDK may leave the end of a body unread: its connection must not stay with us.
      abort.abort();
    },
  };
}

/** The same response, its bytes counted as they come. */
function counted(response: Response, watchdog: Watchdog): Response {
  watchdog.sawBytes(0);
  if (!response.body) return response;
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      watchdog.sawBytes(chunk.byteLength);
      controller.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(count), response);
}
