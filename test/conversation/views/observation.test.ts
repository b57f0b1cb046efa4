/** What observers are told beside the bare event. */
import { apply } from '../../../src/conversation/apply.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import { changeOf, createMarks, eventName, finishedTools, summaryOf } from '../../../src/conversation/views/observation.js';
import { toNotifications } from '../../../src/telemetry/observer.js';
import { LATEST_RULES } from '../../../src/conversation/opening.js';
import { openConversation, type ConversationState } from '../../../src/conversation/state.js';

const AT = 1_000;

function open(): ConversationState {
  return openConversation({
    identity: { life: 'life', agent: 'default', scope: 'default' },
    conversation: 'observed',
    title: null,
    model: null,
    rules: LATEST_RULES,
    at: AT,
  });
}

/** As the workflow does it. */
function tell(state: ConversationState, event: ConversationEvent) {
  const next = apply(state, event);
  const change = changeOf(state, next, summaryOf(state));
  return { next, change, notifications: toNotifications(event, change) };
}

const completed = { kind: 'effect-completed', id: '1', at: AT } as const;
const received: ConversationEvent = { kind: 'app-event-received', id: 'e1', type: 'note', payload: 1, at: AT };

test('dispatched, then reduced, then changed, in the seed’s order', () => {
  const arrival = tell(open(), received);
  expect(arrival.notifications).toEqual([{ kind: 'event-dispatched', id: 'e1', type: 'note' }]);
  expect(arrival.change).toMatchObject({ context: false, before: { queued: 0 }, after: { queued: 1 } });
  const reduced = tell(arrival.next, {
    kind: 'app-event-reduced',
    id: 'e1',
    reduced: { kind: 'reduced', operations: [{ kind: 'ADD', chunk: { type: 'NOTE', text: 'x' } }] },
    at: AT,
  });
  expect(reduced.notifications).toEqual([
    { kind: 'reducer-executed', id: 'e1', outcome: 'reduced', operations: 1 },
    {
      kind: 'state-changed',
      before: { session: 1, epoch: 1, turn: 0, chunks: 0, contextTokens: 0, queued: 1 },
      after: { session: 1, epoch: 1, turn: 0, chunks: 1, contextTokens: expect.any(Number), queued: 0 },
    },
  ]);
});

test.each([
  [{ kind: 'reduced', operations: [] } as const, { outcome: 'reduced', operations: 0 }],
  [{ kind: 'unreduced' } as const, { outcome: 'unreduced', operations: 0 }],
  [{ kind: 'parked', error: 'no' } as const, { outcome: 'parked', operations: 0, error: 'no' }],
])('without operations nothing has changed: %j', (reduced, told) => {
  const { next } = tell(open(), received);
  expect(tell(next, { kind: 'app-event-reduced', id: 'e1', reduced, at: AT }).notifications).toEqual([
    { kind: 'reducer-executed', id: 'e1', ...told },
  ]);
});

test('a turn that begins is reported once, and a step with its answer', () => {
  const stepping = tell(open(), { kind: 'mode-set', mode: 'stepping', at: AT }).next;
  const step = tell(stepping, { kind: 'step-requested', id: 's1', at: AT });
  expect(step.notifications).toEqual([{ kind: 'step', result: expect.objectContaining({ stepId: 's1', did: 'nothing' }) }]);
  expect(tell(step.next, { kind: 'time-passed', at: AT }).change).toBeUndefined();
});

test('a compaction and a truncation in numbers', () => {
  const output = {
    kind: 'compacted',
    epoch: 2,
    turns: ['turn_0001'],
    method: 'rules',
    record: { compactor: 'WorkingFlowCompactor' },
    tokensBefore: 9,
    tokensAfter: 3,
    base: { text: 'private' },
  };
  expect(toNotifications({ ...completed, effect: 'compact', output } as unknown as ConversationEvent, undefined)).toEqual([
    {
      kind: 'compaction',
      epoch: 2,
      turns: ['turn_0001'],
      method: 'rules',
      compactor: 'WorkingFlowCompactor',
      tokensBefore: 9,
      tokensAfter: 3,
    },
  ]);
  const truncated = (entries: number) =>
    ({ ...completed, effect: 'truncate', output: { life: 'l', epoch: 1, dropped: [], tokens: 7, entries } }) as ConversationEvent;
  expect(toNotifications(truncated(2), undefined)).toEqual([{ kind: 'truncation', epoch: 1, entries: 2, tokens: 7 }]);
  expect(toNotifications(truncated(0), undefined)).toEqual([]);
});

test('done again with something before it, each event has the mark that it had; the same again is another', () => {
  const passed: ConversationEvent = { kind: 'time-passed', at: AT };
  const [first, second] = [createMarks(), createMarks()];
  const told = [received, passed, passed].map(first);
  expect(new Set(told).size).toBe(3);
  const again = [{ ...received, id: 'e0' }, { ...received, at: AT + 1 }, passed, passed].map(second);
  expect(again.slice(1)).toEqual(told);
  expect(told).not.toContain(again[0]);
});

test('one effect is told from another by its name and its id', () => {
  const mark = createMarks();
  const failure = { type: 'store', message: 'away', transient: true };
  const failed = (effect: 'heal' | 'report', id: string): ConversationEvent => ({ kind: 'effect-failed', effect, id, failure, at: AT });
  expect(new Set([failed('heal', '1'), failed('heal', '2'), failed('report', '1'), failed('heal', '1')].map(mark)).size).toBe(4);
  expect([eventName(failed('heal', '1')), eventName(received)]).toEqual(['heal-failed', 'app-event-received']);
});

test('tools are finished by a run of their own, or by the model step on which they rode', () => {
  const ran = (callId: string) => ({ callId, outcome: 'ok' });
  const alone = { ...completed, effect: 'run-tool', output: ran('c1') } as ConversationEvent;
  const rode = {
    ...completed,
    effect: 'model-step',
    output: { kind: 'deferred', tools: [ran('c2'), ran('c3')] },
  } as unknown as ConversationEvent;
  expect([alone, rode, received].map((event) => finishedTools(event).map(({ callId }) => callId))).toEqual([['c1'], ['c2', 'c3'], []]);
});

test('a turn is reported with its messages, its scope and the trace of its request, as it begins and as it ends', () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const message = { kind: 'message-received', messageId: 'm1', delivery: 'queue', text: 'go', traceparent, at: AT } as const;
  const arrival = tell(open(), message).next;
  const begun = tell(arrival, { kind: 'turn-begun', at: AT });
  const news = { turnId: 'turn_0001', scope: 'default', messageIds: ['m1'], traceparent };
  expect(begun.change?.turn).toMatchObject(news);
  // Stopped before it asks anything, it ends at once: a worker that has not seen it begin is told as much.
  const stopped = tell(arrival, { kind: 'interrupt-requested', reason: null, at: AT }).next;
  expect(tell(stopped, { kind: 'turn-begun', at: AT }).change?.turn).toMatchObject({ turnId: 'turn_0001', scope: 'default' });
});
