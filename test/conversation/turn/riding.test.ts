/** Which quick tools ride on the model step that needs their results, and when that step comes back without a call. */
import fc from 'fast-check';
import { apply } from '../../../src/conversation/apply.js';
import { obstacleTo, type CallNumbers, type GateSettings } from '../../../src/conversation/context/call-gate.js';
import { withResultCounted } from '../../../src/conversation/context/citing.js';
import { numbersOf } from '../../../src/conversation/context/compaction.js';
import type { DeferReason, ModelStepResult, ToolPlan } from '../../../src/conversation/turn/model-step-effects.js';
import type { Settlement } from '../../../src/conversation/outbox/writes.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import { type JsonValue, addUsage } from '../../../src/records/message.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { listSlots } from '../../../src/records/slots.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import {
  answered,
  applyAll,
  askingFor,
  deferred,
  finished,
  interrupted,
  nameOf,
  open,
  ORDINARY,
  QUICK,
  rode,
  said,
  settle,
  SETTINGS,
  STORE_AWAY,
  stored,
  take,
  USAGE,
  written,
} from '../drive.js';
import type { AgentSettings } from '../../../src/conversation/state/settings.js';

const AT = 1000;
const asks: ToolPlan = { ...QUICK, approval: { policy: 'ask', expiresMs: 60_000 } };
const delegates: ToolPlan = {
  ...QUICK,
  workflowAction: { kind: 'delegate', agent: 'helper', task: 't', title: 't', maxDepth: 1, maxChildren: 1 },
};

/** The model has asked for these, in one answer. */
function round(plans: readonly ToolPlan[], before: ConversationState = open(), settings: AgentSettings = SETTINGS): ConversationState {
  const { state, input, done } = take(apply(before, said('a')), 'model-step');
  return apply(state, done(answered(input, askingFor(input, plans), { configured: { kind: 'settings', settings } })));
}

const ridingOf = (state: ConversationState): unknown =>
  state.turn?.phase.kind === 'model' ? state.turn.phase.riding.map(({ id }) => id) : [];

test('calls that are all quick ride together, and their results have their place in the context before they are made', () => {
  const { input, id } = take(round([QUICK, QUICK]), 'model-step');
  expect(id).toBe('turn_0001/m2');
  expect(input.tools).toMatchObject([
    { callId: 'turn_0001/c1', slot: 3, askedIn: 2, plan: QUICK },
    { callId: 'turn_0001/c2', slot: 4, askedIn: 2, plan: QUICK },
  ]);
  expect(listSlots(input.call.context)).toEqual([1, 2, 3, 4]);
});

describe('none rides', () => {
  test.each<[string, ToolPlan]>([
    ['one that is not quick', ORDINARY],
    ['one that a person must allow', asks],
    ['one that a rule forbids', { ...QUICK, approval: { policy: 'deny', why: 'no.' } }],
    ['a question', { ...QUICK, workflowAction: { kind: 'ask-person', expiresMs: 1_000 } }],
    ['a wait', { ...QUICK, workflowAction: { kind: 'wait-until', until: 5_000 } }],
    ['a wait of some seconds', { ...QUICK, workflowAction: { kind: 'wait-for', ms: 5_000 } }],
    ['a compaction', { ...QUICK, workflowAction: { kind: 'compact' } }],
    ['a delegation', delegates],
  ])('beside %s, in whatever place', (_, other) => {
    for (const plans of [
      [other, QUICK, QUICK],
      [QUICK, other, QUICK],
      [QUICK, QUICK, other],
    ]) {
      const state = round(plans);
      expect(ridingOf(state)).toEqual([]);
      expect(state.turn?.phase.kind).toBe('tools');
    }
  });

  test.each<[string, ConversationEvent]>([
    ['while somebody steps', { kind: 'mode-set', mode: 'stepping', at: AT }],
    ['with a breakpoint at one of them', { kind: 'breakpoints-set', breakpoints: { tools: ['tool'] }, at: AT }],
    ['with a breakpoint at errors', { kind: 'breakpoints-set', breakpoints: { onError: true }, at: AT }],
    ['with a breakpoint at a cost', { kind: 'breakpoints-set', breakpoints: { costUsd: 100 }, at: AT }],
    ['when somebody has asked for a compaction', { kind: 'compaction-requested', requestId: 'c', at: AT }],
  ])('%s', (_, event) => {
    const { state, input, done } = take(apply(open(), said('a')), 'model-step');
    // Settings are known from the first turn on.
    const second = take(apply(settle(apply(state, done(answered(input)))).state, said('b')), 'model-step');
    const held = applyAll(second.state, event, second.done(answered(second.input, askingFor(second.input, [QUICK, QUICK]))));
    expect(ridingOf(held)).toEqual([]);
  });

  test('with a breakpoint at another tool they do', () => {
    const broken = apply(open(), { kind: 'breakpoints-set', breakpoints: { tools: ['other'] }, at: AT });
    expect(ridingOf(round([QUICK], broken))).toEqual(['turn_0001/c1']);
  });

  test('over the budget: a call would not follow', () => {
    const poor = { ...SETTINGS, budget: { maxTokens: 15 } };
    expect(ridingOf(round([QUICK], open(), poor))).toEqual([]);
    expect(nameOf(nextStep(round([QUICK], open(), poor)))).toBe('run-tool');
  });

  test('when the context is to become shorter first', () => {
    expect(ridingOf(round([QUICK], open(), { ...SETTINGS, compactionRatio: 0.000_01 }))).toEqual([]);
  });

  test('of a round of seventeen', () => {
    expect(ridingOf(round(Array<ToolPlan>(16).fill(QUICK)))).toHaveLength(16);
    expect(ridingOf(round(Array<ToolPlan>(17).fill(QUICK)))).toEqual([]);
  });
});

describe('(turn/no-reason-defers-twice) a step that came back without a call', () => {
  const reasons: DeferReason[] = ['truncation', 'compaction', 'duplicate', 'budget'];

  test.each(reasons)('because of %s is a call of a new number, with a slot of its own, and names the reason', (reason) => {
    const { state, input, id, done } = take(round([QUICK, QUICK]), 'model-step');
    const next = take(apply(state, done(deferred(input, reason))), 'model-step');
    expect([id, next.id]).toEqual(['turn_0001/m2', 'turn_0001/m3']);
    expect(next.input).toMatchObject({ deferred: [reason], tools: [], configure: null });
    expect(next.input.call.slot).toBeGreaterThan(input.call.slot);
    // The slot of the call that never was stays empty.
    expect(listSlots(next.input.call.context)).toEqual(listSlots(input.call.context));
  });

  test('because of what was said earlier brings a notice of the turn, behind its message, which the next step writes and counts', () => {
    const { state, input, done } = take(apply(open(), said('a')), 'model-step');
    const output = { ...deferred(input, 'recall'), recalled: '[RECALLED] The dentist is Dr. Brandt' } as ModelStepResult;
    const next = take(apply(state, done(output)), 'model-step');
    const [message = 0] = listSlots(input.call.context);
    const [, notice = 0, ...more] = listSlots(next.input.call.context);
    expect([listSlots(next.input.call.context)[0], more]).toEqual([message, []]);
    expect(next.input).toMatchObject({ deferred: ['recall'] });
    expect(next.input.call.soFar).toBeUndefined();
    expect(next.input.write.settle).toEqual([
      {
        effect: 'turn_0001/recall',
        entry: expect.objectContaining({
          slot: notice,
          turn: 'turn_0001',
          message: { role: 'user', text: '[RECALLED] The dentist is Dr. Brandt', from: 'notice' },
        }),
      },
    ]);
    expect(next.input.numbers.contextTokens).toBeGreaterThan(input.numbers.contextTokens);
  });

  test('takes the tools that did not run along again', () => {
    const { state, input, done } = take(round([QUICK, QUICK]), 'model-step');
    const [first] = rode(input);
    const next = take(apply(state, done(deferred(input, 'duplicate', { tools: [first!] }))), 'model-step');
    expect(next.input.tools.map(({ callId }) => callId)).toEqual(['turn_0001/c2']);
    expect(listSlots(next.input.call.context)).toEqual([1, 2, 3, 4]);
  });

  test('has read the settings: no other step of its turn reads them, and the next turn does', () => {
    const { state, input, done } = take(apply(open(), said('a')), 'model-step');
    expect(input.configure).toMatchObject({ knownHash: null });
    const next = take(apply(state, done(deferred(input, 'truncation'))), 'model-step');
    expect(next.input).toMatchObject({ configure: null, settings: { agentHash: SETTINGS.agentHash } });
    const third = take(applyAll(next.state, said('b'), next.done(answered(next.input))), 'model-step');
    expect(third.input).toMatchObject({ configure: { knownHash: SETTINGS.hash } });
    expect(third.input.deferred).toBeUndefined();
  });
});

describe('what a step costs is counted once', () => {
  const answers = { answer: { usage: USAGE } } as unknown as JsonValue;
  const paid = (state: ConversationState): number => state.usage.inputTokens;
  /** A fence that came too late. */
  const fencing = (state: ConversationState, results: Record<string, JsonValue>): ConversationState => {
    const { state: writing, input, done } = take(state, 'store-step');
    const committed = input.write.settle.flatMap(({ effect }: Settlement) =>
      results[effect] === undefined ? [] : [{ effect, result: results[effect] }],
    );
    expect(committed).toHaveLength(Object.keys(results).length);
    return apply(writing, done(stored(input, { written: written(input.write, { committed }) })));
  };
  const spent = { ...USAGE, inputTokens: 7 };

  test('by its late result or by its fence, whichever comes first', () => {
    const step = take(round([QUICK, QUICK]), 'model-step');
    const gone = applyAll(step.state, ...interrupted(2000), { kind: 'time-passed', at: 4000 });
    const late = step.done(answered(step.input, {}, { tools: rode(step.input, { usage: spent }) }), 5000);
    const results = { [step.id]: answers, 'turn_0001/c1': { usage: spent } as unknown as JsonValue };
    expect(paid(gone)).toBe(10);
    expect(paid(apply(gone, late))).toBe(10 + 7 + 7 + 10);
    expect(paid(applyAll(gone, late, late))).toBe(34);
    expect(paid(fencing(gone, results))).toBe(10 + 7 + 10);
    expect(paid(apply(fencing(gone, results), late))).toBe(34);
    expect(paid(fencing(apply(gone, late), results))).toBe(34);
  });

  test('when it had committed and was lost: its fence reports it', () => {
    const step = take(apply(open(), said('a')), 'model-step');
    const lost = apply(step.state, step.failed({ type: 'lost', message: 'the worker died', transient: false }));
    expect(lost.turn).toBeNull();
    expect(paid(fencing(lost, { [step.id]: answers }))).toBe(10);
  });

  test('when a tool had committed and was lost, too', () => {
    const tool = take(round([ORDINARY]), 'run-tool');
    const lost = apply(tool.state, tool.failed({ type: 'lost', message: 'the worker died', transient: false }));
    const calling = take(lost, 'model-step');
    const committed = [{ effect: tool.id, result: { usage: spent } as unknown as JsonValue }];
    const told = answered(calling.input, {}, { written: written(calling.input.write, { committed }) });
    expect(paid(apply(calling.state, calling.done(told)))).toBe(10 + 7 + 10);
  });

  test('of a tool that had ridden on a step which the store failed, the model is told that its outcome is unknown', () => {
    const step = take(round([QUICK]), 'model-step');
    const stopped = applyAll(step.state, step.failed(STORE_AWAY), { kind: 'interrupt-requested', reason: null, at: 2000 });
    expect(stopped.outbox.settle).toMatchObject([{ effect: step.id }, { entry: { message: { outcome: 'unknown' } } }]);
  });
});

/** What a step knows and what the workflow comes to know are numbers of one kind. */
const numbers = fc.record({
  contextTokens: fc.nat(2_000),
  shownOnce: fc.nat(100),
  reported: fc.option(fc.nat(2_000)),
  /** What the context kept after the turn's last truncation. */
  rest: fc.option(fc.nat(2_000)),
  compactsFrom: fc.nat(2_000),
  usage: fc.constant(USAGE),
  budget: fc.option(fc.record({ maxTokens: fc.nat(100) })),
});
const gate: fc.Arbitrary<GateSettings> = fc.record({
  contextBudget: fc.integer({ min: 1, max: 2_000 }),
  compactionRatio: fc.constantFrom(0.1, 0.5, 0.8, 1),
  thresholds: fc.record({
    soft: fc.constant(1_000_000),
    hard: fc.nat(2_000),
    truncation: fc.nat(2_000),
    autoCompact: fc.boolean(),
    suggests: fc.constant(false),
  }),
});
const result = fc.record({
  characters: fc.nat(8_000),
  item: fc.option(fc.constant({ id: 'i1', citation: 'cited' }), { nil: undefined }),
  usage: fc.option(fc.constant({ ...USAGE, inputTokens: 30 }), { nil: undefined }),
});

test('the workflow and the step decide alike about a call, by the numbers and the results of what rode', () => {
  fc.assert(
    fc.property(gate, numbers, fc.array(result, { minLength: 1, maxLength: 5 }), (limits, { rest, ...drawn }, results) => {
      const truncatesFrom = rest === null ? 0 : rest + Math.ceil(limits.thresholds.truncation / 20);
      const given: CallNumbers = { ...drawn, truncatesFrom };
      const base = round(results.map(() => QUICK));
      const step = take(base, 'model-step');
      const settings = { ...SETTINGS, ...limits };
      const { contextTokens, shownOnce, reported, budget, usage } = given;
      const turn = step.state.turn!;
      const state: ConversationState = {
        ...step.state,
        ...{ settings, contextTokens, usage, ...(budget && { budget }) },
        compaction: {
          ...step.state.compaction,
          ...{ shownOnce, reported },
          rest: { tokens: given.compactsFrom ?? 0 },
          ...(rest !== null && { truncationRest: { turn: turn.number, tokens: rest } }),
        },
      };
      expect(numbersOf(state)).toEqual(given);

      const tools = step.input.tools.map((tool, i) => {
        const { characters, item, usage: tokens } = results[i]!;
        const run = finished({ session: 1, turn: step.input.turn, ...tool }, { text: 'x'.repeat(characters) });
        return { ...run, ...(item && { item }), ...(tokens && { usage: tokens }) };
      });
      const found = tools.reduce<CallNumbers>((now, tool) => {
        const counted = withResultCounted(now, tool, settings.contextBudget);
        return tool.usage ? { ...counted, usage: addUsage(counted.usage, tool.usage) } : counted;
      }, given);
      const obstacle = obstacleTo(found, settings);

      const told = apply(state, step.done(deferred(step.input, obstacle ?? 'duplicate', { tools })));
      if (obstacle === 'budget') expect(told.ended.at(-1)).toMatchObject({ stopReason: 'budget' });
      else {
        expect(numbersOf(told)).toEqual(found);
        const expected = obstacleTo(found, settings);
        expect(nameOf(nextStep(told))).toBe(expected === 'truncation' ? 'truncate' : expected === 'compaction' ? 'compact' : 'model-step');
      }
    }),
    { numRuns: 300 },
  );
});
