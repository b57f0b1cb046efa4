/** Looking for words in HISTORY. They are taken literally: no pattern is made of them, so no query takes long by its shape. */
import { type HistoryEntry, splitLines } from '../../records/memory/documents.js';
import type { ConversationKey } from '../../stores/store.js';

export interface HistoryQuery {
  /** All its words must be there, and what is in quotation marks literally; upper and lower case are the same. */
  readonly query: string;
  /** 10 without it; at most 50. */
  readonly limit?: number;
  /** Epoch seconds: entries from before it alone. */
  readonly before?: number;
  /** Epoch seconds: entries of that time and later alone. */
  readonly after?: number;
  readonly signal?: AbortSignal;
}

export interface HistoryMatch extends Omit<HistoryEntry, 'text'> {
  /** The text, or as much of it around the first match as is worth reading. */
  readonly excerpt: string;
}

export interface HistoryMatches {
  /** In the order of the entries: newest first. */
  readonly matches: readonly HistoryMatch[];
  /** There are others. */
  readonly more: boolean;
}

export const MAX_QUERY = 200;
export const MAX_MATCHES = 50;
const MAX_EXCERPT = 600;
/** Of an excerpt's characters those that may come before the match. */
const LEAD = 150;

export async function searchHistory(entries: AsyncIterable<HistoryEntry>, search: HistoryQuery): Promise<HistoryMatches> {
  const { limit = 10, before = Infinity, after = -Infinity, signal } = search;
  if (search.query.length > MAX_QUERY) throw new RangeError(`a query has at most ${MAX_QUERY} characters: take fewer words`);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_MATCHES) throw new RangeError(`limit is from 1 to ${MAX_MATCHES}`);
  const words = queryTerms(search.query);
  if (words.length === 0) throw new RangeError('the query has no words: name what to look for');

  const matches: HistoryMatch[] = [];
  for await (const { text, ...entry } of entries) {
    signal?.throwIfAborted();
    if (entry.ts >= before || entry.ts < after) continue;
    const found = firstMatch(text, words);
    if (found === undefined) continue;
    if (matches.length === limit) return { matches, more: true };
    matches.push({ ...entry, excerpt: excerptAt(text, found) });
  }
  return { matches, more: false };
}

/** `deploy "staging server"` is two; a mark that is not closed reaches to the end. */
export function queryTerms(query: string): string[] {
  const words = Array.from(query.matchAll(/"([^"]*)"?|[^\s"]+/g), ([word, phrase]) => folded((phrase ?? word).trim()));
  return [...new Set(words.filter((word) => word !== ''))];
}

/** The place in the text of the first of the words; undefined unless all are there. */
function firstMatch(text: string, words: readonly string[]): number | undefined {
  const lower = folded(text);
  let first = Infinity;
  for (const word of words) {
    const at = lower.indexOf(word);
    if (at < 0) return undefined;
    first = Math.min(first, at);
  }
  return lower.length === text.length ? first : unfoldedIndex(text, first);
}

/** Greek has two small sigmas, and which one a capital becomes depends on its neighbours. */
function folded(text: string): string {
  return text.toLowerCase().replaceAll('ς', 'σ');
}

/** Few characters get longer in lower case (İ becomes two): then the places in the two texts are not the same. */
function unfoldedIndex(text: string, index: number): number {
  let at = 0;
  let reached = 0;
  for (const character of text) {
    reached += folded(character).length;
    if (reached > index) break;
    at += character.length;
  }
  return at;
}

function excerptAt(text: string, match: number): string {
  if (text.length <= MAX_EXCERPT) return text;
  const start = Math.max(0, Math.min(match - LEAD, text.length - MAX_EXCERPT + 1));
  const head = start > 0 ? '…' : '';
  const tail = start + MAX_EXCERPT - head.length < text.length ? '…' : '';
  const cut = text.slice(start, start + MAX_EXCERPT - head.length - tail.length);
  // Never half of a character at either end.
  return `${head}${cut.replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, '')}${tail}`;
}

/**
 * Lines of HISTORY that are no summary but words of a conversation, where no model summarized in time. Of these lives alone: a line that
 * another entry has too is that one's as well, and is not among them.
 */
export async function rawFallbackLines(
  history: AsyncIterable<HistoryEntry>,
  of: readonly { readonly conversation: string; readonly lives: readonly string[] }[],
): Promise<ReadonlySet<string>> {
  const ids = of.flatMap(({ conversation, lives }) => lives.map((life) => consolidationId({ conversation, life }, '')));
  const [ofLives, others] = [new Set<string>(), new Set<string>()];
  for await (const { id, kind, text } of history) {
    const isOfLives = kind === 'raw-fallback' && ids.some((beginning) => id.startsWith(beginning));
    // The first line says what the entry is.
    for (const line of splitLines(text).slice(1)) (isOfLives ? ofLives : others).add(line);
  }
  return new Set([...ofLives].filter((line) => line !== '' && !others.has(line)));
}

/** The same for all that one request leads to: its entries in HISTORY, its write of MEMORY.md. */
export function consolidationId({ conversation, life }: Pick<ConversationKey, 'conversation' | 'life'>, requestId: string): string {
  return `${conversation}/${life}/${requestId}`;
}
