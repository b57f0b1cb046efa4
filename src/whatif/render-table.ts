/**
 * A report for a terminal. Its first screen says what differs; the conversations follow, those that act otherwise first, each with its first
 * difference side by side. Of many conversations a few are shown: the report's other forms have all.
 */
import {
  describeVerdict,
  findStanding,
  firstDifferences,
  mainLane,
  shortTurn,
  STANDING,
  withVisibleMarks,
  type FirstDifference,
} from './differences.js';
import type { ReportedConversation, ReportLine } from './report.js';
import { createSummary, plural, type Change, type Finding, type Summary } from './summary.js';

export interface TableOptions {
  /** Cells of a line. */
  readonly width?: number;
  /** Conversations that are shown with their first difference. */
  readonly shown?: number;
  /** Cells that a text takes; the CLI has one that is exact. */
  readonly measure?: (text: string) => number;
}

const MAX_SHOWN = 10;
const MIN_WIDTH = 40;
/** Of one side of a difference. */
const MAX_LINES = 6;
/** Characters of a text that are looked at for these lines. */
const MAX_TEXT = 4_000;

/** Lines without their line feeds, for a terminal of any kind: no colours, and no control character but what withVisibleMarks leaves. */
export async function* renderTable(
  lines: AsyncIterable<ReportLine>,
  { width = 80, shown = MAX_SHOWN, measure = measureCells }: TableOptions = {},
): AsyncGenerator<string, void> {
  const room = { width: Math.max(MIN_WIDTH, width), measure };
  const summary = createSummary();
  const acting: Outline[] = [];
  const others: Outline[] = [];
  let differing = 0;
  for await (const line of lines) {
    summary.add(line);
    if (line.kind !== 'conversation') continue;
    const standing = findStanding(line);
    if (standing === 'same' && line.gaps.length === 0) continue;
    differing += 1;
    const list = standing === 'acts' || standing === 'stopped' ? acting : others;
    if (list.length < shown) list.push(outline(line, room));
  }
  yield* drawSummary(summary.end(), room);
  const drawn = [...acting, ...others].slice(0, shown);
  yield* drawOutlines(drawn, room);
  if (differing > drawn.length) {
    yield '';
    const left = plural(differing - drawn.length, 'more conversation');
    yield* wrap(`${left} with differences: the HTML form has all, and the page opens the report.`, room);
  }
}

interface Room {
  readonly width: number;
  readonly measure: (text: string) => number;
}

const MARKS: Readonly<Record<Finding['weight'], string>> = { bad: '✗', other: '·', noise: '~', same: '✓' };

function* drawSummary({ about, findings, changes, header, isWhole, totals }: Summary, room: Room): Generator<string> {
  const [first = 'a report', ...more] = about.map((one) => oneLine(one));
  yield* wrap(`What if: ${first}`, room);
  for (const line of more) yield* wrap(line, room, header !== undefined && header.changes.length > 1 ? '         ' : '');
  yield '';
  for (const { weight, text } of findings) yield* wrap(`${MARKS[weight]} ${oneLine(text)}`, room, '  ');
  if (!isWhole)
    yield* wrap('✗ The report has no totals: what wrote it was stopped before its end, so conversations are missing.', room, '  ');
  yield* drawChanges(changes, room, (totals.lanes.candidate ?? totals.lanes.baseline)?.stopped ?? 0);
}

function* drawChanges(changes: readonly Change[], room: Room, stopped: number): Generator<string> {
  const pick = (...kinds: readonly Change['kind'][]): Change[] => changes.filter(({ kind }) => kinds.includes(kind));
  const list = (some: readonly Change[]): string => some.map(({ name }) => name).join(', ');
  const [changed, same, unknown] = [pick('changed', 'noise'), pick('same'), pick('unknown')];
  if (changes.length > 0) yield '';
  if (changed.length > 0) {
    const row = (name: string, share: string, mean: string, baseline: string): string =>
      fit(
        `  ${pad(name, 14, room.measure)}${pad(share, 8, room.measure)}${pad(mean, 31, room.measure)}${baseline}`.trimEnd(),
        room.width,
        room.measure,
      );
    yield row('', 'played', 'less recorded (95 % interval)', 'against the baseline');
    for (const { name, share, mean, baseline } of changed) yield row(name, share, mean, baseline);
  }
  if (same.length > 0) yield* wrap(`  the same: ${list(same)}`, room, '  ');
  if (unknown.length > 0) yield* wrap(`  not known, since fewer than two can be compared: ${list(unknown)}`, room, '  ');
  if (stopped > 0) yield* wrap(`  Without ${plural(stopped, 'conversation')} that stopped: what is shorter costs less.`, room, '  ');
}

/** What is drawn of a conversation: little of one of any length, so that a few can be held until the summary is known. */
interface Outline {
  readonly before: readonly string[];
  readonly differences: readonly FirstDifference[];
  readonly after: readonly string[];
}

function outline(line: ReportedConversation, room: Room): Outline {
  const lane = mainLane(line.lanes);
  const baseline = lane === line.lanes.baseline ? undefined : line.lanes.baseline;
  const head = `${oneLine(line.id)} (${oneLine(line.agent)}, ${plural(line.turns, 'turn')}): ${STANDING[findStanding(line)]}`;
  const beside = baseline === undefined ? '' : `; baseline: ${STANDING[findStanding(line, baseline)]}`;
  return {
    before: [
      ...wrap(`▸ ${head}${beside}`, room, '  '),
      ...(line.skipped === undefined ? [] : wrap(`  ${oneLine(line.skipped)}`, room, '  ')),
      ...line.gaps.slice(0, 3).flatMap((gap) => wrap(`  gap: ${oneLine(gap)}`, room, '  ')),
      ...(line.gaps.length > 3 ? [`  and ${plural(line.gaps.length - 3, 'more gap')}`] : []),
      ...(lane?.stopped === undefined
        ? []
        : wrap(`  stopped in ${shortTurn(oneLine(lane.stopped.turn))}: ${oneLine(lane.stopped.why)}`, room, '  ')),
    ],
    differences: (lane === undefined ? [] : firstDifferences(lane)).map((one) => ({
      ...one,
      recorded: one.recorded.slice(0, MAX_TEXT),
      played: one.played.slice(0, MAX_TEXT),
    })),
    after: line.verdict === undefined ? [] : wrap(`  ${oneLine(describeVerdict(line.verdict))}`, room, '  '),
  };
}

/** A changed prompt is the same in every conversation, and drawn once. */
function* drawOutlines(outlines: readonly Outline[], room: Room): Generator<string> {
  const seen = new Set<string>();
  for (const { before, differences, after } of outlines) {
    yield* ['', ...before];
    for (const one of differences) {
      const key = `${one.recorded}\n│\n${one.played}`;
      if (seen.has(key)) yield* wrap(`  ${oneLine(one.where)}: as above`, room, '  ');
      else yield* drawPair(one, room);
      seen.add(key);
    }
    yield* after;
  }
}

function drawPair({ where, recorded, played }: FirstDifference, room: Room): string[] {
  const { width, measure } = room;
  const column = Math.floor((width - 5) / 2);
  const [left, right] = [recorded, played].map((text) => drawSide(text, { width: column, measure }));
  const rows = Math.max(left?.length ?? 0, right?.length ?? 0);
  const titles = `  ${pad('recorded', column, measure)} │ played`;
  return [
    ...wrap(`  ${oneLine(where)}`, room, '  '),
    titles,
    ...Array.from({ length: rows }, (_, at) => `  ${pad(left?.[at] ?? '', column, measure)} │ ${right?.[at] ?? ''}`.trimEnd()),
  ];
}

function drawSide(text: string, room: Room): string[] {
  const lines = withVisibleMarks(text.slice(0, MAX_TEXT))
    .split('\n')
    .flatMap((line) => wrap(line.replace(/\s+/g, ' ').trim(), room));
  const isWhole = lines.length <= MAX_LINES && text.length < MAX_TEXT;
  return isWhole ? lines : [...lines.slice(0, MAX_LINES - 1), '…'];
}

/** As a part of one line, wherever it comes from. */
function oneLine(text: string): string {
  return withVisibleMarks(text.slice(0, MAX_TEXT)).replace(/\s+/g, ' ').trim();
}

/** Takes the cells of wide scripts and emoji as two, of marks as none. */
export function measureCells(text: string): number {
  let cells = 0;
  for (const character of text) cells += /^\p{M}|\p{Default_Ignorable_Code_Point}$/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  return cells;
}

const WIDE =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u{3000}-\u{303e}\u{ff01}-\u{ff60}\u{ffe0}-\u{ffe6}]$/u;

function fit(text: string, width: number, measure: Room['measure']): string {
  if (measure(text) <= width) return text;
  let shown = '';
  let used = 0;
  for (const character of text) {
    used += measure(character);
    if (used > width - 1) break;
    shown += character;
  }
  return `${shown}…`;
}

function pad(text: string, width: number, measure: Room['measure']): string {
  const fitted = fit(text, width, measure);
  return fitted + ' '.repeat(Math.max(0, width - measure(fitted)));
}

/** Between words; a word that is longer than a line within itself. Lines after the first begin with `indent`. */
function wrap(text: string, { width, measure }: Room, indent = ''): string[] {
  const lines: string[] = [];
  let line = '';
  let used = 0;
  for (const word of text.split(/(?<= )/)) {
    if (used > 0 && used + measure(word.trimEnd()) > width && line.trim() !== '') {
      lines.push(line.trimEnd());
      [line, used] = [indent, measure(indent)];
    }
    for (const character of word) {
      const cells = measure(character);
      if (used + cells > width && character !== ' ') {
        lines.push(line.trimEnd());
        [line, used] = [indent, measure(indent)];
      }
      line += character;
      used += cells;
    }
  }
  return [...lines, line.trimEnd()];
}
