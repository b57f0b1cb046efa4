/** Anthropic's models over the Messages API, streaming. */
import Anthropic from '@anthropic-ai/sdk';
import { Stream } from '@anthropic-ai/sdk/core/streaming.js';
import { keyAdvice, missingKey, type Provider } from '../failure.js';
import { guardedCall, type KeyedOptions, type Line } from '../guarded-call.js';
import type { Model, ModelRequest } from '../model.js';
import { toRefusal } from '../refusal.js';
import { brokenStream } from '../tool-input.js';
import { createAnswer, type StreamEvent } from './answer.js';
import { renderRequest } from './render.js';

const NAME = 'anthropic';
/** The watchdog has the say on time; this is the longest that the SDK takes. */
const NEVER_MS = 2 ** 31 - 1;

export function createAnthropicModel(options: KeyedOptions): Model {
  const apiKey = options.apiKey?.trim() ?? '';
  const provider: Provider = { name: NAME, secrets: [apiKey], advice: keyAdvice('ANTHROPIC_API_KEY') };
  const client = apiKey === '' ? undefined : createClient(apiKey, options);
  return {
    provider: NAME,
    takesMustCall: true,
    async stream(request, options) {
      if (!client) throw missingKey(provider, request.model);
      const answer = createAnswer(NAME, options.onDelta);
      return await guardedCall({ provider, request, options, answer, ask: (line) => ask(client, request, line) });
    },
  };
}

function createClient(apiKey: string, { baseURL, fetch }: KeyedOptions): Anthropic {
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
async function* ask(client: Anthropic, request: ModelRequest, line: Line): AsyncIterable<StreamEvent> {
  const response = await client.messages
    .create(renderRequest(request), {
      signal: line.signal,
      timeout: NEVER_MS,
      middleware: [(apiRequest, next) => line.watch(() => next(apiRequest))],
    })
    .asResponse();
  for await (const { event, data } of Stream.rawEvents(response)) {
    if (data === '' || event === 'ping') continue;
    const said = parseEvent(event, data);
    if (said.type === 'error') throw toRefusal(said);
    yield said;
  }
}

function parseEvent(name: string | null, data: string): StreamEvent {
  try {
    const value = JSON.parse(data) as { readonly type?: unknown };
    return { ...value, type: typeof value.type === 'string' ? value.type : (name ?? '') };
  } catch (cause) {
    throw brokenStream(`the event ${name ?? ''} is no JSON`, cause);
  }
}
