/** Models that run in Ollama, on this machine or another, over its native API, streaming. */
import type { Ollama } from 'ollama' with { 'resolution-mode': 'import' };
import type { ChatRequest, Message, Tool } from 'ollama';
import { loadOptional } from '../../platform/optional-package.js';
import type { Provider } from '../failure.js';
import { guardedCall, type HttpChannel, guardedRequest } from '../guarded-call.js';
import { type Model, type ModelRequest, type ModelDelta, type ToolDescription, answerTokens, type ContextWindow } from '../model.js';
import type { AssistantBlock, ConversationMessage, UserMessage } from '../../records/message.js';
import { type Answer, NO_USAGE, readStop, settleStop, createDraft } from '../draft.js';
import { asCount, asList, asObject, asText, toWellFormed, toWireName, brokenStream, toSentInput } from '../wire.js';
import { toRefusal } from '../refusal.js';
import { isRecord } from '../../platform/json.js';
import { sentSchema } from '../answer-schema.js';
import { toToolSchema } from '../tool-schema.js';
import { describeDocument, inTurns, describeRecordings, sentImage, sentText, textAndCalls, markedResultText } from '../shown.js';
import { timeoutSignal } from '../../platform/promises.js';
import { cutText, EMBED_MS, readVectors, type Embedder } from '../embedder.js';

export interface OllamaOptions {
  /** A URL. Default: this machine, port 11434. `user:password@` in it goes along as a header. */
  readonly host?: string;
  readonly fetch?: typeof fetch;
}

const NAME = 'ollama';
export const THIS_MACHINE = 'http://127.0.0.1:11434';

export function createOllamaModel({ host: written = THIS_MACHINE, fetch }: OllamaOptions): Model {
  const place = toPlace(written);
  const { host, headers } = place;
  const provider = toProvider(place);
  const shown = createWindows({ host, headers }, fetch && { fetch });
  return {
    provider: NAME,
    contextWindow: async (model, wanted) => toContextWindow(await shown(model), wanted),
    async stream(request, options) {
      const answer = createAnswer(NAME, options.onDelta);
      const call = (channel: HttpChannel): AsyncIterable<unknown> => ask({ host, headers }, request, channel);
      return await guardedCall({ provider, request, options, answer, fetch, isSlowToBegin: true, ask: call });
    },
  };
}

export interface Place {
  readonly host: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function toProvider({ secrets }: { readonly secrets: readonly string[] }): Provider {
  return {
    name: NAME,
    secrets,
    advice: {
      auth: 'Check what the server in OLLAMA_HOST asks for.',
      connection: 'Check that Ollama runs there (`ollama serve`), and OLLAMA_HOST.',
      'not-found': 'Get the model with `ollama pull`, or check its name (PERDURA_MODEL, or "model" in agent.json).',
    },
  };
}

async function* ask(place: Place, request: ModelRequest, channel: HttpChannel): AsyncIterable<unknown> {
  const client = await createClient(place, channel);
  yield* await client.chat(renderRequest(request));
}

/** One for each call, as its channel is: the SDK stops calls only all at once. Loaded by the first call. */
export async function createClient({ host, headers }: Place, channel: HttpChannel): Promise<Ollama> {
  const { Ollama: Client } = await loadOptional(['ollama'], () => import('ollama'));
  return new Client({ host, headers, fetch: async (input, init) => withCheckedLines(await channel.fetch(input, init)) });
}

/** fetch takes no password in an address. */
export function toPlace(written: string): Place & { readonly secrets: readonly string[] } {
  const url = new URL(written);
  const { username, password } = url;
  url.username = '';
  url.password = '';
  const host = url.href.replace(/\/$/, '');
  if (username === '' && password === '') return { host, headers: {}, secrets: [] };
  const [user, secret] = [decoded(username), decoded(password)];
  const basic = Buffer.from(`${user}:${secret}`).toString('base64');
  return { host, headers: { Authorization: `Basic ${basic}` }, secrets: [password, secret, basic] };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Puts an answer together from Ollama's lines.
//
// Only a line that says `done` ends an answer. Tool calls count only if the model stopped by itself: Ollama has no word for stopping to
// call tools.

export function createAnswer(provider: string, onDelta: (delta: ModelDelta) => void): Answer<unknown> {
  const draft = createDraft(provider, onDelta);
  let usage = NO_USAGE;
  let reason: string | undefined;
  let calls = 0;

  const takeCall = (value: unknown): void => {
    const { name, arguments: input } = asObject(asObject(value).function);
    const call = draft.call({ callId: `call_${calls++}`, name: asText(name), input: typeof input === 'string' ? {} : (input ?? {}) });
    // An object by the API; servers in its place may send text.
    call.grow(asText(input));
  };

  return {
    take(value) {
      const line = asObject(value);
      const message = asObject(line.message);
      draft.say('thinking', asText(message.thinking));
      draft.say('text', asText(message.content));
      asList(message.tool_calls).forEach(takeCall);
      if (line.done !== true) return;
      reason = asText(line.done_reason) || 'stop';
      usage = { ...NO_USAGE, inputTokens: asCount(line.prompt_eval_count), outputTokens: asCount(line.eval_count) };
    },
    end() {},
    isWhole: () => reason !== undefined,
    response() {
      if (reason === undefined) throw brokenStream('the stream ended before its last line');
      const known = reason === 'stop' && draft.hasCalls() ? 'tool-calls' : readStop(reason);
      const blocks = draft.blocks({ withCalls: known === 'tool-calls' });
      return { ...settleStop(known, reason, blocks), usage };
    },
    soFar: () => ({ blocks: draft.ended(), usage }),
  };
}

// Looks at the lines of a stream before the SDK does: that one prints a line it cannot read and goes on without it, and
// makes of a refusal an error like any other.

/** The same response; its body breaks at a line that is no JSON, or that says no. */
function withCheckedLines(response: Response): Response {
  if (!response.body) return response;
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = '';
  const check = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line.trim() !== '') controller.enqueue(encoder.encode(`${checked(line)}\n`));
    },
    flush(controller) {
      if (rest.trim() !== '') controller.enqueue(encoder.encode(`${checked(rest)}\n`));
    },
  });
  return new Response(response.body.pipeThrough(check), response);
}

function checked(line: string): string {
  const value = parsed(line);
  // ollama/ollama#11781: words of the error may be in the name.
  const name = isRecord(value) ? Object.keys(value).find((key) => /^error\b/.test(key)) : undefined;
  if (isRecord(value) && name !== undefined) throw toRefusal(name === 'error' ? value : { error: `${name}: ${asText(value[name])}` });
  return line;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw brokenStream('a line is no JSON', cause);
  }
}

// From our words to Ollama's. Pure.
//
// Messages come normalized: each call is answered directly after its message, in the order of the calls, by which the API pairs them: it
// has names here, and no ids. Pictures go as their bytes: the server fetches none.

const IMAGE_TYPES: readonly string[] = ['image/jpeg', 'image/png', 'image/webp'];

export function renderRequest(request: ModelRequest): ChatRequest & { stream: true } {
  const { model, maxTokens, system, tools, messages, contextWindow, stopAt } = request;
  // Held to a schema, a model could not call: it shapes every word, calls included.
  const schema = tools.length === 0 ? sentSchema('ollama', request)?.schema : undefined;
  const instructions = toWellFormed(system);
  return {
    model,
    messages: [
      ...(instructions.trim() === '' ? [] : [{ role: 'system', content: instructions }]),
      ...inTurns(
        messages.flatMap((message) => renderMessage(message)),
        joinUsers,
      ),
    ],
    ...(tools.length > 0 && { tools: tools.map(renderTool) }),
    ...(schema && { format: schema }),
    stream: true,
    options: {
      ...(contextWindow === undefined
        ? { num_predict: maxTokens }
        : { num_ctx: contextWindow, num_predict: answerTokens(maxTokens, contextWindow) }),
      ...(stopAt && { stop: [...stopAt] }),
    },
  };
}

function renderTool({ name, description, inputSchema }: ToolDescription): Tool {
  const parameters = toToolSchema(inputSchema, 'ollama') as unknown as NonNullable<Tool['function']['parameters']>;
  return { type: 'function', function: { name, description: toWellFormed(description), parameters } };
}

function renderMessage(message: ConversationMessage): Message[] {
  switch (message.role) {
    case 'user':
      return [renderUser(message)];
    case 'tool':
      return [{ role: 'tool', tool_name: toWireName(message.name), content: markedResultText(message) }];
    case 'assistant':
      return renderAssistant(message.blocks);
    default:
      return message satisfies never;
  }
}

function joinUsers(last: Message, next: Message): Message {
  // Base64 both: `renderUser` makes them.
  const images = [...(last.images ?? []), ...(next.images ?? [])] as string[];
  return { ...last, content: `${last.content}\n\n${next.content}`, ...(images.length > 0 && { images }) };
}

function renderUser(message: UserMessage): Message {
  const sent = (message.images ?? []).map((image) => sentImage(image, { types: IMAGE_TYPES, urls: false }));
  const words = [
    ...sent.map((image) => (image.kind === 'words' ? image.text : '')),
    ...describeRecordings(message),
    ...(message.documents ?? []).map(describeDocument),
    sentText(message.text),
  ];
  const pictures = sent.flatMap((image) => (image.kind === 'base64' ? [image.base64] : []));
  return {
    role: 'user',
    content: words.filter((part) => part !== '').join('\n'),
    ...(pictures.length > 0 && { images: pictures }),
  };
}

function renderAssistant(blocks: readonly AssistantBlock[]): Message[] {
  const { text, calls } = textAndCalls(blocks);
  if (text === '' && calls.length === 0) return [];
  return [
    {
      role: 'assistant',
      content: text,
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ name, input }) => ({ function: { name: toWireName(name), arguments: toSentInput(input) } })),
      }),
    },
  ];
}

// How much a model of Ollama takes, as its server says (`/api/show`).
//
// - Without `num_ctx` the server cuts prompts at a size that it does not report, so every call sends it.
// - The agent's `context.maxTokens` decides, then the model's `num_ctx`, then DEFAULT_WINDOW, since a model's maximum may need more
//   than the machine's memory. None of them exceeds the model's maximum.
// - The server's answer is bounded, in time, bytes and range. No answer is no error: the call itself shows what is wrong.

export const DEFAULT_WINDOW = 32_768;
const SMALLEST = 256;
const LARGEST = 10_000_000;
const MAX_BYTES = 4 * 1024 * 1024;
const PATIENCE_MS = 5_000;
/** A model may be made anew under its name; a server that was away comes back. */
const REMEMBERED_MS = 600_000;
const TRIED_AGAIN_MS = 60_000;
const MAX_REMEMBERED = 64;

/** Of one model; undefined for what the server did not say. */
interface ShownWindow {
  /** What it was made for. */
  readonly most?: number;
  /** `num_ctx` of its Modelfile. */
  readonly set?: number;
}

export function toContextWindow({ most, set }: ShownWindow, wanted?: number): ContextWindow {
  return { tokens: Math.min(wanted ?? set ?? DEFAULT_WINDOW, most ?? Infinity), isKnown: most !== undefined };
}

export function readShown(body: unknown): ShownWindow {
  const { model_info: info, parameters } = asObject(body);
  const lengths = Object.entries(asObject(info)).flatMap(([name, value]) => (name.endsWith('.context_length') ? inRange(value) : []));
  const [set] = inRange(Number(/^num_ctx\s+(\d{1,12})\s*$/m.exec(asText(parameters))?.[1]));
  // A model of two parts, one for pictures, names the length of each: prompts go through the smaller one.
  return { ...(lengths.length > 0 && { most: Math.min(...lengths) }), ...(set !== undefined && { set }) };
}

/** Asks once for each model, and again after a while. Never rejects. */
export function createWindows(
  { host, headers }: { readonly host: string; readonly headers: Readonly<Record<string, string>> },
  { fetch: ask = fetch, now = Date.now }: { readonly fetch?: typeof fetch; readonly now?: () => number } = {},
): (model: string) => Promise<ShownWindow> {
  const known = new Map<string, { readonly shown: Promise<ShownWindow>; until: number }>();
  const show = async (model: string): Promise<ShownWindow> => {
    const signal = timeoutSignal(PATIENCE_MS);
    const body = JSON.stringify({ model });
    const response = await ask(`${host}/api/show`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
      signal,
    });
    if (response.ok) return readShown(JSON.parse(await boundedText(response)));
    await response.body?.cancel();
    return {};
  };
  return (model) => {
    const found = known.get(model);
    if (found && now() < found.until) return found.shown;
    const shown = show(model).catch((): ShownWindow => ({}));
    const entry = { shown, until: now() + REMEMBERED_MS };
    void shown.then(({ most }) => {
      if (most === undefined) entry.until = now() + TRIED_AGAIN_MS;
    });
    known.delete(model);
    known.set(model, entry);
    for (const oldest of known.keys()) if (known.size > MAX_REMEMBERED) known.delete(oldest);
    return shown;
  };
}

function inRange(value: unknown): [number] | [] {
  return typeof value === 'number' && Number.isInteger(value) && value >= SMALLEST && value <= LARGEST ? [value] : [];
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  if (!response.body) return '';
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw new Error(`more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

// Embeddings of models that run in Ollama (`/api/embed`).

/** `ollama/<model>`; it costs nothing. */
export function createOllamaEmbedder(model: string, { host: written = THIS_MACHINE, fetch }: OllamaOptions): Embedder {
  const place = toPlace(written);
  const provider = toProvider(place);
  const name = `ollama/${model}`;
  return {
    name,
    price: 0,
    embed: (texts, { signal, totalMs = EMBED_MS }) =>
      guardedRequest({ provider, model, signal, totalMs, fetch }, async (line) => {
        const client = await createClient(place, line);
        const { embeddings, prompt_eval_count: tokens } = await client.embed({ model, input: texts.map(cutText), truncate: true });
        return { vectors: readVectors(name, embeddings, texts.length), tokens: asCount(tokens) };
      }),
  };
}
