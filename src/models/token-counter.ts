/**
 * How many tokens a text is to a model: counted by its tokenizer where that is public (OpenAI's models), estimated for every other, by what
 * its conversation has learnt of it. A guard either way: what the provider reports of a prompt decides.
 */
import { missingPackage, TOKENIZER_PACKAGE } from '../platform/optional-package.js';
import { estimateTokens, measureTokens } from '../records/token-estimate.js';

export interface TokenCounter {
  /** Name of the tokenizer; 'estimate' where there is none. */
  readonly by: Tokenizer | 'estimate';
  count(text: string): number;
}

type Tokenizer = 'o200k_base' | 'cl100k_base';

const ESTIMATE: TokenCounter = { by: 'estimate', count: estimateTokens };

/**
 * The library takes time by the square of what it finds no border in (50,000 emoji: 48 s). Cut so short, it never does; a cut makes
 * at most one token more (1 % in prose and code).
 */
const PIECE = 256;

const counters = new Map<Tokenizer, Promise<TokenCounter>>();

/** `model`: provider/model. `ratio`: tokens of an estimated token, as a conversation has learnt it. */
export function tokenCounterFor(model: string, ratio?: number): Promise<TokenCounter> {
  return tokenCounterBy(findTokenizer(model), ratio);
}

/** A tokenizer is loaded (0.15 s, 70 MB) when it is wanted first; by one that is not here, in this version or at all, it is an estimate. */
export async function tokenCounterBy(tokenizer: string | undefined, ratio = 1): Promise<TokenCounter> {
  const counter = await loadedCounter(tokenizer);
  if (counter !== ESTIMATE || ratio === 1) return counter;
  return { by: 'estimate', count: (text) => Math.ceil(measureTokens(text) * ratio) };
}

function loadedCounter(tokenizer: string | undefined): Promise<TokenCounter> {
  if (!isKnown(tokenizer)) return Promise.resolve(ESTIMATE);
  const counter = counters.get(tokenizer) ?? load(tokenizer);
  counters.set(tokenizer, counter);
  return counter;
}

function isKnown(tokenizer: string | undefined): tokenizer is Tokenizer {
  return tokenizer === 'o200k_base' || tokenizer === 'cl100k_base';
}

/** By the models' published names; a server that only speaks OpenAI's protocol has models of other names. */
export function findTokenizer(model: string): Tokenizer | undefined {
  const [, name] = /^openai(?:-responses)?\/(?:ft:)?(.+)$/.exec(model) ?? [];
  if (name === undefined) return undefined;
  if (/^(gpt-4o|chatgpt-4o|gpt-4\.1|gpt-4\.5|gpt-[5-9]|o[1-9])(\b|-|$)/.test(name)) return 'o200k_base';
  return /^gpt-(4|3\.5-turbo)(-|$)/.test(name) ? 'cl100k_base' : undefined;
}

async function load(by: Tokenizer): Promise<TokenCounter> {
  const loaded = await (
    by === 'o200k_base' ? import('gpt-tokenizer/encoding/o200k_base') : import('gpt-tokenizer/encoding/cl100k_base')
  ).catch((error: unknown) => {
    if (missingPackage(error, [TOKENIZER_PACKAGE])) return undefined;
    throw error;
  });
  if (loaded === undefined) return ESTIMATE;
  const { countTokens } = loaded;
  // What looks like a special token is plain text.
  const plain = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };
  const count = (text: string): number => splitPieces(text).reduce((sum, piece) => sum + countTokens(piece, plain), 0);
  return { by, count: rememberLong(count) };
}

/** Characters of a text whose count is remembered: every turn asks again for the system prompt and the tools, which take a millisecond. */
const [LONG, TOO_LONG] = [1_000, 100_000];
const REMEMBERED = 32;

function rememberLong(count: (text: string) => number): (text: string) => number {
  const counted = new Map<string, number>();
  return (text) => {
    if (text.length < LONG || text.length > TOO_LONG) return count(text);
    const tokens = counted.get(text) ?? count(text);
    // A Map keeps the order of insertion: the first is the longest unused.
    counted.delete(text);
    counted.set(text, tokens);
    const [oldest] = counted.keys();
    if (counted.size > REMEMBERED && oldest !== undefined) counted.delete(oldest);
    return tokens;
  };
}

/** Where it can, between words; never within a character. */
function splitPieces(text: string): readonly string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    const end = endOfPiece(text, at);
    pieces.push(text.slice(at, end));
    at = end;
  }
  return pieces;
}

function endOfPiece(text: string, from: number): number {
  const most = from + PIECE;
  if (most >= text.length) return text.length;
  // A word's space belongs to it.
  const border = text.lastIndexOf(' ', most);
  if (border > from + PIECE / 2) return border;
  return isLowSurrogate(text, most) ? most - 1 : most;
}

function isLowSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff;
}
