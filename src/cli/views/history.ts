/** HISTORY for people: each entry below its time. */
import type { HistoryEntry } from '../../records/memory/documents.js';
import { isoTime } from '../../records/memory/history-text.js';
import type { HistoryMatch } from '../../memory/documents/search-history.js';
import type { Drawn, Piece } from '../terminal/drawn.js';
import { textOfDrawn } from '../terminal/drawn.js';
import { drawLine } from './memory-document.js';
import { drawText, type MemoryLook } from './memory.js';
import { formatTime } from './quantities.js';

export function renderHistory(entries: readonly HistoryEntry[], look: MemoryLook): Drawn[] {
  return entries.flatMap((entry, at) => [...(at === 0 ? [] : [[]]), ...renderHeader(entry, look), ...renderText(entry.text, look)]);
}

/** `words` as `wordsOf` the query gives them. */
export function renderMatches(matches: readonly HistoryMatch[], words: readonly string[], look: MemoryLook): Drawn[] {
  return matches.flatMap((match, at) => [
    ...(at === 0 ? [] : [[]]),
    ...renderHeader(match, look),
    ...renderText(match.excerpt, look).map((line) => marked(textOfDrawn(line), words)),
  ]);
}

function renderHeader({ ts, kind, id }: Pick<HistoryEntry, 'ts' | 'kind' | 'id'>, look: MemoryLook): Drawn[] {
  const { timeFormat, now } = look;
  const ago = timeFormat === 'relative' ? [formatTime(Math.round(ts * 1000), timeFormat, now)] : [];
  const by = id === '' ? ['written by hand'] : kind === 'raw-fallback' ? ['not summarized'] : [];
  return drawText([isoTime(ts), ...ago, ...by].join(' · '), 0, look, kind === 'raw-fallback' ? 'yellow' : 'cyan');
}

function renderText(text: string, look: MemoryLook): Drawn[] {
  return text.split(/\r?\n/).flatMap((line) => drawLine('  ', line, look));
}

/** What was looked for stands out, as far as lower case leaves each character in its place. */
function marked(text: string, words: readonly string[]): Drawn {
  const lower = text.toLowerCase();
  if (lower.length !== text.length) return [{ text }];
  const pieces: Piece[] = [];
  for (let at = 0; at < text.length;) {
    const next = words.flatMap((word) => {
      const found = lower.indexOf(word, at);
      return found === -1 ? [] : [{ found, length: word.length }];
    });
    const first = next.sort((a, b) => a.found - b.found || b.length - a.length)[0];
    if (first === undefined) {
      pieces.push({ text: text.slice(at) });
      break;
    }
    if (first.found > at) pieces.push({ text: text.slice(at, first.found) });
    pieces.push({ text: text.slice(first.found, first.found + first.length), look: 'bold' });
    at = first.found + first.length;
  }
  return pieces;
}
