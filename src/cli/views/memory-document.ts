/** MEMORY.md for people: who brought which line, what has changed, and what waits for a decision. */
import type { BlamedLine, CountedChange, DiffLine } from '../../memory/documents/memory-diff.js';
import type { LineSource, Proposal, HistoryEntry } from '../../records/memory/documents.js';
import { toTerminalLine, toTerminalText, type StyledLine, type StyledSpan, textOfDrawn } from '../terminal/terminal-text.js';
import { wrap } from './inspection.js';
import { drawText, spanOf, type MemoryLook } from './memory.js';
import { formatCount, formatTime } from './quantities.js';
import { renderTable, type Column } from './table.js';
import { isoTime } from '../../records/memory/history-text.js';
import type { HistoryMatch } from '../../memory/documents/search-history.js';

/** Of a version, for people; it is enough to ask for it by. */
const VERSION_CHARACTERS = 8;
/** Lines that are the same, around those that are not. */
const AROUND = 3;

export function shortVersion(version: string): string {
  return version.slice(0, VERSION_CHARACTERS);
}

/** Lines that came together stand below their source. */
export function renderBlame(lines: readonly BlamedLine[], look: MemoryLook): StyledLine[] {
  const digits = String(lines.at(-1)?.number ?? 0).length;
  let before: string | undefined;
  return lines.flatMap(({ line, number, source, change }) => {
    const origin = [originOf(source), ...(change === undefined ? [] : [`${change.cause} ${timeOf(change.ts, look)}`])].join(' · ');
    const heading = origin === before ? [] : drawText(origin, 0, look, lookOfTrust(source));
    before = origin;
    return [...heading, ...drawLine(`${String(number).padStart(digits + 2)}  `, line, look)];
  });
}

/** Red goes, green comes. What stays is shown around them only. */
export function renderDiff(lines: readonly DiffLine[], look: MemoryLook): StyledLine[] {
  const near = lines.map((_, at) => lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(({ kind }) => kind !== 'kept'));
  return lines.flatMap(({ kind, line }, at) => {
    if (near[at] === true) return drawLine(`${MARKS[kind]} `, line, look, LOOKS[kind]);
    return at > 0 && near[at - 1] !== true ? [] : [[{ text: '…', style: 'dim' }] as StyledLine];
  });
}

const MARKS = { added: '+', removed: '-', kept: ' ' } as const;
const LOOKS = { added: 'green', removed: 'red', kept: undefined } as const;

export function renderLog(changes: readonly CountedChange[], look: MemoryLook): StyledLine[] {
  const columns: readonly Column<CountedChange>[] = [
    { title: 'VERSION', cell: ({ version }) => shortVersion(version), look: () => 'cyan', rank: 0 },
    { title: 'WHEN', cell: ({ ts }) => timeOf(ts, look), rank: 2 },
    { title: 'CAUSE', cell: ({ cause }) => cause, rank: 3 },
    { title: 'LINES', cell: ({ added, removed }) => `+${added} -${removed}`, rank: 1 },
    { title: 'FROM', cell: ({ lines }) => conversationsIn(lines.map(({ source }) => source)), least: 12, rank: 4 },
  ];
  return renderTable(changes, columns, look);
}

export function renderProposals(proposals: readonly Proposal[], look: MemoryLook): StyledLine[] {
  return proposals.flatMap(({ id, ts, line, source }) => [
    ...drawText([id, originOf(source), timeOf(ts, look)].join(' · '), 0, look, 'dim'),
    ...drawText(line, 4, look),
  ]);
}

/** `tool:fetch · conv_8, turn_0003`; `model after fetch_url · …` where it waits for a person because of that. */
export function originOf({ trust, conversation, turn_ids, tools }: LineSource): string {
  const learnt = conversation === undefined ? [] : [`${conversation}${turn_ids === undefined ? '' : `, ${spanOf(turn_ids)}`}`];
  return [tools === undefined ? trust : `${trust} after ${tools.join(', ')}`, ...learnt].join(' · ');
}

/** A line of a document, with its own indentation, after what stands before it; it goes on below itself. */
export function drawLine(head: string, line: string, { width = Infinity, measure }: MemoryLook, style?: StyledSpan['style']): StyledLine[] {
  const text = toTerminalText(line).replaceAll('\n', ' ').replaceAll('\t', '  ').trimEnd();
  const own = Math.min(text.length - text.trimStart().length, 12);
  const before = measure(head) + own;
  return wrap(text.trimStart(), Math.max(width - before, 4), measure).map((part, at): StyledLine => [
    { text: at === 0 ? head : ' '.repeat(measure(head)), style: style ?? 'dim' },
    { text: `${' '.repeat(own)}${part}`, style },
  ]);
}

function timeOf(ts: number, { timeFormat, now }: MemoryLook): string {
  return formatTime(Math.round(ts * 1000), timeFormat, now);
}

/** What only a tool said is for a person to look at. */
function lookOfTrust({ trust }: LineSource): StyledSpan['style'] {
  if (trust.startsWith('tool:')) return 'yellow';
  return trust === 'model' ? 'dim' : 'cyan';
}

function conversationsIn(sources: readonly LineSource[]): string {
  const names = [...new Set(sources.flatMap(({ conversation }) => conversation ?? []))];
  const [first = '', ...others] = names;
  return toTerminalLine(others.length === 0 ? first : `${first} and ${formatCount(others.length)} more`, 120);
}

/** HISTORY for people: each entry below its time. */
export function renderHistory(entries: readonly HistoryEntry[], look: MemoryLook): StyledLine[] {
  return entries.flatMap((entry, at) => [...(at === 0 ? [] : [[]]), ...renderHeader(entry, look), ...renderText(entry.text, look)]);
}

/** `words` as `wordsOf` the query gives them. */
export function renderMatches(matches: readonly HistoryMatch[], words: readonly string[], look: MemoryLook): StyledLine[] {
  return matches.flatMap((match, at) => [
    ...(at === 0 ? [] : [[]]),
    ...renderHeader(match, look),
    ...renderText(match.excerpt, look).map((line) => marked(textOfDrawn(line), words)),
  ]);
}

function renderHeader({ ts, kind, id }: Pick<HistoryEntry, 'ts' | 'kind' | 'id'>, look: MemoryLook): StyledLine[] {
  const { timeFormat, now } = look;
  const ago = timeFormat === 'relative' ? [formatTime(Math.round(ts * 1000), timeFormat, now)] : [];
  const by = id === '' ? ['written by hand'] : kind === 'raw-fallback' ? ['not summarized'] : [];
  return drawText([isoTime(ts), ...ago, ...by].join(' · '), 0, look, kind === 'raw-fallback' ? 'yellow' : 'cyan');
}

function renderText(text: string, look: MemoryLook): StyledLine[] {
  return text.split(/\r?\n/).flatMap((line) => drawLine('  ', line, look));
}

/** What was looked for stands out, as far as lower case leaves each character in its place. */
function marked(text: string, words: readonly string[]): StyledLine {
  const lower = text.toLowerCase();
  if (lower.length !== text.length) return [{ text }];
  const pieces: StyledSpan[] = [];
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
    pieces.push({ text: text.slice(first.found, first.found + first.length), style: 'bold' });
    at = first.found + first.length;
  }
  return pieces;
}
