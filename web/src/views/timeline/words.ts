/** Bars and marks of a timeline, in words. */
import { describeCached } from '../../../../src/records/time-in-words.js';
import type { Schema } from '../../api/request.js';
import { plainText, count, dollars, duration } from '../../ui/words.js';

export type Timeline = Schema<'Timeline'>;
export type Bar = Schema<'TimelineBar'>;
export type Mark = Timeline['marks'][number];
export type Lane = Bar['lane'];

export const LANES: readonly (readonly [Lane, string])[] = [
  ['model', 'Model'],
  ['tool', 'Tools'],
  ['sub-agent', 'Sub-agents'],
  ['person', 'People'],
  ['retry', 'Waiting'],
  ['memory', 'Memory'],
  ['store', 'Store'],
  ['healing', 'Healing'],
];

const OUTCOMES: Readonly<Record<Bar['outcome'], string>> = {
  ok: 'done',
  failed: 'failed',
  'timed-out': 'timed out',
  canceled: 'stopped',
  denied: 'denied',
  expired: 'not answered in time',
  running: 'goes on',
};

export function describeOutcome({ outcome }: Bar): string {
  return OUTCOMES[outcome];
}

export function labelBar(bar: Bar): string {
  return plainText(bar.lane === 'model' ? `Model ${bar.label}` : bar.label, 80);
}

export function describeTokens({ usage }: Pick<Bar, 'usage'>): string {
  if (usage === null) return '';
  const cached = describeCached(usage);
  return `${count(usage.inputTokens)}${cached === '' ? '' : ` (${cached})`} → ${count(usage.outputTokens)}`;
}

export function describeCost({ usage }: Pick<Bar, 'usage'>): string {
  return usage === null ? '' : dollars(usage.costUsd);
}

/** All of it, for who does not see the picture. */
export function describeBar(bar: Bar, begin: number, now: number): string {
  const took = duration((bar.to ?? now) - bar.from);
  const again = bar.attempt > 1 ? `, attempt ${bar.attempt}` : '';
  const tokens = bar.usage === null ? '' : `, ${count(bar.usage.inputTokens)} tokens in, ${count(bar.usage.outputTokens)} out`;
  return `${labelBar(bar)}, ${took}, ${describeOutcome(bar)}${again}${tokens}, after ${duration(bar.from - begin)}`;
}

export const MARKS: Readonly<Record<Mark['kind'], string>> = {
  'worker-died': 'A worker died',
  'worker-changed': 'Another worker',
  'handed-over': 'Next run',
  message: 'A message',
  decided: 'Decided',
  interrupted: 'Interrupted',
};
