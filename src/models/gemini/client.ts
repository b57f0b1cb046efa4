/** Google's Gemini models over the Gemini API, streaming. */
import type { GoogleGenAI } from '@google/genai' with { 'resolution-mode': 'import' };
import type { Content, FunctionCallingConfigMode, FunctionDeclaration, GenerateContentParameters, Part } from '@google/genai' with {
  'resolution-mode': 'import',
};
import { loadOptional } from '../../platform/optional-package.js';
import { keyAdvice, missingKey, type Provider } from '../failure.js';
import { guardedCall, toAccount, type KeyedOptions, type HttpChannel } from '../guarded-call.js';
import type { Model, ModelRequest, ModelDelta, ModelUsage, ToolDescription } from '../model.js';
import { toRefusal } from '../refusal.js';
import type { AssistantBlock, ConversationMessage, ToolResultMessage, UserMessage } from '../../records/message.js';
import { type Answer, hasText, NO_USAGE, readStop, settleStop, createDraft } from '../draft.js';
import { asCount, asList, asObject, asText, toWellFormed, toFunctionName, brokenStream, toSentInput } from '../wire.js';
import { isRecord } from '../../platform/json.js';
import { sentSchema } from '../answer-schema.js';
import { toToolSchema } from '../tool-schema.js';
import {
  AUDIO_TYPES,
  VIDEO_TYPES,
  withGeminiType,
  sentDocument,
  sentImage,
  sentRecording,
  sentText,
  type SentMedia,
  toolResultText,
} from '../shown.js';

const NAME = 'gemini';
const PUBLIC_API = 'https://generativelanguage.googleapis.com';

export function createGeminiModel({ apiKey: written, baseURL, fetch }: KeyedOptions): Model {
  const apiKey = written?.trim() ?? '';
  const provider: Provider = { name: NAME, secrets: [apiKey], advice: keyAdvice('GEMINI_API_KEY') };
  return {
    provider: NAME,
    takesMustCall: true,
    ...toAccount(apiKey),
    async stream(request, options) {
      if (apiKey === '') throw missingKey(provider, request.model);
      const toolNames = request.tools.map(({ name }) => name);
      const answer = createAnswer(NAME, options.onDelta, toolNames);
      const isSlowToBegin = baseURL !== undefined;
      const call = (channel: HttpChannel): AsyncIterable<unknown> => ask(apiKey, baseURL, request, channel);
      return await guardedCall({ provider, request, options, answer, fetch, isSlowToBegin, ask: call });
    },
  };
}

async function* ask(apiKey: string, baseURL: string | undefined, request: ModelRequest, channel: HttpChannel): AsyncIterable<unknown> {
  const client = await createClient(apiKey, baseURL, channel);
  const { config, ...rest } = renderRequest(request);
  try {
    yield* await client.models.generateContentStream({ ...rest, config: { ...config, abortSignal: channel.signal } });
  } catch (error) {
    throw refusalIn(error) ?? error;
  }
}

/** One for each call, as its channel is: it holds nothing, and connections are the platform's. Loaded by the first call. */
async function createClient(apiKey: string, baseURL: string | undefined, channel: HttpChannel): Promise<GoogleGenAI> {
  const { GoogleGenAI: Client } = await loadOptional(['@google/genai'], () => import('@google/genai'));
  return new Client({
    apiKey,
    // Set, not left out: the SDK would look into the environment, which is `config.ts`'s to read.
    enterprise: false,
    // Without `retryOptions` the SDK asks once.
    httpOptions: { baseUrl: baseURL ?? PUBLIC_API, fetch: channel.fetch },
  });
}

/** An error in the middle of a stream: the SDK throws its JSON as the message, behind a prefix. */
function refusalIn(error: unknown): Error | undefined {
  if (!(error instanceof Error) || error.name !== 'ApiError') return undefined;
  const json = error.message.slice(error.message.indexOf('{'));
  return toRefusal(json);
}

// Puts an answer together from Gemini's chunks.
//
// - An answer is whole once it has a finish reason, or once its prompt was blocked: a stream that ends without has failed.
// - Tool calls count only if the model stopped for them.
// - A thought signature is stored as a separate block, next to the block that it signs: before a call, after text.

/** `toolNames`: of the tools that were offered. */
export function createAnswer(provider: string, onDelta: (delta: ModelDelta) => void, toolNames: readonly string[] = []): Answer<unknown> {
  const draft = createDraft(provider, onDelta);
  const toolNamesByWire = new Map(toolNames.map((name) => [toFunctionName(name), name]));
  let usage = NO_USAGE;
  let finish: string | undefined;
  let blocked = false;
  let explanation = '';
  let calls = 0;

  const takePart = (value: unknown): void => {
    const part = asObject(value);
    const signature = asText(part.thoughtSignature);
    const signed = (on: 'call' | 'text'): AssistantBlock | undefined =>
      signature === '' ? undefined : { kind: 'opaque', provider, value: { type: 'thought_signature', on, signature } };
    if (isRecord(part.functionCall)) {
      const { id, name, args } = asObject(part.functionCall);
      const called = toolNamesByWire.get(asText(name)) ?? asText(name);
      draft.call({ callId: asText(id) || `call_${calls++}`, name: called, input: args ?? {}, before: signed('call') });
      return;
    }
    draft.say(part.thought === true ? 'thinking' : 'text', asText(part.text));
    const after = signed('text');
    if (after) draft.add(after);
  };

  return {
    take(value) {
      const chunk = asObject(value);
      const candidate = asObject(asList(chunk.candidates)[0]);
      asList(asObject(candidate.content).parts).forEach(takePart);
      finish = asText(candidate.finishReason) || finish;
      if (isRecord(chunk.usageMetadata)) usage = toUsage(chunk.usageMetadata);
      const feedback = asObject(chunk.promptFeedback);
      if (asText(feedback.blockReason) === '') return;
      blocked = true;
      finish ??= asText(feedback.blockReason);
      explanation = asText(feedback.blockReasonMessage);
    },
    end() {},
    isWhole: () => finish !== undefined,
    response() {
      if (finish === undefined) throw brokenStream('the stream ended before its finish reason');
      const known = blocked ? 'refusal' : finish === 'STOP' && draft.hasCalls() ? 'tool-calls' : readStop(finish);
      const blocks = draft.blocks({ withCalls: known === 'tool-calls' });
      if (known === 'refusal' && !hasText(blocks)) blocks.push({ kind: 'text', text: refusalText(finish, explanation) });
      return { ...settleStop(known, finish, blocks), usage };
    },
    soFar: () => ({ blocks: draft.ended(), usage }),
  };
}

/** The API mostly refuses with one word. */
function refusalText(word: string, explanation: string): string {
  return toWellFormed(explanation || `Gemini gave no answer: ${word}.`);
}

/** Thoughts are paid for as output, and counted apart from it. */
function toUsage(wire: unknown): ModelUsage {
  const count = asObject(wire);
  const thought = asCount(count.thoughtsTokenCount);
  return {
    inputTokens: asCount(count.promptTokenCount) + asCount(count.toolUsePromptTokenCount),
    cachedTokens: asCount(count.cachedContentTokenCount),
    outputTokens: asCount(count.candidatesTokenCount) + thought,
    ...(thought > 0 && { reasoningTokens: thought }),
  };
}

// From our words to Gemini's. Pure, and the same bytes for the same request: the prompt cache goes by them.
//
// - Messages come normalized. Results of one batch of calls are one message, in the order of the calls, by which the API pairs them; ids
//   are not sent, as ours are not the ones it gave.
// - A thought signature goes back on the part it came on. From Gemini 3 on, the API refuses the first call of a batch without one; if
//   another model made the call, the API's word for that takes its place.
// - The SDK adds nothing: it calls no functions, and makes no second request.

const IMAGE_TYPES: readonly string[] = ['image/jpeg', 'image/png', 'image/webp', 'image/heic', 'image/heif'];

const NO_SIGNATURE = 'skip_thought_signature_validator';

export function renderRequest(request: ModelRequest): GenerateContentParameters {
  const { model, maxTokens, system, tools, messages, mustCall, stopAt } = request;
  // Beside tools it is refused by models before the third generation.
  const schema = tools.length === 0 ? sentSchema('gemini', request)?.schema : undefined;
  const instructions = toWellFormed(system);
  return {
    model,
    contents: renderMessages(messages, { needsSignature: isGemini3OrLater(model) }),
    config: {
      ...(instructions.trim() !== '' && { systemInstruction: { parts: [{ text: instructions }] } }),
      maxOutputTokens: maxTokens,
      ...(schema && { responseMimeType: 'application/json', responseJsonSchema: schema }),
      ...(tools.length > 0 && { tools: [{ functionDeclarations: tools.map(renderTool) }] }),
      ...(mustCall && { toolConfig: { functionCallingConfig: { mode: 'ANY' as FunctionCallingConfigMode } } }),
      ...(stopAt && stopAt.length <= MAX_STOPS && { stopSequences: [...stopAt] }),
      automaticFunctionCalling: { disable: true },
      automaticContinuation: false,
    },
  };
}

/** The API refuses more. */
const MAX_STOPS = 5;

function isGemini3OrLater(model: string): boolean {
  const [, version] = /^(?:models\/)?gemini-(\d+)/.exec(model) ?? [];
  // `gemini-flash-latest` and the like are of today.
  return version === undefined ? /gemini-\w+-latest/.test(model) : Number(version) >= 3;
}

function renderTool({ name, description, inputSchema }: ToolDescription): FunctionDeclaration {
  return { name: toFunctionName(name), description: toWellFormed(description), parametersJsonSchema: toToolSchema(inputSchema, 'gemini') };
}

function renderMessages(messages: readonly ConversationMessage[], options: { readonly needsSignature: boolean }): Content[] {
  const contents: Content[] = [];
  let results: Part[] | undefined;
  let userParts: Part[] | undefined;
  for (const message of messages) {
    if (message.role === 'tool') {
      if (!results) contents.push({ role: 'user', parts: (results = []) });
      results.push(renderResult(message));
      userParts = undefined;
      continue;
    }
    results = undefined;
    const isUser = message.role === 'user';
    const parts = isUser ? renderUser(message) : renderAssistant(message.blocks, options);
    if (parts.length === 0) continue;
    if (isUser && userParts) userParts.push(...parts);
    else contents.push({ role: isUser ? 'user' : 'model', parts });
    userParts = isUser ? (userParts ?? parts) : undefined;
  }
  return contents;
}

function renderResult(result: ToolResultMessage): Part {
  const text = toolResultText(result);
  return {
    functionResponse: { name: toFunctionName(result.name), response: result.outcome === 'ok' ? { output: text } : { error: text } },
  };
}

function renderUser({ text, images = [], audio = [], video = [], documents = [] }: UserMessage): Part[] {
  const words = sentText(text);
  return [
    ...documents.map((source) => renderMedia(sentDocument(source, { urls: true }))),
    ...images.map((image) => renderMedia(sentImage(image, { types: IMAGE_TYPES, urls: true }))),
    ...audio.map((source) => renderMedia(sentRecording('audio', withGeminiType(source), { types: AUDIO_TYPES, urls: true }))),
    ...video.map((source) => renderMedia(sentRecording('video', source, { types: VIDEO_TYPES, urls: true }))),
    ...(words === '' ? [] : [{ text: words }]),
  ];
}

function renderMedia(sent: SentMedia): Part {
  switch (sent.kind) {
    case 'base64':
      return { inlineData: { mimeType: sent.mediaType, data: sent.base64 } };
    case 'url':
      return { fileData: { mimeType: sent.mediaType, fileUri: sent.url } };
    case 'words':
      return { text: sent.text };
    default:
      return sent satisfies never;
  }
}

function renderAssistant(blocks: readonly AssistantBlock[], { needsSignature }: { readonly needsSignature: boolean }): Part[] {
  let called = false;
  return blocks.flatMap((block, at): Part[] => {
    switch (block.kind) {
      case 'text': {
        const text = sentText(block.text);
        return text === '' ? [] : [{ text }];
      }
      case 'thinking':
        return []; // a summary, for people
      case 'opaque': {
        const { on, signature } = toSignature(block);
        return on === 'text' ? [{ text: '', thoughtSignature: signature }] : [];
      }
      case 'tool-call': {
        const { on, signature } = toSignature(blocks[at - 1]);
        const signed = on === 'call' ? signature : needsSignature && !called ? NO_SIGNATURE : undefined;
        called = true;
        return [
          {
            functionCall: { name: toFunctionName(block.name), args: toSentInput(block.input) },
            ...(signed !== undefined && { thoughtSignature: signed }),
          },
        ];
      }
      default:
        return block satisfies never;
    }
  });
}

/** What `client.ts` kept of a signature: a separate block, before the call or after the text that it signs. */
function toSignature(block: AssistantBlock | undefined): { readonly on?: string; readonly signature?: string } {
  const value = block?.kind === 'opaque' ? asObject(block.value) : {};
  return value.type === 'thought_signature' ? { on: asText(value.on), signature: asText(value.signature) } : {};
}
