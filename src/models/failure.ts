/** From whatever a call threw to what went wrong, in our words. Pure; the failures of all providers are classified here and nowhere else. */
import { MissingPackage } from '../platform/optional-package.js';
import { ModelFailure, type ModelFailureKind, type ModelUsage } from './model.js';
import { Refusal, type Refused, Unreachable } from './refusal.js';
import { errorCode } from '../platform/errors.js';

export type Advice = Record<ModelFailureKind, string>;

/** What a provider says of itself to those who guard its calls. */
export interface Provider {
  /** The name before the slash. */
  readonly name: string;
  /** Never to be read in a message. */
  readonly secrets: readonly string[];
  /** What to do about a failure, where it is not the same with all. */
  readonly advice: Partial<Advice> & Pick<Advice, 'auth'>;
}

export interface FailureContext {
  readonly provider: Provider;
  /** The model's name at the provider. */
  readonly model: string;
  /** Whether an answer had begun to come. */
  readonly answered: boolean;
  /** What of it was counted before it broke. */
  readonly usage?: ModelUsage;
}

/**
 * Words for machines, of all providers: none of them means two things. They go before the status, which may stand for a
 * limit that passes and one that does not. Those that only say that something went wrong are left out.
 */
const KIND_OF_CODE: ReadonlyMap<string, ModelFailureKind> = new Map([
  // Anthropic
  ['contract_spend_limit_reached', 'billing'],
  ['enforced_spend_limit_reached', 'billing'],
  ['organization_on_hold', 'forbidden'],
  ['image_dimensions_too_large', 'too-large'],
  ['authentication_error', 'auth'],
  ['billing_error', 'billing'],
  ['permission_error', 'forbidden'],
  ['not_found_error', 'not-found'],
  ['request_too_large', 'too-large'],
  ['rate_limit_error', 'rate-limit'],
  ['overloaded_error', 'overloaded'],
  ['timeout_error', 'timeout'],
  // Another request was in its way: it may pass.
  ['conflict_error', 'server'],
  // OpenAI
  ['invalid_api_key', 'auth'],
  // LiteLLM without a database says so of any key but its first.
  ['no_db_connection', 'auth'],
  ['account_deactivated', 'auth'],
  ['insufficient_quota', 'billing'],
  ['billing_hard_limit_reached', 'billing'],
  ['billing_not_active', 'billing'],
  ['insufficient_balance_error', 'billing'],
  ['insufficient_balance', 'billing'],
  ['INSUFFICIENT_BALANCE', 'billing'],
  ['Arrearage', 'billing'],
  ['unsupported_country_region_territory', 'forbidden'],
  ['model_not_found', 'not-found'],
  ['context_length_exceeded', 'context-full'],
  // Servers that speak as OpenAI does: llama.cpp, Z.ai (its number for a prompt that is too long)
  ['exceed_context_size_error', 'context-full'],
  ['context_window_exceeded', 'context-full'],
  ['model_context_window_exceeded', 'context-full'],
  ['1261', 'context-full'],
  ['content_filter', 'invalid-request'],
  ['image_too_large', 'too-large'],
  ['image_file_too_large', 'too-large'],
  ['rate_limit_exceeded', 'rate-limit'],
  ['server_is_overloaded', 'overloaded'],
  ['slow_down', 'overloaded'],
  // Google
  ['API_KEY_INVALID', 'auth'],
  ['UNAUTHENTICATED', 'auth'],
  ['PERMISSION_DENIED', 'forbidden'],
  ['NOT_FOUND', 'not-found'],
  ['RESOURCE_EXHAUSTED', 'rate-limit'],
  ['UNAVAILABLE', 'overloaded'],
  ['ABORTED', 'server'],
  ['DEADLINE_EXCEEDED', 'timeout'],
  // Amazon
  ['ThrottlingException', 'rate-limit'],
  ['ServiceQuotaExceededException', 'rate-limit'],
  ['ServiceUnavailableException', 'overloaded'],
  ['ModelNotReadyException', 'overloaded'],
  ['ModelErrorException', 'server'],
  ['ModelStreamErrorException', 'server'],
  ['ModelTimeoutException', 'timeout'],
  ['ExpiredTokenException', 'auth'],
  ['InvalidSignatureException', 'auth'],
  ['UnrecognizedClientException', 'auth'],
  ['ResourceNotFoundException', 'not-found'],
]);

const KIND_OF_STATUS: ReadonlyMap<number, ModelFailureKind> = new Map([
  [401, 'auth'],
  [402, 'billing'],
  [403, 'forbidden'],
  [404, 'not-found'],
  [408, 'timeout'],
  [409, 'server'],
  [413, 'too-large'],
  [429, 'rate-limit'],
  [504, 'timeout'],
  [529, 'overloaded'],
]);

/**
 * A prompt that the model cannot take, in the words of Anthropic, OpenAI, Google, Bedrock, xAI, Groq, Mistral, Together, OpenRouter, GitHub,
 * Kimi, MiniMax, DashScope (Qwen), Z.ai, Ollama, llama.cpp, LM Studio, vLLM and LiteLLM, as public projects have collected them. The size of
 * an answer that was wished for is another matter.
 */
const CONTEXT_FULL = new RegExp(
  [
    'context[ _-]?(window|length|size)|maximum context|longer than the model|max_context_length',
    '(prompt|input|request)( is|:)? too (long|large for)|prompt 超长|输入长度|too large for model with',
    '(prompt|input) length\\b.{0,40}\\bexceeds?\\b',
    'maximum (prompt|model|allowed input) length|range of input length|prompt exceeds the length limit',
    'reduce (the length of the|your) (messages|prompt|input)|too many (input )?tokens|max input tokens',
    'exceeds? (the )?(maximum )?(context|number of (input )?tokens)|model token limit|prompt token count|token limit exceeded',
    'tokens in request more than max',
  ].join('|'),
  'i',
);

/** No money has any status, those of faults and limits that pass included. */
const NO_MONEY = /insufficient (account )?(balance|credits?|funds)|余额不足|欠费/i;

/** Where a refusal has no code for it: its words, which may change, are all there is. */
const KIND_OF_WORDS: readonly (readonly [RegExp, ModelFailureKind])[] = [
  // Before the context: "too many tokens per day" is none.
  [/\btokens? per (second|minute|hour|day|month)|wait before trying again|rate limit (exceeded|reached)/i, 'rate-limit'],
  [CONTEXT_FULL, 'context-full'],
  // Of the request's contents, or of what the server was started without: it would be refused again. llama.cpp says so with 500.
  [/content[ _-]?(filter|policy)|content management policy|ResponsibleAIPolicyViolation/i, 'invalid-request'],
  [
    /\b(image|audio|video|multimodal|file|vision)\b.{0,40}\bnot support|not support .{0,40}\b(images?|audio|video|multimodal|files?|vision|tools?)\b/i,
    'invalid-request',
  ],
  [
    /failed to (load|decode|process|read) (the |an? )?(image|audio|video|media|file)|requires --jinja|\bvalidation errors?\b|can only concatenate str/i,
    'invalid-request',
  ],
  [/(incorrect|invalid) api key|api key (is )?(not valid|invalid)/i, 'auth'],
  [
    /\b(invalid|unknown) model\b|not a valid model|model identifier is invalid|no such model|model not exist|\bmodel\b.{0,80} (does not exist|not found)/i,
    'not-found',
  ],
  [/credit balance|billing|usage limit|spend(ing)? limit/i, 'billing'],
  [/location is not supported/i, 'forbidden'],
  [/overloaded|server busy|high demand/i, 'overloaded'],
];

/** A limit per minute that one request passes alone: waiting would not help. */
const TOO_LARGE_FOR_THE_LIMIT = /request too large/i;

const ADVICE: Omit<Advice, 'auth'> = {
  billing: 'Check credit, billing and spend limits of the account that the key belongs to.',
  forbidden: 'The key may not do this: check its workspace and permissions.',
  'not-found': 'Check the name of the model (PERDURA_MODEL, or "model" in agent.json) and the base URL.',
  'invalid-request': 'The request itself was refused, and would be again: correct the settings, or report it as a bug.',
  'too-large': 'Make the request smaller: fewer or smaller images, a shorter conversation.',
  'context-full': 'The conversation is longer than the model can read: compact it, or start a new one with /new.',
  'rate-limit': 'Wait a little, or ask for higher limits.',
  overloaded: 'It is busy; it usually passes within minutes.',
  server: 'The fault is on the other side; it usually passes.',
  connection: 'Check the network and the base URL.',
  timeout: 'It may pass; try again.',
  'broken-stream': 'The answer did not arrive whole; try again.',
  'missing-key': 'Set the key of this provider.',
  'missing-package': 'Install it where the worker runs, and start that anew.',
};

export function keyAdvice(setting: string): Pick<Advice, 'auth' | 'missing-key'> {
  return { auth: `Check the key in ${setting}.`, 'missing-key': `Set ${setting}.` };
}

export function toModelFailure(error: unknown, { provider, model, answered, usage }: FailureContext): ModelFailure {
  const kind = classify(error, answered);
  const { status, retryAfterMs } = error instanceof Refusal ? error.refused : {};
  const what = scrub(describeCause(error), provider.secrets);
  return new ModelFailure(
    kind,
    `cannot get an answer from ${provider.name}/${model}: ${what}${/[.!?]$/.test(what) ? '' : '.'} ${findAdvice(provider, kind)}`,
    {
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(status !== undefined && { status }),
      ...(usage && usage.inputTokens + usage.outputTokens > 0 && { usage }),
      cause: scrubbedCause(error, provider.secrets),
    },
  );
}

export function missingKey(provider: Provider, model: string): ModelFailure {
  return new ModelFailure(
    'missing-key',
    `cannot ask ${provider.name}/${model}: there is no API key. ${findAdvice(provider, 'missing-key')}`,
  );
}

function findAdvice({ advice }: Provider, kind: ModelFailureKind): string {
  return advice[kind] ?? { ...ADVICE, auth: advice.auth }[kind];
}

function classify(error: unknown, answered: boolean): ModelFailureKind {
  if (error instanceof ModelFailure) return error.kind;
  if (error instanceof Refusal) return kindOfRefusal(error.refused);
  if (error instanceof MissingPackage) return 'missing-package';
  if (error instanceof Unreachable) return isTimeout(error) ? 'timeout' : 'connection';
  // An SDK that cannot read what came says so in an error of any kind; a bug in this product would be a TypeError.
  if (isBrokenBody(error) || (answered && !isMistake(error))) return 'broken-stream';
  return 'invalid-request';
}

function kindOfRefusal({ words, status, codes }: Refused): ModelFailureKind {
  const found =
    codes.map((code) => KIND_OF_CODE.get(code)).find((kind) => kind !== undefined) ??
    (NO_MONEY.test(words) ? 'billing' : undefined) ??
    KIND_OF_STATUS.get(status ?? 0) ??
    KIND_OF_WORDS.find(([pattern]) => pattern.test(words))?.[1];
  if (found) return found === 'rate-limit' && TOO_LARGE_FOR_THE_LIMIT.test(words) ? 'too-large' : found;
  const isTheirs = status === undefined || status >= 500;
  return isTheirs && !codes.includes('invalid_request_error') && !codes.includes('invalid_prompt') ? 'server' : 'invalid-request';
}

/** What fetch throws while a body is read: a reset, a body cut short, bad compression. */
function isBrokenBody(error: unknown): boolean {
  if (!isError(error)) return false;
  const code = errorCode(error) ?? errorCode(error.cause);
  return error.message === 'terminated' || (code !== undefined && /^(UND_ERR_|ECONN|EPIPE|Z_|HPE_)/.test(code));
}

function isTimeout(error: Error): boolean {
  return /timed? ?out/i.test(rootCause(error)) || /TIMEOUT|ETIMEDOUT/.test(errorCode(innermost(error)) ?? '');
}

function isMistake(error: unknown): boolean {
  return isError(error) && ['TypeError', 'RangeError', 'ReferenceError'].includes(error.name);
}

function describeCause(error: unknown): string {
  if (error instanceof Unreachable) return isTimeout(error) ? 'the connection timed out' : `the connection failed (${rootCause(error)})`;
  if (error instanceof Refusal) {
    const { status, words } = error.refused;
    return [status, words].filter((part) => part !== undefined && part !== '').join(' ');
  }
  return isError(error) ? error.message : String(error);
}

function rootCause(error: Error): string {
  const inner = innermost(error);
  return inner.message || (errorCode(inner) ?? inner.name);
}

/** fetch says `fetch failed`; why is in its cause, which may hold one error for each address tried. */
function innermost(error: Error, levels = 5): Error {
  const inner = error.cause ?? (error as { errors?: unknown[] }).errors?.[0];
  return isError(inner) && levels > 0 ? innermost(inner, levels - 1) : error;
}

/** Not by `instanceof`: fetch's errors may come from another realm than ours. */
function isError(value: unknown): value is Error {
  return typeof value === 'object' && value !== null && typeof (value as { message?: unknown }).message === 'string';
}

function scrubbedCause(error: unknown, secrets: readonly string[]): Error | undefined {
  if (!isError(error)) return undefined;
  const cause = new Error(scrub(error.message, secrets));
  cause.name = error.name;
  cause.stack = scrub(error.stack ?? '', secrets);
  return cause;
}

/**
 * Also what looks like any other key: APIs repeat a wrong one, half of it in stars. As a whole, with what escapes and base64 are made of: of
 * one that is cut the rest is not known any more.
 */
function scrub(text: string, secrets: readonly string[]): string {
  const known = secrets.reduce((rest, secret) => (secret === '' ? rest : rest.replaceAll(secret, '[key]')), text);
  return known.replace(/\bsk-[\w*+/=~%-]{4,}|\bAIza[\w*-]{8,}/g, '[key]');
}
