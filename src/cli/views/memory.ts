/** What a conversation remembers, for people: each item under the line that says where it is from. */
import type { StoredItem } from '../../client.js';
import type { EpisodeRecord, FactRecord, FactSource } from '../../stores/store.js';
import type { TimeFormat } from '../args/global-options.js';
import { toTerminalLine, type StyledLine, type StyledSpan } from '../terminal/terminal-text.js';
import type { Measure } from './table.js';
import { wrap } from './inspection.js';
import { formatBytes, formatCount, formatTime } from './quantities.js';

export interface MemoryLook {
  readonly width?: number;
  readonly timeFormat: TimeFormat;
  readonly now: number;
  readonly measure: Measure;
}

/** More of one item than anybody reads in a list; `-o json` has it whole. */
const LONGEST = 2000;

export function renderEpisodes(episodes: readonly (EpisodeRecord & { readonly imported?: true })[], look: MemoryLook): StyledLine[] {
  return [
    heading('episodic', episodes.length, 'summaries of older turns'),
    ...episodes.flatMap(({ id, ts, turn_ids, summary, tags, salience, session, supersedes, imported }) => [
      ...drawText(
        [
          id,
          spanOf(turn_ids),
          imported ? 'imported' : `session ${session}`,
          ...(supersedes ? [`in the place of ${supersedes.join(', ')}`] : []),
          ...itemFacts(ts, { salience }, tags, look),
        ].join(' · '),
        2,
        look,
        'dim',
      ),
      ...drawText(toTerminalLine(summary, LONGEST), 4, look),
    ]),
  ];
}

export function renderFacts(facts: readonly FactRecord[], scope: string, look: MemoryLook): StyledLine[] {
  return [
    heading('semantic', facts.length, `facts of scope ${scope}`),
    ...facts.flatMap(({ id, ts, fact, tags, confidence, salience, source, replaced }) => [
      ...drawText(
        [id, ...replacedBy(replaced, look), ...itemFacts(ts, { salience, confidence }, tags, look), originOf(source)].join(' · '),
        2,
        look,
        'dim',
      ),
      ...drawText(toTerminalLine(fact, LONGEST), 4, look),
    ]),
  ];
}

export function renderItems(items: readonly StoredItem[], look: MemoryLook): StyledLine[] {
  return [
    heading('items', items.length, 'in the memory channel'),
    ...items.flatMap(({ id, ts, type, source, session, content, tags }) => {
      const time = formatTime(ts * 1000, look.timeFormat, look.now);
      const facts = [id, type, source, formatBytes(content.bytes), `session ${session}`, time, ...tags.map((tag) => `#${tag}`)];
      return drawText(toTerminalLine(facts.join(' · '), LONGEST), 2, look);
    }),
  ];
}

/** `turn_0001–turn_0004, turn_0006`: turns beside each other are one span. */
export function spanOf(turnIds: readonly string[]): string {
  const numberOf = (turn: string): number => Number(/^turn_(\d+)$/.exec(turn)?.[1] ?? NaN);
  const spans: [first: string, last: string][] = [];
  for (const turn of turnIds) {
    const span = spans.at(-1);
    if (span !== undefined && numberOf(turn) === numberOf(span[1]) + 1) span[1] = turn;
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

function itemFacts(
  ts: number,
  shares: Readonly<Record<string, number>>,
  tags: readonly string[],
  { timeFormat, now }: MemoryLook,
): string[] {
  return [
    formatTime(Math.round(ts * 1000), timeFormat, now),
    ...Object.entries(shares).map(([name, share]) => `${name} ${share}`),
    ...(tags.length === 0 ? [] : [tags.map((tag) => `#${tag}`).join(' ')]),
  ];
}

function replacedBy(replaced: FactRecord['replaced'], { timeFormat, now }: MemoryLook): string[] {
  if (!replaced) return [];
  const how = replaced.by === null ? 'no longer true' : `replaced by ${replaced.by}`;
  return [`${how} since ${formatTime(Math.round(replaced.ts * 1000), timeFormat, now)}`];
}

function originOf(source: FactSource | null): string {
  return source === null ? 'written by hand' : `learnt in ${source.conversation}, ${spanOf(source.turn_ids)}`;
}

export function drawText(
  text: string,
  indent: number,
  { width = Infinity, measure }: MemoryLook,
  style?: StyledSpan['style'],
): StyledLine[] {
  return wrap(toTerminalLine(text, LONGEST), width - indent, measure).map((part): StyledLine => [
    { text: ' '.repeat(indent) },
    { text: part, style },
  ]);
}
