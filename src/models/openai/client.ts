/** OpenAI's models, and those of servers that speak as OpenAI does: over Chat Completions and over the Responses API, streaming. */
import type { Compat } from '../known-models.js';
import type OpenAI from 'openai' with { 'resolution-mode': 'import' };
import type {
  EasyInputMessage,
  FunctionTool,
  ResponseCreateParamsStreaming,
  ResponseInputContent,
  ResponseInputItem,
  ResponseReasoningItem,
} from 'openai/resources/responses/responses.js';
import { loadOptional } from '../../platform/optional-package.js';
import type { Answer } from '../draft.js';
import { keyAdvice, missingKey, type Provider } from '../failure.js';
import { guardedCall, toAccount, type KeyedOptions, type HttpChannel, guardedRequest } from '../guarded-call.js';
import type { Model, ModelDelta, ModelRequest, ToolDescription } from '../model.js';
import { Refusal, toRefusal } from '../refusal.js';
import { createChatAnswer } from './chat-answer.js';
import { COMPATIBLE, IMAGE_TYPES, learnDialect, MAX_CALL_ID, OPENAI, renderChat, roomForAnswer, type Dialect } from './render-chat.js';
import { createResponsesAnswer } from './responses-answer.js';
import { isRecord } from '../../platform/json.js';
import type { AssistantBlock, ConversationMessage, MediaSource, UserMessage } from '../../records/message.js';
import { asCount, asObject, asText, toWellFormed, createWireIds, toWireName, toSentInput } from '../wire.js';
import { sentSchema, streamWithoutAbsent } from '../answer-schema.js';
import { toToolSchema } from '../tool-schema.js';
import { PDF_TYPE, describeRecordings, sentDocument, sentImage, sentText, markedResultText } from '../shown.js';
import { cutText, EMBED_MS, readVectors, type Embedder } from '../embedder.js';

const PUBLIC_API = 'https://api.openai.com/v1';
/** The watchdog has the say on time; this is the longest that the SDK takes. */
const NEVER_MS = 2 ** 31 - 1;

/** `openai/…` */
export function createOpenAIModel(options: CompatibleOptions): Model {
  return createModel(options, {
    name: 'openai',
    answer: createChatAnswer,
    async ask(client, request, signal, dialect) {
      const came = await client.chat.completions.create(renderChat(request, dialect), { signal });
      return Symbol.asyncIterator in came ? came : toAsync([checkedAnswer(came)]);
    },
  });
}

/** `openai-responses/…` */
export function createOpenAIResponsesModel(options: CompatibleOptions): Model {
  return createModel(options, {
    name: 'openai-responses',
    answer: createResponsesAnswer,
    ask: (client, request, signal, dialect) => client.responses.create(renderResponses(request, dialect), { signal }),
  });
}

/** What the two APIs differ in. */
interface Api {
  readonly name: string;
  readonly answer: (provider: string, onDelta: (delta: ModelDelta) => void) => Answer<unknown>;
  readonly ask: (client: OpenAI, request: ModelRequest, signal: AbortSignal, dialect: Dialect) => PromiseLike<AsyncIterable<unknown>>;
}

export interface CompatibleOptions extends KeyedOptions {
  /** What is known beforehand of a model's server, by the model's name. */
  readonly compat?: (model: string) => Compat | undefined;
}

/** So many things may be wrong with a request that no server of its kind has taken before. */
const MAX_LESSONS = 4;

function createModel({ apiKey: written, baseURL, fetch, compat }: CompatibleOptions, api: Api): Model {
  const apiKey = written?.trim() ?? '';
  const provider: Provider = { name: api.name, secrets: [apiKey], advice: keyAdvice('OPENAI_API_KEY') };

  // By the model's name: behind one address may be many servers.
  const dialects = new Map<string, Dialect>();

  async function* ask(request: ModelRequest, channel: HttpChannel): AsyncIterable<unknown> {
    try {
      yield* await open(request, channel);
    } catch (error) {
      // llama-cpp-python ends a stream before its first byte where it would refuse the same request without one, in words.
      if (error instanceof EmptyStream && baseURL !== undefined && api.name === 'openai') {
        const again = await open(request, channel, { streams: false }).catch((reason: unknown) => {
          throw reason instanceof Refusal ? reason : error;
        });
        return yield* again;
      }
      // An error in the middle of a stream: the SDK throws it, and keeps what came.
      throw isRecord(error) && isRecord(error.error) ? toRefusal({ error: error.error }) : error;
    }
  }

  async function open(wished: ModelRequest, channel: HttpChannel, form: Partial<Dialect> = {}): Promise<AsyncIterable<unknown>> {
    let request = wished;
    for (let lessons = 0; ; lessons++) {
      const declared = (): Dialect => ({ ...(baseURL === undefined ? OPENAI : COMPATIBLE), ...compat?.(request.model) });
      const known = dialects.get(request.model) ?? declared();
      const dialect = { ...known, ...form };
      const asEvents: typeof fetch = async (input, init) => withEvents(await channel.fetch(input, init));
      const client = await createClient(apiKey, baseURL, dialect.streams ? { ...channel, fetch: asEvents } : channel);
      try {
        return await api.ask(client, request, channel.signal, dialect);
      } catch (error) {
        const refusal = channel.takeRefusal();
        const room = refusal && lessons < MAX_LESSONS ? roomForAnswer(refusal.refused, request.maxTokens) : undefined;
        if (room !== undefined) {
          request = { ...request, maxTokens: room };
          continue;
        }
        const learnt = refusal && lessons < MAX_LESSONS ? learnDialect(known, refusal.refused) : undefined;
        if (learnt === undefined) throw refusal ?? error;
        dialects.set(request.model, learnt);
      }
    }
  }

  return {
    provider: api.name,
    takesMustCall: true,
    ...toAccount(apiKey),
    async stream(request, options) {
      if (apiKey === '') throw missingKey(provider, request.model);
      const isSlowToBegin = baseURL !== undefined;
      const { answerSchema } = sentSchema(api.name, request) ? request : {};
      return await streamWithoutAbsent({ answerSchema }, options, async (told) => {
        const answer = api.answer(api.name, told.onDelta);
        return guardedCall({ provider, request, options: told, answer, fetch, isSlowToBegin, ask: (channel) => ask(request, channel) });
      });
    },
  };
}

// A server may answer with all of it at once although a stream was wanted, and refuse in the same shape with a good status; its content
// type may be wrong in either case. The first byte tells: a stream's is no bracket.

class EmptyStream extends Error {}

function withEvents(response: Response): Response {
  if (!response.body) return response;
  const seen: Uint8Array[] = [];
  let isJson: boolean | undefined;
  const convert = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      if (isJson === false) return controller.enqueue(chunk);
      seen.push(chunk);
      const first = isJson ? '{' : Buffer.concat(seen).toString('latin1').trimStart()[0];
      if (first === undefined) return;
      isJson = first === '{' || first === '[';
      if (!isJson) for (const early of seen.splice(0)) controller.enqueue(early);
    },
    flush(controller) {
      if (isJson === undefined) controller.error(new EmptyStream('the answer is empty'));
      if (isJson) controller.enqueue(new TextEncoder().encode(toEvents(Buffer.concat(seen).toString('utf8'))));
    },
  });
  return new Response(response.body.pipeThrough(convert), response);
}

/** Throws Refusal. What is no JSON stays as it is, and has no events. */
function toEvents(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text.trim().replace(/\s*data: \[DONE\]$/, ''));
  } catch {
    return text;
  }
  const { object, status } = asObject(value);
  const event = object === 'response' ? { type: `response.${asText(status)}`, response: value } : checkedAnswer(value);
  return `data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`;
}

async function* toAsync(values: readonly unknown[]): AsyncIterable<unknown> {
  yield* values;
  await Promise.resolve();
}

function checkedAnswer(value: unknown): unknown {
  if (!Array.isArray(asObject(value).choices)) throw toRefusal(value);
  return value;
}

/** One for each call, as its channel is: it holds nothing, and connections are the platform's. Loaded by the first call. */
export async function createClient(apiKey: string, baseURL: string | undefined, channel: HttpChannel): Promise<OpenAI> {
  const { default: Client } = await loadOptional(['openai'], () => import('openai'));
  return new Client({
    apiKey,
    // Set, not left out: the SDK would look into the environment, which is `config.ts`'s to read.
    baseURL: baseURL ?? PUBLIC_API,
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    maxRetries: 0,
    timeout: NEVER_MS,
    // Its log has bodies of answers in it.
    logLevel: 'off',
    fetch: channel.fetch,
  });
}

// From our words to the Responses API's. Pure, and the same bytes for the same request: the prompt cache goes by them.
//
// - Nothing is stored with the provider: the conversation is ours, and each request brings all of it.
// - Reasoning goes back as the item it came as, encrypted. The item after it has no id then: ids are names of stored items.
// - A request includes encrypted reasoning only if there is any: models that do not reason refuse the wish.

type WireId = (callId: string) => string;

/** The API refuses less. */
const MIN_OUTPUT_TOKENS = 16;

export function renderResponses(
  request: ModelRequest,
  { takesCacheKey }: Pick<Dialect, 'takesCacheKey'> = OPENAI,
): ResponseCreateParamsStreaming {
  const { model, maxTokens, system, tools, messages, mustCall, oneCall } = request;
  const answer = sentSchema('openai-responses', request);
  const wireId = createWireIds({ maxLength: MAX_CALL_ID });
  const instructions = toWellFormed(system);
  return {
    model,
    max_output_tokens: Math.max(maxTokens, MIN_OUTPUT_TOKENS),
    ...(instructions.trim() !== '' && { instructions }),
    ...(tools.length > 0 && { tools: tools.map(renderTool) }),
    ...(mustCall && { tool_choice: 'required' as const }),
    ...(tools.length > 0 && oneCall && { parallel_tool_calls: false }),
    input: messages.flatMap((message) => renderMessage(message, wireId)),
    ...(answer && {
      text: { format: { type: 'json_schema' as const, name: answer.name, strict: true, schema: { ...answer.schema } } },
    }),
    store: false,
    ...(takesCacheKey && request.cacheKey !== undefined && { prompt_cache_key: request.cacheKey }),
    ...(mayReason(model) && { include: ['reasoning.encrypted_content' as const] }),
    stream: true,
  };
}

function mayReason(model: string): boolean {
  return !/^(ft:)?(gpt-3|gpt-4|chatgpt)|-chat(-|$)/.test(model);
}

function renderTool({ name, description, inputSchema }: ToolDescription): FunctionTool {
  // Strict is the default here, and takes few schemas.
  return {
    type: 'function',
    name,
    description: toWellFormed(description),
    parameters: { ...toToolSchema(inputSchema, 'full') },
    strict: false,
  };
}

function renderMessage(message: ConversationMessage, wireId: WireId): ResponseInputItem[] {
  switch (message.role) {
    case 'user':
      return [{ type: 'message', role: 'user', content: renderUser(message) }];
    case 'tool':
      return [{ type: 'function_call_output', call_id: wireId(message.callId), output: markedResultText(message) }];
    case 'assistant':
      return message.blocks.flatMap((block, at) => renderBlock(block, message.blocks[at - 1], wireId));
    default:
      return message satisfies never;
  }
}

function renderUser(message: UserMessage): ResponseInputContent[] {
  const sent = sentText(message.text);
  const words = [...describeRecordings(message), ...(sent === '' ? [] : [sent])];
  const { images = [], documents = [] } = message;
  return [...documents.map(renderDocument), ...images.map(renderImage), ...words.map((text) => ({ type: 'input_text' as const, text }))];
}

function renderImage(image: MediaSource): ResponseInputContent {
  const sent = sentImage(image, { types: IMAGE_TYPES, urls: true });
  switch (sent.kind) {
    case 'base64':
      return { type: 'input_image', detail: 'auto', image_url: `data:${sent.mediaType};base64,${sent.base64}` };
    case 'url':
      return { type: 'input_image', detail: 'auto', image_url: sent.url };
    case 'words':
      return { type: 'input_text', text: sent.text };
    default:
      return sent satisfies never;
  }
}

function renderDocument(document: MediaSource): ResponseInputContent {
  const sent = sentDocument(document, { urls: true });
  switch (sent.kind) {
    case 'base64':
      return { type: 'input_file', filename: 'document.pdf', file_data: `data:${PDF_TYPE};base64,${sent.base64}` };
    case 'url':
      return { type: 'input_file', file_url: sent.url };
    case 'words':
      return { type: 'input_text', text: sent.text };
    default:
      return sent satisfies never;
  }
}

function renderBlock(block: AssistantBlock, before: AssistantBlock | undefined, wireId: WireId): ResponseInputItem[] {
  switch (block.kind) {
    case 'text': {
      const text = sentText(block.text);
      return text === '' ? [] : [{ type: 'message', role: 'assistant', content: text, ...readPhase(before) }];
    }
    case 'thinking':
      return []; // a summary, for people
    case 'opaque':
      return renderReasoning(block.value);
    case 'tool-call':
      return [
        {
          type: 'function_call',
          call_id: wireId(block.callId),
          name: toWireName(block.name),
          arguments: JSON.stringify(toSentInput(block.input)),
        },
      ];
    default:
      return block satisfies never;
  }
}

/** Its text is not taken back, and its status belongs to answers. */
function renderReasoning(value: unknown): ResponseInputItem[] {
  if (asObject(value).type !== 'reasoning') return [];
  const { content: _content, status: _status, ...item } = asObject(value);
  return [item as unknown as ResponseReasoningItem];
}

/** Whether a message was on the way or the last word, as the block before it remembers. */
function readPhase(before: AssistantBlock | undefined): Pick<EasyInputMessage, 'phase'> {
  const { type, phase } = before?.kind === 'opaque' ? asObject(before.value) : {};
  return type === 'message_phase' && (phase === 'commentary' || phase === 'final_answer') ? { phase } : {};
}

// OpenAI's embeddings, and those of servers that speak as OpenAI does.

/** US dollars per million tokens, as published in November 2026. */
const PRICES: Readonly<Record<string, number>> = {
  'text-embedding-3-small': 0.02,
  'text-embedding-3-large': 0.13,
  'text-embedding-ada-002': 0.1,
};

/** `openai/<model>` */
export function createOpenAIEmbedder(model: string, { apiKey: written, baseURL, fetch }: KeyedOptions): Embedder {
  const apiKey = written?.trim() ?? '';
  const provider: Provider = { name: 'openai', secrets: [apiKey], advice: keyAdvice('OPENAI_API_KEY') };
  const name = `openai/${model}`;
  const price = PRICES[model];
  return {
    name,
    ...(price !== undefined && baseURL === undefined && { price }),
    async embed(texts, { signal, totalMs = EMBED_MS }) {
      if (apiKey === '') throw missingKey(provider, model);
      return await guardedRequest({ provider, model, signal, totalMs, fetch }, async (line) => {
        const client = await createClient(apiKey, baseURL, line);
        const input = texts.map(cutText);
        const { data, usage } = await client.embeddings.create({ model, input, encoding_format: 'float' }, { signal: line.signal });
        const came: unknown = data;
        const inOrder = Array.isArray(came) ? data.toSorted((a, b) => a.index - b.index).map(({ embedding }) => embedding) : came;
        return { vectors: readVectors(name, inOrder, texts.length), tokens: asCount(usage?.total_tokens) };
      });
    },
  };
}
