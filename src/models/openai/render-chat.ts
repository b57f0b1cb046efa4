/**
 * From our words to Chat Completions'. Pure, and the same bytes for the same request: the prompt cache goes by them.
 *
 * - Messages come normalized: each call is answered directly after its message.
 * - Text of an assistant goes back as one, since the API has one place for it; there is none for thinking.
 * - Plain text is sent as a string: not every server with this protocol takes parts.
 */
import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionContentPart,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionFunctionTool,
  ChatCompletionMessageParam,
} from 'openai/resources/chat/completions/completions.js';
import { type AssistantBlock, type ConversationMessage, type MediaSource, type UserMessage, sourcesIn } from '../../records/message.js';
import { sentSchema } from '../answer-schema.js';
import type { ModelRequest, ToolDescription } from '../model.js';
import { closeTools, OPENAI, type Dialect } from './dialect.js';
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
import { toSentInput, toWellFormed, toWellFormedJson, createWireIds, toWireName } from '../wire.js';

const AUDIO_FORMATS: ReadonlyMap<string, 'wav' | 'mp3'> = new Map([
  ['audio/wav', 'wav'],
  ['audio/wave', 'wav'],
  ['audio/x-wav', 'wav'],
  ['audio/mpeg', 'mp3'],
  ['audio/mp3', 'mp3'],
]);

type WireId = (callId: string) => string;

export function renderChat(request: ModelRequest, dialect: Dialect = OPENAI): ChatCompletionCreateParamsStreaming {
  const { model, maxTokens, system, tools, messages, mustCall } = request;
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
    [dialect.limitField]: maxTokens,
    ...(tools.length > 0 && { tools: tools.map(renderTool) }),
    ...(mustCall && { tool_choice: 'required' as const }),
    messages: dialect.closesTools ? closeTools(turns) : turns,
    ...(answer && {
      response_format: { type: 'json_schema' as const, json_schema: { name: answer.name, strict: true, schema: { ...answer.schema } } },
    }),
    stream: true,
    ...(dialect.usage && { stream_options: { include_usage: true } }),
  };
}

function renderTool({ name, description, inputSchema }: ToolDescription): ChatCompletionFunctionTool {
  return { type: 'function', function: { name, description: toWellFormed(description), parameters: { ...toWellFormedJson(inputSchema) } } };
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
  { sendsReasoning }: Dialect,
): ChatCompletionAssistantMessageParam[] {
  const { text, calls } = textAndCalls(blocks);
  if (text === '' && calls.length === 0) return [];
  const thoughts = blocks.flatMap((block) => (block.kind === 'thinking' && block.provider === 'openai' ? [block.text] : [])).join('\n\n');
  return [
    {
      role: 'assistant',
      content: text === '' ? null : text,
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
