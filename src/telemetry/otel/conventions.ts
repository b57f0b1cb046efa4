/**
 * Names and forms of traces: OpenTelemetry's semantic conventions for generative AI (open-telemetry/semantic-conventions-genai, in
 * development: a change of them changes this file alone), and beside them the few of OpenInference's that its readers do not derive.
 * Langfuse reads both.
 */
import type { Attributes } from '@opentelemetry/api';
import {
  shownText,
  sourcesIn,
  type AssistantBlock,
  type ConversationMessage,
  type JsonValue,
  type Media,
  type ModelStop,
  type Usage,
} from '../../records/message.js';
import { PROVIDERS } from '../../models/known-models.js';

export const SPAN = { invokeAgent: 'invoke_agent', chat: 'chat', executeTool: 'execute_tool' } as const;

export const A = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  maxTokens: 'gen_ai.request.max_tokens',
  stream: 'gen_ai.request.stream',
  outputType: 'gen_ai.output.type',
  responseId: 'gen_ai.response.id',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  firstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  cachedTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_creation.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  conversation: 'gen_ai.conversation.id',
  agent: 'gen_ai.agent.name',
  toolName: 'gen_ai.tool.name',
  toolCallId: 'gen_ai.tool.call.id',
  toolType: 'gen_ai.tool.type',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
  toolDefinitions: 'gen_ai.tool.definitions',
  systemInstructions: 'gen_ai.system_instructions',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  tokenType: 'gen_ai.token.type',
  errorType: 'error.type',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  session: 'session.id',
  user: 'user.id',
  // OpenInference.
  kind: 'openinference.span.kind',
  input: 'input.value',
  inputType: 'input.mime_type',
  output: 'output.value',
  outputMime: 'output.mime_type',
  cost: 'llm.cost.total',
  // Ours, where neither has one.
  turn: 'perdura.turn',
  life: 'perdura.life',
  tenant: 'perdura.tenant',
  stopReason: 'perdura.turn.stop_reason',
  toolCalls: 'perdura.turn.tool_calls',
  costUsd: 'perdura.cost_usd',
  attempt: 'perdura.attempt',
  outcome: 'perdura.tool.outcome',
  child: 'perdura.child.conversation',
  decision: 'perdura.approval.decision',
  leftOut: 'perdura.input.messages_left_out',
  method: 'perdura.compaction.method',
  tokensBefore: 'perdura.compaction.tokens_before',
  tokensAfter: 'perdura.compaction.tokens_after',
  startUnknown: 'perdura.turn.start_unknown',
} as const;

export const METRIC = { tokens: 'gen_ai.client.token.usage', duration: 'gen_ai.client.operation.duration' } as const;

/** As the conventions give them. */
export const BUCKETS = {
  tokens: [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864],
  seconds: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
} as const;

/** The conventions' words. A person who stops a model makes its answer no error, but no other of them is nearer. */
export const FINISH: Readonly<Record<ModelStop, string>> = {
  end: 'stop',
  'tool-calls': 'tool_call',
  'max-tokens': 'length',
  'context-full': 'length',
  refusal: 'content_filter',
  pause: 'stop',
  interrupted: 'error',
};

/** A sub-agent's conversation belongs to the session of the one that people began. */
export function toSession(conversation: string): string {
  return conversation.split(':', 1)[0] ?? conversation;
}

export function toServer(url: string): Attributes {
  if (!URL.canParse(url)) return {};
  const { hostname, port, protocol } = new URL(url);
  return { [A.serverAddress]: hostname.replace(/^\[|\]$/g, ''), [A.serverPort]: Number(port || (protocol === 'http:' ? 80 : 443)) };
}

/** Of `provider/model`. */
export function toModelAttributes(model: string): Attributes {
  const ours = model.split('/', 1)[0] ?? '';
  return { [A.provider]: PROVIDERS.get(ours)?.inTraces ?? ours, [A.requestModel]: toModelName(model) };
}

/** The provider's name of the model. */
export function toModelName(model: string): string {
  return model.slice(model.indexOf('/') + 1);
}

/** Input is all of it, what a cache had or took included. */
export function toUsageAttributes({ inputTokens, cachedTokens, cacheWriteTokens, outputTokens, costUsd }: Usage): Attributes {
  return {
    [A.inputTokens]: inputTokens,
    [A.cachedTokens]: cachedTokens,
    ...(cacheWriteTokens !== undefined && { [A.cacheWriteTokens]: cacheWriteTokens }),
    [A.outputTokens]: outputTokens,
    ...(costUsd === null ? {} : { [A.costUsd]: costUsd }),
  };
}

// Contents, in the conventions' parts. Every text is without secrets before it is cut, so that no half of one is left.

/** UTF-16 units: of one attribute, and of one text in it, tried in this order until the newest message fits. */
const ATTRIBUTE = 64 * 1024;
const TEXTS = [16 * 1024, 2 * 1024, 200] as const;
const MAX_PARTS = 64;
/** base64 of a picture that goes along; a larger one would take the place of all else. */
const MAX_BLOB = 16 * 1024;

type Part = Readonly<Record<string, unknown>> & { readonly type: string };
export interface TracedMessage {
  readonly role: string;
  readonly parts: readonly Part[];
}

export interface Content {
  text(given: string): string;
  json(value: JsonValue): string;
  system(system: string): string;
  /** What does not fit is left out, the oldest first. */
  input(system: string, messages: readonly ConversationMessage[]): Attributes;
  output(blocks: readonly AssistantBlock[], stop: ModelStop): Attributes;
}

export function createContent(redact: (text: string) => string): Content {
  const clip = (given: string, most: number): string => {
    const clean = redact(given);
    return clean.length <= most ? clean : `${clean.slice(0, most).toWellFormed()}… [${clean.length - most} characters left out]`;
  };
  const value = (given: JsonValue, most: number): JsonValue => {
    const json = redact(JSON.stringify(given));
    if (json.length > most) return clip(json, most);
    try {
      return JSON.parse(json) as JsonValue;
    } catch {
      return json;
    }
  };
  const media = (carrier: Media, most: number): Part[] =>
    sourcesIn(carrier).map(({ kind, source }) => {
      const about = { modality: MODALITY[kind], mime_type: source.mediaType };
      if ('url' in source) return { type: 'uri', ...about, uri: clip(source.url, most) };
      if ('base64' in source && source.base64.length <= Math.min(MAX_BLOB, most)) return { type: 'blob', ...about, content: source.base64 };
      const size = 'base64' in source ? `, ${Math.ceil((source.base64.length * 3) / 4)} bytes` : '';
      return { type: 'text', content: `[${source.mediaType}${size}: left out of the trace]` };
    });
  const block = (one: AssistantBlock, most: number): Part[] => {
    switch (one.kind) {
      case 'text':
        return [{ type: 'text', content: clip(shownText(one.text), most) }];
      case 'thinking':
        return one.text === '' ? [] : [{ type: 'reasoning', content: clip(one.text, most) }];
      case 'tool-call':
        return [{ type: 'tool_call', id: one.callId, name: clip(one.name, 200), arguments: value(one.input, most) }];
      case 'opaque':
        return [];
      default:
        return one satisfies never;
    }
  };
  const message = (one: ConversationMessage, most: number): TracedMessage => {
    if (one.role === 'user')
      return { role: 'user', parts: [{ type: 'text', content: clip(shownText(one.text), most) }, ...media(one, most)] };
    if (one.role === 'tool') {
      return { role: 'tool', parts: [{ type: 'tool_call_response', id: one.callId, response: clip(shownText(one.text), most) }] };
    }
    return { role: 'assistant', parts: one.blocks.slice(0, MAX_PARTS).flatMap((each) => block(each, most)) };
  };
  /** The newest that fit. */
  const fitting = (messages: readonly ConversationMessage[], room: number): readonly TracedMessage[] => {
    for (const most of TEXTS) {
      const kept: TracedMessage[] = [];
      let left = room;
      for (const one of messages.toReversed()) {
        const traced = message(one, most);
        left -= JSON.stringify(traced).length + 1;
        if (left < 0) break;
        kept.unshift(traced);
      }
      if (kept.length > 0) return kept;
    }
    return [];
  };
  const instructions = (system: string): Part[] => [{ type: 'text', content: clip(system, TEXTS[0]) }];

  return {
    text: (given) => clip(given, ATTRIBUTE),
    json: (given) => clip(JSON.stringify(given), ATTRIBUTE),
    system: (system) => JSON.stringify(instructions(system)),
    input(system, messages) {
      const head = system === '' ? [] : [{ role: 'system', parts: instructions(system) }];
      const kept = fitting(messages, ATTRIBUTE - JSON.stringify(head).length);
      return {
        ...(system === '' ? {} : { [A.systemInstructions]: JSON.stringify(instructions(system)) }),
        [A.inputMessages]: JSON.stringify(kept),
        ...(kept.length < messages.length && { [A.leftOut]: messages.length - kept.length }),
        // With the instructions, which its readers look for here.
        ...inputValue([...head, ...kept]),
      };
    },
    output(blocks, stop) {
      const [newest] = fitting([{ role: 'assistant', blocks, model: '', stop }], ATTRIBUTE - 100);
      const messages = [{ ...(newest ?? { role: 'assistant', parts: [] }), finish_reason: FINISH[stop] }];
      const isText = newest !== undefined && newest.parts.length > 0 && newest.parts.every(({ type }) => type === 'text');
      return {
        [A.outputMessages]: JSON.stringify(messages),
        ...(isText ? outputValue(newest.parts.map(({ content }) => String(content)).join('')) : outputValue(messages)),
      };
    },
  };
}

const MODALITY = { images: 'image', audio: 'audio', video: 'video', documents: 'document' } as const;

/** `given`: a text, or what is JSON. */
export function inputValue(given: unknown): Attributes {
  return typeof given === 'string'
    ? { [A.input]: given, [A.inputType]: 'text/plain' }
    : { [A.input]: JSON.stringify(given), [A.inputType]: 'application/json' };
}

export function outputValue(given: unknown): Attributes {
  return typeof given === 'string'
    ? { [A.output]: given, [A.outputMime]: 'text/plain' }
    : { [A.output]: JSON.stringify(given), [A.outputMime]: 'application/json' };
}

/** A turn's question and answer, of which only the words are at hand. */
export function textMessages(role: 'user' | 'assistant', text: string): string {
  return JSON.stringify([{ role, parts: [{ type: 'text', content: text }], ...(role === 'assistant' && { finish_reason: 'stop' }) }]);
}
