/** `perdura admin capacity`: what so many turns a day take, before they come. It asks nothing but the package itself. */
import { InvalidArgumentError } from 'commander';
import { computeCapacity, readCapacity, USUAL_LOAD, type CapacityReport, type Load } from '../../models/capacity.js';
import { parseCount, parseModelName } from '../args/values.js';
import type { Answer, CommandRow } from '../session/command.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { formatCost, formatCount } from '../views/quantities.js';

interface CapacityOptions extends Omit<Load, 'attachmentBytes'> {
  readonly attachmentKb: number;
}

const { attachmentBytes, ...USUAL } = USUAL_LOAD;

export const CAPACITY: readonly CommandRow[] = [
  {
    name: 'admin capacity',
    description: 'compute workers, Redis, history, Temporal actions and model cost for so many turns a day',
    options: [
      ['--turns-per-day <n>', 'of all conversations', parseCount, 1_000],
      ['--tools <n>', 'calls of tools in a turn', parseNumber, USUAL.tools],
      ['--quick-tools <n>', 'how many of them are quick', parseNumber, USUAL.quickTools],
      ['--attachments <n>', 'files that come with a turn; 0.1: with every tenth', parseNumber, USUAL.attachments],
      ['--attachment-kb <n>', 'kilobytes of one', parseNumber, attachmentBytes / 1000],
      ['--model <provider/name>', 'which answers', parseModelName, USUAL.model],
      ['--input-tokens <n>', 'of a model call, cached ones included', parseNumber, USUAL.inputTokens],
      ['--cached-tokens <n>', 'of these, read from a cache', parseNumber, USUAL.cachedTokens],
      ['--output-tokens <n>', 'of a model call', parseNumber, USUAL.outputTokens],
      ['--model-seconds <n>', 'that a model call takes', parseNumber, USUAL.modelSeconds],
      ['--tool-seconds <n>', 'that a tool takes which is not quick', parseNumber, USUAL.toolSeconds],
      ['--peak <n>', 'turns at the busiest time, as a multiple of the mean', parseNumber, USUAL.peak],
      ['--keep-days <n>', 'that messages stay in Redis', parseNumber, USUAL.keepDays],
      ['--retention-days <n>', "that Temporal keeps histories: the namespace's retention", parseNumber, USUAL.retentionDays],
    ],
    help: `An estimate, from what the bench has measured (data/capacity.json). Workers count CPU of the bench's machine and 100 calls at once, each used to
70 %. Actions are what Temporal Cloud bills; most of them are the heartbeats of model calls, one a second. Docs: docs/operations/capacity.md.`,
    run: (_frame, options: CapacityOptions): Promise<Answer> => Promise.resolve(showCapacity(options)),
  },
];

function showCapacity({ attachmentKb, ...options }: CapacityOptions): Answer {
  const load: Load = { ...options, attachmentBytes: attachmentKb * 1000 };
  if (load.quickTools > load.tools)
    throw new CliError(`--quick-tools ${load.quickTools} are more than --tools ${load.tools}: they are among them`, EXIT.usage);
  if (load.cachedTokens > load.inputTokens)
    throw new CliError(
      `--cached-tokens ${load.cachedTokens} are more than --input-tokens ${load.inputTokens}: they are among them`,
      EXIT.usage,
    );
  const report = computeCapacity(load, readCapacity());
  return {
    data: report,
    text: capacityLines(report)
      .map(([what, value, why]) => `${what.padEnd(16)}${value.padEnd(22)}${why}`)
      .join('\n'),
    notes: [
      `by figures of ${report.measured}; try it with your agents before you rely on it`,
      ...(report.modelUsd.perDay === null ? [`the price of ${load.model} is not known: its cost is not either`] : []),
    ],
  };
}

const BOUND = { cpu: 'by CPU', calls: 'by calls under way', two: 'the fewest, so that one may die' } as const;

/** What it is, how much, and from what: for people, and for the page of the docs. */
export function capacityLines(report: CapacityReport): (readonly [what: string, value: string, why: string])[] {
  const { load, turnsPerSecond, workers, redisBytes, historyBytes, actions, modelUsd } = report;
  return [
    [
      'turns',
      `${formatCount(load.turnsPerDay)} a day`,
      `${short(turnsPerSecond.mean)}/s in the mean, ${short(turnsPerSecond.peak)}/s at the peak`,
    ],
    [
      'workers',
      formatCount(workers.count),
      `${BOUND[workers.boundBy]}: ${short(workers.cores)} cores, ${short(workers.calls)} calls at the peak`,
    ],
    ['Redis', size(redisBytes.kept), `${size(redisBytes.perDay)} a day, kept ${load.keepDays} days`],
    ['history', size(historyBytes.kept), `${size(historyBytes.perTurn)} a turn, kept ${load.retentionDays} days`],
    [
      'actions',
      `${short(actions.perDay)} a day`,
      `${short(actions.perTurn)} a turn, ${short(actions.heartbeats)} of them heartbeats; ${short(actions.perSecond)}/s at the peak`,
    ],
    [
      'model',
      modelUsd.perDay === null ? 'not known' : `${money(modelUsd.perDay)} a day`,
      `${money(modelUsd.perTurn)} a turn, ${load.model}`,
    ],
  ];
}

/** Two digits are what an estimate has. */
function short(value: number): string {
  const rounded = Number(value.toPrecision(2));
  if (rounded >= 1e9) return `${formatCount(rounded / 1e6)} million`;
  if (rounded >= 1e6) return `${rounded / 1e6} million`;
  return rounded >= 10 ? formatCount(Math.round(rounded)) : String(rounded);
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'] as const;

function size(bytes: number): string {
  const unit = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  return `${Number((bytes / 1000 ** unit).toPrecision(2))} ${UNITS[unit]}`;
}

function money(usd: number | null): string {
  return usd !== null && usd >= 10 ? `$${formatCount(Math.round(Number(usd.toPrecision(2))))}` : formatCost(usd);
}

function parseNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value < 0) throw new InvalidArgumentError('write a number from 0.');
  return value;
}
