/**
 * Sums over the conversations of a report, in memory that does not grow with them.
 *
 * A conversation that was stopped is in no mean: it has cost less because it is shorter. Of it the turns before the stop are counted.
 */
import { countedTurns } from './differences.js';
import type { Interval, Lane, LaneTotals, PlayedLane, ReportedConversation, ReportTotals, Verdict } from './report.js';

export const MEASURES = ['costUsd', 'inputTokens', 'outputTokens', 'modelCalls', 'toolCalls', 'modelMs'] as const;
export type Measure = (typeof MEASURES)[number];

export const LANES: readonly Lane[] = ['candidate', 'baseline'];

/** Different names in one count; those beyond go into one row. */
const MAX_NAMES = 200;
const MAX_NAME = 100;
const OTHERS = '(others)';

export function createTotals(): { add(line: ReportedConversation): void; end(): ReportTotals } {
  let conversations = 0;
  let skipped = 0;
  const lanes = new Map<Lane, ReturnType<typeof createLaneTotals>>();
  const verdicts = new Map<Verdict['better'], number>();
  let agreed = 0;
  /** Undefined: of one verdict it was not counted. */
  let judgeUsd: number | null | undefined = 0;
  return {
    add({ skipped: whySkipped, lanes: played, verdict }) {
      conversations += 1;
      if (whySkipped !== undefined) skipped += 1;
      for (const lane of LANES) {
        const one = played[lane];
        if (one === undefined) continue;
        const totals = lanes.get(lane) ?? createLaneTotals();
        lanes.set(lane, totals);
        totals.add(one);
      }
      if (verdict === undefined) return;
      verdicts.set(verdict.better, (verdicts.get(verdict.better) ?? 0) + 1);
      const { costUsd: usd } = verdict;
      judgeUsd = judgeUsd === undefined || usd === undefined ? undefined : judgeUsd === null || usd === null ? null : judgeUsd + usd;
      if (verdict.better !== 'unreadable' && verdict.agreesWithItself) agreed += 1;
    },
    end() {
      const [better = 0, worse = 0, same = 0, unreadable = 0] = (['candidate', 'recorded', 'same', 'unreadable'] as const).map((one) =>
        verdicts.get(one),
      );
      const readable = better + worse + same;
      return {
        kind: 'totals',
        conversations,
        skipped,
        lanes: Object.fromEntries([...lanes].map(([lane, totals]) => [lane, totals.end()])),
        ...(verdicts.size > 0 && {
          judged: {
            ...{ better, worse, same, unreadable, agreement: readable === 0 ? 0 : agreed / readable },
            ...(judgeUsd !== undefined && { costUsd: judgeUsd }),
          },
        }),
      };
    },
  };
}

function createLaneTotals(): { add(lane: PlayedLane): void; end(): LaneTotals } {
  let diverged = 0;
  let stopped = 0;
  const changes = new Map(MEASURES.map((measure) => [measure, createMean()] as const));
  const stopReasons = createCounts();
  const tools = createCounts();
  return {
    add(lane) {
      if (lane.divergence !== null) diverged += 1;
      if (lane.stopped !== undefined) stopped += 1;
      const pairs = measurePairs(lane);
      for (const measure of MEASURES) {
        const [recorded, played] = pairs?.[measure] ?? [];
        if (recorded !== undefined && played !== undefined) changes.get(measure)?.add(played - recorded);
      }
      for (const turn of countedTurns(lane)) {
        for (const [at, side] of [turn.recorded, turn.played].entries()) {
          if (side === undefined) continue;
          stopReasons.add(side.stopReason, at);
          for (const { name } of side.calls) tools.add(name, at);
        }
      }
    },
    end: () => ({
      diverged,
      stopped,
      change: Object.fromEntries(MEASURES.map((measure) => [measure, changes.get(measure)?.interval() ?? null])) as LaneTotals['change'],
      stopReasons: stopReasons.end(),
      tools: tools.end(),
    }),
  };
}

/** What a conversation took as recorded, and as played. Null: not known of one of them. Undefined: it was stopped. */
export function measurePairs(lane: PlayedLane): Readonly<Record<Measure, readonly [recorded: number, played: number] | null>> | undefined {
  if (lane.stopped !== undefined) return undefined;
  const { sum: played, recordedSum: recorded, turns } = lane;
  const countCalls = (side: 'recorded' | 'played'): number => turns.reduce((sum, turn) => sum + (turn[side]?.calls.length ?? 0), 0);
  return {
    costUsd: recorded.costUsd === null || played.costUsd === null ? null : [recorded.costUsd, played.costUsd],
    inputTokens: [recorded.inputTokens, played.inputTokens],
    outputTokens: [recorded.outputTokens, played.outputTokens],
    modelCalls: [recorded.modelCalls, played.modelCalls],
    toolCalls: [countCalls('recorded'), countCalls('played')],
    modelMs: [recorded.modelMs, played.modelMs],
  };
}

interface Mean {
  add(value: number): void;
  interval(): Interval | null;
}

/** Welford: one pass, and no difference of two large sums. The mean with its 95 % interval; null for fewer than two values. */
function createMean(): Mean {
  let count = 0;
  let mean = 0;
  let squares = 0;
  return {
    add(value) {
      count += 1;
      const before = value - mean;
      mean += before / count;
      squares += before * (value - mean);
    },
    interval() {
      if (count < 2) return null;
      const half = studentQuantile(count - 1) * Math.sqrt(squares / (count - 1) / count);
      return { mean, low: mean - half, high: mean + half };
    },
  };
}

const FEW_DEGREES = [12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.306, 2.26216];
const NORMAL = 1.959964;

/** 97.5 % of Student's t; beyond the table by its expansion about the normal one (Abramowitz and Stegun 26.7.5), right to four digits. */
export function studentQuantile(degrees: number): number {
  const z = NORMAL;
  return (
    FEW_DEGREES[degrees - 1] ??
    z +
      (z ** 3 + z) / (4 * degrees) +
      (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * degrees ** 2) +
      (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * degrees ** 3)
  );
}

/** Counts by name, recorded and played. Names come from models, so that there may be any number of any length. */
function createCounts(): { add(name: string, side: number): void; end(): Record<string, readonly [number, number]> } {
  const counts = new Map<string, [number, number]>();
  return {
    add(name, side) {
      const short = name.slice(0, MAX_NAME);
      const row = counts.has(short) || counts.size < MAX_NAMES ? short : OTHERS;
      const both = counts.get(row) ?? [0, 0];
      both[side === 0 ? 0 : 1] += 1;
      counts.set(row, both);
    },
    end: () => Object.fromEntries([...counts].map(([name, [recorded, played]]) => [name, [recorded, played] as const])),
  };
}
