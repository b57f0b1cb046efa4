/** Calls that wait: for approval, for an answer, for a time, for a sub-agent. */
import { childToStart, newsRefusal, startChild, runningChildren } from '../../../src/conversation/turn/delegation.js';
import { apply } from '../../../src/conversation/apply.js';
import type { ToolPlan } from '../../../src/conversation/turn/model-step-effects.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { listSlots } from '../../../src/records/slots.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { contextOf, controlViewOf, queueOf, statusOf, detailsOf } from '../../../src/conversation/views/view.js';
import { approvalsOf, decisionRefusal } from '../../../src/conversation/turn/approvals.js';
import {
  answered,
  applyAll,
  askingFor,
  deferred,
  finished,
  isEffect,
  namesOf,
  open,
  ORDINARY,
  said,
  settle,
  SETTINGS,
  stored,
  take,
  USAGE,
} from '../drive.js';

const plan: ToolPlan = { ...ORDINARY, fingerprint: 'f1' };
const asks: ToolPlan = { ...plan, approval: { policy: 'ask', expiresMs: 60_000 } };
const question: ToolPlan = { ...plan, workflowAction: { kind: 'ask-person', expiresMs: 60_000 } };
const delegates: ToolPlan = {
  ...plan,
  workflowAction: {
    kind: 'delegate',
    agent: 'helper',
    task: 'count',
    title: 'count',
    maxDepth: 1,
    maxChildren: 1,
    budget: { maxCostUsd: 1 },
  },
};

/** The model has asked for these, in one answer, at 1003. */
function round(...plans: ToolPlan[]): ConversationState {
  const { state, input, done } = take(apply(open(), said('a')), 'model-step');
  return apply(state, done(answered(input, askingFor(input, plans)), 1003));
}

function decided(state: ConversationState, decision: 'approve' | 'deny', more: object = {}): ConversationState {
  return apply(state, { kind: 'decided', decision: { callId: 'turn_0001/c1', decision, ...more }, at: 2000 });
}

function results(state: ConversationState): unknown[] {
  return state.outbox.settle.map(({ entry }) => (entry?.message.role === 'tool' ? [entry.message.outcome, entry.message.text] : entry));
}

const runs = (state: ConversationState): unknown => {
  const step = nextStep(state);
  return isEffect(step, 'run-tool') ? [step.input.callId, step.input.person] : step.kind;
};

test('what waits for a person is said in the status, and a hand-over does not wait with it', () => {
  const state = round(asks);
  expect(statusOf(state, 0)).toMatchObject({ phase: 'waiting-for-person', pendingApprovals: 1 });
  const { waiting, waitingFor } = statusOf(state, 0);
  const until = '1970-01-01T00:01:01.003Z';
  expect(waiting).toEqual({ kind: 'approval', conversation: 'chat', callId: 'turn_0001/c1', tool: 'tool', target: '', others: 0, until });
  expect(waitingFor).toBe(`a person: approval of tool; until ${until}`);
  expect(statusOf(round(question, asks), 0)).toMatchObject({
    waiting: { kind: 'question', others: 1 },
    waitingFor: `a person: an answer to tool and 1 more; until ${until}`,
  });
  const written = settled(state);
  expect(nextStep(written)).toMatchObject({ kind: 'wait', until: 61_003 });
  expect(nextStep(apply(written, { kind: 'hand-over-due', reason: 'events', at: 2000 })).kind).toBe('hand-over');
});

/** What was announced is with the store. */
function settled(state: ConversationState): ConversationState {
  const step = nextStep(state);
  if (!isEffect(step, 'store-step')) return state;
  const { state: writing, input, done } = take(state, 'store-step');
  return apply(writing, done(stored(input), 1501));
}

test('edited arguments and a note go along with the run', () => {
  const allowed = decided(round(asks), 'approve', { input: { path: 'b' }, note: 'only b' });
  expect(runs(allowed)).toEqual(['turn_0001/c1', { input: { path: 'b' }, note: 'only b' }]);
});

test('a denial is told to the model in words, and a decision counts once', () => {
  const denied = decided(round(asks), 'deny', { note: 'too early' });
  expect(results(denied)).toEqual([['rejected', 'Not run: a person did not allow this call. They say: too early']]);
  expect(listSlots(denied.context)).toEqual([1, 2, 3]);
  const again = decided(denied, 'approve');
  expect(again.rejected).toMatchObject({ count: 1, last: [{ name: 'decide' }] });
  expect(results(again)).toEqual(results(denied));
});

test.each([
  ['of a call that nobody was asked about', { callId: 'turn_0001/c9', decision: 'approve' }, 'does not wait'],
  ['with other arguments than were asked about', { callId: 'turn_0001/c1', decision: 'approve', hash: 'f2' }, 'other arguments'],
  ['of another conversation', { callId: 'turn_0001/c1', decision: 'approve', conversation: 'other' }, 'does not wait'],
] as const)('a decision %s counts for nothing', (_, decision, why) => {
  const state = round(asks);
  expect(decisionRefusal(state, decision)).toContain(why);
  expect(approvalsOf(apply(state, { kind: 'decided', decision, at: 2000 }))).toHaveLength(1);
});

test('what nobody decides in time is not run, and the model is told', () => {
  const early = apply(round(asks), { kind: 'time-passed', at: 61_002 });
  expect(approvalsOf(early)).toHaveLength(1);
  expect(results(apply(early, { kind: 'time-passed', at: 61_003 }))).toEqual([
    ['rejected', 'Not run: nobody allowed it until 1970-01-01T00:01:01.003Z.'],
  ]);
});

test('a question is answered by the words of a person, and asks first where a rule says so', () => {
  expect(results(decided(round(question), 'approve', { note: 'blue' }))).toEqual([['ok', 'blue']]);
  const choice: ToolPlan = { ...plan, workflowAction: { kind: 'ask-person', expiresMs: 60_000, options: ['Red', 'Blue'] } };
  expect(results(decided(round(choice), 'approve', { note: '2' }))).toEqual([['ok', 'Blue']]);
  expect(results(decided(round(choice), 'approve', { note: 'green' }))).toEqual([['ok', 'green']]);
  const both = round({ ...question, approval: { policy: 'ask', expiresMs: 1000 } });
  expect(approvalsOf(both)).toMatchObject([{ kind: 'approval' }]);
  expect(approvalsOf(decided(both, 'approve'))).toMatchObject([{ kind: 'question', askedAt: 2000 }]);
  expect(decisionRefusal(round(question), { callId: 'turn_0001/c1', decision: 'approve', input: {} })).toContain('cannot be edited');
});

test('a call that waits for a time is answered when it has come', () => {
  const state = settled(round({ ...plan, workflowAction: { kind: 'wait-until', until: 5_000 } }));
  expect(nextStep(state)).toMatchObject({ kind: 'wait', until: 5_000 });
  expect(statusOf(state, 0)).toMatchObject({
    waiting: { kind: 'time', tool: 'tool', until: '1970-01-01T00:00:05.000Z' },
    waitingFor: 'the time that tool names: 1970-01-01T00:00:05.000Z',
  });
  expect(results(apply(state, { kind: 'time-passed', at: 4_999 }))).toEqual([]);
  expect(results(apply(state, { kind: 'time-passed', at: 5_000 }))).toEqual([['ok', 'It is 1970-01-01T00:00:05.000Z now.']]);
});

test('a call that waits for a while is answered when it has passed, counted from when it began to wait', () => {
  const held = round({ ...plan, workflowAction: { kind: 'wait-for', ms: 5_000 } });
  const from = held.now;
  const state = settled(held);
  expect(nextStep(state)).toMatchObject({ kind: 'wait', until: from + 5_000 });
  expect(results(apply(state, { kind: 'time-passed', at: from + 4_999 }))).toEqual([]);
  expect(results(apply(state, { kind: 'time-passed', at: from + 5_000 }))).toHaveLength(1);
});

test('an interrupt ends every wait: nothing that waited has run', () => {
  const state = round(asks, { ...question, fingerprint: 'f2' });
  const stopped = apply(state, { kind: 'interrupt-requested', reason: null, at: 2000 });
  expect(stopped.turn).toBeNull();
  expect(results(stopped).map((one) => (one as string[])[0])).toEqual(['cancelled', 'cancelled']);
});

test.each([
  ['runs by itself', plan],
  ['rides', { ...plan, rides: true }],
])('the same call that %s four rounds in a row is not run again, and a fifth ends the turn', (_, same) => {
  const ran: string[] = [];
  const { state, steps } = settle(apply(open(), said('a')), {
    model: (input) => {
      ran.push(...input.tools.map(({ callId }) => callId));
      return askingFor(input, [same]);
    },
    tool: (run) => {
      ran.push(run.callId);
      return finished(run, { text: 'same' });
    },
  });
  expect(ran).toEqual(['turn_0001/c1', 'turn_0001/c2', 'turn_0001/c3']);
  expect(namesOf(steps).filter((name) => name === 'model-step')).toHaveLength(5);
  expect(state.ended[0]).toMatchObject({ stopReason: 'tool-limit', error: { type: 'repeated-call' } });
});

describe('a sub-agent', () => {
  const started = (): ConversationState => {
    const { state, input, done } = take(round(delegates), 'start-child');
    expect(input).toMatchObject({
      child: 'chat:turn_0001:1',
      options: {
        agent: 'helper',
        scope: 'default',
        budget: { maxCostUsd: 1 },
        delegation: { task: 'count', parent: { conversation: 'chat', life: 'l1', callId: 'turn_0001/c1', depth: 1 } },
      },
    });
    return apply(state, done(undefined));
  };
  const report = { text: '42', stopReason: 'end', usage: USAGE } as const;

  test('is started once, and its report is the result of the call, its cost the conversation’s', () => {
    const state = started();
    expect(runningChildren(state)).toEqual(['chat:turn_0001:1']);
    const before = state.usage.inputTokens;
    const ended = apply(state, { kind: 'child-ended', callId: 'turn_0001/c1', report, at: 2000 });
    expect(results(ended)).toEqual([['ok', '42']]);
    expect(ended.usage.inputTokens).toBe(before + USAGE.inputTokens);
    expect(apply(ended, { kind: 'child-ended', callId: 'turn_0001/c1', report, at: 2001 }).usage).toEqual(ended.usage);
  });

  test('shows what it was given at its start; where nothing was given, nothing in its name counts', () => {
    const capability = 'c'.repeat(32);
    const given = { ...delegates, workflowAction: { ...delegates.workflowAction!, capability } as ToolPlan['workflowAction'] };
    const asked = round(given);
    const { state, done } = take(asked, 'start-child');
    const known = apply(state, done(undefined));
    const news = { callId: 'turn_0001/c1', kind: 'ended', report } as const;
    expect(newsRefusal(known, { ...news, capability })).toBeUndefined();
    for (const shown of [{}, { capability: 'x'.repeat(32) }, { capability: 'c'.repeat(31) }])
      expect(newsRefusal(known, { ...news, ...shown })).toContain('is not the one');
    for (const shown of [{}, { capability }]) expect(newsRefusal(started(), { ...news, ...shown })).toContain('without a capability');
    for (const at of [asked, state, known]) {
      const views = [approvalsOf, contextOf, controlViewOf, queueOf, detailsOf].map((view) => view(at));
      expect(JSON.stringify([...views, statusOf(at, 0)])).not.toContain(capability);
    }
  });

  test('that waits for a person is decided here', () => {
    const ask = {
      conversation: 'chat:turn_0001:1',
      callId: 'turn_0001/c1',
      turnId: 'turn_0001',
      kind: 'approval',
      tool: 't',
      target: '',
      hash: 'h',
      askedIn: 2,
      askedAt: 1,
      expiresAt: 9_000,
    } as const;
    expect(statusOf(started(), 0)).toMatchObject({
      waiting: { kind: 'sub-agent', conversation: 'chat:turn_0001:1' },
      waitingFor: 'the sub-agent chat:turn_0001:1',
    });
    const waiting = apply(started(), { kind: 'child-asks', callId: 'turn_0001/c1', asks: [ask], at: 2000 });
    expect(approvalsOf(waiting)).toEqual([ask]);
    expect(statusOf(waiting, 0)).toMatchObject({
      ...{ phase: 'waiting-for-person', pendingApprovals: 1 },
      waiting: { kind: 'approval', conversation: 'chat:turn_0001:1', tool: 't' },
    });
    const told = decided(settled(waiting), 'approve', { conversation: 'chat:turn_0001:1' });
    expect(nextStep(told)).toEqual({
      kind: 'notify-children',
      decisions: [{ child: 'chat:turn_0001:1', decision: { callId: 'turn_0001/c1', decision: 'approve' } }],
    });
  });

  test('is stopped with its conversation, and is waited for no longer than anything else', () => {
    const stopping = apply(started(), { kind: 'interrupt-requested', reason: null, at: 2000 });
    expect(nextStep(stopping)).toEqual({ kind: 'stop', children: ['chat:turn_0001:1'] });
    const gone = applyAll(stopping, { kind: 'stop-sent', at: 2000 }, { kind: 'time-passed', at: 3_500 });
    expect(gone.ended[0]).toMatchObject({ stopReason: 'interrupted' });
    expect(results(gone)).toMatchObject([['unknown', expect.stringContaining('sub-agent')]]);
  });

  test('of an earlier run is looked after, and one that is gone is told to the model', () => {
    const inherited = settled(apply(started(), { kind: 'run-continued', at: 2_000 }));
    expect(nextStep(inherited)).toMatchObject({ kind: 'wait', until: 62_000 });
    const due = take(apply(inherited, { kind: 'time-passed', at: 62_000 }), 'look-after');
    expect([due.id, due.input]).toEqual(['turn_0001/c1', { child: 'chat:turn_0001:1' }]);
    expect(nextStep(apply(due.state, { kind: 'hand-over-due', reason: 'events', at: 62_001 })).kind).toBe('wait');
    const there = apply(due.state, due.done('RUNNING', 62_100));
    expect(nextStep(there)).toMatchObject({ kind: 'wait', until: 182_100 });
    const gone = apply(due.state, due.done('TERMINATED', 62_100));
    expect(results(gone)).toMatchObject([['error', expect.stringContaining('TERMINATED')]]);
  });

  test('that could not be started has ended', () => {
    const { state, failed } = take(round(delegates), 'start-child');
    const told = apply(state, failed({ type: 'no-such-agent', message: 'no helper', transient: false }));
    expect(results(told)).toMatchObject([['error', expect.stringContaining('no helper')]]);
  });

  test('reports once all is with the store', () => {
    const parent = { conversation: 'main', life: 'l0', callId: 'turn_0001/c1', depth: 1 };
    const child = { ...open(), parent, parentNotified: { asks: '[]', reported: false } };
    const { state, input, done } = take(applyAll(child, said('task'), { kind: 'close-requested', at: 1000 }), 'model-step');
    const owing = untilReport(apply(state, done(answered(input, { persisted: false }))));
    expect(owing.names).toEqual(['store-step']);
    const reported = apply(owing.report.state, owing.report.done(undefined));
    expect(settle(reported).steps.at(-1)?.kind).toBe('finish');
  });

  test('is refused beyond the limits of depth and number', () => {
    expect(
      results(round({ ...delegates, workflowAction: { ...delegates.workflowAction!, maxDepth: 0 } as ToolPlan['workflowAction'] })),
    ).toMatchObject([['rejected', expect.stringContaining('maxDepth')]]);
    const two = round(delegates, { ...delegates, fingerprint: 'f2' });
    expect(results(two)).toMatchObject([['rejected', expect.stringContaining('maxChildren')]]);
  });

  test.each([
    [64, 16],
    [16, 16],
    [10, 3],
    [1, 16],
    [0, 16],
  ])('is one of %d in all, when each of up to %d delegates as often as it may', (maxTotal, maxChildren) => {
    const eager = { ...delegates.workflowAction!, maxDepth: 8, maxChildren, maxTotal } as ToolPlan['workflowAction'];
    const plans = Array.from({ length: 20 }, (_, n): ToolPlan => ({ ...plan, fingerprint: `f${n}`, workflowAction: eager }));
    let started = 0;
    const delegateAll = (parent: ConversationState['parent']): void => {
      const { state, input, done } = take(apply({ ...open(), ...(parent && { parent }) }, said('a')), 'model-step');
      let after = apply(state, done(answered(input, askingFor(input, plans)), 1003));
      // Without a limit it would not end.
      for (let start = childToStart(after); start && started < 200; start = childToStart(after)) {
        started += 1;
        delegateAll(start.options.delegation!.parent);
        after = startChild(after, { input: start } as Parameters<typeof startChild>[1]);
      }
      expect(JSON.stringify(results(after))).toContain('Not run');
    };
    delegateAll(undefined);
    expect(started).toBeLessThanOrEqual(maxTotal);
    expect(started).toBeGreaterThanOrEqual(Math.min(maxTotal, maxChildren));
  });
});

describe('a budget', () => {
  test('ends the turn before the model call that would go beyond it, and can be raised', () => {
    const state = { ...open(), budget: { maxTokens: 10 }, usage: { ...USAGE, inputTokens: 10 } };
    const { state: ended, steps } = settle(apply(state, said('a')));
    expect(namesOf(steps)).toEqual(['begin-turn', 'store-step', 'wait']);
    expect(ended.ended[0]).toMatchObject({ stopReason: 'budget', error: { type: 'budget' } });
    const raised = apply(ended, { kind: 'budget-raised', budget: { maxTokens: 100 }, at: 2000 });
    expect(settle(apply(raised, said('b'))).state.ended[1]).toMatchObject({ stopReason: 'end' });
  });

  test('of the agent alone is found by the first step, which does not call', () => {
    const { state, input, done } = take({ ...apply(open(), said('a')), usage: { ...USAGE, inputTokens: 10 } }, 'model-step');
    const configured = { kind: 'settings', settings: { ...SETTINGS, budget: { maxTokens: 10 } } } as const;
    const ended = apply(state, done(deferred(input, 'budget', { configured })));
    expect(ended.ended[0]).toMatchObject({ stopReason: 'budget', error: { message: expect.stringContaining('15 of its 10 tokens') } });
  });
});

describe('a message taken back', () => {
  test('answers whoever waits for it, and the next one goes on', () => {
    const state = applyAll(round(asks), said('b'), said('c'));
    const without = apply(state, { kind: 'withdraw-requested', messageId: 'b', at: 2000 });
    expect(without.queue).toMatchObject([{ messageId: 'c' }]);
    expect(without.ended).toMatchObject([{ number: 2, stopReason: 'withdrawn' }]);
    expect(apply(without, { kind: 'withdraw-requested', messageId: 'a', at: 2001 }).turn).toEqual(without.turn);
  });
});

test('an answer that does not fit what was asked for is corrected once', () => {
  const asked = apply(open(), said('a', { output: { type: 'object' } }));
  const { state, input, done } = take(asked, 'model-step');
  expect(input.write.messages[0]).toMatchObject({ output: { type: 'object' } });
  const wrong = apply(state, done(answered(input, { schemaViolation: 'no JSON' })));
  const { state: again, input: repair, done: repaired } = take(wrong, 'model-step');
  expect(repair.call.output).toBe('output-1');
  expect(repair.write.settle).toMatchObject([{ entry: { message: { role: 'user', text: expect.stringContaining('no JSON') } } }]);
  expect(apply(again, repaired(answered(repair))).ended[0]).toMatchObject({ stopReason: 'end', fits: true });
  const still = apply(again, repaired(answered(repair, { schemaViolation: 'still none' })));
  expect(still.ended[0]).toMatchObject({ stopReason: 'failed', error: { type: 'output-schema' } });
});

/** Everything before the sub-agent's report, ended as it usually does. */
function untilReport(state: ConversationState) {
  const names: string[] = [];
  for (let now = state; ;) {
    const step = nextStep(now);
    if (isEffect(step, 'report')) return { names, report: take(now, 'report') };
    const { state: writing, input, done } = take(now, 'store-step');
    names.push('store-step');
    now = apply(writing, done(stored(input)));
  }
}
