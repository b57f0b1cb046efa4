/** Numbers, times, turns, errors, and text from anywhere, as people read them. */
import { turnNumber } from '../../../src/records/identity.js';
import type { components } from '../../../packages/perdura-client/src/schema.js';

export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** "now", "4 min", "3 h", "yesterday", else the date. */
export function ago(at: number | string | Date, now = Date.now()): string {
  const then = new Date(at).getTime();
  const minutes = (now - then) / 60_000;
  if (minutes < 1) return 'now';
  if (minutes < 60) return `${Math.floor(minutes)} min`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h`;
  if (minutes < 48 * 60) return 'yesterday';
  const isThisYear = new Date(then).getFullYear() === new Date(now).getFullYear();
  return new Date(then).toLocaleDateString(undefined, { day: 'numeric', month: 'short', ...(!isThisYear && { year: 'numeric' }) });
}

/** `ts`: seconds since 1970. */
export function dateTime(ts: number): string {
  return new Date(ts * 1000).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
}

/** Of a time that comes: "in 4 min". */
export function untilThen(at: number, now = Date.now()): string {
  const seconds = Math.round((at - now) / 1000);
  if (seconds <= 0) return 'now';
  if (seconds < 90) return `in ${seconds} s`;
  if (seconds < 90 * 60) return `in ${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `in ${Math.round(seconds / 3600)} h`;
  return `in ${Math.round(seconds / 86_400)} days`;
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60 ? `${minutes} min ${Math.round((ms % 60_000) / 1_000)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function count(n: number): string {
  if (n < 10_000) return n.toLocaleString('en');
  return n < 1_000_000 ? `${(n / 1_000).toFixed(n < 100_000 ? 1 : 0)}k` : `${(n / 1_000_000).toFixed(1)}M`;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** Null: the model's price is not known. */
export function dollars(usd: number | null): string {
  if (usd === null) return 'price unknown';
  if (usd === 0) return '$0';
  return usd < 0.01 ? `$${usd.toPrecision(1)}` : `$${usd.toFixed(usd < 1 ? 3 : 2)}`;
}

/** What a conversation of a list has cost. One that was not asked has cost that much by an earlier turn, and more since. */
export function spent({ costUsd, turns, isCurrent }: Pick<components['schemas']['Listed'], 'costUsd' | 'turns' | 'isCurrent'>): string {
  if (costUsd === null || costUsd === 0) return '';
  return isCurrent || turns === null ? dollars(costUsd) : `${dollars(costUsd)} as of turn ${count(turns)}`;
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  return n < 1024 * 1024 ? `${(n / 1024).toFixed(n < 10_240 ? 1 : 0)} KB` : `${(n / 1024 / 1024).toFixed(1)} MB`;
}

/** "turns 1–4, 7". */
export function turnSpans(turns: readonly string[]): string {
  const numbers = [...new Set(turns.map(turnNumber))].sort((a, b) => a - b);
  const found: [number, number][] = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last !== undefined && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  const text = found.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(', ');
  return `${numbers.length === 1 ? 'turn' : 'turns'} ${text}`;
}

// Controls, marks of direction and their overrides, zero-width characters, tags.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

const WIDTHLESS = /[\u00ad\u200b\u2060\ufeff]/;

/** One line of text from anywhere: without what moves, hides or reorders the text beside it. `most`: characters, after which it is cut. */
export function plainText(text: string, most = 500): string {
  const line = text
    .slice(0, most * 4)
    .replace(HIDDEN, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  const all = Array.from(line);
  return all.length > most ? `${all.slice(0, most).join('')}…` : line;
}

/** Many lines, as they are: what has no width is left out, and of what reorders its place is shown. */
export function plainLines(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(HIDDEN, (mark) => (WIDTHLESS.test(mark) ? '' : '\ufffd'));
}

/** Of programs and their arguments: what cannot be seen is shown by its code, since it counts. */
export function plainCode(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(HIDDEN, (mark) => `\\u{${(mark.codePointAt(0) ?? 0).toString(16)}}`);
}
