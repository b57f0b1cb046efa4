/** A run's history in a few words: events as Temporal has them, one second apart, numbered as they are told. */
import type { HistoryEvent } from '../../src/heal/fetch-runs.js';
import type { RunHistory } from '../../src/insight/timeline/shape.js';
import type { Usage } from '../../src/records/message.js';
import { turnId } from '../../src/records/identity.js';

export interface ToldRun {
  readonly run: RunHistory;
  /** Epoch milliseconds at which the `n`th event was written, from 1. */
  readonly at: (event: number) => number;
}

export function runOf(name: string, events: readonly object[], from = 1_000): ToldRun {
  const told = events.map(
    (event, i) => ({ eventId: i + 1, eventTime: { seconds: from + i, nanos: 500_000_000 }, ...event }) as unknown as HistoryEvent,
  );
  return { run: { run: name, events: told }, at: (event) => (from + event - 1) * 1000 + 500 };
}

export function payloads(value: unknown): object {
  return { payloads: [{ data: Buffer.from(JSON.stringify(value)) }] };
}

export const scheduled = (name: string, input?: unknown, activityId = ''): object => ({
  activityTaskScheduledEventAttributes: { activityType: { name }, activityId, ...(input !== undefined && { input: payloads(input) }) },
});

/** With the failure of the attempt before. */
export const started = (event: number, worker = 'w1', attempt = 1, lastFailure?: string): object => ({
  activityTaskStartedEventAttributes: {
    scheduledEventId: event,
    identity: worker,
    attempt,
    ...(lastFailure !== undefined && { lastFailure: { message: lastFailure } }),
  },
});

export const completed = (event: number, output?: unknown): object => ({
  activityTaskCompletedEventAttributes: { scheduledEventId: event, ...(output !== undefined && { result: payloads(output) }) },
});

export const failed = (event: number, ...messages: readonly string[]): object => ({
  activityTaskFailedEventAttributes: {
    scheduledEventId: event,
    failure: messages.reduceRight<object | null>((cause, message) => ({ message, cause }), null),
  },
});

export const ended = (how: 'TimedOut' | 'Canceled', event: number): object => ({
  [`activityTask${how}EventAttributes`]: { scheduledEventId: event, failure: { message: 'activity timed out' } },
});

export const signalled = (name: string, argument?: unknown): object => ({
  workflowExecutionSignaledEventAttributes: { signalName: name, ...(argument !== undefined && { input: payloads(argument) }) },
});

export const updated = (name: string, argument: unknown): object => ({
  workflowExecutionUpdateAcceptedEventAttributes: { acceptedRequest: { input: { name, args: payloads(argument) } } },
});

export const USAGE: Usage = { inputTokens: 10, cachedTokens: 2, outputTokens: 5, costUsd: 0.5 };

/** Input of a model step of that turn. */
export const step = (turn: number, call = 1, ...messages: readonly object[]): object => ({
  turn: turnId(turn),
  call: { id: `${turnId(turn)}/m${call}` },
  write: { messages },
});

/** What a model step comes back with; each call with its plan. */
export function answered(calls: readonly (readonly [callId: string, name: string, plan?: object])[] = [], more: object = {}): object {
  const blocks = calls.map(([callId, name]) => ({ kind: 'tool-call', callId, name, input: {} }));
  const plans = calls.map(([, , plan = {}]) => plan);
  return {
    kind: 'answered',
    answer: { model: 'x/y', usage: USAGE, blocks, plans, stop: calls.length > 0 ? 'tool-calls' : 'end', ...more },
  };
}

export const tool = (turn: number, callId: string, name = 'look'): object => ({ turn: turnId(turn), callId, name, target: `at ${callId}` });
