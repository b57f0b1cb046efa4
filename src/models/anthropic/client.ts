/**
 * Anthropic's models over the Messages API, streaming.
 *
 * C1  One call is one request: Temporal is the only layer that tries again.
 * C2  No call hangs: silence, a drip and a flood of bytes all end it (`watchdog.ts`).
 * C3  What is thrown is ModelFailure or ModelInterrupted, and never shows the key.
 */
import Anthropic, { APIError } from '@anthropic-ai/sdk';
import { Stream } from '@anthropic-ai/sdk/core/streaming.js';
import { type Model, ModelFailure, ModelInterrupted, type ModelRequest, type StreamOptions } from '../model.js';
import { type Answer, createAnswer, type StreamEvent } from './answer.js';
import { missingKey, toModelFailure } from './failure.js';
import { renderRequest } from './render.js';
import { counted, startWatchdog, type Watchdog } from './watchdog.js';

export interface AnthropicOptions {
  /** Without one every call fails with `missing-key`. */
  readonly apiKey?: string;
  /** Default: the public API. */
  readonly baseURL?: string;
  readonly fetch?: typeof fetch;
}

const PROVIDER = 'anthropic';
const IDLE_MS = 60_000;
const TOTAL_MS = 600_000;
/** Several times what the longest answer takes as events; stops a bomb while it is small. */
const MAX_BYTES = 32 * 1024 * 1024;
/** For the end of the body after the end of the answer. */
const LAST_BYTES_MS = 500;
/** The watchdog has the say on time; this is the longest that the SDK takes. */
const NEVER_MS = 2 ** 31 - 1;

export function createAnthropicModel(options: AnthropicOptions): Model {
  const apiKey = options.apiKey?.trim() ?? '';
  const client = apiKey === '' ? undefined : createClient(apiKey, options);
  return {
    provider: PROVIDER,
    async stream(request, { signal, onDelta, idleMs = IDLE_MS, totalMs = TOTAL_MS }) {
      const model = `${PROVIDER}/${request.model}`;
      if (!client) throw missingKey(model);
      const answer = createAnswer(PROVIDER, onDelta);
      const watchdog = startWatchdog(signal, { idleMs, totalMs, maxBytes: MAX_BYTES });
      try {
        await read(client, request, answer, watchdog);
        return answer.response();
      } catch (error) {
        if (signal.aborted) throw interrupted(answer);
        const reason = overLimit(watchdog, { idleMs, totalMs }) ?? error;
        throw toModelFailure(reason, { model, apiKey, now: Date.now() });
      } finally {
        watchdog.stop();
      }
    },
  };
}

function createClient(apiKey: string, { baseURL, fetch }: AnthropicOptions): Anthropic {
  return new Anthropic({
    apiKey,
    // null, not undefined: the SDK would look into the environment, which is `config.ts`'s to read.
    baseURL: baseURL ?? null,
    webhookKey: null,
    maxRetries: 0,
    // Its log has bodies of requests in it.
    logLevel: 'off',
    openTelemetry: false,
    ...(fetch && { fetch }),
  });
}

/** Reads the raw events: the SDK's own stream hides pings, a missing end and an abort from its reader. */
async function read(client: Anthropic, request: ModelRequest, answer: Answer, watchdog: Watchdog): Promise<void> {
  const response = await client.messages
    .create(renderRequest(request), {
      signal: watchdog.signal,
      timeout: NEVER_MS,
      middleware: [async (apiRequest, next) => counted(await next(apiRequest), watchdog)],
    })
    .asResponse();
  let events = 0;
  try {
    for await (const { event, data } of Stream.rawEvents(response)) {
      if (answer.isWhole() || data === '' || event === 'ping') continue;
      take(parseEvent(event, data), answer, response);
      events++;
      if (answer.isWhole()) watchdog.allow(LAST_BYTES_MS);
    }
  } catch (error) {
    // What happens to the connection after the last word does not matter.
    if (!answer.isWhole()) throw error;
  }
  if (events === 0)
    throw new ModelFailure('broken-stream', `the answer is no event stream but ${response.headers.get('content-type') ?? 'nothing'}`);
}

function take(event: StreamEvent, answer: Answer, response: Response): void {
  if (event.type === 'error') throw new APIError(undefined, event, undefined, response.headers);
  answer.take(event);
}

function parseEvent(name: string | null, data: string): StreamEvent {
  try {
    const value = JSON.parse(data) as { readonly type?: unknown };
    return { ...value, type: typeof value.type === 'string' ? value.type : (name ?? '') };
  } catch (cause) {
    throw new ModelFailure('broken-stream', `the event ${name ?? ''} is no JSON`, { cause });
  }
}

function overLimit(watchdog: Watchdog, { idleMs, totalMs }: Required<Pick<StreamOptions, 'idleMs' | 'totalMs'>>): ModelFailure | undefined {
  const limit = watchdog.expired();
  switch (limit) {
    case 'idle':
      return new ModelFailure('timeout', `nothing came for ${idleMs / 1000} s`);
    case 'total':
      return new ModelFailure('timeout', `it took longer than ${totalMs / 1000} s`);
    case 'bytes':
      return new ModelFailure('broken-stream', `it sent more than ${MAX_BYTES / 1024 / 1024} MiB`);
    case undefined:
      return undefined;
    default:
      return limit satisfies never;
  }
}

function interrupted(answer: Answer): ModelInterrupted {
  const { blocks, usage } = answer.soFar();
  return new ModelInterrupted(blocks, usage);
}
