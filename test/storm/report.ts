/** What a storm was, in figures, and what it found. */
import type { Census } from './census.js';
import type { CheckedEffects } from './effects-log.js';
import type { Faults } from './faults.js';
import type { Journal } from './journal.js';
import type { StormModel } from './model.js';
import type { Talk } from './person.js';

export interface Violation {
  /** What must hold. */
  readonly row: string;
  readonly what: string;
  readonly conversation?: string;
}

interface Measured {
  readonly seed: number;
  readonly minutes: number;
  readonly talks: readonly Talk[];
  readonly violations: readonly Violation[];
  readonly journal: Pick<Journal, 'counts'>;
  readonly model: Pick<StormModel, 'counts'>;
  readonly faults: Pick<Faults, 'counts' | 'kills' | 'memory'>;
  readonly effects: CheckedEffects;
  readonly replays: { readonly histories: number; readonly broken: number };
  readonly census: Census;
  /** Runs of the tool that must not run twice. */
  readonly sideEffects: number;
  /** Of Redis, after it had made them. */
  readonly lostAnswers: number;
  readonly playedAgain: StormReport['playedAgain'];
  readonly keptIn?: string;
}

export interface StormReport {
  readonly seed: number;
  readonly minutes: number;
  readonly kills: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly model: Readonly<Record<string, number>>;
  readonly conversations: number;
  readonly messages: number;
  readonly answers: number;
  readonly ends: Readonly<Record<string, number>>;
  readonly lost: number;
  readonly doubled: number;
  readonly outOfOrder: number;
  readonly sideEffects: number;
  readonly sideEffectsTwice: number;
  readonly badRequests: number;
  readonly histories: number;
  readonly unreplayable: number;
  readonly stuck: number;
  readonly crashed: number;
  readonly lostAnswersOfRedis: number;
  readonly checked: {
    readonly queueOperations: number;
    readonly undecided: number;
    readonly effects: number;
    readonly effectOperations: number;
    readonly unheard: number;
  };
  /** With nothing changed, by whatif; 0 where that was not asked for. */
  readonly playedAgain: { readonly conversations: number; readonly turns: number };
  readonly turnSeconds: { readonly count: number; readonly p50: number; readonly p95: number; readonly p99: number; readonly max: number };
  readonly memoryMiB: Readonly<Record<string, number>>;
  readonly census: Census;
  readonly violations: readonly Violation[];
  readonly keptIn?: string;
}

export function toReport(measured: Measured): StormReport {
  const { seed, minutes, talks, violations, journal, model, faults, effects, replays, census, sideEffects, lostAnswers, keptIn } = measured;
  const of = (row: string): number => violations.filter((one) => one.row === row).length;
  const ms = talks.flatMap(({ turnMs }) => turnMs).sort((a, b) => a - b);
  const at = (part: number): number => Math.round((ms[Math.ceil(part * ms.length) - 1] ?? 0) / 10) / 100;
  return {
    ...{ seed, minutes: Math.round(10 * minutes) / 10, kills: faults.kills(), faults: faults.counts, model: model.counts },
    conversations: talks.length,
    messages: journal.counts.accepted,
    answers: journal.counts.answered,
    ends: sumOf(talks.map(({ ends }) => ends)),
    lost: of('no message is lost'),
    doubled: of('no message is doubled'),
    outOfOrder: of('a queue is answered in order'),
    sideEffects,
    sideEffectsTwice: of('no side effect is done twice'),
    badRequests: of('no request is malformed'),
    histories: replays.histories,
    unreplayable: of('every history replays'),
    stuck: of('every conversation comes to rest'),
    crashed: of('no process ends by itself'),
    lostAnswersOfRedis: lostAnswers,
    checked: {
      queueOperations: journal.counts.operations,
      undecided: journal.counts.undecided,
      effects: effects.effects,
      effectOperations: effects.operations,
      unheard: effects.unheard,
    },
    playedAgain: measured.playedAgain,
    turnSeconds: { count: ms.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) },
    memoryMiB: Object.fromEntries(
      Object.entries({ ...faults.memory, 'this program': process.resourceUsage().maxRSS * 1024 }).map(([name, bytes]) => [
        name,
        Math.round(bytes / 1024 ** 2),
      ]),
    ),
    ...{ census, violations },
    ...(keptIn === undefined ? {} : { keptIn }),
  };
}

/** For people: figures by name, then what was violated, and how to see it again. */
export function render(report: StormReport): string {
  const { turnSeconds: turns, checked } = report;
  const rows: readonly (readonly [string, string | number])[] = [
    ['seed, minutes', `${report.seed}, ${report.minutes}`],
    ['kills (kill -9)', report.kills],
    ...Object.entries(report.faults).map(([what, n]): [string, number] => [`  ${what}`, n]),
    ['model requests', report.model['requests'] ?? 0],
    ...Object.entries(report.model).flatMap(([what, n]): [string, number][] => (what === 'requests' ? [] : [[`  ${what}`, n]])),
    ['answers of Redis lost after the write', report.lostAnswersOfRedis],
    ['conversations', report.conversations],
    ['messages', report.messages],
    ['answers heard', `${report.answers} (${words(report.ends)})`],
    ['lost', report.lost],
    ['doubled', report.doubled],
    [
      'queues without a possible order',
      `${report.outOfOrder} (${checked.queueOperations} operations checked, ${checked.undecided} queues too large to decide)`,
    ],
    [
      'effects without a possible order',
      `${count(report, 'an effect is committed once')} (${checked.effects} effects, ${checked.effectOperations} operations, ${checked.unheard} unheard)`,
    ],
    ['side effects run twice', `${report.sideEffectsTwice} of ${report.sideEffects}`],
    ['requests refused as malformed (400)', report.badRequests],
    ['histories that do not replay', `${report.unreplayable} of ${report.histories}`],
    ['conversations that are stuck', report.stuck],
    ['processes that ended by themselves', report.crashed],
    ['played again, differing', `${report.playedAgain.conversations}, ${count(report, 'a conversation plays again as it was')}`],
    ['a turn, p50 / p95 / p99 / at most', `${turns.p50} / ${turns.p95} / ${turns.p99} / ${turns.max} s (${turns.count} turns)`],
    ['memory at most', words(report.memoryMiB, ' MiB')],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const figures = rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`);
  if (report.violations.length === 0) return `${figures.join('\n')}\n\nEverything held.`;
  const found = report.violations.map(({ row, what }) => `violated: ${row}\n  ${what}`);
  return `${figures.join('\n')}\n\n${found.join('\n')}\n\nKept in ${report.keptIn ?? ''}. The same again: npm run storm -- --minutes ${report.minutes} --seed ${report.seed}`;
}

function count({ violations }: StormReport, row: string): number {
  return violations.filter((one) => one.row === row).length;
}

function words(counts: Readonly<Record<string, number>>, unit = ''): string {
  return Object.entries(counts)
    .map(([name, n]) => `${name} ${n}${unit}`)
    .join(', ');
}

function sumOf(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const [name, n] of all.flatMap((one) => Object.entries(one))) sum[name] = (sum[name] ?? 0) + n;
  return sum;
}
