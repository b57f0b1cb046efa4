/** A tool whose workers are another task queue's: what the conversation shows, and does, while none is there. */
import { apply } from '../../../src/conversation/apply.js';
import { policyOf, summaryOfEffect } from '../../../src/conversation/effect-table.js';
import type { StepFailure } from '../../../src/conversation/outbox/writes.js';
import type { ToolPlan } from '../../../src/conversation/turn/model-step-effects.js';
import { readCarriedState } from '../../../src/conversation/opening.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { detailsOf, statusOf } from '../../../src/conversation/views/view.js';
import { answered, asking, finished, interrupted, open, ORDINARY, said, settle, take, type Taken } from '../drive.js';

const ELSEWHERE: ToolPlan = { rides: false, repeatable: false, timeoutMs: 1000, taskQueue: 'gpu' };
const NOT_TAKEN: StepFailure = {
  type: 'timeout',
  message: 'it took longer than it may (SCHEDULE_TO_START)',
  transient: true,
  unbegun: true,
};

/** A turn whose model has asked for `tools` of these, the first of which is in flight. */
function called(plan: ToolPlan = ELSEWHERE, tools = 1): Taken<'run-tool'> {
  const { state, input, done } = take(apply(open(), said('a')), 'model-step');
  return take(apply(state, done(answered(input, asking(input, tools, plan)))), 'run-tool');
}

function waitingOf(state: ConversationState) {
  return statusOf(state, 0).waiting;
}

const policyFor = ({ id, input }: Pick<Taken<'run-tool'>, 'id' | 'input'>) => policyOf({ effect: 'run-tool', id, input });

test('its call goes to that queue, and comes back where no worker takes it in time; others have neither', () => {
  expect(policyFor(called())).toMatchObject({ taskQueue: 'gpu', scheduleToStart: 10_000 });
  const { id, input } = called();
  expect(summaryOfEffect({ effect: 'run-tool', id, input })).toBe('tool · gpu');
  const usual = policyFor(called(ORDINARY));
  expect(usual).not.toHaveProperty('taskQueue');
  expect(usual).not.toHaveProperty('scheduleToStart');
});

test('it waits for as long as it takes, asks less and less often, and says for what since when', () => {
  let call = called();
  expect(waitingOf(call.state)).toBeUndefined();
  const patience: unknown[] = [];
  for (const at of [10_000, 70_000, 370_000, 670_000]) {
    call = take(apply(call.state, call.failed(NOT_TAKEN, at)), 'run-tool');
    patience.push(policyFor(call)?.scheduleToStart);
    expect(waitingOf(call.state)).toEqual({ kind: 'worker', tool: 'tool', taskQueue: 'gpu', since: '1970-01-01T00:00:10.000Z' });
  }
  expect(patience).toEqual([60_000, 300_000, 300_000, 300_000]);
  const { phase, waitingFor } = statusOf(call.state, 0);
  expect([phase, waitingFor]).toEqual([
    'running-tools',
    'a worker of task queue gpu to run tool: none had taken it at 1970-01-01T00:00:10.000Z; perdura worker --tools tool is one',
  ]);
  expect(detailsOf(call.state)).toContain('**waiting for** `a worker of task queue gpu to run tool');
  const done = apply(call.state, call.done(finished(call.input)));
  expect(waitingOf(done)).toBeUndefined();
  expect(take(done, 'model-step').input.tools).toEqual([]);
});

test('a run may hand over while it waits, and the next one goes on with it', () => {
  const call = called();
  const waiting = apply(call.state, call.failed(NOT_TAKEN, 10_000));
  expect(nextStep({ ...waiting, handOver: '3000 events' })).toEqual({ kind: 'hand-over', reason: '3000 events' });
  const carried = readCarriedState(JSON.parse(JSON.stringify(waiting)), 'l1');
  if (!carried.ok) throw new Error(carried.reason);
  expect(take(carried.value, 'run-tool').input).toMatchObject({ plan: ELSEWHERE, unserved: 1 });
});

test('what has ended otherwise, or waited in the queue of its conversation, is over as ever', () => {
  const lost: StepFailure = { type: 'timeout', message: 'no sign of life from the worker; it may have died', transient: true };
  for (const [plan, failure] of [
    [ELSEWHERE, lost],
    [
      { ...ELSEWHERE, repeatable: true },
      { ...NOT_TAKEN, type: 'cancelled' },
    ],
  ] as const) {
    const call = called(plan);
    const after = apply(call.state, call.failed(failure, 10_000));
    expect(nextStep(after)).toMatchObject({ effect: 'model-step' });
  }
});

const CANCELLED: StepFailure = { type: 'cancelled', message: 'it was stopped', transient: false };

test.each<[what: string, plan: ToolPlan, failure: StepFailure, outcome: string, words: RegExp]>([
  ['that had not begun', ELSEWHERE, { ...CANCELLED, unbegun: true }, 'cancelled', /^Cancelled before it started/],
  ['that came back as it was stopped', ELSEWHERE, NOT_TAKEN, 'cancelled', /^Cancelled before it started/],
  ['that had begun', ELSEWHERE, CANCELLED, 'unknown', /outcome unknown/],
  // The attempt before this one may have begun.
  ['that may look what was done', { ...ELSEWHERE, verifiable: true }, { ...CANCELLED, unbegun: true }, 'unknown', /outcome unknown/],
  ['that may be repeated', { ...ELSEWHERE, repeatable: true }, { ...CANCELLED, unbegun: true }, 'error', /did not finish/],
])('a stop ends the wait, and says of a call %s what became of it', (_, plan, failure, outcome, words) => {
  const call = called(plan);
  const stopped = interrupted(2000).reduce(apply, call.state);
  const after = apply(stopped, call.failed(failure, 2100));
  expect(after.turn).toBeNull();
  const [settlement] = after.outbox.settle;
  expect(settlement?.entry?.message).toMatchObject({ role: 'tool', outcome, text: expect.stringMatching(words) });
  expect(settle(after).state.inFlight).toEqual([]);
});

test('of several, each waits for its worker, and the one that has waited longest is shown', () => {
  const first = called(ELSEWHERE, 2);
  const second = take(first.state, 'run-tool');
  const later = apply(second.state, second.failed(NOT_TAKEN, 10_000));
  const both = apply(later, first.failed(NOT_TAKEN, 12_000));
  expect(waitingOf(both)).toMatchObject({ since: '1970-01-01T00:00:10.000Z' });
  const one = take(both, 'run-tool');
  const over = apply(one.state, one.done(finished(one.input)));
  expect(waitingOf(over)).toMatchObject({ since: '1970-01-01T00:00:10.000Z' });
});
