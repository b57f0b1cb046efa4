/**
 * The scripted Converse API of Bedrock, as `@ai-sdk/amazon-bedrock` asks it, with its binary stream of events. What it refuses is in its
 * words, as people report them: content of tools without tools (langgenius/dify#17545, nearai/ironclaw#1629), blank text
 * (OpenHands/OpenHands#5339), documents without words and empty messages (archestra-ai/archestra#4220), roles out of turn, results that do
 * not fit their calls, cache points where a model has no cache (BerriAI/litellm#39210), names and ids by the patterns of its reference.
 */
import { EventStreamCodec } from '@smithy/eventstream-codec';
import type { ApiError } from './api-error.js';
import { isRecord } from './check-fields.js';
import { frame, type Frame, type Landmark, type OddFrame, type Protocol } from './protocol.js';
import type { Reply } from './reply.js';
import { startScriptedApi, type ScriptedApi, type ScriptedApiOptions } from './scripted-api.js';
import { freshId, inputJsonOf, pieces, stopWordOf, textsOf, usageOf } from './words-of.js';

interface Message {
  readonly role: string;
  readonly content: readonly Readonly<Record<string, unknown>>[];
}

/** As it stands on the wire, as far as tests read it, and what stands in the address. */
export interface ConverseRequest {
  readonly modelId: string;
  readonly messages: readonly Message[];
  readonly [field: string]: unknown;
}

/** Its `url` is the package's `baseURL`. */
export function startBedrockApi(options: ScriptedApiOptions<ConverseRequest> = {}): Promise<ScriptedApi<ConverseRequest>> {
  return startScriptedApi(bedrock, options);
}

const finishWords = { refusal: 'guardrail_intervened' };

const bedrock: Protocol<ConverseRequest> = {
  name: 'Converse API',
  contentType: 'application/vnd.amazon.eventstream',
  maxBodyBytes: 25 * 1024 * 1024,
  route: ({ method, path }) =>
    method === 'POST' && modelIn(path) !== undefined ? 'answer' : bedrockError(404, '<UnknownOperationException/>'),
  checkHeaders({ headers }, apiKey) {
    const key = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1];
    if (key === undefined) return bedrockError(403, 'Missing Authentication Token');
    return apiKey === undefined || key === apiKey ? undefined : bedrockError(403, 'The security token included in the request is invalid.');
  },
  checkRequest: ({ body, path }) => checkConverse(body, modelIn(path) ?? ''),
  read: ({ body, path }) => (isRecord(body) ? ({ ...body, modelId: modelIn(path) } as unknown as ConverseRequest) : undefined),
  wantsStream: () => true,
  toFrames,
  toWhole: () => ({}),
  toOddFrame,
  error: bedrockError,
  errorBody: ({ message }) => ({ message }),
};

function bedrockError(asked: number, message = `HTTP ${asked}`): ApiError {
  return { status: asked === 529 ? 503 : asked, type: 'ValidationException', message };
}

function modelIn(path: string): string | undefined {
  const [, id] = /^\/model\/([^/]+)\/converse-stream$/.exec(path) ?? [];
  return id === undefined ? undefined : decodeURIComponent(id);
}

function checkConverse(body: unknown, model: string): ApiError | undefined {
  if (!isRecord(body) || !Array.isArray(body.messages)) return bedrockError(400, 'messages is required');
  const messages = body.messages as readonly Message[];
  if (JSON.stringify(body).includes('"cachePoint"') && !/claude|nova/.test(model)) {
    return bedrockError(
      403,
      'You invoked an unsupported model or your request did not allow prompt caching. See the documentation for more information.',
    );
  }
  const words = checkTools(body.toolConfig, messages) ?? checkTurns(messages);
  return words === undefined ? undefined : bedrockError(400, words);
}

function checkTools(toolConfig: unknown, messages: readonly Message[]): string | undefined {
  const usesTools = messages.some(({ content }) => content.some((block) => 'toolUse' in block || 'toolResult' in block));
  if (!isRecord(toolConfig))
    return usesTools ? 'The toolConfig field must be defined when using toolUse and toolResult content blocks.' : undefined;
  const tools = toolConfig.tools as readonly { readonly toolSpec?: Record<string, unknown> }[];
  const names = tools.flatMap(({ toolSpec }) => (toolSpec ? [String(toolSpec.name)] : []));
  const odd = names.findIndex((name) => !/^[a-zA-Z0-9_-]{1,64}$/.test(name));
  if (odd !== -1) {
    return `1 validation error detected: Value '${names[odd]}' at 'toolConfig.tools.${odd + 1}.member.toolSpec.name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+`;
  }
  const { toolChoice } = toolConfig;
  const isChoice = toolChoice === undefined || (isRecord(toolChoice) && ['auto', 'any', 'tool'].some((kind) => isRecord(toolChoice[kind])));
  return isChoice ? undefined : 'The value at toolConfig.toolChoice is no member of its union.';
}

function checkTurns(messages: readonly Message[]): string | undefined {
  if (messages[0]?.role !== 'user')
    return 'A conversation must start with a user message. Try again with a conversation that starts with a user message.';
  for (const [at, { role, content }] of messages.entries()) {
    if (role === messages[at - 1]?.role) {
      return 'A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.';
    }
    if (content.length === 0)
      return `The content field in the Message object at messages.${at} is empty. Add a ContentBlock object to the content field and try again.`;
    const wrong = content.map((block, n) => checkBlock(block, `messages.${at}.content.${n}`)).find(Boolean) ?? checkResults(messages, at);
    if (wrong !== undefined) return wrong;
    const says = (name: string): boolean => content.some((block) => name in block);
    if (says('document') && !says('text')) return 'A text block must be included when using documents.';
  }
  return messages.at(-1)?.role === 'user'
    ? undefined
    : 'This model does not support assistant message prefill. The conversation must end with a user message.';
}

const imageFormats: readonly unknown[] = ['png', 'jpeg', 'gif', 'webp'];

function checkBlock(block: Message['content'][number], path: string): string | undefined {
  const { text, image, toolUse, reasoningContent } = block;
  if (text !== undefined && String(text).trim() === '') {
    return `The text field in the ContentBlock object at ${path} is blank. Add text to the text field, and try again.`;
  }
  if (isRecord(image) && !imageFormats.includes(image.format)) return `The value at ${path}.image.format is no member of its enum.`;
  if (isRecord(toolUse) && (!/^[a-zA-Z0-9_-]{1,64}$/.test(String(toolUse.toolUseId)) || !isRecord(toolUse.input))) {
    return `The format of the value at ${path}.toolUse is invalid. Provide a json object for the field and try again.`;
  }
  if (!isRecord(reasoningContent) || !isRecord(reasoningContent.reasoningText)) return undefined;
  return typeof reasoningContent.reasoningText.signature === 'string' && reasoningContent.reasoningText.signature.startsWith('sig')
    ? undefined
    : `${path}: Invalid \`signature\` in \`thinking\` block`;
}

function checkResults(messages: readonly Message[], at: number): string | undefined {
  const idsIn = (message: Message | undefined, kind: 'toolUse' | 'toolResult'): string[] =>
    (message?.content ?? []).flatMap((block) => (isRecord(block[kind]) ? [String(block[kind].toolUseId)] : []));
  const wanted = idsIn(messages[at - 1], 'toolUse');
  const given = idsIn(messages[at], 'toolResult');
  const missing = wanted.filter((id) => !given.includes(id));
  if (missing.length > 0) return `Expected toolResult blocks at messages.${at}.content for the following Ids: ${missing.join(', ')}`;
  return given.length > wanted.length || given.some((id) => !wanted.includes(id))
    ? `The number of toolResult blocks at messages.${at}.content exceeds the number of toolUse blocks of previous turn.`
    : undefined;
}

// Its stream

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes as Uint8Array).toString('utf8'),
  (text) => Buffer.from(text, 'utf8'),
);

function event(kind: string, payload: unknown, messageType = 'event'): Uint8Array {
  const string = (value: string) => ({ type: 'string' as const, value });
  const body = typeof payload === 'string' ? payload : JSON.stringify({ ...(payload as object), p: 'abcdefgh' });
  return codec.encode({
    headers: {
      [messageType === 'event' ? ':event-type' : ':exception-type']: string(kind),
      ':content-type': string('application/json'),
      ':message-type': string(messageType),
    },
    body: Buffer.from(body, 'utf8'),
  });
}

function toFrames(reply: Reply, { messages, toolConfig }: ConverseRequest): Frame[] {
  const events: Frame[] = [frame(event('messageStart', { role: 'assistant' }))];
  let index = 0;
  const block = (start: object | undefined, deltas: readonly (readonly [delta: object, content: string])[]): void => {
    const at = { contentBlockIndex: index++ };
    if (start) events.push(frame(event('contentBlockStart', { ...at, start })));
    for (const [delta, content] of deltas) {
      const landmarks: readonly Landmark[] = content === '' ? [] : ['content'];
      events.push(frame(event('contentBlockDelta', { ...at, delta }), content.length, ...landmarks));
    }
    events.push(frame(event('contentBlockStop', at), 0, 'block-stop'));
  };
  if (reply.thinking) {
    const { text, signature } = reply.thinking;
    const spoken = pieces(text, reply).map((piece) => [{ reasoningContent: { text: piece } }, piece] as const);
    block(undefined, [...spoken, [{ reasoningContent: { signature: `sig-${signature}` } }, '']]);
  }
  for (const text of textsOf(reply))
    block(
      undefined,
      pieces(text, reply).map((piece) => [{ text: piece }, piece] as const),
    );
  for (const call of reply.toolCalls ?? []) {
    const start = { toolUse: { toolUseId: call.id ?? freshId('tooluse'), name: call.name } };
    block(
      start,
      pieces(inputJsonOf(call), reply).map((piece) => [{ toolUse: { input: piece } }, piece] as const),
    );
  }
  const usage = usageOf(reply, [messages, toolConfig]);
  const counted = {
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    totalTokens: usage.input_tokens + usage.output_tokens,
    cacheReadInputTokens: usage.cache_read_input_tokens,
    cacheWriteInputTokens: usage.cache_creation_input_tokens,
  };
  return [
    ...events,
    frame(event('messageStop', { stopReason: stopWordOf(reply, finishWords) }), 0, 'message-delta'),
    frame(event('metadata', { usage: counted, metrics: { latencyMs: 1 } }), 0, 'message-stop'),
  ];
}

function toOddFrame(odd: OddFrame): Uint8Array {
  switch (odd.kind) {
    case 'error':
      return event(
        odd.error.status === 503 ? 'serviceUnavailableException' : 'internalServerException',
        { message: odd.error.message },
        'exception',
      );
    case 'malformed':
      return event('contentBlockDelta', '{"contentBlockIndex":0,"del');
    case 'unknown':
      return event('sparkle', { shade: 'blue' });
    case 'ping':
      return event('ping', {});
    case 'half':
      return event('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'x'.repeat(500) } }).slice(0, 20);
    default:
      return odd satisfies never;
  }
}
