/**
 * What is remembered and found, for people: MEMORY.md line by line, its versions and proposals, summaries, facts, items, and hits of a
 * search.
 */
import { textOfDrawn, toTerminalLine, type StyledLine, type StyledSpan } from '../terminal/terminal-text.js';
import { formatBytes, formatCount, formatTime } from './quantities.js';
import { drawLine, drawText, renderTable, type Column, type Look } from './table.js';
import type { FoundInScope, Recalled, StoredItem } from '../../client.js';
import type { BlamedLine, CountedChange, DiffLine } from '../../memory/documents/memory-diff.js';
import { turnNumber } from '../../records/identity.js';
import { describeTrust, isUntrusted, type LineSource, type Proposal } from '../../records/memory/documents.js';
import type { EpisodeRecord, FactRecord, FactSource } from '../../stores/store.js';

/** Of a version, for people; it is enough to ask for it by. */
const VERSION_CHARACTERS = 8;
/** Lines that are the same, around those that are not. */
const AROUND = 3;

export function shortVersion(version: string): string {
  return version.slice(0, VERSION_CHARACTERS);
}

/** Lines that came together stand below their source. */
export function renderBlame(lines: readonly BlamedLine[], look: Look): StyledLine[] {
  const digits = String(lines.at(-1)?.number ?? 0).length;
  let before: string | undefined;
  return lines.flatMap(({ line, number, source, change }) => {
    const origin = [describeSource(source), ...(change === undefined ? [] : [`${change.cause} ${formatSeconds(change.ts, look)}`])].join(
      ' · ',
    );
    const heading = origin === before ? [] : drawText(origin, 0, look, trustStyle(source));
    before = origin;
    return [...heading, ...drawLine(`${String(number).padStart(digits + 2)}  `, line, look)];
  });
}

/** Red goes, green comes. Of the unchanged lines it shows only those around them. */
export function renderDiff(lines: readonly DiffLine[], look: Look): StyledLine[] {
  const near = lines.map((_, at) => lines.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(({ kind }) => kind !== 'kept'));
  return lines.flatMap(({ kind, line }, at) => {
    if (near[at] === true) return drawLine(`${MARKS[kind]} `, line, look, LOOKS[kind]);
    return at > 0 && near[at - 1] !== true ? [] : [[{ text: '…', style: 'dim' }] as StyledLine];
  });
}

const MARKS = { added: '+', removed: '-', kept: ' ' } as const;
const LOOKS = { added: 'green', removed: 'red', kept: undefined } as const;

export function renderLog(changes: readonly CountedChange[], look: Look): StyledLine[] {
  const columns: readonly Column<CountedChange>[] = [
    { title: 'VERSION', cell: ({ version }) => shortVersion(version), look: () => 'cyan', rank: 0 },
    { title: 'WHEN', cell: ({ ts }) => formatSeconds(ts, look), rank: 2 },
    { title: 'CAUSE', cell: ({ cause }) => cause, rank: 3 },
    { title: 'LINES', cell: ({ added, removed }) => `+${added} -${removed}`, rank: 1 },
    { title: 'FROM', cell: ({ lines }) => namedConversations(lines.map(({ source }) => source)), least: 12, rank: 4 },
  ];
  return renderTable(changes, columns, look);
}

export function renderProposals(proposals: readonly Proposal[], look: Look): StyledLine[] {
  return proposals.flatMap(({ id, ts, line, source }) => [
    ...drawText([id, describeSource(source), formatSeconds(ts, look)].join(' · '), 0, look, 'dim'),
    ...drawText(line, 4, look),
  ]);
}

/** `tool:fetch · conv_8, turn_0003`; `model after fetch_url · …`. */
export function describeSource({ conversation, turn_ids, ...source }: LineSource): string {
  const learnt = conversation === undefined ? [] : [`${conversation}${turn_ids === undefined ? '' : `, ${formatTurns(turn_ids)}`}`];
  return [describeTrust(source), ...learnt].join(' · ');
}

function formatSeconds(ts: number, { timeFormat, now }: Look): string {
  return formatTime(Math.round(ts * 1000), timeFormat, now);
}

/** What comes from other sources than people and the model is for a person to look at. */
function trustStyle(source: LineSource): StyledSpan['style'] {
  if (isUntrusted(source)) return 'yellow';
  return source.trust === 'model' ? 'dim' : 'cyan';
}

function namedConversations(sources: readonly LineSource[]): string {
  const names = [...new Set(sources.flatMap(({ conversation }) => conversation ?? []))];
  const [first = '', ...others] = names;
  return toTerminalLine(others.length === 0 ? first : `${first} and ${formatCount(others.length)} more`, 120);
}

export function renderEpisodes(episodes: readonly (EpisodeRecord & { readonly imported?: true })[], look: Look): StyledLine[] {
  return [
    heading('episodic', episodes.length, 'summaries of older turns'),
    ...episodes.flatMap(({ id, ts, turn_ids, summary, tags, salience, session, supersedes, imported }) => [
      ...drawText(
        [
          id,
          formatTurns(turn_ids),
          imported ? 'imported' : `session ${session}`,
          ...(supersedes ? [`in the place of ${supersedes.join(', ')}`] : []),
          ...itemFacts(ts, { salience }, tags, look),
        ].join(' · '),
        2,
        look,
        'dim',
      ),
      ...drawText(summary, 4, look),
    ]),
  ];
}

export function renderFacts(facts: readonly FactRecord[], scope: string, look: Look): StyledLine[] {
  return [
    heading('semantic', facts.length, `facts of scope ${scope}`),
    ...facts.flatMap(({ id, ts, fact, tags, confidence, salience, source, replaced }) => [
      ...drawText(
        [id, ...replacedBy(replaced, look), ...itemFacts(ts, { salience, confidence }, tags, look), describeFactSource(source)].join(' · '),
        2,
        look,
        'dim',
      ),
      ...drawText(fact, 4, look),
    ]),
  ];
}

export function renderItems(items: readonly StoredItem[], look: Look): StyledLine[] {
  return [
    heading('items', items.length, 'in the memory channel'),
    ...items.flatMap(({ id, ts, type, source, session, content, tags }) => {
      const time = formatTime(ts * 1000, look.timeFormat, look.now);
      const facts = [id, type, source, formatBytes(content.bytes), `session ${session}`, time, ...tags.map((tag) => `#${tag}`)];
      return drawText(facts.join(' · '), 2, look);
    }),
  ];
}

/** `turn_0001–turn_0004, turn_0006`: turns beside each other are one span. */
export function formatTurns(turnIds: readonly string[]): string {
  const toNumber = (turn: string): number => Number(/^turn_(\d+)$/.exec(turn)?.[1] ?? NaN);
  const spans: [first: string, last: string][] = [];
  for (const turn of turnIds) {
    const span = spans.at(-1);
    if (span !== undefined && toNumber(turn) === toNumber(span[1]) + 1) span[1] = turn;
    else spans.push([turn, turn]);
  }
  return spans.map(([first, last]) => (first === last ? first : `${first}–${last}`)).join(', ') || 'no turns';
}

function heading(name: string, count: number, what: string): StyledLine {
  return [
    { text: name, style: 'cyan' },
    { text: `  ${formatCount(count)} ${what}`, style: 'dim' },
  ];
}

function itemFacts(ts: number, shares: Readonly<Record<string, number>>, tags: readonly string[], { timeFormat, now }: Look): string[] {
  return [
    formatTime(Math.round(ts * 1000), timeFormat, now),
    ...Object.entries(shares).map(([name, share]) => `${name} ${share}`),
    ...(tags.length === 0 ? [] : [tags.map((tag) => `#${tag}`).join(' ')]),
  ];
}

function replacedBy(replaced: FactRecord['replaced'], { timeFormat, now }: Look): string[] {
  if (!replaced) return [];
  const how = replaced.by === null ? 'no longer true' : `replaced by ${replaced.by}`;
  return [`${how} since ${formatTime(Math.round(replaced.ts * 1000), timeFormat, now)}`];
}

function describeFactSource(source: FactSource | null): string {
  return source === null ? 'written by hand' : `learnt in ${source.conversation}, ${formatTurns(source.turn_ids)}`;
}

const HIT_CHARACTERS = 600;
const LEAD = 120;
const WORDS = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*(?:['’][\p{L}\p{M}]+)*/gu;

/** `most`: UTF-16 units of one text that are shown. */
export function renderFound(found: readonly Recalled[], look: Look, most = HIT_CHARACTERS): StyledLine[] {
  return found.flatMap((one, at) => [...(at === 0 ? [] : [[]]), ...renderHead(one, look), ...renderText(one, look, most)]);
}

/** Each scope under its name. */
export function renderByScope(found: readonly FoundInScope[], look: Look): StyledLine[] {
  const scopes = [...new Set(found.map(({ scope }) => scope))];
  return scopes.flatMap((scope, at) => [
    ...(at === 0 ? [] : [[]]),
    ...drawLine('', toTerminalLine(scope, 120), look, 'bold'),
    ...renderFound(
      found.filter((one) => one.scope === scope),
      look,
    ),
  ]);
}

function renderHead({ address, kind, ts, conversation, turn, speaker, ...source }: Recalled, look: Look): StyledLine[] {
  const isForeign = isUntrusted(source);
  const parts = [
    ...(ts === 0 ? [] : [formatTime(Math.round(ts * 1000), look.timeFormat, look.now)]),
    speaker === kind ? kind : `${kind} ${speaker}`,
    ...(conversation === undefined ? [] : [`${conversation}${turn === undefined ? '' : `, turn ${turnNumber(turn)}`}`]),
    address,
    ...(isForeign ? [...(kind === 'tool' ? [] : [describeTrust(source)]), 'untrusted'] : []),
  ];
  const text = parts.map((part) => toTerminalLine(part, 120)).join(' · ');
  return drawLine('', text, look, isForeign ? 'yellow' : 'cyan');
}

function renderText({ text, marks, isPart }: Recalled, look: Look, most: number): StyledLine[] {
  const words = new Set(marks.map(([start, end]) => text.slice(start, end).toLowerCase()));
  const first = marks[0]?.[0] ?? 0;
  const start = text.length <= most ? 0 : Math.max(0, Math.min(first - LEAD, text.length - most));
  const end = Math.min(text.length, start + most);
  const shown = `${start > 0 || isPart === true ? '…' : ''}${text.slice(start, end)}${end < text.length || isPart === true ? '…' : ''}`;
  const lines = shown.split(/\r?\n/).filter((line) => line.trim() !== '');
  return lines.flatMap((line) => drawLine('  ', line.toWellFormed(), look).map((drawn) => marked(textOfDrawn(drawn), words)));
}

function marked(text: string, words: ReadonlySet<string>): StyledLine {
  const spans: StyledSpan[] = [];
  let last = 0;
  for (const { 0: word, index } of text.matchAll(WORDS)) {
    if (!words.has(word.toLowerCase())) continue;
    if (index > last) spans.push({ text: text.slice(last, index) });
    spans.push({ text: word, style: 'bold' });
    last = index + word.length;
  }
  if (last < text.length || spans.length === 0) spans.push({ text: text.slice(last) });
  return spans;
}
