/**
 * From our words to a prompt of the AI SDK, of its versions 2 to 4. Pure, and the same bytes for the same request.
 *
 * - The packages send what they are given, so it has the form that the strictest API takes: neighbours on one side are one message, an id
 *   of a call has nine letters and digits (Mistral), a name begins with a letter or "_" (Gemini).
 * - A request without tools has no calls in its history: Bedrock's package would take them out without a word. They become text.
 * - What a provider gave along with a part (signatures, encrypted reasoning) goes back on that part, to the model that gave it.
 * - Responses APIs keep answers for a month and refer to them by id. A conversation lives longer, so nothing is kept there and no id is sent.
 */
import { createHash } from 'node:crypto';
import type { AssistantBlock, ConversationMessage, JsonObject, JsonValue, MediaSource, UserMessage } from '../../records/message.js';
import { isRecord } from '../../platform/json.js';
import { toStrictSchema } from '../answer-schema.js';
import { toToolSchema } from '../tool-schema.js';
import type { ModelRequest } from '../model.js';
import {
  AUDIO_TYPES,
  VIDEO_TYPES,
  withGeminiType,
  markedResultText,
  sentDocument,
  sentImage,
  sentRecording,
  sentText,
  type SentMedia,
} from '../shown.js';
import { asObject, asText, toFunctionName, toSentInput, toWellFormed, toWellFormedJson, toWireName } from '../wire.js';

/** What the interface calls provider options and provider metadata, by the name of a provider. */
export type ProviderFields = Readonly<Record<string, JsonObject>>;

/** What of a language model decides how a request to it looks. */
export interface AskedModel {
  readonly specificationVersion: string;
  /** Such as `azure.responses`. */
  readonly provider: string;
  /** By media type: addresses that its provider fetches by itself. */
  readonly supportedUrls: Readonly<Record<string, readonly RegExp[]>>;
}

/** In which form a model takes a request, as refusals have taught. */
export interface Form {
  /** Words of the assistant stand between a tool's result and the user. */
  readonly closesTools: boolean;
  /** Where instructions stand. */
  readonly system: 'system' | 'user';
  readonly takesSchema: boolean;
  readonly marksCache: boolean;
  /** Reasoning, signatures and whatever else the provider gave along with an answer. */
  readonly sendsReasoning: boolean;
  /** The most tokens that an answer may have, where that is less than an agent wishes for. */
  readonly mostTokens: number;
}

export const USUAL_FORM: Form = {
  closesTools: false,
  system: 'system',
  takesSchema: true,
  marksCache: true,
  sendsReasoning: true,
  mostTokens: Infinity,
};

interface Part {
  readonly type: string;
  readonly [field: string]: unknown;
}
interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string | Part[];
  readonly providerOptions?: ProviderFields;
}

/** All but the signal of what `doStream` is given. */
export function renderCall(request: ModelRequest, model: AskedModel, form: Form, given: ProviderFields = {}): Record<string, unknown> {
  const { maxTokens, tools, mustCall, answerSchema, stopAt } = request;
  const providerOptions = withOptions(statelessOptions(model), given);
  // Beside tools it is refused by some, and an answer may still be a call.
  const schema =
    answerSchema && form.takesSchema && tools.length === 0 ? toStrictSchema(answerSchema.schema, { allRequired: true }) : undefined;
  return {
    prompt: renderPrompt(request, model, form, providerOptions),
    maxOutputTokens: Math.min(maxTokens, form.mostTokens),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, inputSchema }) => ({
        type: 'function',
        name: toFunctionName(name),
        description: toWellFormed(description),
        inputSchema: toToolSchema(inputSchema, 'full'),
        // Where it is left out, these APIs make every property required.
        ...(usesResponsesApi(model) && { strict: false }),
      })),
    }),
    ...(mustCall && { toolChoice: { type: 'required' } }),
    ...(stopAt && { stopSequences: [...stopAt] }),
    ...(schema &&
      answerSchema && { responseFormat: { type: 'json', name: toWireName(answerSchema.name), schema: toWellFormedJson(schema) } }),
    ...(Object.keys(providerOptions).length > 0 && { providerOptions }),
    // Pings and other events that become no part are signs of life all the same.
    includeRawChunks: true,
  };
}

function usesResponsesApi({ provider }: AskedModel): boolean {
  return /\.responses$/.test(provider);
}

function statelessOptions(model: AskedModel): ProviderFields {
  return usesResponsesApi(model) ? { [model.provider.replace(/\..*/, '')]: { store: false } } : {};
}

function withOptions(usual: ProviderFields, given: ProviderFields): ProviderFields {
  const names = new Set([...Object.keys(usual), ...Object.keys(given)]);
  return Object.fromEntries([...names].map((name) => [name, { ...usual[name], ...given[name] }]));
}

function renderPrompt(request: ModelRequest, model: AskedModel, form: Form, options: ProviderFields): Message[] {
  const system = toWellFormed(request.system).trim() === '' ? '' : toWellFormed(request.system);
  const instructions: UserMessage[] = form.system === 'user' && system !== '' ? [{ role: 'user', text: system }] : [];
  const history = request.tools.length === 0 ? request.messages.map(callsToWords) : request.messages;
  const isStateless = Object.values(options).some(({ store }) => store === false);
  const assistant = (blocks: readonly AssistantBlock[]): Part[] =>
    renderAssistant(blocks, request.model, { ids, model, isStateless, form });
  const ids = createCallIds();
  const messages = [...instructions, ...history].reduce<Message[]>((out, message) => {
    const content =
      message.role === 'user'
        ? renderUser(message, request.model, model)
        : message.role === 'tool'
          ? [renderResult(message, ids)]
          : assistant(message.blocks);
    const last = out.at(-1);
    if (content.length === 0) return out;
    if (last?.role === message.role && Array.isArray(last.content)) last.content.push(...content);
    else if (form.closesTools && last?.role === 'tool' && message.role === 'user') out.push(closing(), { role: 'user', content });
    else out.push({ role: message.role, content });
    return out;
  }, []);
  return withCacheMarks(
    [...(form.system === 'system' && system !== '' ? [{ role: 'system' as const, content: system }] : []), ...messages],
    request.model,
    form,
  );
}

function closing(): Message {
  return { role: 'assistant', content: [{ type: 'text', text: 'I have read the results.' }] };
}

const CACHE: ProviderFields = { bedrock: { cachePoint: { type: 'default' } }, anthropic: { cacheControl: { type: 'ephemeral' } } };

/** Of the models that are reached this way, Anthropic's cache only what is marked. The marks are where the native client has them. */
function withCacheMarks(messages: Message[], model: string, { marksCache }: Form): Message[] {
  if (!marksCache || !/claude/i.test(model)) return messages;
  const ends = messages.flatMap(({ role }, at) => (role === 'user' || role === 'tool' ? [at] : [])).slice(-2);
  return messages.map((message, at) => (message.role === 'system' || ends.includes(at) ? { ...message, providerOptions: CACHE } : message));
}

function callsToWords(message: ConversationMessage): ConversationMessage {
  if (message.role === 'tool')
    return { role: 'user', text: `Result of ${message.name} (${message.outcome}):\n${markedResultText(message)}` };
  if (message.role === 'user') return message;
  const blocks = message.blocks.map((block): AssistantBlock =>
    block.kind === 'tool-call' ? { kind: 'text', text: `(Called ${block.name} with ${JSON.stringify(toSentInput(block.input))}.)` } : block,
  );
  return { ...message, blocks };
}

function renderResult(message: Extract<ConversationMessage, { role: 'tool' }>, ids: CallIds): Part {
  const type = message.outcome === 'ok' ? 'text' : 'error-text';
  return {
    type: 'tool-result',
    toolCallId: ids(message.callId),
    toolName: toFunctionName(message.name),
    output: { type, value: markedResultText(message) },
  };
}

// Media

const IMAGE_TYPES: readonly string[] = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

/** Only models made for it take sound or video, and say so in their names; packages refuse what is not known to them. */
function takenRecordings(id: string): Readonly<Record<'audio' | 'video', readonly string[]>> {
  if (/gemini/i.test(id)) return { audio: AUDIO_TYPES, video: VIDEO_TYPES };
  return { audio: /audio|omni|voxtral/i.test(id) ? ['audio/wav', 'audio/mp3'] : [], video: [] };
}

function renderUser({ text, images = [], audio = [], video = [], documents = [] }: UserMessage, id: string, model: AskedModel): Part[] {
  const words = sentText(text);
  const urls = (source: MediaSource): boolean => 'url' in source && isFetched(model.supportedUrls, source);
  const taken = takenRecordings(id);
  const recording = (kind: 'audio' | 'video') => (source: MediaSource) =>
    taken[kind].length === 0
      ? sentRecording(kind, source, { types: [], urls: false })
      : sentRecording(kind, withGeminiType(source), { types: taken[kind], urls: urls(source) });
  const sent = [
    ...documents.map((source) => sentDocument(source, { urls: urls(source) })),
    ...images.map((source) => sentImage(source, { types: IMAGE_TYPES, urls: urls(source) })),
    ...audio.map(recording('audio')),
    ...video.map(recording('video')),
  ];
  // Bedrock takes no document without words.
  const shown = words === '' && documents.length > 0 ? 'Read the document.' : words;
  return [...sent.map((one) => renderFile(one, model)), ...(shown === '' ? [] : [{ type: 'text', text: shown }])];
}

function isFetched(supported: AskedModel['supportedUrls'], { mediaType, url }: Extract<MediaSource, { url: string }>): boolean {
  const [family] = mediaType.split('/');
  const names = ['*', '*/*', `${family}/*`, mediaType];
  return URL.canParse(url) && names.some((name) => supported[name]?.some((pattern) => new RegExp(pattern.source, 'i').test(url)));
}

function renderFile(sent: SentMedia, { specificationVersion }: AskedModel): Part {
  if (sent.kind === 'words') return { type: 'text', text: sent.text };
  const hasKinds = specificationVersion === 'v4';
  const { mediaType } = sent;
  if (sent.kind === 'base64') return { type: 'file', mediaType, data: hasKinds ? { type: 'data', data: sent.base64 } : sent.base64 };
  const url = new URL(sent.url);
  return { type: 'file', mediaType, data: hasKinds ? { type: 'url', url } : url };
}

// An assistant's parts, and what their maker gave along with them

/** Which model gave it: one provider has models of many makers, and none takes what another signed. */
interface Attached {
  readonly model: string;
  readonly metadata: ProviderFields | undefined;
}

export function toSignature(model: string, metadata: ProviderFields | undefined): string {
  return JSON.stringify({ model, ...(metadata && { metadata }) });
}

/** It stands before the block that it belongs to. */
export function toAttachment(provider: string, model: string, metadata: ProviderFields): AssistantBlock {
  return { kind: 'opaque', provider, value: { type: 'ai-sdk-metadata', model, metadata } };
}

function readAttached(value: unknown): Attached {
  const { model, metadata } = asObject(value);
  return { model: asText(model), metadata: isRecord(metadata) ? (metadata as unknown as ProviderFields) : undefined };
}

function readSignature(signature: string | undefined): Attached {
  try {
    return readAttached(JSON.parse(signature ?? ''));
  } catch {
    return { model: '', metadata: undefined };
  }
}

interface Rendering {
  readonly ids: CallIds;
  readonly model: AskedModel;
  readonly isStateless: boolean;
  readonly form: Form;
}

function renderAssistant(blocks: readonly AssistantBlock[], id: string, { ids, model, isStateless, form }: Rendering): Part[] {
  const attached = (at: number): { providerOptions?: ProviderFields } => {
    const before = blocks[at - 1];
    const value = before?.kind === 'opaque' && asObject(before.value).type === 'ai-sdk-metadata' ? readAttached(before.value) : undefined;
    if (!form.sendsReasoning || value?.metadata === undefined || value.model !== id) return {};
    const metadata = isStateless ? mapFields(value.metadata, withoutItemId) : value.metadata;
    return { providerOptions: metadata };
  };
  const encrypted = isStateless ? listEncrypted(blocks) : undefined;
  const parts = blocks.flatMap((block, at): Part[] => {
    switch (block.kind) {
      case 'text': {
        const text = sentText(block.text);
        return text === '' ? [] : [{ type: 'text', text, ...attached(at) }];
      }
      case 'thinking': {
        const { model: maker, metadata } = readSignature(block.signature);
        if (!form.sendsReasoning || maker !== id || (encrypted && metadata && !isWhole(metadata, encrypted))) return [];
        return [{ type: 'reasoning', text: block.text, ...(metadata && { providerOptions: metadata }) }];
      }
      case 'opaque': {
        const { type, kind, ...value } = asObject(block.value);
        const { model: maker, metadata } = readAttached(value);
        if (type !== 'ai-sdk-custom' || maker !== id || model.specificationVersion !== 'v4') return [];
        return [{ type: 'custom', kind, ...(metadata && { providerOptions: metadata }) }];
      }
      case 'tool-call': {
        const input = toSentInput(block.input);
        return [{ type: 'tool-call', toolCallId: ids(block.callId), toolName: toFunctionName(block.name), input, ...attached(at) }];
      }
      default:
        return block satisfies never;
    }
  });
  return parts.some(({ type }) => type === 'text' || type === 'tool-call') ? parts : [];
}

function mapFields(fields: ProviderFields, change: (fields: JsonObject) => JsonObject): ProviderFields {
  return Object.fromEntries(Object.entries(fields).map(([name, inner]) => [name, change(asObject(inner))]));
}

function withoutItemId({ itemId: _, ...rest }: JsonObject): JsonObject {
  return rest;
}

/** Reasoning that a Responses API has not kept can go back where the answer has it encrypted: in one of the parts of an item. */
function listEncrypted(blocks: readonly AssistantBlock[]): ReadonlySet<JsonValue> {
  const all = blocks.flatMap((block) => (block.kind === 'thinking' ? Object.values(readSignature(block.signature).metadata ?? {}) : []));
  return new Set(
    all.flatMap((fields) => (asText(fields.reasoningEncryptedContent) !== '' && fields.itemId !== undefined ? [fields.itemId] : [])),
  );
}

function isWhole(metadata: ProviderFields, encrypted: ReadonlySet<JsonValue>): boolean {
  return Object.values(metadata).every(({ itemId }) => itemId === undefined || encrypted.has(itemId));
}

type CallIds = (callId: string) => string;

/** Of a call's id alone, save where two would be the same: a longer conversation begins with the same bytes. */
function createCallIds(): CallIds {
  const known = new Map<string, string>();
  const taken = new Set<string>();
  return (callId) => {
    const found = known.get(callId);
    if (found !== undefined) return found;
    let id = shortId(callId);
    for (let n = 2; taken.has(id); n++) id = shortId(`${callId} ${n}`);
    taken.add(id);
    known.set(callId, id);
    return id;
  };
}

function shortId(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 9);
}
