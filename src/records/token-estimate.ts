/**
 * How many tokens a text is, by its scripts, and how far a model's count is from that. A guard, never the driver: what the provider
 * reports of a prompt decides.
 *
 * Latin text is four characters a token (seed 002, gap 6), and so is code. The other numbers lie between those of the vocabularies
 * `cl100k_base` and `o200k_base`, measured on the first article of the Universal Declaration of Human Rights. What is left of the difference
 * a conversation learns from its first prompts (`calibrate`).
 */
import { utf8Length } from './text.js';
import { isBodyRef, sourcesIn, type Body, type Media, type MediaKind } from './message.js';

/**
 * What each counts, whatever its size. A picture: about what the largest that providers do not scale down takes (1,568 pixels a side);
 * sound and video: about a minute of it; a document: about ten pages.
 */
export const MEDIA_TOKENS: Readonly<Record<MediaKind, number>> = { images: 1_600, audio: 2_000, video: 16_000, documents: 20_000 };

const LATIN = 1 / 4;
/** Tokens of a UTF-16 unit, from each unit on; the last one is half of a character, such as of an emoji. */
const SCRIPTS: readonly (readonly [from: number, tokens: number])[] = [
  [0, LATIN],
  // Greek, Cyrillic, Armenian, Hebrew and Arabic
  [0x0370, 1 / 2],
  [0x0400, 0.35],
  [0x0530, 1 / 2],
  // Scripts of India, Thai and Lao, Tibetan, Burmese, Georgian
  [0x0700, 0.6],
  // Hangul letters, Ethiopic; Cherokee, Khmer and rarer ones
  [0x1100, 1],
  [0x1200, 2],
  [0x13a0, 1],
  // Latin and Greek with marks; punctuation
  [0x1e00, 1 / 3],
  [0x2000, 1 / 2],
  // Symbols, kana, Chinese characters
  [0x2190, 1],
  [0xac00, 0.8],
  [0xd800, 1],
];
const UNITS = tokensOfUnits();

/** Base64, hexadecimal and the like: long, without a blank, and with many digits. */
const ENCODED = /[\w+/=-]{64,}/g;
const ENCODED_LENGTH = 64;
/** By UTF-16 unit: 1 where it may stand in such a text. */
const IN_ENCODED = Uint8Array.from({ length: 128 }, (_, unit) => (/[\w+/=-]/.test(String.fromCharCode(unit)) ? 1 : 0));
const ENCODED_TOKENS = 0.65;
const DIGITS_OF_ENCODED = 0.05;

export function estimateTokens(text: string): number {
  return Math.ceil(measureTokens(text));
}

/** The same before it is rounded, to be added up. */
export function measureTokens(text: string): number {
  let tokens = 0;
  let latin = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x0370) latin++;
    else tokens += UNITS[unit >> 4] ?? 1;
  }
  // Counted apart, so that Latin text is exactly `ceil(length / 4)`.
  const more = latin >= ENCODED_LENGTH && mayBeEncoded(text) ? encodedCharacters(text) * (ENCODED_TOKENS - LATIN) : 0;
  return latin / 4 + tokens + more;
}

/** Of a body that may be in the store: then its size is known, and its beginning stands for the rest. */
export function measureBodyTokens(body: Body, count: (text: string) => number = measureTokens): number {
  if (!isBodyRef(body)) return count(body);
  const { bytes, preview } = body;
  const size = utf8Length(preview);
  return size === 0 ? bytes / 4 : (count(preview) * Math.max(bytes, size)) / size;
}

export function estimateMediaTokens(media: Media): number {
  return sourcesIn(media).reduce((sum, { kind }) => sum + MEDIA_TOKENS[kind], 0);
}

/** Whether a look at every 64th place has found as long a run: hardly any text has one, and a search by the pattern takes thirty times as long. */
function mayBeEncoded(text: string): boolean {
  const isIn = (at: number): boolean => IN_ENCODED[text.charCodeAt(at)] === 1;
  for (let at = ENCODED_LENGTH - 1; at < text.length; at += ENCODED_LENGTH) {
    if (!isIn(at)) continue;
    let from = at;
    while (isIn(from - 1)) from--;
    while (isIn(at + 1)) at++;
    if (at + 1 - from >= ENCODED_LENGTH) return true;
  }
  return false;
}

function encodedCharacters(text: string): number {
  let characters = 0;
  for (const [run] of text.matchAll(ENCODED)) {
    let digits = 0;
    for (let at = 0; at < run.length; at++) if (run.charCodeAt(at) >= 0x30 && run.charCodeAt(at) <= 0x39) digits++;
    // A row of the same figures is a short text to a model.
    if (digits >= run.length * DIGITS_OF_ENCODED && digits < run.length) characters += run.length;
  }
  return characters;
}

/** One number for sixteen units each: no script begins between them. */
function tokensOfUnits(): Float64Array {
  const tokens = new Float64Array(0x1000);
  for (const [from, each] of SCRIPTS) tokens.fill(each, from >> 4);
  // Beyond the halves of characters: Chinese characters once more, and wide Latin ones.
  return tokens.fill(1, 0xe000 >> 4);
}

/** A prompt as it was sent, by estimate. `fixed`: what no message changes, such as the system prompt, tools, pictures and files. */
export interface EstimatedPrompt {
  readonly fixed: number;
  readonly messages: number;
  /** True: pictures or files are among it, whose size is hardly known. */
  readonly hasMedia?: true;
}

/** What a conversation has learnt of its model's count. */
export interface TokenCalibration {
  readonly model: string;
  /** Tokens of an estimated token, of messages. */
  readonly ratio: number;
  /** The prompt from which the next one is measured. */
  readonly fixed: number;
  readonly messages: number;
  readonly reported: number;
}

/** Estimated tokens by which a prompt has grown before the difference says something. */
const MIN_GROWTH = 150;
const [LEAST, MOST] = [0.25, 6];

/**
 * Reported by estimated, of the last prompts: of what was added between two of them if that is enough to tell, so that a long system prompt
 * in English does not hide what the messages are; otherwise of the first as a whole. Never so that the whole would not be as reported:
 * a few short messages say little of a thousand.
 */
export function calibrate(
  known: TokenCalibration | undefined,
  { model, prompt, reported }: { readonly model: string; readonly prompt: EstimatedPrompt; readonly reported: number },
): TokenCalibration {
  const { fixed, messages, hasMedia } = prompt;
  const seen = { model, fixed, messages, reported };
  if (known?.model !== model) return { ...seen, ratio: hasMedia ? 1 : bounded(reported / Math.max(1, fixed + messages)) };
  const growth = messages - known.messages;
  const agreed = (ratio: number): number => {
    const [most, least] = [LEAST, MOST].map((ofFixed) => (reported - ofFixed * fixed) / Math.max(1, messages)) as [number, number];
    return bounded(Math.min(most, Math.max(least, ratio)));
  };
  if (known.fixed !== fixed || growth < 0) return { ...seen, ratio: known.ratio };
  if (growth < MIN_GROWTH) return known;
  return { ...seen, ratio: agreed((reported - known.reported) / growth) };
}

/** Tokens of an estimated token, of what no message changes: what the messages leave of the report. */
export function fixedRatio({ ratio, fixed, messages, reported }: TokenCalibration): number {
  return bounded((reported - ratio * messages) / Math.max(1, fixed));
}

function bounded(ratio: number): number {
  return Math.min(MOST, Math.max(LEAST, ratio));
}
