/**
 * What people read of a report first, whatever draws it: what differs, in sentences, and how the measures have changed. Pure, and in memory
 * that does not grow with the report.
 *
 * What differs is told by acts: which tools were called with what, and how turns ended. A model seldom repeats its words.
 */
import { findStanding, mainLane, type Standing } from './differences.js';
import type { Interval, Lane, ReportedConversation, ReportHeader, ReportLine, ReportTotals } from './report.js';
import { createTotals, LANES, measurePairs, MEASURES, type Measure } from './totals.js';

/** `bad`: there was less than recorded, or it was stopped; `other`: it differs; `noise`: the baseline does so too; `same`. */
export interface Finding {
  readonly weight: 'bad' | 'other' | 'noise' | 'same';
  readonly text: string;
}

/** How a measure of a conversation has changed, as people read it. */
export interface Change {
  readonly name: string;
  /** Of the recorded mean: `−12 %`. Empty: not known. */
  readonly share: string;
  /** `−$0.0021 (−0.0030 … −0.0012)`; empty where `kind` is not `changed`. */
  readonly mean: string;
  /** What the baseline shows, and whether the candidate's interval overlaps it. */
  readonly baseline: string;
  readonly kind: 'changed' | 'noise' | 'same' | 'unknown';
}

export interface Summary {
  readonly header?: ReportHeader;
  readonly totals: ReportTotals;
  /** Worst first. */
  readonly findings: readonly Finding[];
  readonly changes: readonly Change[];
  /** Of the header: what was played how. */
  readonly about: readonly string[];
  /** The report ended with its totals: who wrote it was not stopped before. */
  readonly isWhole: boolean;
}

export interface Summarizer {
  add(line: ReportLine): void;
  end(): Summary;
}

const MAX_FINDINGS = 6;
/** Below it a judge contradicts itself so often that its verdicts say little. */
const SURE_OF_ITSELF = 0.7;

export function createSummary(): Summarizer {
  let header: ReportHeader | undefined;
  let isWhole = false;
  const totals = createTotals();
  const standings = new Map<Lane, Map<Standing, number>>(LANES.map((lane) => [lane, new Map<Standing, number>()]));
  const recorded = new Map<string, { sum: number; count: number }>();
  const stops = createReasons();
  const skips = createReasons();
  let gaps = 0;
  const count = (line: ReportedConversation, name: Lane): void => {
    const lane = line.lanes[name];
    const counts = standings.get(name);
    if (lane === undefined || counts === undefined) return;
    const standing = findStanding(line, lane);
    counts.set(standing, (counts.get(standing) ?? 0) + 1);
    const pairs = measurePairs(lane);
    for (const measure of MEASURES) {
      const [was] = pairs?.[measure] ?? [];
      if (was === undefined) continue;
      const key = `${name} ${measure}`;
      const so = recorded.get(key) ?? { sum: 0, count: 0 };
      recorded.set(key, { sum: so.sum + was, count: so.count + 1 });
    }
    if (lane.stopped !== undefined && lane === mainLane(line.lanes)) stops.add(lane.stopped.why);
  };
  return {
    add(line) {
      switch (line.kind) {
        case 'header':
          header = line;
          return;
        case 'conversation':
          totals.add(line);
          if (line.skipped !== undefined) skips.add(line.skipped);
          else if (line.gaps.length > 0) gaps += 1;
          for (const lane of LANES) count(line, lane);
          return;
        case 'totals':
          isWhole = true;
      }
    },
    end() {
      const sums = totals.end();
      const meanRecorded = (lane: Lane, measure: Measure): number | undefined => {
        const so = recorded.get(`${lane} ${measure}`);
        return so === undefined ? undefined : so.sum / so.count;
      };
      const found = { header, totals: sums, standings, stops, skips, gaps };
      return {
        ...(header && { header }),
        totals: sums,
        findings: findAll(found),
        changes: MEASURES.flatMap((measure) => describeChange(measure, sums, meanRecorded)),
        about: describePlay(header, sums),
        isWhole,
      };
    },
  };
}

interface Found {
  readonly header: ReportHeader | undefined;
  readonly totals: ReportTotals;
  readonly standings: ReadonlyMap<Lane, ReadonlyMap<Standing, number>>;
  readonly stops: Reasons;
  readonly skips: Reasons;
  /** Conversations that have some. */
  readonly gaps: number;
}

interface Reasons {
  add(reason: string): void;
  /** `: the most frequent one (3 of them)`; empty where there is none. */
  describe(all: number): string;
}

const MAX_REASONS = 50;
const MAX_REASON = 300;

function createReasons(): Reasons {
  const counts = new Map<string, number>();
  return {
    add(reason) {
      const short = reason.slice(0, MAX_REASON);
      if (counts.has(short) || counts.size < MAX_REASONS) counts.set(short, (counts.get(short) ?? 0) + 1);
    },
    describe(all) {
      const [first] = [...counts].sort(([, a], [, b]) => b - a);
      return first === undefined ? '' : `: ${first[0]}${first[1] === all ? '' : ` (${first[1]} of them)`}`;
    },
  };
}

function describePlay(header: ReportHeader | undefined, { conversations, skipped, lanes }: ReportTotals): string[] {
  const played = conversations - skipped;
  const beside =
    lanes.baseline !== undefined && lanes.candidate !== undefined ? ', beside a baseline: the recorded configuration, played again' : '';
  const policy = { stop: 'stops it', stub: 'is answered by a stub', live: 'is run' }[header?.policy ?? 'stop'];
  return [
    ...(header?.changes ?? []),
    `${plural(played, 'conversation')} played${skipped > 0 ? `, ${skipped} skipped` : ''}${beside}.`,
    ...(header === undefined
      ? []
      : [
          `A call that no recording answers ${policy}; memory is ${header.memory === 'recorded' ? 'as recorded' : 'as the candidate makes it'}.`,
        ]),
  ];
}

/** Worst first, and of each kind a few: what a person has to see without looking for it. */
function findAll({ header, totals, standings, stops, skips, gaps }: Found): Finding[] {
  const main: Lane = totals.lanes.candidate === undefined ? 'baseline' : 'candidate';
  const sums = totals.lanes[main];
  const all = tally(standings.get(main));
  if (sums === undefined || all.played === 0) return [{ weight: 'bad', text: 'No conversation was played, so nothing is known.' }];
  const beside = main === 'candidate' ? totals.lanes.baseline : undefined;
  const noise = beside === undefined ? undefined : tally(standings.get('baseline'));
  const findings: Finding[] = [];
  if (all.other > 0) {
    const isNoise = noise !== undefined && mayBeEqual({ count: all.other, all: all.played }, { count: noise.other, all: noise.played });
    findings.push({
      weight: isNoise ? 'noise' : 'bad',
      text:
        `${all.other} of ${plural(all.played, 'conversation')} ${all.other === 1 ? 'acts' : 'act'} otherwise than recorded, in tools, their order or an end` +
        (noise === undefined ? '' : ` (baseline: ${noise.other} of ${noise.played}${isNoise ? ', so this may be noise' : ''})`),
    });
  }
  if (sums.stopped > 0) {
    findings.push({
      weight: 'bad',
      text: `${plural(sums.stopped, 'conversation')} ${was(sums.stopped)} stopped before the end${stops.describe(sums.stopped)}`,
    });
  }
  const fewer = (change: number): boolean => change < 0;
  const more = (change: number): boolean => change > 0;
  const endings = Object.fromEntries(Object.entries(sums.stopReasons).filter(([reason]) => reason !== 'end'));
  findings.push(
    ...findCounts(sums.tools, beside?.tools, fewer, (name, [before, now]) => `${name} was called ${times(now)} instead of ${before}`),
    ...findCounts(
      endings,
      beside?.stopReasons,
      more,
      (reason, [before, now]) => `${plural(now, 'turn')} ended as “${reason}” instead of ${before}`,
    ),
  );
  findings.push(...findVerdicts(totals, header));
  const alike = all.played - all.other;
  if (all.words > 0) {
    findings.push({
      weight: 'other',
      text: `${plural(all.words, 'conversation')} ${all.words === 1 ? 'differs' : 'differ'} in requests or words, and ${all.words === 1 ? 'acts' : 'act'} alike`,
    });
  } else if (alike === all.played) {
    findings.push({
      weight: 'same',
      text: `Nothing differs: all requests and answers of ${plural(all.played, 'conversation')} are as recorded`,
    });
  }
  if (totals.skipped > 0) {
    findings.push({
      weight: 'other',
      text: `${plural(totals.skipped, 'conversation')} ${was(totals.skipped)} skipped${skips.describe(totals.skipped)}`,
    });
  }
  if (gaps > 0)
    findings.push({
      weight: 'other',
      text: `${plural(gaps, 'conversation')} ${was(gaps)} played with gaps: what is missing stands with each`,
    });
  if (main === 'candidate' && beside === undefined && all.other + all.words > 0) {
    findings.push({ weight: 'other', text: 'No baseline was played, so how much of this is a model’s noise is not known' });
  }
  const order = ['bad', 'noise', 'other', 'same'];
  return findings.sort((a, b) => order.indexOf(a.weight) - order.indexOf(b.weight));
}

function tally(counts: ReadonlyMap<Standing, number> | undefined): {
  readonly played: number;
  readonly other: number;
  readonly words: number;
} {
  const of = (standing: Standing): number => counts?.get(standing) ?? 0;
  const other = of('acts') + of('stopped');
  return { other, words: of('words'), played: other + of('words') + of('same') };
}

type Counts = Readonly<Record<string, readonly [recorded: number, played: number]>>;

/** Names whose count differs, the largest difference first. The baseline's says what is noise: as much, in the same direction. */
function findCounts(
  counts: Counts,
  beside: Counts | undefined,
  isBad: (change: number) => boolean,
  say: (name: string, counts: readonly [recorded: number, played: number]) => string,
): Finding[] {
  const rows = Object.entries(counts).map(([name, [before, now]]) => ({ name, before, now, change: now - before }));
  const differing = rows.filter(({ change }) => change !== 0).sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
  const shown = differing.slice(0, MAX_FINDINGS).map(({ name, before, now, change }): Finding => {
    const [baseBefore, baseNow] = (beside !== undefined && Object.hasOwn(beside, name) ? beside[name] : undefined) ?? [0, 0];
    const baseChange = baseNow - baseBefore;
    const isNoise = beside !== undefined && Math.sign(baseChange) === Math.sign(change) && Math.abs(baseChange) >= Math.abs(change) / 2;
    const baseline = beside === undefined ? '' : ` (baseline: ${baseNow}${isNoise ? ', so this may be noise' : ''})`;
    return { weight: isNoise ? 'noise' : isBad(change) ? 'bad' : 'other', text: `${say(name, [before, now])}${baseline}` };
  });
  const left = differing.length - shown.length;
  return left === 0 ? shown : [...shown, { weight: 'other', text: `and ${left} more of their kind differ` }];
}

function findVerdicts({ judged }: ReportTotals, header: ReportHeader | undefined): Finding[] {
  if (judged === undefined) return [];
  const { better, worse, same, unreadable, agreement, costUsd: usd } = judged;
  const readable = better + worse + same;
  const isSure = agreement >= SURE_OF_ITSELF;
  const by = header?.judge === undefined ? 'The judge' : `The judge ${header.judge}`;
  const cost = usd === undefined ? '' : `; it cost ${usd === null ? 'what is not known' : dollars(usd)}, which is in no other row`;
  if (readable === 0)
    return [{ weight: 'other', text: `${by} gave no verdict that can be read, in ${plural(unreadable, 'conversation')}${cost}` }];
  const agrees = `it agreed with itself in ${percent(agreement)}${isSure ? '' : ', so its verdicts say little'}`;
  return [
    {
      weight: worse > better && isSure ? 'bad' : 'other',
      text:
        `${by} finds the candidate worse in ${worse} of ${readable}, better in ${better}, the same in ${same}` +
        `${unreadable > 0 ? `; ${plural(unreadable, 'answer')} could not be read` : ''}; ${agrees}${cost}`,
    },
  ];
}

const NAMES: Readonly<Record<Measure, string>> = {
  costUsd: 'cost',
  inputTokens: 'input tokens',
  outputTokens: 'output tokens',
  modelCalls: 'model calls',
  toolCalls: 'tool calls',
  modelMs: 'time in model',
};

function describeChange(
  measure: Measure,
  { lanes }: ReportTotals,
  meanRecorded: (lane: Lane, measure: Measure) => number | undefined,
): Change[] {
  const main: Lane = lanes.candidate === undefined ? 'baseline' : 'candidate';
  const sums = lanes[main];
  if (sums === undefined) return [];
  const change = sums.change[measure];
  const beside = main === 'candidate' ? lanes.baseline : undefined;
  const share = (lane: Lane, { mean }: Interval): string => {
    const was = meanRecorded(lane, measure);
    return was === undefined || was === 0 ? '' : signed(mean / was, (part) => percent(part));
  };
  const name = NAMES[measure];
  if (change === null) return [{ name, share: '', mean: '', baseline: '', kind: 'unknown' }];
  if (change.low === 0 && change.high === 0) return [{ name, share: '', mean: '', baseline: '', kind: 'same' }];
  const shown = { name, share: share(main, change), mean: describeInterval(measure, change) };
  if (beside === undefined) {
    const isNoise = overlap(change, { low: 0, high: 0 });
    return [{ ...shown, baseline: isNoise ? 'includes 0: noise' : 'none', kind: isNoise ? 'noise' : 'changed' }];
  }
  const base = beside.change[measure];
  if (base === null) return [{ ...shown, baseline: 'not known', kind: 'changed' }];
  // Where the intervals overlap, the same model, called again, may do this too.
  const isNoise = overlap(change, base);
  const part = share('baseline', base);
  const told = part === '' ? '' : ` (${part})`;
  return [{ ...shown, baseline: isNoise ? `overlaps${told}: noise` : `beyond${told}`, kind: isNoise ? 'noise' : 'changed' }];
}

interface Span {
  readonly low: number;
  readonly high: number;
}

function overlap(a: Span, b: Span): boolean {
  return a.low <= b.high && b.low <= a.high;
}

interface Part {
  readonly count: number;
  readonly all: number;
}

/** Whether the 95 % interval of the difference of two parts includes none (Newcombe, of Wilson's intervals: right for few, and for none). */
export function mayBeEqual(a: Part, b: Part): boolean {
  if (a.all === 0 || b.all === 0) return true;
  const [larger, smaller] = a.count / a.all >= b.count / b.all ? [a, b] : [b, a];
  const [p, q] = [larger.count / larger.all, smaller.count / smaller.all];
  return p - q <= Math.hypot(p - wilson(larger).low, wilson(smaller).high - q);
}

function wilson({ count, all }: Part): Span {
  const z = 1.96;
  const part = count / all;
  const middle = (part + (z * z) / (2 * all)) / (1 + (z * z) / all);
  const half = (z / (1 + (z * z) / all)) * Math.sqrt((part * (1 - part)) / all + (z * z) / (4 * all * all));
  return { low: middle - half, high: middle + half };
}

function describeInterval(measure: Measure, { mean, low, high }: Interval): string {
  const format = measure === 'costUsd' ? dollars : measure === 'modelMs' ? seconds : tokens;
  const bound = (value: number): string => signed(value, format).replace('$', '').replace(/ s$/, '');
  return `${signed(mean, format)} (${bound(low)} … ${bound(high)})`;
}

function signed(value: number, format: (absolute: number) => string): string {
  const shown = format(Math.abs(value));
  const isNothing = !/[1-9]/.test(shown);
  return `${isNothing ? '±' : value < 0 ? '−' : '+'}${shown}`;
}

const dollars = (usd: number): string => `$${usd.toFixed(usd < 1 ? 4 : 2)}`;
const seconds = (ms: number): string => `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 0)} s`;
const tokens = (count: number): string => (count < 100 ? count.toFixed(1) : Math.round(count).toLocaleString('en-US'));
const percent = (part: number): string => `${part < 0.095 && part >= 0.0005 ? (part * 100).toFixed(1) : Math.round(part * 100)} %`;

export function plural(count: number, one: string): string {
  return `${count.toLocaleString('en-US')} ${one}${count === 1 ? '' : 's'}`;
}

const times = (count: number): string => (count === 1 ? 'once' : `${count} times`);
const was = (count: number): string => (count === 1 ? 'was' : 'were');
