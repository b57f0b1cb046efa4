/**
 * Models of any maker, through a provider of the AI SDK (`@ai-sdk/amazon-bedrock`, `-azure`, `-google-vertex`, `-mistral` and a hundred
 * others). The package is the user's: nothing of the SDK is loaded here, and of its types only the parts that are used are written down.
 *
 * - One call is one request. `doStream` retries nothing, and Temporal does (`guarded-call.ts`).
 * - The package sends by itself, so no byte is seen: each part of its stream is a sign of life, and counts for the limit of bytes.
 * - What it throws, of whatever class and version, is read by its fields, and classified where all failures are (`failure.ts`).
 * - A package that hangs, ignores its signal, throws at once or sends what is no stream ends as a ModelFailure.
 */
import { setImmediate } from 'node:timers/promises';
import { errorCode, errorMessage } from '../../platform/errors.js';
import { isRecord } from '../../platform/json.js';
import { orAborted } from '../../platform/promises.js';
import type { JsonObject } from '../../records/message.js';
import type { Provider } from '../failure.js';
import { streamWithoutAbsent } from '../answer-schema.js';
import { guardedCall, type HttpChannel } from '../guarded-call.js';
import { ModelFailure, type Model, type ModelRequest, type TextToolFormat } from '../model.js';
import { learnDialect, OPENAI } from '../openai/render-chat.js';
import { Refusal, toRefusal, Unreachable } from '../refusal.js';
import { asObject, asText, brokenStream } from '../wire.js';
import { BILLED, createAiSdkAnswer } from './answer.js';
import { renderCall, USUAL_FORM, type AskedModel, type Form } from './render.js';

/** A language model of the AI SDK's interface, of which these are the parts that are used: `LanguageModelV2`, `V3` or `V4`. */
export interface AiSdkModel {
  readonly specificationVersion: 'v2' | 'v3' | 'v4';
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: Readonly<Record<string, RegExp[]>> | PromiseLike<Readonly<Record<string, RegExp[]>>>;
  /** Begins an answer; what it is given is the interface's. */
  doStream(options: never): PromiseLike<{ readonly stream: object }>;
}

/** A provider of the AI SDK, such as `amazonBedrock` or what `createMistral({ … })` returns; or a function from a model's name to a model. */
export type AiSdkProvider =
  | {
      /** The model of a name. */
      languageModel(modelId: string): AiSdkModel;
    }
  | ((modelId: string) => AiSdkModel);

/** How a provider of the AI SDK is used. */
export interface AiSdkOptions {
  /** Goes along with each call, as `providerOptions` of the AI SDK does: by the package's name of the provider, what it documents. */
  readonly providerOptions?: Readonly<Record<string, JsonObject>>;
  /** For models without native tool calls: they are written in the text, in this format. */
  readonly textTools?: TextToolFormat;
}

/**
 * A provider of the AI SDK as one of Perdura's, for `providers` of `perdura.config` or `createWorker`. Takes providers of versions 2, 3 and 4
 * of its interface. Throws `TypeError` for anything else.
 */
export function aiSdk(provider: AiSdkProvider | AiSdkModel, options: AiSdkOptions = {}): Model {
  return createModel('ai-sdk', findModels(provider), options);
}

type FindModel = (id: string) => unknown;

const TAKES =
  'aiSdk takes a provider of the AI SDK, such as amazonBedrock of @ai-sdk/amazon-bedrock or what createMistral({ … }) returns, or a function ' +
  'from a name to a language model';

function findModels(provider: unknown): FindModel {
  const { languageModel, doStream, modelId } = (provider ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof languageModel === 'function') return (id) => (languageModel as FindModel).call(provider, id);
  if (typeof doStream === 'function') {
    return (id) => {
      if (id === modelId) return provider;
      throw new ModelFailure('not-found', `aiSdk was given the model ${JSON.stringify(modelId)} alone; give it the provider for others`);
    };
  }
  if (typeof provider === 'function') return (id) => (provider as FindModel)(id);
  const kind = provider === null ? 'null' : Array.isArray(provider) ? 'an array' : typeof provider;
  throw new TypeError(
    `${TAKES}, and got ${isRecord(provider) ? `an object with ${Object.keys(provider).slice(0, 5).join(', ') || 'nothing'}` : kind}`,
  );
}

const ADVICE = {
  auth: 'Check the key or credentials that this provider is made with in perdura.config.',
  'missing-key': 'Set the key or credentials that this provider is made with in perdura.config.',
};

function createModel(name: string, find: FindModel, options: AiSdkOptions): Model {
  const forms = new Map<string, Form>();
  return {
    provider: name,
    takesMustCall: true,
    ...(options.textTools && { textTools: options.textTools }),
    named: (other) => createModel(other, find, options),
    async stream(request, streamOptions) {
      const secrets: string[] = [];
      const provider: Provider = { name, secrets, advice: ADVICE };
      const { model } = request;
      const toolNames = request.tools.map((tool) => tool.name);
      const call = (channel: HttpChannel): AsyncIterable<unknown> => ask({ find, forms, options, secrets }, request, channel);
      // Where its server is, is not known: it may be a slow one of the user's.
      const { answerSchema } = request.tools.length === 0 ? request : {};
      return await streamWithoutAbsent({ answerSchema }, streamOptions, async (told) => {
        const answer = createAiSdkAnswer({ provider: name, model, toolNames, onDelta: told.onDelta });
        return guardedCall({ provider, request, options: told, answer, isSlowToBegin: true, ask: call });
      });
    },
  };
}

interface Asking {
  readonly find: FindModel;
  /** By model, what refusals have taught. */
  readonly forms: Map<string, Form>;
  readonly options: AiSdkOptions;
  /** Gets those that must not stand in a failure. */
  readonly secrets: string[];
}

async function* ask({ find, forms, options, secrets }: Asking, request: ModelRequest, channel: HttpChannel): AsyncIterable<unknown> {
  let form = forms.get(request.model) ?? USUAL_FORM;
  for (;;) {
    let model: FoundModel | undefined;
    let hasBegun = false;
    try {
      model = await readModel(find(request.model), channel.signal);
      const call = { ...renderCall(request, model, form, options.providerOptions), abortSignal: channel.signal };
      const stream = await begin(model, call, channel);
      channel.saw(0);
      hasBegun = true;
      return yield* readParts(stream, channel);
    } catch (thrown) {
      secrets.push(...readSecrets(model));
      const failure = toError(thrown);
      if (!hasBegun) channel.sawHeaders(headersOfRefusal(thrown));
      const next = failure instanceof Refusal && !hasBegun ? learnForm(form, failure, request) : undefined;
      if (next === undefined) throw failure;
      form = next;
      // A signature that is refused is one conversation's matter.
      forms.set(request.model, { ...next, sendsReasoning: true });
    }
  }
}

interface FoundModel extends AskedModel {
  readonly doStream: (options: Readonly<Record<string, unknown>>) => unknown;
  readonly config?: unknown;
}

const VERSIONS: readonly unknown[] = ['v2', 'v3', 'v4'];

async function readModel(found: unknown, signal: AbortSignal): Promise<FoundModel> {
  const model = (found ?? {}) as FoundModel;
  if (typeof model.doStream !== 'function')
    throw new ModelFailure('not-found', `${TAKES}; what it got gives no language model for this name`);
  const { specificationVersion } = model;
  if (!VERSIONS.includes(specificationVersion)) {
    throw new ModelFailure(
      'not-found',
      `aiSdk takes language models of versions v2, v3 and v4, and this one is of ${JSON.stringify(specificationVersion)}`,
    );
  }
  const supportedUrls = asObject(
    await orAborted(signal, Promise.resolve(model.supportedUrls as unknown)),
  ) as unknown as AskedModel['supportedUrls'];
  return {
    specificationVersion,
    provider: asText(model.provider),
    supportedUrls,
    doStream: (options) => model.doStream(options),
    config: model.config,
  };
}

/** A stream that comes too late is left at once. */
async function begin(model: FoundModel, call: Readonly<Record<string, unknown>>, channel: HttpChannel): Promise<Reader> {
  const pending = (async () => readerIn(await model.doStream(call), channel))();
  try {
    return await orAborted(channel.signal, pending);
  } catch (error) {
    void pending.then(leave, () => undefined);
    throw error;
  }
}

interface Reader {
  read(): Promise<{ readonly done: boolean; readonly value?: unknown }>;
  cancel(): Promise<unknown>;
}

function readerIn(result: unknown, channel: HttpChannel): Reader {
  const { stream, response } = asObject(result) as { readonly stream?: { readonly getReader?: unknown }; readonly response?: unknown };
  if (typeof stream?.getReader !== 'function') throw brokenStream('the provider gave no stream');
  const reader = (stream as unknown as ReadableStream<unknown>).getReader();
  // A captive portal answers everything with its login page.
  const headers = toHeaders(asObject(response).headers);
  channel.sawHeaders(headers);
  const contentType = headers.get('content-type') ?? '';
  if (!contentType.startsWith('text/html')) return reader;
  leave(reader);
  throw brokenStream(`the answer is no event stream but ${contentType}`);
}

function leave(reader: Reader): void {
  reader.cancel().catch(() => undefined);
}

/** So many parts may come before others on this worker have their turn: a stream that never waits would keep it for itself. */
const PARTS_AT_ONCE = 256;

/** A part that says what went wrong is the last one; of those after it, what was billed counts. */
async function* readParts(reader: Reader, channel: HttpChannel): AsyncIterable<unknown> {
  let failure: Error | undefined;
  const waits = createWaits(channel.signal);
  try {
    for (let n = 1; ; n++) {
      const { done, value } = await waits.wait(reader.read());
      if (done) break;
      channel.saw(measurePart(value));
      channel.signal.throwIfAborted();
      if (n % PARTS_AT_ONCE === 0) await setImmediate();
      const part = isRecord(value) ? value : {};
      failure ??= part['type'] === 'error' ? toErrorInStream(part['error']) : readRaw(part);
      if (part['type'] === 'error') continue;
      if (failure === undefined) yield part;
      else if (part['type'] === 'finish') yield { ...part, type: BILLED };
    }
  } catch (thrown) {
    throw failure ?? toErrorInStream(thrown);
  } finally {
    waits.stop();
    leave(reader);
  }
  if (failure) throw failure;
}

/** As `orAborted`, of one wait after the other, with one listener for all of them. */
function createWaits(signal: AbortSignal) {
  let rejectNow: ((reason: unknown) => void) | undefined;
  const abort = (): void => rejectNow?.(signal.reason);
  signal.addEventListener('abort', abort);
  return {
    wait: <T>(work: Promise<T>): Promise<T> =>
      new Promise<T>((resolve, reject) => {
        rejectNow = reject;
        if (signal.aborted) abort();
        work.then(resolve, reject);
      }),
    stop: () => signal.removeEventListener('abort', abort),
  };
}

/** A refusal as the server words it, which some packages pass over and others shorten. */
function readRaw({ type, rawValue }: Readonly<Record<string, unknown>>): Refusal | undefined {
  if (type !== 'raw' || !isRecord(rawValue)) return undefined;
  if (isRecord(rawValue['error'])) return toRefusal(rawValue);
  // Bedrock's: `{ throttlingException: { message } }`.
  const exception = Object.keys(rawValue).find((name) => name.endsWith('Exception'));
  if (exception === undefined) return undefined;
  const { refused } = toRefusal(rawValue[exception]);
  return new Refusal({ ...refused, codes: [exception.replace(/^./, (letter) => letter.toUpperCase()), ...refused.codes] });
}

/** About as much as came for it; a part that says nothing is not free, so that a flood of them has an end. */
function measurePart(part: unknown): number {
  const texts = isRecord(part) ? Object.values(part).map((value) => (typeof value === 'string' ? value.length : 0)) : [];
  return texts.reduce((sum, length) => sum + length, 64);
}

// What packages throw. Their classes come in many copies, so an error is known by its name and its fields.

const MISSING: readonly string[] = ['AI_LoadAPIKeyError', 'AI_LoadSettingError'];
const UNREADABLE: readonly string[] = [
  'AI_TypeValidationError',
  'AI_JSONParseError',
  'AI_InvalidResponseDataError',
  'AI_EmptyResponseBodyError',
];
const NETWORK = /^(ECONN|ENOTFOUND|EAI_|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_|CERT_|ERR_TLS|DEPTH_ZERO)/;
const CREDENTIALS = /credential|authenticat|unauthori[sz]ed|access token/i;
const MAX_WORDS = 500;

/** Before an answer had begun, or of a request as a whole. */
function toError(thrown: unknown): Error {
  if (thrown instanceof ModelFailure || thrown instanceof Refusal || thrown instanceof Unreachable) return thrown;
  const { name, cause } = asError(thrown);
  const refusal = readRefusal(thrown);
  if (refusal) return refusal;
  const words = wordsIn(thrown);
  if (MISSING.includes(name)) return new ModelFailure('missing-key', words, { cause: thrown });
  if (name === 'AI_NoSuchModelError') return new ModelFailure('not-found', words, { cause: thrown });
  // Refused before it was sent, as its server would: a file may be the cause.
  if (name === 'AI_UnsupportedFunctionalityError') return new Refusal({ words, status: 400, codes: [] });
  if (UNREADABLE.includes(name)) return unreadable(thrown, words);
  if (name === 'AI_APICallError') return new Unreachable(cause ?? thrown);
  if (words === 'fetch failed' || NETWORK.test(errorCode(thrown) ?? errorCode(cause) ?? '')) return new Unreachable(thrown);
  if (name === 'TimeoutError' || name === 'AbortError') return new ModelFailure('timeout', words, { cause: thrown });
  if (CREDENTIALS.test(words)) return new ModelFailure('auth', words, { cause: thrown });
  return thrown instanceof Error ? thrown : new Error(words, { cause: thrown });
}

/** Once parts have come, a fault of any other kind is one of the answer: packages trip over what they do not know. */
function toErrorInStream(thrown: unknown): Error {
  if (isRecord(thrown) && !(thrown instanceof Error) && asError(thrown).name === '') return toRefusal(thrown);
  if (typeof thrown === 'string') return toRefusal(thrown);
  const error = toError(thrown);
  if (error instanceof ModelFailure || error instanceof Refusal) return error;
  return brokenStream(wordsIn(thrown) || 'the stream broke', thrown);
}

/** In one line, as failures are. */
function wordsIn(thrown: unknown): string {
  return errorMessage(thrown).replace(/\s+/g, ' ').trim().slice(0, MAX_WORDS);
}

/** What its package cannot read may still be a no. */
function unreadable(thrown: unknown, words: string): Error {
  const { value } = asObject(thrown);
  return isRecord(value) && isRecord(value['error']) ? toRefusal(value) : brokenStream(words.slice(0, 200), thrown);
}

function asError(value: unknown): { readonly name: string; readonly cause?: unknown } {
  const { name, cause } = (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>;
  return { name: asText(name), cause };
}

/** An `APICallError`, and any other that has a status: the server's words are in its body, where one was read. */
function readRefusal(thrown: unknown): Refusal | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined;
  const { statusCode, status = statusCode, responseBody, responseHeaders, data } = thrown as Readonly<Record<string, unknown>>;
  if (typeof status !== 'number' || status < 400 || status > 599) return undefined;
  const body = asText(responseBody).trim() === '' ? (data ?? wordsIn(thrown)) : responseBody;
  const refusal = toRefusal(body, { status, headers: toHeaders(responseHeaders), now: Date.now() });
  return refusal.refused.words === '' ? new Refusal({ ...refusal.refused, words: wordsIn(thrown) }) : refusal;
}

function headersOfRefusal(thrown: unknown): Headers {
  return toHeaders(
    (typeof thrown === 'object' && thrown !== null ? (thrown as { readonly responseHeaders?: unknown }) : {}).responseHeaders,
  );
}

function toHeaders(given: unknown): Headers {
  try {
    return new Headers(Object.entries(asObject(given)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
  } catch {
    return new Headers();
  }
}

/**
 * A key that is written in the config itself, which the server may repeat: most packages make the headers of a request by a function. Those
 * of the environment are known without it.
 */
function readSecrets(model: FoundModel | undefined): string[] {
  try {
    const { headers } = (model?.config ?? {}) as { readonly headers?: unknown };
    // One that fetches a token is not called: it would fetch another.
    if (typeof headers === 'function' && headers.constructor.name === 'AsyncFunction') return [];
    const made = asObject(typeof headers === 'function' ? (headers as () => unknown)() : headers);
    const secret = Object.entries(made).filter(([name]) => /auth|key|token|secret/i.test(name));
    return secret.flatMap(([, value]) => asText(value).replace(/^(Bearer|Basic) /i, '')).filter((value) => value.length >= 8);
  } catch {
    return [];
  }
}

const NO_SCHEMA = /response_?format|response_?(mime_?type|schema)|json_(schema|object|mode)|json mode|output_?config|structured output/i;
const NO_CACHE = /prompt caching|cache_?(point|control)/i;
const NO_REASONING = /\b(reasoning|thinking|signature)\b|reasoning_|thought_?signature|encrypted_content|'(rs|msg|fc)_/i;

/** Of an answer, in the words of Bedrock, Vertex, Anthropic and OpenAI. */
const TOKEN_LIMIT = /model limit of (\d+)|to (\d+) \(exclusive\)|> (\d+), which is the maximum|at most (\d+) (?:completion|output) tokens/i;

/** In which other form the request would be taken; each change is made once. */
function learnForm(form: Form, { refused }: Refusal, { answerSchema }: ModelRequest): Form | undefined {
  const { status, words } = refused;
  const { closesTools, system } = form;
  const learnt = learnDialect({ ...OPENAI, closesTools, system }, refused);
  if (learnt && (learnt.closesTools !== closesTools || learnt.system !== system)) {
    return { ...form, closesTools: learnt.closesTools, system: learnt.system };
  }
  if (status !== 400 && status !== 403 && status !== 422) return undefined;
  const most = Number(TOKEN_LIMIT.exec(words)?.slice(1).find(Boolean)) - 1;
  if (most > 0 && most < form.mostTokens) return { ...form, mostTokens: most };
  if (form.takesSchema && answerSchema && NO_SCHEMA.test(words)) return { ...form, takesSchema: false };
  if (form.marksCache && NO_CACHE.test(words)) return { ...form, marksCache: false };
  if (form.sendsReasoning && status !== 403 && NO_REASONING.test(words)) return { ...form, sendsReasoning: false };
  return undefined;
}
