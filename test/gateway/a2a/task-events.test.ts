/** Turns as updates of a task, frame by frame. */
import type { Pending } from '../../../src/client.js';
import { readDecisions, wasTaken } from '../../../src/gateway/a2a/request.js';
import { createTaskEvents, renderTask, type TaskFacts, readTaskId, taskName } from '../../../src/gateway/a2a/task.js';
import { callFingerprint } from '../../../src/memory/bodies.js';
import { deltasOf } from '../../support/turn-events.js';
import type { TurnEvent } from '../../../src/records/feed-event.js';
import type { AssistantBlock, ConversationMessage, Entry } from '../../../src/records/message.js';

const name = taskName('trip', 'turn_0001');
const turn = 'turn_0001';
const ids = { taskId: name.task, contextId: 'trip' };
const text = (call: string, words: string, attempt = 'a'): TurnEvent => ({ kind: 'text', turn, call, attempt, text: words });

let slot = 0;
const entry = (message: ConversationMessage, messageId?: string): Entry => ({
  ...{ v: 1, slot: (slot += 1), session: 1, turn, seq: slot, ts: 1_700_000_000, message },
  ...(messageId !== undefined && { messageId }),
});
const user = (words: string): Entry => entry({ role: 'user', text: words }, 'm1');
const said = (...blocks: AssistantBlock[]): Entry => entry({ role: 'assistant', blocks, model: 'x/y', stop: 'end' });
const words = (value: string): AssistantBlock => ({ kind: 'text', text: value });
const ended = (entries: readonly Entry[], stopReason: 'end' | 'failed' | 'interrupted' | 'refused' = 'end', error?: string): TaskFacts => ({
  ...{ name, entries, waiting: [] },
  end: { stopReason, text: '', ...(error !== undefined && { error: { type: 'auth', message: error } }) },
});

/** What the encoder makes of live events, and then of the end. */
async function frames(events: readonly TurnEvent[], facts: TaskFacts): Promise<object[]> {
  const encoder = createTaskEvents(name);
  const live = (await deltasOf(events)).flatMap(({ view, changes }) => [
    ...encoder.show(view),
    ...changes.flatMap((change) => encoder.take(change)),
  ]);
  return [...live, ...encoder.end(facts)];
}

const chunk = (at: number, value: string, append: boolean, lastChunk: boolean): object => ({
  artifactUpdate: { ...ids, artifact: { artifactId: `turn_0001-${at}`, name: 'answer', parts: [{ text: value }] }, append, lastChunk },
});
const status = (state: string, stopReason: string, message?: string): object => ({
  statusUpdate: {
    ...ids,
    status: {
      state: `TASK_STATE_${state}`,
      ...(message !== undefined && { message: { messageId: 'turn_0001-status', ...ids, role: 'ROLE_AGENT', parts: [{ text: message }] } }),
      timestamp: '2023-11-14T22:13:20.000Z',
    },
    metadata: { stopReason },
  },
});

test('a text is an artifact in chunks', async () => {
  expect(await frames([text('c1', 'Os'), text('c1', 'lo')], ended([user('where'), said(words('Oslo'))]))).toEqual([
    chunk(1, 'Os', false, false),
    chunk(1, 'lo', true, false),
    chunk(1, '', true, true),
    status('COMPLETED', 'end'),
  ]);
});

test('what a failed attempt had said is replaced by nothing, and the next one goes on there', async () => {
  const events: TurnEvent[] = [text('c1', 'Ber'), { kind: 'reset', turn, call: 'c1', attempt: 'b' }, text('c1', 'Oslo', 'b')];
  expect(await frames(events, ended([said(words('Oslo'))]))).toEqual([
    chunk(1, 'Ber', false, false),
    chunk(1, '', false, false),
    chunk(1, 'Oslo', true, false),
    chunk(1, '', true, true),
    status('COMPLETED', 'end'),
  ]);
});

test('a text before tools is an artifact of its own, and the tool shows', async () => {
  const events: TurnEvent[] = [
    text('c1', 'I look.'),
    { kind: 'tool-started', turn, callId: 'turn_0001/c1', name: 'read_file', input: '{}' },
    text('c2', 'Done.'),
  ];
  expect(await frames(events, ended([said(words('I look.')), said(words('Done.'))]))).toEqual([
    chunk(1, 'I look.', false, false),
    chunk(1, '', true, true),
    { statusUpdate: { ...ids, status: { state: 'TASK_STATE_WORKING' }, metadata: { tool: 'read_file', callId: 'turn_0001/c1' } } },
    chunk(2, 'Done.', false, false),
    chunk(2, '', true, true),
    status('COMPLETED', 'end'),
  ]);
});

test('what streaming has missed is appended, and what it had otherwise is replaced', async () => {
  expect((await frames([text('c1', 'Os')], ended([said(words('Oslo'))]))).slice(1)).toEqual([
    chunk(1, 'lo', true, true),
    status('COMPLETED', 'end'),
  ]);
  expect((await frames([text('c1', 'Bergen')], ended([said(words('Oslo')), said(words('End'))]))).slice(1)).toEqual([
    chunk(1, 'Oslo', false, true),
    chunk(2, 'End', false, true),
    status('COMPLETED', 'end'),
  ]);
  expect((await frames([text('c1', 'Half')], ended([user('x')], 'failed', 'no key'))).slice(1)).toEqual([
    chunk(1, '', false, true),
    status('FAILED', 'failed', 'no key'),
  ]);
});

test.each([
  ['interrupted', 'CANCELED', undefined],
  ['refused', 'REJECTED', 'The model refused to answer.'],
] as const)('%s', async (stopReason, state, message) => {
  expect(await frames([], ended([user('x')], stopReason))).toEqual([status(state, stopReason, message)]);
});

test('a task has what was said and asked as its history, counted from the end', () => {
  const asks: AssistantBlock = { kind: 'tool-call', callId: 'turn_0001/c1', name: 'ask_user', input: { question: 'Where?' } };
  const answered: Entry = entry({ role: 'tool', callId: 'turn_0001/c1', name: 'ask_user', outcome: 'ok', text: 'Oslo' });
  const facts = ended([user('plan'), said(asks), answered, said(words('Good.'))]);
  const task = renderTask(facts);
  expect(task.history.map(({ messageId, role, parts }) => [messageId, role, parts])).toEqual([
    ['m1', 'ROLE_USER', [{ text: 'plan' }]],
    ['turn_0001/c1', 'ROLE_AGENT', [{ text: 'Where?' }]],
    ['turn_0001/c1-answer', 'ROLE_USER', [{ text: 'Oslo' }]],
  ]);
  expect([0, 1, 9].map((historyLength) => renderTask(facts, { historyLength }).history.length)).toEqual([0, 1, 3]);
  expect(task.artifacts).toEqual([{ artifactId: 'turn_0001-1', name: 'answer', parts: [{ text: 'Good.' }] }]);
});

test('an id names what it was made of, and nothing else does', () => {
  for (const context of ['trip', 'Straße:turn_0009', 'ü'.repeat(256)]) {
    expect(readTaskId(taskName(context, 'turn_0012').task)).toEqual(taskName(context, 'turn_0012'));
  }
  const known = taskName('trip', 'turn_0001').task;
  for (const forged of ['', 'x', `${known}=`, `${known} `, taskName('', turn).task, taskName('x'.repeat(257), turn).task]) {
    expect(readTaskId(forged)).toBeUndefined();
  }
});

describe('what decides', () => {
  const input = { path: 'a' };
  const hash = callFingerprint('write_file', input);
  const pending = (more: Partial<Pending>): Pending => ({
    ...{ via: 'trip', conversation: 'trip', callId: 'turn_0001/c1', turnId: turn, kind: 'approval', tool: 'write_file', target: 'a', hash },
    ...{ askedIn: 1, askedAt: 0, expiresAt: 1, ...more },
  });
  const approval = pending({});
  const question = pending({ kind: 'question', callId: 'turn_0001/c2', tool: 'ask_user', hash: 'c'.repeat(64) });
  const inSub = pending({ conversation: 'trip/x', callId: 'turn_0001/c3', hash: 'd'.repeat(64) });
  const read = (words: string, waiting: Pending[], ...data: object[]): unknown =>
    readDecisions({ text: words, data: data as never[] }, waiting);
  const decided = (decision: string, more: object = {}): object => ({ callId: 'turn_0001/c1', hash, decision, ...more });

  test('words', () => {
    expect(read(`Approve ${hash.slice(0, 12)}`, [approval])).toEqual([decided('approve')]);
    expect(read(`deny ${hash}: too early`, [approval, question])).toEqual([decided('deny', { note: 'too early' })]);
    expect(read('Deny, not now', [approval])).toEqual([decided('deny', { note: 'not now' })]);
    expect(read('deny', [approval, question])).toEqual([
      { callId: 'turn_0001/c2', hash: question.hash, decision: 'approve', note: 'deny' },
    ]);
    expect(read('approve', [question])).toEqual([{ callId: 'turn_0001/c2', hash: question.hash, decision: 'approve', note: 'approve' }]);
    expect(read(`approve ${'d'.repeat(12)}`, [approval, inSub])).toEqual([
      { callId: 'turn_0001/c3', hash: inSub.hash, decision: 'approve', conversation: 'trip/x' },
    ]);
  });

  test.each([
    ['approve', [approval]],
    ['yes', [approval]],
    ['deny', [approval, inSub]],
    [`approve ${hash.slice(0, 8)}`, [approval]],
    [`approve ${'e'.repeat(12)}`, [approval]],
    ['', [question]],
  ])('refused: %j', (words, waiting) => {
    expect(() => read(words, waiting)).toThrow();
  });

  test('data', () => {
    expect(read('', [approval], { decision: 'approve', hash, always: true })).toEqual([decided('approve', { always: true })]);
    expect(read('', [approval], { decision: 'deny', callId: 'turn_0001/c1', note: 'no' })).toEqual([decided('deny', { note: 'no' })]);
    expect(read('', [approval, question], { answer: 'blue' })).toEqual([
      { callId: 'turn_0001/c2', hash: question.hash, decision: 'approve', note: 'blue' },
    ]);
    for (const wrong of [
      { decision: 'approve' },
      { decision: 'approve', callId: 'turn_0001/c1' },
      { decision: 'approve', hash: 'e'.repeat(64) },
      { decision: 'perhaps', hash },
      { decision: 'deny', callId: 'turn_0009/c1' },
    ]) {
      expect(() => read('', [approval], wrong)).toThrow();
    }
    expect(() => read('', [approval, inSub], { decision: 'deny' })).toThrow(/several/);
  });

  test('what was taken before is known by its words or its call', () => {
    const call = said({ kind: 'tool-call', callId: 'turn_0001/c1', name: 'write_file', input });
    const answered = entry({ role: 'tool', callId: 'turn_0001/c2', name: 'ask_user', outcome: 'ok', text: 'blue' });
    const known = (words: string, ...data: object[]): boolean => wasTaken({ text: words, data: data as never[] }, [call, answered]);
    expect([known('blue'), known(`approve ${hash.slice(0, 12)}`), known('', { decision: 'approve', hash })]).toEqual([true, true, true]);
    expect([known('red'), known('approve'), known(`approve ${'e'.repeat(12)}`), known('')]).toEqual([false, false, false, false]);
  });
});
