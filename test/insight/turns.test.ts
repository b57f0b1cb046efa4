import type { STOP_REASONS } from '../../src/conversation/protocol/contract.js';
import { inspectTurns, explainEnd } from '../../src/insight/turns.js';
import type { Entry } from '../../src/records/message.js';
import { answer, calls, chat, conversation, result, user } from '../memory/builders.js';

test('a turn: when it began, how long it took, what was asked, how many tools it called', () => {
  const entries: Entry[] = conversation(
    [1, user('first\nquestion'), calls(['c1'], ['c2']), result('c1'), result('c2'), answer('done')],
    [2, { role: 'user', from: 'notice', text: 'The context fills.' }, user('second'), answer('done')],
    [3, { role: 'user', from: 'app', text: 'it rains' }],
  );
  expect(inspectTurns(entries, [], 10)).toEqual([
    { turn: 'turn_0001', startedAt: new Date(1738100001_000), durationMs: 4_000, messages: 5, toolCalls: 2, question: 'first question' },
    { turn: 'turn_0002', startedAt: new Date(1738100006_000), durationMs: 2_000, messages: 3, toolCalls: 0, question: 'second' },
    { turn: 'turn_0003', startedAt: new Date(1738100009_000), durationMs: 0, messages: 1, toolCalls: 0, question: '' },
  ]);
});

test('the latest turns are shown, and a question of any length is one line of 200 characters', () => {
  const shown = inspectTurns(chat(9), [], 3);
  expect(shown.map(({ turn }) => turn)).toEqual(['turn_0007', 'turn_0008', 'turn_0009']);
  const [long] = inspectTurns(conversation([1, user('a long\n\n question '.repeat(99))]), [], 1);
  expect(long?.question).toHaveLength(200);
  expect(long?.question).not.toContain('\n');
});

test('entries of a turn that do not stand together are one turn, and it takes from its first moment to its last', () => {
  const [first, second] = chat(2);
  const late = conversation([1, answer('late')]).map((entry) => ({ ...entry, slot: 9, ts: 1738100050 }));
  const entries = [second, ...chat(2).slice(2), ...late, first].filter((entry) => entry !== undefined);
  expect(inspectTurns(entries, [], 5).find(({ turn }) => turn === 'turn_0001')).toMatchObject({ durationMs: 49_000, messages: 3 });
});

test('why a turn has no whole answer stands beside it, and beside no other', () => {
  const ends = [
    { v: 1, turn: 'turn_0001', stopReason: 'failed', error: { type: 'auth', message: 'export a key' } },
    { v: 1, turn: 'turn_0002', stopReason: 'end' },
  ] as const;
  const [first, second] = inspectTurns(chat(2), ends, 5);
  expect(first).toMatchObject({ problem: 'export a key' });
  expect(second).not.toHaveProperty('problem');
});

test.each<[(typeof STOP_REASONS)[number], string | undefined, string | undefined]>([
  ['end', undefined, 'm'],
  ['reset', undefined, undefined],
  ['continues', undefined, undefined],
  ['queued', undefined, undefined],
  ['interrupted', '(stopped)', '(stopped)'],
  ['withdrawn', '(withdrawn before it was answered)', '(withdrawn before it was answered)'],
  ['tool-limit', "stopped: the agent's limit of tool calls is reached", 'm'],
  ['budget', 'stopped: the budget is used up', 'm'],
  ['refused', 'the model refused to answer', 'm'],
  ['failed', 'the turn failed, and no reason was given', 'm'],
])('a turn that ended with %s says %j, and with the error m %j', (stopReason, alone, withError) => {
  expect(explainEnd({ stopReason })).toBe(alone);
  expect(explainEnd({ stopReason, error: { type: 't', message: 'm' } })).toBe(withError);
});
