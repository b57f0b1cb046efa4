/** Anthropic's models over the Messages API, streaming. */
import Anthropic from '@anthropic-ai/sdk';
import { Stream } from '@anthropic-ai/sdk/core/streaming.js';
import { keyAdvice, missingKey, type Provider } from '../failure.js';
import { guardedCall, toAccount, type KeyedOptions, type HttpChannel } from '../guarded-call.js';
import type { Model, ModelRequest, ModelDelta, ModelUsage } from '../model.js';
import { toRefusal } from '../refusal.js';
import {
  brokenStream,
  isDeeperThan,
  MAX_DEPTH,
  readCall,
  type UnparsedCall,
  asCount,
  asObject,
  asText,
  isWellFormed,
  toWellFormed,
} from '../wire.js';
import { renderRequest } from './render.js';
import type { AssistantBlock, JsonObject, JsonValue } from '../../records/message.js';
import { type Answer, hasText, readStop, settleStop, createDeltaEmitter } from '../draft.js';

const NAME = 'anthropic';
/** The watchdog has the say on time; this is the longest that the SDK takes. */
const NEVER_MS = 2 ** 31 - 1;

export function createAnthropicModel(options: KeyedOptions): Model {
  const { baseURL } = options;
  const apiKey = options.apiKey?.trim() ?? '';
  const provider: Provider = { name: NAME, secrets: [apiKey], advice: keyAdvice('ANTHROPIC_API_KEY') };
  const client = apiKey === '' ? undefined : createClient(apiKey, options);
  return {
    provider: NAME,
    takesMustCall: true,
    ...toAccount(apiKey),
    async stream(request, options) {
      if (!client) throw missingKey(provider, request.model);
      const answer = createAnswer(NAME, options.onDelta);
      const isSlowToBegin = baseURL !== undefined;
      return await guardedCall({ provider, request, options, answer, isSlowToBegin, ask: (channel) => ask(client, request, channel) });
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

/** Reads the raw events: the SDK's stream hides pings, a missing end and an abort from its reader. */
async function* ask(client: Anthropic, request: ModelRequest, channel: HttpChannel): AsyncIterable<StreamEvent> {
  const response = await client.messages
    .create(renderRequest(request), {
      signal: channel.signal,
      timeout: NEVER_MS,
      middleware: [(apiRequest, next) => channel.watch(() => next(apiRequest))],
    })
    .asResponse();
  for await (const { event, data } of Stream.rawEvents(response)) {
    if (data === '' || event === 'ping') continue;
    const parsed = parseEvent(event, data);
    if (parsed.type === 'error') throw toRefusal(parsed);
    yield parsed;
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

// Puts an answer together from the events of its stream.
//
// - Only `message_stop` ends an answer: a stream that ends without it has failed, however whole it looks.
// - Tool calls count only if the model stopped for them: cut off, their JSON may look whole and mean something else.
// - Unknown events are passed over, unknown blocks are stored as they came.

/** An event as it comes over the wire: `type` is sure, the rest is read with care. */
interface StreamEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A block while it streams; which of the fields grow depends on its kind. */
interface OpenBlock {
  readonly start: JsonObject;
  text: string;
  signature: string;
  json: string;
}

type WholeBlock = AssistantBlock | UnparsedCall;

/** What cannot come before `message_start`. */
const IN_MESSAGE = ['content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta', 'message_stop'];

function createAnswer(provider: string, onDelta: (delta: ModelDelta) => void): Answer<StreamEvent> {
  const open = new Map<number, OpenBlock>();
  const blocks = new Map<number, WholeBlock>();
  const emit = createDeltaEmitter(onDelta);
  let usage: WireUsage | undefined;
  let stopReason: string | undefined;
  let explanation: string | undefined;
  let stoppedAt = '';
  let whole = false;

  const openBlock = (event: StreamEvent): OpenBlock => {
    const block = open.get(blockIndex(event));
    if (!block) throw brokenStream(`${event.type} for a block that is not open`);
    return block;
  };

  const takeDelta = (block: OpenBlock, delta: JsonObject): void => {
    switch (asText(delta.type)) {
      case 'text_delta':
        block.text += asText(delta.text);
        return emit('text', asText(delta.text));
      case 'thinking_delta':
        block.text += asText(delta.thinking);
        return emit('thinking', asText(delta.thinking));
      case 'signature_delta':
        block.signature += asText(delta.signature);
        return;
      case 'input_json_delta':
        block.json += asText(delta.partial_json);
        return;
    }
  };

  const wholeBlocks = (): WholeBlock[] => [...blocks.entries()].sort(([a], [b]) => a - b).map(([, block]) => block);

  return {
    take(event) {
      if (whole) return;
      if (event.type !== 'message_start' && usage === undefined && IN_MESSAGE.includes(event.type))
        throw brokenStream(`${event.type} before message_start`);
      switch (event.type) {
        case 'message_start':
          usage = readUsage(asObject(asObject(event.message).usage), NO_USAGE);
          return;
        case 'content_block_start': {
          const start = asObject(event.content_block);
          open.set(blockIndex(event), {
            start,
            text: asText(start.text) + asText(start.thinking),
            signature: asText(start.signature),
            json: '',
          });
          if (start.type === 'tool_use') onDelta({ kind: 'tool-call', name: toWellFormed(asText(start.name)) });
          return;
        }
        case 'content_block_delta':
          return takeDelta(openBlock(event), asObject(event.delta));
        case 'content_block_stop':
          closeBlock(openBlock(event), provider).forEach((block) => blocks.set(blockIndex(event), block));
          open.delete(blockIndex(event));
          emit.flush();
          return;
        case 'message_delta': {
          const delta = asObject(event.delta);
          usage = readUsage(asObject(event.usage), usage ?? NO_USAGE);
          stopReason = typeof delta.stop_reason === 'string' ? delta.stop_reason : stopReason;
          explanation = asText(asObject(delta.stop_details).explanation) || explanation;
          stoppedAt = asText(delta.stop_sequence);
          return;
        }
        case 'message_stop':
          if (open.size > 0) throw brokenStream('message_stop with a block still open');
          if (stopReason === undefined) throw brokenStream('message_stop without a stop reason');
          whole = true;
          return;
      }
    },
    end() {},
    isWhole: () => whole,
    response() {
      if (!whole || stopReason === undefined) throw brokenStream('the stream ended before message_stop');
      const calls = stopReason === 'tool_use';
      const read = wholeBlocks().flatMap((block) => (block.kind !== 'unparsed-call' ? [block] : calls ? [readCall(block)] : []));
      const { stop, blocks } = settleStop(readStop(stopReason), stopReason, read);
      const why: AssistantBlock[] =
        stop === 'refusal' && explanation && !hasText(blocks) ? [{ kind: 'text', text: toWellFormed(explanation) }] : [];
      return { blocks: [...blocks, ...why], stop, ...(stoppedAt && { stoppedAt }), usage: toUsage(usage ?? NO_USAGE) };
    },
    soFar: () => ({
      blocks: wholeBlocks().filter((block) => block.kind !== 'unparsed-call'),
      usage: toUsage(usage ?? NO_USAGE),
    }),
  };
}

/** One block, or none where an opaque one arrived in no state to be kept. */
function closeBlock({ start, text, signature, json }: OpenBlock, provider: string): WholeBlock[] {
  switch (start.type) {
    case 'text':
      return [{ kind: 'text', text: toWellFormed(text) }];
    case 'thinking':
      // A signature holds for the exact text; mended, it is for reading only.
      return [{ kind: 'thinking', text: toWellFormed(text), ...(signature && isWellFormed(text) && { signature }), provider }];
    case 'tool_use':
      return [{ kind: 'unparsed-call', callId: asText(start.id), name: toWellFormed(asText(start.name)), json, input: start.input ?? {} }];
    default: {
      const value = json === '' ? start : { ...start, input: parsedOr(json, null) };
      return isDeeperThan(value, MAX_DEPTH) || value.input === null ? [] : [{ kind: 'opaque', provider, value }];
    }
  }
}

function parsedOr(json: string, otherwise: JsonValue): JsonValue {
  try {
    return JSON.parse(json) as JsonValue;
  } catch {
    return otherwise;
  }
}

interface WireUsage {
  readonly input: number;
  readonly cacheWrite: number;
  readonly hourWrite: number;
  readonly cacheRead: number;
  readonly output: number;
}

const NO_USAGE: WireUsage = { input: 0, cacheWrite: 0, hourWrite: 0, cacheRead: 0, output: 0 };

/** Numbers are totals, not increments; what an event leaves out stays as it was. */
function readUsage(wire: JsonObject, before: WireUsage): WireUsage {
  return {
    input: asCount(wire.input_tokens, before.input),
    cacheWrite: asCount(wire.cache_creation_input_tokens, before.cacheWrite),
    hourWrite: asCount(asObject(wire.cache_creation).ephemeral_1h_input_tokens, before.hourWrite),
    cacheRead: asCount(wire.cache_read_input_tokens, before.cacheRead),
    output: asCount(wire.output_tokens, before.output),
  };
}

function toUsage({ input, cacheWrite, hourWrite, cacheRead, output }: WireUsage): ModelUsage {
  return {
    inputTokens: input + cacheWrite + cacheRead,
    cachedTokens: cacheRead,
    outputTokens: output,
    ...(cacheWrite > 0 && { cacheWriteTokens: cacheWrite }),
    ...(hourWrite > 0 && { hourWriteTokens: hourWrite }),
  };
}

function blockIndex(event: StreamEvent): number {
  if (typeof event.index !== 'number') throw brokenStream(`${event.type} without an index`);
  return event.index;
}
