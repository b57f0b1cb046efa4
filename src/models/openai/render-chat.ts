/**
 * From our words to Chat Completions'. Pure, and the same bytes for the same request: the prompt cache goes by them.
 *
 * - Messages come normalized: each call is answered directly after its message.
 * - Text of an assistant goes back as one, since the API has one place for it; there is none for thinking.
 * - Plain text is sent as a string: not every server with this protocol takes parts.
 */
import type { Compat } from '../known-models.js';
import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionContentPart,
  ChatCompletionCreateParams,
  ChatCompletionFunctionTool,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions/completions.js';
import { type AssistantBlock, type ConversationMessage, type MediaSource, type UserMessage, sourcesIn } from '../../records/message.js';
import { sentSchema } from '../answer-schema.js';
import { toToolSchema } from '../tool-schema.js';
import type { ModelRequest, ToolDescription } from '../model.js';
import type { Refused } from '../refusal.js';
import {
  inTurns,
  markedResultText,
  PDF_TYPE,
  describeRecordings,
  sentDocument,
  sentImage,
  sentRecording,
  sentText,
  textAndCalls,
} from '../shown.js';
import { toSentInput, toWellFormed, createWireIds, toWireName } from '../wire.js';

const AUDIO_FORMATS: ReadonlyMap<string, 'wav' | 'mp3'> = new Map([
  ['audio/wav', 'wav'],
  ['audio/wave', 'wav'],
  ['audio/x-wav', 'wav'],
  ['audio/mpeg', 'mp3'],
  ['audio/mp3', 'mp3'],
]);

type WireId = (callId: string) => string;

export function renderChat(request: ModelRequest, dialect: Dialect = OPENAI): ChatCompletionCreateParams {
  const { model, maxTokens, system, messages, mustCall, oneCall, stopAt } = request;
  const tools = request.tools.length === 0 && dialect.keepsTools && hasCalls(messages) ? [NO_TOOL] : request.tools;
  const answer = sentSchema('openai', request);
  const wireId = createWireIds({ maxLength: MAX_CALL_ID });
  const instructions = toWellFormed(system);
  const render = (message: ConversationMessage): ChatCompletionMessageParam[] => renderMessage(message, { wireId, dialect, model });
  const turns = inTurns(
    [
      ...(instructions.trim() === '' ? [] : [{ role: dialect.system, content: instructions }]),
      ...messages.flatMap(render),
    ] as ChatCompletionMessageParam[],
    joinUsers,
  );
  return {
    model,
    [dialect.limitField]: Math.min(maxTokens, dialect.mostTokens),
    ...(tools.length > 0 && { tools: tools.map(renderTool) }),
    ...(mustCall && { tool_choice: 'required' as const }),
    ...(!reasons(model) && {
      ...(tools.length > 0 && oneCall && { parallel_tool_calls: false }),
      ...(stopAt && stopAt.length <= MAX_STOPS && { stop: [...stopAt] }),
    }),
    messages: dialect.closesTools ? closeTools(turns) : turns,
    ...(dialect.takesCacheKey && request.cacheKey !== undefined && { prompt_cache_key: request.cacheKey }),
    ...(answer && {
      response_format: { type: 'json_schema' as const, json_schema: { name: answer.name, strict: true, schema: { ...answer.schema } } },
    }),
    stream: dialect.streams,
    ...(dialect.streams && dialect.usage && { stream_options: { include_usage: true } }),
  };
}

/** Of `stop`; the API refuses more. */
const MAX_STOPS = 4;

/** OpenAI's models that think refuse both wishes. */
function reasons(model: string): boolean {
  return /^(o\d|gpt-5)/.test(model);
}

/** For servers that want tools described where any were ever called. */
const NO_TOOL: ToolDescription = {
  name: 'no_tool',
  description: 'There are no tools now: do not call this.',
  inputSchema: { type: 'object', properties: {} },
};

function hasCalls(messages: readonly ConversationMessage[]): boolean {
  return messages.some(({ role }) => role === 'tool');
}

function renderTool({ name, description, inputSchema }: ToolDescription): ChatCompletionFunctionTool {
  return {
    type: 'function',
    function: { name, description: toWellFormed(description), parameters: { ...toToolSchema(inputSchema, 'full') } },
  };
}

interface Rendering {
  readonly wireId: WireId;
  readonly dialect: Dialect;
  readonly model: string;
}

function renderMessage(message: ConversationMessage, { wireId, dialect, model }: Rendering): ChatCompletionMessageParam[] {
  switch (message.role) {
    case 'user':
      return [{ role: 'user', content: renderUser(message, supportedAudio(model)) }];
    case 'tool':
      return [{ role: 'tool', tool_call_id: wireId(message.callId), content: markedResultText(message) }];
    case 'assistant':
      return renderAssistant(message.blocks, wireId, dialect);
    default:
      return message satisfies never;
  }
}

function joinUsers(last: ChatCompletionMessageParam, next: ChatCompletionMessageParam): ChatCompletionMessageParam {
  if (last.role !== 'user' || next.role !== 'user') return next;
  const { content: before } = last;
  const { content: more } = next;
  if (typeof before === 'string' && typeof more === 'string') return { role: 'user', content: `${before}\n\n${more}` };
  const toParts = (content: typeof before) => (typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content);
  return { role: 'user', content: [...toParts(before), ...toParts(more)] };
}

function renderUser(message: UserMessage, audioTypes: readonly string[]): string | ChatCompletionContentPart[] {
  const { images = [], audio = [], video = [], documents = [] } = message;
  const sent = sentText(message.text);
  if (sourcesIn(message).length === 0) return sent;
  const words = [...describeRecordings({ video }), ...(sent === '' ? [] : [sent])];
  return [
    ...documents.map(renderDocument),
    ...images.map(renderImage),
    ...audio.map((source) => renderAudio(source, audioTypes)),
    ...words.map((text) => ({ type: 'text' as const, text })),
  ];
}

function renderImage(image: MediaSource): ChatCompletionContentPart {
  const sent = sentImage(image, { types: IMAGE_TYPES, urls: true });
  switch (sent.kind) {
    case 'base64':
      return { type: 'image_url', image_url: { url: `data:${sent.mediaType};base64,${sent.base64}` } };
    case 'url':
      return { type: 'image_url', image_url: { url: sent.url } };
    case 'words':
      return { type: 'text', text: sent.text };
    default:
      return sent satisfies never;
  }
}

/** As its bytes only. */
function renderDocument(source: MediaSource): ChatCompletionContentPart {
  const sent = sentDocument(source, { urls: false });
  return sent.kind === 'base64'
    ? { type: 'file', file: { filename: 'document.pdf', file_data: `data:${PDF_TYPE};base64,${sent.base64}` } }
    : { type: 'text', text: sent.kind === 'words' ? sent.text : sent.url };
}

/** As its bytes only. */
function renderAudio(source: MediaSource, types: readonly string[]): ChatCompletionContentPart {
  const sent = sentRecording('audio', source, { types, urls: false });
  return sent.kind === 'base64'
    ? { type: 'input_audio', input_audio: { data: sent.base64, format: AUDIO_FORMATS.get(sent.mediaType) ?? 'wav' } }
    : { type: 'text', text: sent.kind === 'words' ? sent.text : sent.url };
}

/** Only models made for it take sound, and say so in their names; the others refuse the whole request. */
function supportedAudio(model: string): readonly string[] {
  return /audio|omni|voxtral/i.test(model) ? [...AUDIO_FORMATS.keys()] : [];
}

function renderAssistant(
  blocks: readonly AssistantBlock[],
  wireId: WireId,
  { sendsReasoning, noText }: Dialect,
): ChatCompletionAssistantMessageParam[] {
  const { text, calls } = textAndCalls(blocks);
  if (text === '' && calls.length === 0) return [];
  const thoughts = blocks.flatMap((block) => (block.kind === 'thinking' && block.provider === 'openai' ? [block.text] : [])).join('\n\n');
  return [
    {
      role: 'assistant',
      content: text === '' ? noText : text,
      ...(sendsReasoning && { reasoning_content: toWellFormed(thoughts) }),
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ callId, name, input }) => ({
          type: 'function' as const,
          id: wireId(callId),
          function: { name: toWireName(name), arguments: JSON.stringify(toSentInput(input)) },
        })),
      }),
    },
  ];
}

export const IMAGE_TYPES: readonly string[] = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

/** Longer ids of a tool call are refused. */
export const MAX_CALL_ID = 40;

// What servers that speak nearly as OpenAI does take and refuse. A refusal teaches it: it names a field or a rule, the request is made once
// more in the other form (a refused one was not answered, and costs nothing), and later requests to that model keep to it.

export interface Dialect extends Required<Compat> {
  /** Whether requests name their conversation for the prompt cache; servers that only speak as OpenAI does may refuse the field. */
  readonly takesCacheKey: boolean;
}

export const OPENAI: Dialect = {
  limitField: 'max_completion_tokens',
  usage: true,
  sendsReasoning: false,
  closesTools: false,
  system: 'system',
  keepsTools: false,
  streams: true,
  noText: null,
  mostTokens: Infinity,
  takesCacheKey: true,
};
/** The older name of the limit is the one that all of them know. */
export const COMPATIBLE: Dialect = { ...OPENAI, limitField: 'max_tokens', takesCacheKey: false };

const UNKNOWN_FIELD =
  /not (be )?(permitted|supported|allowed|recogni[sz]ed)|unsupported|unknown|unrecogni[sz]ed|unexpected|extra|no such|instead/i;
const WRONG_ORDER = /expected last role|unexpected role|roles? must alternate|user.{0,20} after .{0,20}tool|conversation roles/i;
const NO_SYSTEM =
  /system (role|message|prompt)s?\b.{0,60}(not |un)(be )?(supported|allowed)|(not|n't) support .{0,30}\bsystem\b|only user and assistant roles/i;

const NO_TOOLS_DESCRIBED = /toolConfig .{0,20}must be defined|must define [`'"]?tools|without [`'"]?tools=/i;
/** llama-cpp-python, by its checks of types; others by theirs. */
const NEEDS_TEXT = /\bcontent\b.{0,80}valid string.{0,20}(None|null)|\bcontent\b.{0,60}(received null|(must not|cannot|can't) be null)/i;
const NO_STREAM = /\bstream(ing)?\b['"`]?.{0,30}(not|n't) (be )?support|not support .{0,20}\bstream(ing)?\b/i;

/** How a server that refused a request so would take it; undefined where no other form is known. */
export function learnDialect(now: Dialect, { words, status }: Refused): Dialect | undefined {
  if (status !== 400 && status !== 422 && status !== 500) return undefined;
  const names = (field: string): boolean => words.includes(field) && UNKNOWN_FIELD.test(words);
  const most = mostIn(words);
  if (most !== undefined && most < now.mostTokens) return { ...now, mostTokens: most };
  if (names(now.limitField)) {
    return { ...now, limitField: now.limitField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens' };
  }
  if (now.takesCacheKey && names('prompt_cache_key')) return { ...now, takesCacheKey: false };
  if (now.usage && names('stream_options')) return { ...now, usage: false };
  if (!now.sendsReasoning && words.includes('reasoning_content')) return { ...now, sendsReasoning: true };
  if (now.sendsReasoning && names('reasoning_content')) return { ...now, sendsReasoning: false };
  if (!now.closesTools && WRONG_ORDER.test(words)) return { ...now, closesTools: true };
  if (!now.keepsTools && NO_TOOLS_DESCRIBED.test(words)) return { ...now, keepsTools: true };
  if (now.noText === null && NEEDS_TEXT.test(words)) return { ...now, noText: '' };
  if (now.streams && NO_STREAM.test(words)) return { ...now, streams: false };
  if (now.system === 'system' && NO_SYSTEM.test(words)) return { ...now, system: 'user' };
  return undefined;
}

/** OpenAI, DeepSeek and DashScope, Groq, Anthropic behind a gateway. */
const TOKEN_LIMIT =
  /at most (\d+) (?:completion|output) tokens|range of [`'"]?max_\w*tokens[`'"]? (?:is|should be) \[\d+, ?(\d+)\]|max_\w*tokens[`'"]? must be (?:less than or equal to|at most|<=) [`'"]?(\d+)|max_\w*tokens[`'"]?: \d+ > (\d+)/i;

function mostIn(words: string): number | undefined {
  const found = TOKEN_LIMIT.exec(words)
    ?.slice(1)
    .find((digits) => digits !== undefined);
  return found === undefined || Number(found) < 1 ? undefined : Number(found);
}

/** Answers of fewer tokens are of no use: then the prompt is too long. */
const SMALLEST_ROOM = 256;

/**
 * How many tokens of an answer still fit behind a prompt, for a server that refuses a wish for more (vLLM, OpenAI): its window and the
 * prompt are in its words. vLLM stops to count at what the wish leaves ("at least"), so then half of the wish is tried.
 */
export function roomForAnswer({ words, status }: Refused, wished: number): number | undefined {
  if (status !== 400 && status !== 422) return undefined;
  const [, window] = /maximum context length is (\d+)/i.exec(words) ?? [];
  const [, atLeast, prompt] = /(at least )?(\d+) (?:input tokens|in (?:the|your) (?:messages|prompt))/i.exec(words) ?? [];
  const [, sent, of] = /context limit: (\d+) \+ \d+ > (\d+)/i.exec(words) ?? [];
  const room = Number(window ?? of) - Number(prompt ?? sent);
  const fits = atLeast === undefined ? room : Math.min(room, Math.floor(wished / 2));
  return fits >= SMALLEST_ROOM && fits < wished ? fits : undefined;
}

const CLOSING = { role: 'assistant', content: 'I have read the results.' } as const;

/** With words of the assistant wherever a user's message follows a tool's result. */
function closeTools(messages: readonly ChatCompletionMessageParam[]): ChatCompletionMessageParam[] {
  return messages.flatMap((message, at) => (message.role === 'user' && messages[at - 1]?.role === 'tool' ? [CLOSING, message] : [message]));
}
