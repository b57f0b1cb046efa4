/**
 * HISTORY as text, the same whichever store keeps it (seed 001): `## 2026-02-27T14:30:00.000Z`, the entry below it, an empty line
 * before the next. Times are UTC, to the millisecond.
 */
import { cleanText } from '../text.js';
import type { HistoryEntry } from './documents.js';

/** An entry as the Markdown has it: who wrote it, a store or a person, is not in there. */
export interface WrittenEntry {
  /** Epoch seconds. */
  readonly ts: number;
  readonly text: string;
}

/** What a person may write for a header too: the day alone, no seconds, a space for the T, another zone than UTC. */
const HEADER = /^## (\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:\d{2})?)?[ \t]*$/;
/** Every line that could be read as a header, by us or by a program that renders the Markdown. */
const HEADER_LIKE = /^( {0,3})(##[ \t]+\d{4}-\d{2})/gm;

export function isoTime(ts: number): string {
  return new Date(milliseconds(ts)).toISOString();
}

/** `2026-02`, UTC. */
export function formatMonth(ts: number): string {
  return isoTime(ts).slice(0, 7);
}

/** As it is kept, and read back: doing it twice changes nothing. No line of the text can pass for the header of another entry. */
export function toKeptEntry(entry: HistoryEntry): HistoryEntry {
  return { ...entry, ts: milliseconds(entry.ts) / 1000, text: withoutHeaders(cleanText(entry.text).trim()) };
}

export function withoutHeaders(text: string): string {
  return text.replace(HEADER_LIKE, '$1\\$2');
}

/** A summary that comes after the raw fallback written at `fallbackTs` says so. */
export function supersede(summary: HistoryEntry, fallbackTs: number): HistoryEntry {
  return { ...summary, text: `[supersedes the raw fallback of ${isoTime(fallbackTs)}]\n${summary.text}` };
}

/** A summary as its model has written it. */
export function withoutSuperseding(text: string): string {
  return text.replace(/^\[supersedes the raw fallback of [^\]\n]*\]\n/, '');
}

export function historyBlock(entry: WrittenEntry): string {
  const text = withoutHeaders(cleanText(entry.text).trim());
  return `## ${isoTime(entry.ts)}\n${text}${text === '' ? '' : '\n'}`;
}

export function historyText(entries: readonly WrittenEntry[]): string {
  return entries.map(historyBlock).join('\n');
}

/** Entries in the order of the text. What stands before the first header belongs to none. */
export function parseHistory(text: string): WrittenEntry[] {
  const entries: { readonly ts: number; readonly lines: string[] }[] = [];
  for (const line of cleanText(text).split('\n')) {
    const ts = headerTime(line);
    if (ts !== undefined) entries.push({ ts, lines: [] });
    else entries.at(-1)?.lines.push(line);
  }
  return entries.map(({ ts, lines }) => ({ ts, text: lines.join('\n').trim() }));
}

/** Undefined for a line that is no header. */
export function headerTime(line: string): number | undefined {
  const [, day, time = '00:00', zone = 'Z'] = HEADER.exec(line) ?? [];
  const ms = day === undefined ? NaN : Date.parse(`${day}T${time}${zone}`);
  return Number.isNaN(ms) ? undefined : Math.floor(ms) / 1000;
}

/** Rounded: 0.001 s has no exact float, and must not become the millisecond before. */
function milliseconds(ts: number): number {
  return Math.round(ts * 1000);
}
