/**
 * What is known of providers and models: what they need, how much they take and what they cost. Names are `provider/model`. A public table
 * (data/models.txt) has most of it; what stands here is what that table lacks or has otherwise, as published in November 2026.
 */
import { ModelFailure, type Model, type ModelUsage, type TextToolFormat } from './model.js';
import { uncachedTokens, type Usage } from '../records/message.js';
import type { PerKind } from '../records/rate-limit.js';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Provider {
  /** An optional peer that its client is made of. */
  readonly package?: string;
  /** The setting that holds its key; absent: it needs none. */
  readonly key?: string;
  /** Its name in OpenTelemetry's conventions, where that is another. */
  readonly inTraces?: string;
}

const BUILTIN_PROVIDERS = {
  anthropic: { key: 'ANTHROPIC_API_KEY' },
  openai: { package: 'openai', key: 'OPENAI_API_KEY' },
  'openai-responses': { package: 'openai', key: 'OPENAI_API_KEY', inTraces: 'openai' },
  gemini: { package: '@google/genai', key: 'GEMINI_API_KEY', inTraces: 'gcp.gemini' },
  ollama: { package: 'ollama' },
  /** The scripted stand-in (offline.ts), which is no client of a provider. */
  offline: {},
} satisfies Readonly<Record<string, Provider>>;

export type BuiltinProvider = Exclude<keyof typeof BUILTIN_PROVIDERS, 'offline'>;

/** The built-in ones, by the name before the slash: a new one is registered here, and its client in providers.ts. */
export const PROVIDERS: ReadonlyMap<string, Provider> = new Map<string, Provider>(Object.entries(BUILTIN_PROVIDERS));

/** US dollars per million tokens. */
export interface Price {
  readonly input: number;
  /** Read from a cache. */
  readonly cached: number;
  /** Written to a cache. */
  readonly cacheWrite: number;
  readonly output: number;
}

export interface ModelLimits {
  readonly contextTokens: number;
  readonly maxOutputTokens: number;
  /** null where it is not known: the cost is then unknown too, never zero. */
  readonly price: Price | null;
  /** What every token of a request costs whose prompt is over so many tokens. */
  readonly longPrompt?: { readonly overTokens: number; readonly price: Price };
  /** Share of the prompt's budget from which older turns become memory, where agent.json does not say. */
  readonly compactionRatio: number;
  /** Tokens reserved for what estimates miss, where agent.json does not say. */
  readonly safetyMargin: number;
  /** Whether it is known to hold an answer to a JSON schema. */
  readonly answerSchema: boolean;
  /** Whether it is known to read PDFs. */
  readonly documents: boolean;
  /** How calls are written in the text of a model without native tool calls. Absent: it has them. */
  readonly textTools?: TextToolFormat;
  /** What a user lets one key ask of it. */
  readonly rateLimits?: PerKind;
  /** `contextTokens` is what a user has written or the public table has, of a model that may be small. */
  readonly isDeclared?: true;
}

/** What a user declares about a model: of a custom provider, or of a model behind another address. */
export interface DeclaredModel {
  /** US dollars per million tokens. `cached` and `cacheWrite` cost as `input` does where they are absent. */
  readonly prices?: { readonly input: number; readonly output: number; readonly cached?: number; readonly cacheWrite?: number };
  /** Tokens of prompt and answer together. */
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  /** Whether it reads PDFs. */
  readonly documents?: boolean;
  /** False: it has no tools of its kind, so its calls are written in its text (`textTools` of agent.json). */
  readonly tools?: boolean;
  /** The most that one key may ask of it, together in all workers: what a provider's answers say of its limits is learnt without this. */
  readonly rateLimits?: DeclaredLimits;
  /** How its server takes requests, where that is known beforehand: models named `openai/…`, which OPENAI_BASE_URL points elsewhere. */
  readonly compat?: Compat;
}

/** Limits of one key and one model, in all workers together. */
export interface DeclaredLimits {
  readonly requestsPerMinute?: number;
  readonly inputTokensPerMinute?: number;
  readonly outputTokensPerMinute?: number;
  /** Of prompts and answers together. */
  readonly tokensPerMinute?: number;
  /** Answers that may come at the same time. */
  readonly streams?: number;
}

/** What servers that speak nearly as OpenAI does take and refuse. What is absent is learnt from the first refusal. */
export interface Compat {
  readonly limitField?: 'max_completion_tokens' | 'max_tokens';
  /** Whether requests want usage; some refuse the field, and count by themselves or not at all. */
  readonly usage?: boolean;
  /** Whether thoughts go back in `reasoning_content`: DeepSeek and Kimi demand it in a turn with tools, others refuse it. */
  readonly sendsReasoning?: boolean;
  /** Whether words of the assistant stand between a tool's result and the user: templates of Mistral and others know no such order. */
  readonly closesTools?: boolean;
  /** Where instructions stand; some templates know no system. */
  readonly system?: 'system' | 'user';
  /** Whether a request without tools describes one where there are calls in its history: Bedrock and Anthropic behind gateways want it. */
  readonly keepsTools?: boolean;
  /** Whether answers come in pieces; some models only give them whole. */
  readonly streams?: boolean;
  /** What stands for text in a message that has calls alone; some want a string. */
  readonly noText?: null | '';
  /** What the model says that an answer may have, where that is less than an agent wishes for. */
  readonly mostTokens?: number;
}

export interface Models {
  /** By `provider/model`. Throws ModelFailure. */
  (name: string): Model;
  /** What is known of it, declared or by the registry; of any name. */
  readonly limits: (name: string) => ModelLimits;
}

/** By `provider/model`, or `provider/*` for all others of a provider. */
export type DeclaredModels = Readonly<Record<string, DeclaredModel>>;

/** One model for every name. What a name's model takes and costs stays as it is known. */
export function modelsAnsweredBy(model: Model, declared?: DeclaredModels): Models {
  return Object.assign(() => model, { limits: createModelLimits(declared) });
}

/** What estimates miss grows with what is estimated. */
export function defaultSafetyMargin(contextTokens: number): number {
  return Math.max(2_000, Math.floor(contextTokens / 100));
}

/** Small enough for any model of today. */
const UNKNOWN: ModelLimits = { ...limits(200_000, 32_000, null), documents: false };

/** A local computer sends no bill. How much a model takes there, its server knows. */
const LOCAL: ModelLimits = { ...UNKNOWN, price: { input: 0, cached: 0, cacheWrite: 0, output: 0 }, answerSchema: true };

/** The usual ones of Ollama's library that it refuses tools for, by the name before the tag. */
const LOCAL_WITHOUT_TOOLS: ReadonlySet<string> = new Set([
  ...['gemma', 'gemma2', 'gemma3', 'gemma3n', 'codegemma', 'llama2', 'llama3', 'codellama', 'tinyllama', 'phi', 'phi3', 'phi3.5', 'phi4'],
  ...['llava', 'bakllava', 'moondream', 'vicuna', 'orca-mini', 'zephyr', 'openchat', 'solar', 'yi', 'falcon3', 'olmo2', 'starcoder2'],
]);

const MODELS: ReadonlyMap<string, ModelLimits> = new Map(
  Object.entries({
    'anthropic/claude-fable-5-1': large(price(10, 0.25, 50)),
    'anthropic/claude-fable-5': large(price(10, 1, 50)),
    'anthropic/claude-mythos-5-1': large(price(10, 0.25, 50)),
    'anthropic/claude-mythos-5': large(price(10, 1, 50)),
    'anthropic/claude-opus-5-5': large(price(4, 0.2, 20)),
    'anthropic/claude-opus-5': large(price(5, 0.5, 25)),
    'anthropic/claude-opus-4-8': withSchema(large(price(5, 0.5, 25))),
    'anthropic/claude-opus-4-7': withSchema(large(price(5, 0.5, 25))),
    'anthropic/claude-opus-4-6': withSchema(large(price(5, 0.5, 25))),
    'anthropic/claude-opus-4-5': withSchema(small(price(5, 0.5, 25))),
    'anthropic/claude-sonnet-5-5': large(price(2, 0.1, 10)),
    'anthropic/claude-sonnet-5': large(price(2, 0.2, 10)),
    'anthropic/claude-sonnet-4-6': withSchema({ ...large(price(3, 0.3, 15)), maxOutputTokens: 64_000 }),
    'anthropic/claude-sonnet-4-5': withSchema(small(price(3, 0.3, 15))),
    'anthropic/claude-haiku-5-5': {
      ...large(price(0.1, 0.01, 0.5)),
      longPrompt: { overTokens: 100_000, price: price(0.5, 0.05, 2.5) },
    },
    'anthropic/claude-haiku-4-5': withSchema(small(price(1, 0.1, 5))),
    // Of these the table has the room for a prompt alone.
    'openai/gpt-6.1-sol': million(price(2, 0.1, 10)),
    'openai/gpt-6-sol': million(price(2, 0.2, 10)),
    'openai/gpt-6-luna': million(price(0.1, 0.01, 0.5)),
    'openai/gpt-5.4-mini': gpt5(price(0.75, 0.075, 4.5)),
    'openai/gpt-5.4-nano': gpt5(price(0.2, 0.02, 1.25)),
    'openai/gpt-5.3-codex': gpt5(price(1.75, 0.175, 14)),
    'openai/gpt-5.2': gpt5(price(1.75, 0.175, 14)),
    'openai/gpt-5.1': gpt5(price(1.25, 0.125, 10)),
    'openai/gpt-5': gpt5(price(1.25, 0.125, 10)),
    'openai/gpt-5-mini': gpt5(price(0.25, 0.025, 2)),
    'openai/gpt-5-nano': gpt5(price(0.05, 0.005, 0.4)),
    // Doubles on 2026-12-01. The table has its window as what it may answer.
    'gemini/gemini-4-argon': gemini(price(2, 0.1, 10)),
  }),
);

/** Spellings of providers, for the names that people give them in `providers`: letters alone. Both of OpenAI's APIs have one price. */
const SPELLINGS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    openai: 'openairesponses',
    gemini: 'google googleai googlegenerativeai googlegemini',
    vertex: 'vertexai googlevertex googlevertexai vertexanthropic',
    bedrock: 'amazonbedrock aws awsbedrock bedrockruntime',
    azure: 'azureopenai azureai azurefoundry',
    mistral: 'mistralai',
    xai: 'grok',
    togetherai: 'together',
    fireworks: 'fireworksai',
    moonshotai: 'moonshot kimi',
    alibaba: 'dashscope qwen',
    zai: 'zhipu zhipuai bigmodel',
    gateway: 'vercel vercelaigateway aigateway',
  }).flatMap(([provider, others]) => others.split(' ').map((other) => [other, provider] as const)),
);

let loaded: ReadonlyMap<string, ModelLimits> | undefined;

/** Read once, by the first name that is not among ours: most commands ask for none. */
function publicTable(): ReadonlyMap<string, ModelLimits> {
  loaded ??= readTable(readFileSync(join(__dirname, '..', '..', 'data', 'models.txt'), 'utf8'));
  return loaded;
}

/** Under a name without a date, of providers that are built in: those whose size and price are known here. */
export function knownModels(): readonly string[] {
  const isOffered = (name: string): boolean => PROVIDERS.has(splitModel(name).provider) && !MODELS.has(name) && !/-\d{4}/.test(name);
  return [...MODELS.keys(), ...[...publicTable().keys()].filter(isOffered)];
}

/** `name` may carry a date (`…-20251001`, `…-2026-04-23`, `…@20251001`). An unknown model gets cautious limits and no price. */
export function modelLimits(name: string): ModelLimits {
  if (name.startsWith('ollama/')) return localLimits(name);
  const slash = name.indexOf('/');
  const letters = name
    .slice(0, Math.max(0, slash))
    .toLowerCase()
    .replace(/[^a-z]/g, '');
  const known = `${SPELLINGS.get(letters) ?? letters}${name.slice(slash)}`;
  const undated = known.replace(/-(\d{8}|\d{4}-\d{2}-\d{2})$|@[^@]*$/, '');
  return (
    MODELS.get(known) ??
    MODELS.get(undated) ??
    publicTable().get(known) ??
    publicTable().get(undated) ??
    (READERS.test(name) ? { ...UNKNOWN, documents: true } : UNKNOWN)
  );
}

/** Its head says how a row is written. */
function readTable(text: string): ReadonlyMap<string, ModelLimits> {
  const found = new Map<string, ModelLimits>();
  let provider = '';
  for (const line of text.trim().split('\n')) {
    if (line.startsWith('#')) continue;
    const [name = '', window, answer, flags = '', ...numbers] = line.split(' ');
    if (name.startsWith('[')) provider = name.slice(1, -1);
    else found.set(`${provider}/${name}`, toLimits(Number(window), Number(answer), flags, numbers.map(Number)));
  }
  return found;
}

/** NaN: the table does not say. */
function toLimits(
  window: number,
  answer: number,
  flags: string,
  [input, cached, cacheWrite, output, over, ...long]: number[],
): ModelLimits {
  const contextTokens = window || UNKNOWN.contextTokens;
  const known = limits(contextTokens, answer || Math.min(UNKNOWN.maxOutputTokens, Math.floor(contextTokens / 4)), null);
  const price = toPrice(input, cached, cacheWrite, output);
  const longPrice = toPrice(...long);
  return {
    ...known,
    price: price ?? null,
    ...(over !== undefined && longPrice && { longPrompt: { overTokens: over, price: longPrice } }),
    ...(window < UNKNOWN.contextTokens && smallWindow(window)),
    answerSchema: flags.includes('s'),
    documents: flags.includes('d'),
  };
}

function toPrice(input?: number, cached?: number, cacheWrite?: number, output?: number): Price | undefined {
  if (input === undefined || cached === undefined || cacheWrite === undefined || output === undefined) return undefined;
  return { input, cached, cacheWrite, output };
}

/** All models of today's of these providers read PDFs; behind OpenAI's API there may be any. */
const READERS = /^(anthropic|gemini)\//;

/** `modelLimits`, with what a user has declared before it. */
export function createModelLimits(declared: DeclaredModels = {}): (name: string) => ModelLimits {
  return (name) => {
    const found = declaredFor(declared, name);
    return found ? declaredLimits(modelLimits(name), found) : modelLimits(name);
  };
}

/** null where the model's price is not known. */
export function costUsd({ price: usual, longPrompt }: ModelLimits, usage: ModelUsage): number | null {
  const rate = longPrompt && usage.inputTokens > longPrompt.overTokens ? longPrompt.price : usual;
  if (!rate) return null;
  const written = usage.cacheWriteTokens ?? 0;
  const forHour = Math.min(written, usage.hourWriteTokens ?? 0);
  const writing = (written + forHour * (HOUR_SHARE - 1)) * rate.cacheWrite;
  const read = uncachedTokens(usage) * rate.input + usage.cachedTokens * rate.cached;
  const millionths = read + writing + usage.outputTokens * rate.output;
  return millionths / 1_000_000;
}

/** A write for an hour costs twice as much as plain input, one for five minutes a quarter more. */
const HOUR_SHARE = 2 / 1.25;

/** Usage as it is kept: with what it has cost. */
export function withCost(limits: ModelLimits, { hourWriteTokens, ...usage }: ModelUsage): Usage {
  return { ...usage, costUsd: costUsd(limits, { ...usage, ...(hourWriteTokens !== undefined && { hourWriteTokens }) }) };
}

/** Splits at the first slash: a model's name may contain more of them. */
export function splitModel(name: string): { readonly provider: string; readonly model: string } {
  const [, provider, model] = /^([^/\s]+)\/(\S+)$/.exec(name) ?? [];
  if (provider === undefined || model === undefined) {
    throw new ModelFailure(
      'not-found',
      `cannot use the model ${JSON.stringify(name)}: it takes provider and model, like anthropic/claude-sonnet-5-5. ` +
        'Correct PERDURA_MODEL, or "model" in agent.json or at the start of the conversation.',
    );
  }
  return { provider, model };
}

/** A write for five minutes costs a quarter more than plain input with those who count writes at all. */
function price(input: number, cached: number, output: number): Price {
  return { input, cached, cacheWrite: input * 1.25, output };
}

function limits(contextTokens: number, maxOutputTokens: number, price: Price | null): ModelLimits {
  const safetyMargin = defaultSafetyMargin(contextTokens);
  return { contextTokens, maxOutputTokens, price, compactionRatio: 0.8, safetyMargin, answerSchema: false, documents: true };
}

function localLimits(name: string): ModelLimits {
  const [, base = ''] = /^ollama\/([^:]*)/.exec(name) ?? [];
  return LOCAL_WITHOUT_TOOLS.has(base) ? { ...LOCAL, textTools: 'xml' } : LOCAL;
}

function declaredLimits(
  known: ModelLimits,
  { prices, contextWindow, maxOutputTokens, documents, tools, rateLimits }: DeclaredModel,
): ModelLimits {
  const { longPrompt, ...always } = known;
  return {
    ...always,
    ...(prices ? { price: { cached: prices.input, cacheWrite: prices.input, ...prices } } : longPrompt && { longPrompt }),
    ...(contextWindow !== undefined && smallWindow(contextWindow)),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(documents !== undefined && { documents }),
    ...(tools === false && { textTools: 'xml' as const }),
    ...(rateLimits && { rateLimits: toPerKind(rateLimits) }),
  };
}

function toPerKind(limits: DeclaredLimits): PerKind {
  const { requestsPerMinute, inputTokensPerMinute, outputTokensPerMinute, tokensPerMinute, streams } = limits;
  const all = { requests: requestsPerMinute, input: inputTokensPerMinute, output: outputTokensPerMinute, tokens: tokensPerMinute, streams };
  return Object.fromEntries(Object.entries(all).filter(([, limit]) => limit !== undefined));
}

/** Of a model that may be small: its margin is a part of it, and an answer leaves room for a prompt. */
function smallWindow(contextTokens: number): Pick<ModelLimits, 'contextTokens' | 'safetyMargin' | 'isDeclared'> {
  return { contextTokens, safetyMargin: Math.min(defaultSafetyMargin(contextTokens), Math.floor(contextTokens / 16)), isDeclared: true };
}

/** What stands for a model by its name, or for all of its provider. */
export function declaredFor(declared: DeclaredModels, name: string): DeclaredModel | undefined {
  return findDeclared(declared, name) ?? findDeclared(declared, name.replace(/\/.*$/, '/*'));
}

function findDeclared(declared: DeclaredModels, name: string): DeclaredModel | undefined {
  return Object.hasOwn(declared, name) ? declared[name] : undefined;
}

function withSchema(known: ModelLimits): ModelLimits {
  return { ...known, answerSchema: true };
}

/** Of Anthropic's models those take a schema whose documents say so. */
function large(price: Price): ModelLimits {
  return limits(1_000_000, 128_000, price);
}

function small(price: Price): ModelLimits {
  return limits(200_000, 64_000, price);
}

/** A prompt over 272,000 tokens costs twice as much, and its answer half as much again. */
function million(usual: Price): ModelLimits {
  const longPrompt = { overTokens: 272_000, price: price(usual.input * 2, usual.cached * 2, usual.output * 1.5) };
  return { ...withSchema(limits(1_050_000, 128_000, usual)), longPrompt };
}

function gpt5(price: Price): ModelLimits {
  return withSchema(limits(400_000, 128_000, price));
}

function gemini(price: Price): ModelLimits {
  return withSchema(limits(1_048_576, 65_536, price));
}
