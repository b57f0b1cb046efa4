/** Recorded turns and cases of datasets: taken out of conversations, kept in files, and played again. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addCase, listDatasets, readDataset, removeCase } from '../../src/evals/dataset.js';
import { toCase } from '../../src/evals/from-conversation.js';
import type { DatasetCase, EvalDefinition } from '../../src/evals/index.js';
import { takeTurns, type RecordedTurn } from '../../src/evals/recorded.js';
import { runEval } from '../../src/evals/run-eval.js';
import { createModels } from '../../src/models/providers.js';
import type { Entry } from '../../src/records/message.js';
import { callTool, createScriptedModel } from '../../src/testing/index.js';

let dir: string;
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), 'perdura-datasets-'))));
afterEach(() => rmSync(dir, { recursive: true }));

const file = (name: string): string => join(dir, 'evals', 'datasets', `${name}.jsonl`);
const turn = (n: number, more: Partial<RecordedTurn> = {}): RecordedTurn => ({
  ...{ turn: `turn_000${n}`, message: `message ${n}`, answers: [{ text: `answer ${n}` }], results: [] },
  ...more,
});
const one = (id: string, ...labels: string[]): DatasetCase => ({ id, agent: 'default', labels, before: [], turn: turn(Number(id.at(-1))) });

test('cases stand in the order of their ids, a line each, whatever the order in which they came', async () => {
  for (const id of ['b/turn_0002', 'a/turn_0001', 'c/turn_0003']) await addCase(dir, 'some', one(id, 'x'));
  const text = readFileSync(file('some'), 'utf8');
  expect(text.split('\n').map((line) => (line === '' ? '' : (JSON.parse(line) as DatasetCase).id))).toEqual([
    'a/turn_0001',
    'b/turn_0002',
    'c/turn_0003',
    '',
  ]);
  rmSync(file('some'));
  for (const id of ['c/turn_0003', 'b/turn_0002', 'a/turn_0001']) await addCase(dir, 'some', one(id, 'x'));
  expect(readFileSync(file('some'), 'utf8')).toBe(text);
  expect(await readDataset(dir, 'some')).toEqual([one('a/turn_0001', 'x'), one('b/turn_0002', 'x'), one('c/turn_0003', 'x')]);
});

test('the same turn twice is one case, with the labels of both; many writers at once lose nothing', async () => {
  expect(await addCase(dir, 'some', one('a/turn_0001', 'x'))).toMatchObject({ isNew: true, cases: 1 });
  expect(await addCase(dir, 'some', one('a/turn_0001', 'b', 'x'))).toMatchObject({ isNew: false, cases: 1, labels: ['b', 'x'] });
  await Promise.all(Array.from({ length: 12 }, (_, n) => addCase(dir, 'some', one(`c${n}/turn_0001`))));
  expect(await readDataset(dir, 'some')).toHaveLength(13);
  await addCase(dir, 'other', one('a/turn_0001', 'x'));
  expect(await listDatasets(dir)).toEqual([
    { name: 'other', cases: 1, labels: { x: 1 } },
    { name: 'some', cases: 13, labels: { b: 1, x: 1 } },
  ]);
  expect(await removeCase(dir, 'some', 'c3/turn_0001')).toMatchObject({ cases: 12 });
  await expect(removeCase(dir, 'some', 'c3/turn_0001')).rejects.toThrow(/the dataset some has no case c3\/turn_0001: .*lists its 12 cases/);
});

const GOOD = JSON.stringify(one('a/turn_0001'));
test.each<[what: string, text: string, words: RegExp]>([
  ['no JSON', `${GOOD}\n{"id":`, /some\.jsonl:2 is no JSON: .*; a case is one JSON object on one line/],
  ['marks of git', `<<<<<<< HEAD\n${GOOD}\n=======\n`, /some\.jsonl:1 is what git leaves where two versions meet/],
  ['the same case twice', `${GOOD}\n\n${GOOD}\n`, /some\.jsonl:3 has the case a\/turn_0001 again, which is in line 1/],
  ['an id that is none', GOOD.replace('a/turn_0001', 'a'), /some\.jsonl:1 is no case: id: must be CONVERSATION\/TURN/],
  ['a field too many', GOOD.replace('"agent"', '"agnet"'), /some\.jsonl:1 is no case: /],
  ['a label that is a path', GOOD.replace('"labels":[]', '"labels":["../x"]'), /some\.jsonl:1 is no case: labels\.0: /],
  ['a list', '[1]', /some\.jsonl:1 is no case: it: /],
  ['a name from elsewhere', GOOD.replace('"message 1"', '7'), /some\.jsonl:1 is no case: turn\.message: /],
])('%s is named by file and line, and nothing is written over it', async (_what, text, words) => {
  mkdirSync(join(dir, 'evals', 'datasets'), { recursive: true });
  writeFileSync(file('some'), text);
  await expect(readDataset(dir, 'some')).rejects.toThrow(words);
  await expect(addCase(dir, 'some', one('b/turn_0002'))).rejects.toThrow(words);
  expect(readFileSync(file('some'), 'utf8')).toBe(text);
});

test('names that lead elsewhere, labels that are none and cases that are too large are refused', async () => {
  await expect(readDataset(dir, '../../x')).rejects.toThrow(/"\.\.\/\.\.\/x" is no name of a dataset/);
  await expect(readDataset(dir, 'none')).rejects.toThrow(/there is no dataset none: .* begins it/);
  await expect(addCase(dir, 'some', one('a/turn_0001', 'two words'))).rejects.toThrow(/"two words" is no label/);
  await expect(addCase(dir, 'some', { ...one('a/turn_0001'), before: [turn(1, { message: 'x'.repeat(2 ** 20) })] })).rejects.toThrow(
    /takes \d+ bytes .* \(--before\)/,
  );
});

const at = { v: 1 as const, ts: 1_700_000_000 };
function entries(...messages: readonly (Pick<Entry, 'message' | 'turn'> & { readonly session?: number })[]): Entry[] {
  return messages.map(({ session = 1, ...rest }, slot) => ({ ...at, slot: slot + 1, session, seq: slot + 1, ...rest }));
}
const person = (text: string): Entry['message'] => ({ role: 'user', text });
const model = (text: string, ...calls: readonly [callId: string, name: string, input: object][]): Entry['message'] => ({
  ...{ role: 'assistant', model: 'x/y', stop: calls.length > 0 ? 'tool-calls' : 'end' },
  blocks: [
    ...(text === '' ? [] : [{ kind: 'text' as const, text }]),
    ...calls.map(([callId, name, input]) => ({ kind: 'tool-call' as const, callId, name, input: input as never })),
  ],
});
const result = (callId: string, name: string, text: string, outcome: 'ok' | 'rejected' = 'ok'): Entry['message'] => ({
  role: 'tool',
  callId,
  name,
  text,
  outcome,
});

test('turns are taken with answers and results, without secrets and long-term memory; what is not as it was is named', () => {
  const given = {
    entries: entries(
      { turn: 'turn_0001', message: person('my word is hunter2-hunter2') },
      { turn: 'turn_0001', message: model('Let me see.', ['c1', 'search_memory', { query: 'hunter2-hunter2' }], ['c2', 'book', { n: 1 }]) },
      { turn: 'turn_0001', message: result('c1', 'search_memory', 'Ada was ill') },
      { turn: 'turn_0001', message: result('c2', 'book', 'booked') },
      { turn: 'turn_0001', message: person('and quickly') },
      { turn: 'turn_0001', message: model('Done.') },
      { turn: 'turn_0002', message: person('again') },
      { turn: 'turn_0003', message: person('stop') },
      { turn: 'turn_0003', message: model('Half') },
      { turn: 'turn_0004', session: 2, message: person('new') },
      { turn: 'turn_0004', session: 2, message: model('Hello.') },
    ),
    ends: [{ v: 1 as const, turn: 'turn_0003', stopReason: 'interrupted' as const }],
    redact: (text: string) => text.replaceAll('hunter2-hunter2', '[redacted]'),
  };
  const { turns, gaps } = takeTurns({ ...given, withMemory: false });
  expect(turns).toEqual([
    {
      turn: 'turn_0001',
      message: 'my word is [redacted]\n\nand quickly',
      answers: [
        {
          text: 'Let me see.',
          calls: [
            { name: 'search_memory', input: { query: '[redacted]' } },
            { name: 'book', input: { n: 1 } },
          ],
        },
        { text: 'Done.' },
      ],
      results: [
        { name: 'search_memory', input: { query: '[redacted]' }, outcome: 'ok', text: '[left out: long-term memory]' },
        { name: 'book', input: { n: 1 }, outcome: 'ok', text: 'booked' },
      ],
    },
    { turn: 'turn_0004', newSession: true, message: 'new', answers: [{ text: 'Hello.' }], results: [] },
  ]);
  expect(gaps).toEqual([
    'turn_0001: what was added while it ran is sent with its first message',
    'turn_0002 is left out: it has no answer',
    'turn_0003 is left out: it ended with interrupted',
  ]);
  expect(takeTurns({ ...given, withMemory: true }).turns[0]?.results[0]?.text).toBe('Ada was ill');
});

test('a case has the turns of its session before it, and a turn that is left out says why', () => {
  const taken = {
    id: 'conv',
    agent: 'default',
    beganAt: 0,
    gaps: ['turn_0009 is left out: it has no answer'],
    turns: [turn(1), turn(2, { newSession: true }), turn(3), turn(4)],
  };
  expect(toCase(taken, { turn: 'turn_0004', labels: ['x'] })).toEqual({
    id: 'conv/turn_0004',
    agent: 'default',
    labels: ['x'],
    before: [turn(2), turn(3)],
    turn: turn(4),
  });
  expect(toCase(taken, { turn: 'turn_0004', labels: [], before: 1 }).before).toEqual([turn(3)]);
  expect(toCase(taken, { turn: 'turn_0001', labels: [] }).before).toEqual([]);
  expect(() => toCase(taken, { turn: 'turn_0009', labels: [] })).toThrow(
    /conv has no turn_0009 that a dataset can take: turn_0009 is left out: it has no answer/,
  );
  expect(() => toCase(taken, { turn: 'turn_0007', labels: [] })).toThrow(/it has turn_0001, turn_0002, turn_0003, turn_0004/);
});

const played: DatasetCase = {
  ...{ id: 'conv/turn_0002', agent: 'default', labels: [] },
  before: [
    turn(1, {
      answers: [{ calls: [{ name: 'run_command', input: { command: 'ls' } }] }, { text: 'Listed.' }],
      results: [{ name: 'run_command', input: { command: 'ls' }, outcome: 'ok', text: 'a.txt' }],
    }),
  ],
  turn: turn(2, {
    answers: [{ calls: [{ name: 'read_file', input: { path: 'a.txt' } }] }, { text: 'It has a.' }],
    results: [{ name: 'read_file', input: { path: 'a.txt' }, outcome: 'ok', text: 'a' }],
  }),
};

function playCase(item: DatasetCase, run: EvalDefinition<DatasetCase>['run'], real?: ReturnType<typeof createScriptedModel>) {
  return runEval(
    { definition: { agents: { default: { 'agent.json': {} } }, run } as never, item, recorded: [...item.before, item.turn] },
    {
      ...{ project: dir, extensions: {}, spent: () => undefined, signal: new AbortController().signal },
      ...(real && { real: { models: createModels({ custom: { fake: real } }), defaultModel: 'fake/x', name: 'fake/x' } }),
    },
  );
}

test('a case is played: earlier turns as they were recorded, decisions too, and then the model under test', async () => {
  const asRecorded = await playCase(played, async ({ case: item, play, expect: claim }) => {
    const ended = await play(item);
    claim(ended).calledTool('read_file', { path: 'a.txt' }).text('It has a.');
    expect(ended.calls).toMatchObject([{ result: 'a' }]);
  });
  expect(asRecorded).toMatchObject({ outcome: 'passed', turns: 1 });

  const real = createScriptedModel([callTool('read_file', { path: 'a.txt' }), callTool('read_file', { path: 'b.txt' }), 'Something else.']);
  const changed = await playCase(
    played,
    async ({ case: item, play, expect: claim }) => {
      const ended = await play(item);
      expect(ended.calls.map(({ outcome, result: text }) => [outcome, text])).toEqual([
        ['ok', 'a'],
        ['error', expect.stringMatching(/no result of read_file was recorded for these arguments/)],
      ]);
      claim(ended).text('It has a.');
    },
    real,
  );
  expect(changed.outcome).toBe('failed');
  // The turn before it was answered as it was, and is in the request.
  expect(real.requests).toHaveLength(3);
  expect(JSON.stringify(real.requests[0]?.messages)).toContain('Listed.');
  expect(JSON.stringify(real.requests[0]?.messages)).toContain('a.txt');
});
