/** What a debugger shows of one state, and the chunks of a context in words. */
import type { ContextIndex } from '../../src/conversation/protocol/contract.js';
import { contextOf, controlViewOf } from '../../src/conversation/views/view.js';
import { describeChunks, foldEarlier, pastScene, summarizeState, describeEntry, type DebugChunk } from '../../src/insight/moments.js';
import { createPast } from '../../src/conversation/replay/past.js';
import type { ConversationMessage, Entry } from '../../src/records/message.js';
import { answer, calls, result, user } from '../memory/builders.js';
import { manyTurns } from '../support/many-turns.js';
import { userEntry } from '../stores/builders.js';

const past = createPast([manyTurns(3)]);
const { state } = past.at(past.last);
const index = contextOf(state);
const control = controlViewOf(state);

const entry = (message: ConversationMessage): Entry => ({ ...userEntry(1), message });
const body = { ref: 'r', sha256: 's', bytes: 9_999, preview: 'the beginning' };

test.each<[what: string, message: ConversationMessage, words: string]>([
  ['a question', user('hello'), 'hello'],
  ['one whose text lies in the store', { role: 'user', text: body }, 'the beginning'],
  ['an answer', answer('hi'), 'hi'],
  ['calls alone', calls(['c1', 'look', { at: 1 }], ['c2']), 'look({"at":1}) look({})'],
  ['an answer with a call', { ...calls(['c1']), blocks: [...answer('I look').blocks, ...calls(['c1']).blocks] }, 'I look look({})'],
  ['thinking alone', { ...answer(''), blocks: [{ kind: 'thinking', text: 'hm', provider: 'x' }] }, ''],
  ['a result', result('c1', 'found', { outcome: 'error' }), 'look (c1) error: found'],
])('%s in words', (_what, message, words) => {
  expect(describeEntry(entry(message)).startsWith(words)).toBe(true);
  if (words === '') expect(describeEntry(entry(message))).toBe('');
});

function indexOf(chunks: ContextIndex['chunks'], total = 10): ContextIndex {
  return { ...index, chunks, total };
}

test('what stands before the messages are chunks without a slot; what the store does not have is one without words', () => {
  const chunks = describeChunks(
    indexOf([
      { kind: 'SYSTEM', tokens: 7 },
      { kind: 'MEMORY', tokens: 8, ref: 'base-1' },
      { kind: 'WORKING_FLOW', tokens: 9, slots: [[1, 2]] },
    ]),
    new Map([[1, userEntry(1, 'x'.repeat(2_000))]]),
    control,
  );
  expect(chunks).toMatchObject([
    { id: 'system', kind: 'SYSTEM', tokens: 7, words: 'system prompt and tools', drops: false },
    { id: 'memory', kind: 'MEMORY', tokens: 8, words: 'what older turns became (base-1)', drops: false },
    { id: 'chunk_1', kind: 'WORKING_FLOW', role: 'user', turn: 'turn_0001', words: 'x'.repeat(500), slot: 1 },
    { id: 'chunk_2', kind: 'WORKING_FLOW', role: '?', turn: '', tokens: 0, words: 'the store does not have it', slot: 2 },
  ]);
  expect(chunks.slice(0, 2).some((chunk) => 'slot' in chunk)).toBe(false);
});

test.each<[what: string, total: number, hard: number | null, drops: number]>([
  ['too much by half of one', 1_010, 1_000, 1],
  ['too much by more than one', 1_150, 1_000, 2],
  ['nothing too much: what would be the first', 10, 1_000, 1],
  ['a worker of an earlier version, which names no limit: the first too', 9_999, null, 1],
])('what the next truncation takes: %s', (_what, total, hard, drops) => {
  const entries = new Map(Array.from({ length: 6 }, (_, n) => [n + 1, userEntry(n + 1, 'x'.repeat(400))]));
  const flow = indexOf([{ kind: 'WORKING_FLOW', tokens: 600, slots: [[1, 6]] }], total);
  const limits = hard === null ? null : { ...control, thresholds: { soft: 1, hard, truncation: 9_999, autoCompact: true }, turn: null };
  const marked = describeChunks(flow, entries, limits).map((chunk) => chunk.drops);
  expect(marked).toEqual(Array.from({ length: 6 }, (_, n) => n < drops));
});

test('a token counter of the model’s own is used where there is one', () => {
  const flow = indexOf([{ kind: 'WORKING_FLOW', tokens: 1, slots: [[1, 1]] }]);
  const counted = (count?: () => number): number | undefined =>
    describeChunks(flow, new Map([[1, userEntry(1)]]), control, count)[0]?.tokens;
  expect((counted(() => 1_000) ?? 0) > (counted() ?? 0)).toBe(true);
});

test('a scene of the past has the same parts as one of a worker’s answers', () => {
  const moment = past.at(past.find('run-tool-started', 0, 1) ?? past.last);
  const scene = pastScene('c', moment, new Map());
  expect(Object.keys(scene)).toEqual(['id', 'status', 'queue', 'index', 'control', 'approvals', 'chunks']);
  expect(scene).toMatchObject({ id: 'c', index: contextOf(moment.state), control: controlViewOf(moment.state), queue: [], approvals: [] });
});

test('one line of a state has what a moment is found by', () => {
  expect(summarizeState(state)).toMatchObject({ phase: 'idle', mode: 'auto', session: 1, turn: 3, turns: 3, queued: 0, running: null });
  const running = past.at(past.find('model-step-started', 0, 1) ?? 0).state;
  expect(summarizeState(running)).toMatchObject({ phase: 'thinking', running: { id: 'turn_0001', calls: [] } });
});

test('of a long life the latest messages stand one by one, and those before them add up', () => {
  const flow = (slot: number): DebugChunk => ({
    ...{ id: `chunk_${slot}`, kind: 'WORKING_FLOW', tokens: slot, turn: `turn_${slot}`, role: 'user', words: '', drops: slot === 2, slot },
  });
  const system: DebugChunk = { id: 'system', kind: 'SYSTEM', tokens: 9, turn: '', role: '', words: '', drops: false };
  const all = (messages: number): DebugChunk[] => [system, ...Array.from({ length: messages }, (_, i) => flow(i + 1))];
  expect(foldEarlier(all(3), 5)).toEqual({ chunks: all(3), earlier: [] });
  for (const messages of [6, 205, 10_000]) {
    const { chunks, earlier } = foldEarlier(all(messages), 5);
    expect(chunks).toEqual([system, ...all(messages).slice(-5)]);
    expect(earlier.length).toBeLessThanOrEqual(200);
    expect(earlier.reduce((sum, one) => sum + one.messages, 0)).toBe(messages - 5);
    expect(earlier.reduce((sum, one) => sum + one.tokens, 0)).toBe(((messages - 5) * (messages - 4)) / 2);
    expect(earlier.filter(({ drops }) => drops)).toHaveLength(messages === 6 ? 0 : 1);
    expect([earlier[0]?.turns[0], earlier.at(-1)?.turns[1]]).toEqual(['turn_1', `turn_${messages - 5}`]);
  }
});
