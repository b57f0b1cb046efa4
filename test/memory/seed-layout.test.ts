import type { Entry } from '../../src/records/message.js';
import type { PastLife } from '../../src/memory/past-life.js';
import { toImported } from '../../src/memory/imported-life.js';
import { MAX_LINE, readLayout, toLayout, type LayoutFile } from '../../src/memory/seed-layout/layout.js';
import type { FactRecord } from '../../src/stores/store.js';
import { answerEntry, episode, fact, userEntry } from '../stores/builders.js';

const ORIGIN = { conversation: 'conv_8', scope: 'default', agent: 'default', title: 'A title' };

const MEDIA = {
  images: [{ mediaType: 'image/png', base64: 'aGk=' }],
  audio: [{ mediaType: 'audio/mpeg', url: 'https://example.org/a.mp3' }],
  video: [{ mediaType: 'video/mp4', base64: 'aG8=' }],
};

function entry(slot: number, message: Entry['message']): Entry {
  return { v: 1, slot, session: 1, turn: 'turn_0003', seq: slot, ts: 1738100000, message };
}

const LIFE: PastLife = {
  entries: [
    userEntry(1),
    answerEntry(2),
    entry(5, { role: 'user', text: 'and this?', ...MEDIA }),
    entry(6, {
      role: 'assistant',
      blocks: [
        { kind: 'thinking', text: 'hm', signature: 's', provider: 'anthropic' },
        { kind: 'text', text: 'I look.' },
        { kind: 'tool-call', callId: 'turn_0003/c1', name: 'read_file', input: { path: 'a.txt' } },
      ],
      model: 'anthropic/one',
      stop: 'tool-calls',
    }),
    entry(8, { role: 'tool', callId: 'turn_0003/c1', name: 'read_file', outcome: 'ok', text: 'content', files: { read: ['a.txt'] } }),
  ],
  archived: [[1, 2]],
  episodes: [episode(2), episode(1)],
  skipped: 0,
};
const FACTS: FactRecord[] = [
  { ...fact('Tea, not coffee.'), id: 'sem_0002', batch: 'b', source: { conversation: 'conv_8', turn_ids: ['turn_0001'] } },
  { ...fact('Short answers.'), id: 'sem_0001', batch: null, source: null },
];

function lines(text: string | undefined): Record<string, unknown>[] {
  return (text ?? '')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

function without(files: Partial<Record<LayoutFile, string>>, name: LayoutFile): Partial<Record<LayoutFile, string>> {
  return { ...files, [name]: undefined };
}

test('the four files have exactly the fields of the seed, times as floats', () => {
  const files = toLayout(ORIGIN, LIFE, FACTS);
  expect(Object.keys(files)).toEqual(['raw_traces.jsonl', 'raw_traces_archive.jsonl', 'episodic.jsonl', 'semantic.jsonl', 'perdura.json']);
  expect(files['raw_traces.jsonl'].split('\n')[2]).toBe(
    '{"id":"rt_006_1","ts":1738100000.0,"turn_id":"turn_0003","seq":7,"trace_type":"tool_call","content":"","source_event":"PendingToolInvocationEvent","tool_name":"read_file","tool_args":{"path":"a.txt"},"correlation_id":"turn_0003/c1"}',
  );
  const known = ['id', 'ts', 'turn_id', 'seq', 'trace_type', 'content', 'source_event', 'media', 'tool_name', 'tool_args'];
  const fields = new Set([...known, 'tool_result', 'tool_error', 'correlation_id', 'tags']);
  const traces = [...lines(files['raw_traces.jsonl']), ...lines(files['raw_traces_archive.jsonl'])];
  expect(traces.flatMap(Object.keys).filter((field) => !fields.has(field))).toEqual([]);
  expect(lines(files['raw_traces_archive.jsonl']).map(({ id }) => id)).toEqual(['rt_001', 'rt_002']);
  expect(lines(files['episodic.jsonl']).map(Object.keys)).toEqual(Array(2).fill(['id', 'ts', 'turn_ids', 'summary', 'tags', 'salience']));
  expect(lines(files['semantic.jsonl'])[0]).toEqual({ ...fact('Short answers.'), id: 'sem_0001' });
});

test('a fact that was replaced is in no file that others read, and comes back with what stands in its place', () => {
  const replaced = { by: 'sem_0002', ts: 9 };
  const files = toLayout(ORIGIN, LIFE, [...FACTS, { ...fact('Coffee.'), id: 'sem_0003', batch: 'a', source: null, replaced }]);
  expect(files['semantic.jsonl']).not.toContain('Coffee.');
  const { facts, problems } = readLayout(files);
  expect(problems).toEqual([]);
  expect(facts.map((one) => [one.id, one.replaced])).toEqual([
    ['sem_0001', undefined],
    ['sem_0002', undefined],
    ['sem_0003', replaced],
  ]);
});

test('what was written is read as it was', () => {
  const read = readLayout(toLayout(ORIGIN, LIFE, FACTS));
  expect(read).toMatchObject({ origin: ORIGIN, life: LIFE, problems: [] });
  expect(read.facts.map(({ id, source }) => [id, source?.conversation])).toEqual([
    ['sem_0001', undefined],
    ['sem_0002', 'conv_8'],
  ]);
});

test('without perdura.json the seed’s fields are enough for what was said, done and remembered', () => {
  const { life, facts, problems, origin } = readLayout(without(toLayout(ORIGIN, LIFE, FACTS), 'perdura.json'));
  expect({ problems, origin, facts: facts.length }).toEqual({ problems: [], origin: undefined, facts: 2 });
  expect(life.archived).toEqual([[1, 2]]);
  expect(life.entries.map(({ message }) => message)).toMatchObject([
    { role: 'user', text: 'message 1' },
    { role: 'assistant', blocks: [{ kind: 'text', text: 'answer 2' }] },
    { role: 'user', text: 'and this?', ...MEDIA },
    { role: 'assistant', blocks: [{ text: 'I look.' }, { callId: 'turn_0003/c1', name: 'read_file', input: { path: 'a.txt' } }] },
    { role: 'tool', callId: 'turn_0003/c1', outcome: 'ok', text: 'content' },
  ]);
});

test('without the optional archive its summaries stay, each for the turns that it tells of, and other programs name turns as they like', () => {
  const trace = (turn_id: string) =>
    JSON.stringify({ id: turn_id, ts: 5, turn_id, seq: 1, trace_type: 'user', content: turn_id, source_event: 'E' });
  const told = (id: string, ...turn_ids: string[]) => JSON.stringify({ id, ts: 9, turn_ids, summary: id, tags: [], salience: 1 });
  const read = readLayout({
    'raw_traces.jsonl': [trace('d'), trace('e')].join('\n'),
    'episodic.jsonl': [told('ep_0001', 'a', 'b'), told('ep_0002', 'c'), told('ep_0003', 'e')].join('\n'),
  });
  expect(read.problems).toEqual([]);
  expect(read.life.entries.map(({ turn, message }) => [turn, shown(message)])).toEqual([
    ['turn_0001', 'notice'],
    ['turn_0002', 'notice'],
    ['turn_0003', 'notice'],
    ['turn_0004', 'd'],
    ['turn_0005', 'e'],
  ]);
  const imported = toImported(read.life);
  expect(imported).toMatchObject({ problems: [expect.stringContaining('ep_0003')] });
  expect(imported.kind === 'life' && imported.life.episodes).toMatchObject([
    { id: 'ep_0002', turn_ids: ['turn_0003'], slots: [[3, 3]] },
    { id: 'ep_0001', turn_ids: ['turn_0001', 'turn_0002'], slots: [[1, 2]] },
  ]);
});

function shown(message: Entry['message']): unknown {
  return message.role === 'user' ? (message.from ?? message.text) : message.role;
}

test('an address of another kind, and a path of another machine, are left out', () => {
  const media = { images: ['data:audio/mpeg;base64,aGk='], audio: ['/tmp/a.mp3', 'data:audio/x-m4a;base64,aGk='], video: ['ftp://a/b'] };
  const trace = { id: 'x', ts: 1, turn_id: 't', seq: 1, trace_type: 'user', content: 'hi', source_event: 'E', media };
  const { life } = readLayout({ 'raw_traces.jsonl': JSON.stringify(trace) });
  expect(life.entries.map(({ message }) => message)).toEqual([
    { role: 'user', text: 'hi', audio: [{ mediaType: 'audio/x-m4a', base64: 'aGk=' }] },
  ]);
});

test('another program’s traces, without ids for calls, still join each result to its call', () => {
  const trace = (seq: number, more: object): string =>
    JSON.stringify({ id: `x${seq}`, ts: 1.5, turn_id: 'turn-a', seq, content: '', source_event: 'E', ...more });
  const { life, problems } = readLayout({
    'raw_traces.jsonl': [
      trace(1, { trace_type: 'user', content: 'hi' }),
      trace(2, { trace_type: 'tool_call', tool_name: 'a', tool_args: {} }),
      trace(3, { trace_type: 'tool_call', tool_name: 'b', tool_args: {} }),
      trace(4, { trace_type: 'tool_result', tool_name: 'b', tool_error: 'no' }),
      trace(5, { trace_type: 'tool_result', tool_name: 'a', tool_result: ['app.ts'] }),
    ].join('\n'),
  });
  expect(problems).toEqual([]);
  expect(life.entries.map(({ turn, message }) => [turn, message])).toMatchObject([
    ['turn_0001', { text: 'hi' }],
    ['turn_0001', { blocks: [{ callId: 'turn_0001/c1' }, { callId: 'turn_0001/c2' }] }],
    ['turn_0001', { callId: 'turn_0001/c2', outcome: 'error', text: 'no' }],
    ['turn_0001', { callId: 'turn_0001/c1', outcome: 'ok', text: '["app.ts"]' }],
  ]);
});

test('traces that were changed since the export count more than what perdura.json says of them', () => {
  const files = toLayout(ORIGIN, LIFE, FACTS);
  const { life, problems } = readLayout({ ...files, 'raw_traces.jsonl': files['raw_traces.jsonl'].replace('and this?', 'and that?') });
  expect(life.entries.map(({ message }) => message)).toContainEqual(expect.objectContaining({ text: 'and that?' }));
  expect(problems).toEqual([expect.stringContaining('raw_traces.jsonl is not as it was exported')]);
});

test('what is damaged is left out and named, by its file and line; the rest is read', () => {
  const files = toLayout(ORIGIN, LIFE, FACTS);
  const deep = `{"ts":${'['.repeat(100)}${']'.repeat(100)}}`;
  const { life, facts, problems } = readLayout({
    ...files,
    'episodic.jsonl': `{"id":"ep_0\n${files['episodic.jsonl']}`,
    'semantic.jsonl': `${files['semantic.jsonl']}{"id":"sem_0009","fact":7}\n${deep}\n`,
    'perdura.json': files['perdura.json'].replace('"slot":8', '"slot":9999999').replace('"slot":5', '"slot":6'),
  });
  expect([life.entries.length, life.episodes.length, facts.length]).toEqual([3, 2, 2]);
  expect(problems).toEqual([
    'episodic.jsonl line 1: not JSON',
    'perdura.json entry 4: slot 6 is there already',
    'perdura.json entry 5: not an entry',
    "semantic.jsonl line 3: without the seed's fields",
    "semantic.jsonl line 4: without the seed's fields",
  ]);
});

test('ranges that come to more slots than there can be are not gone through', () => {
  const files = toLayout(ORIGIN, LIFE, FACTS);
  const side = { ...(JSON.parse(files['perdura.json']) as object), archived: Array.from({ length: 10_000 }, () => [1, 1_000_000]) };
  const { problems } = readLayout({ ...files, 'perdura.json': JSON.stringify(side) });
  expect(problems).toEqual([expect.stringContaining('perdura.json is damaged or of another version')]);
});

test.each(['', '{', '[]', '{"v":2}', 'null'])('perdura.json that is %j is not relied on', (text) => {
  const { life, problems } = readLayout({ ...toLayout(ORIGIN, LIFE, FACTS), 'perdura.json': text });
  expect(life.entries).toHaveLength(5);
  expect(problems).toEqual([expect.stringContaining('perdura.json is damaged or of another version')]);
});

test('a line beyond all measure is left out, and the next one is read', () => {
  const { facts, problems } = readLayout({
    'semantic.jsonl': `{"fact":"${'x'.repeat(MAX_LINE)}"}\n${toLayout(ORIGIN, LIFE, FACTS)['semantic.jsonl']}`,
  });
  expect([facts.length, problems]).toEqual([2, ['semantic.jsonl line 1: too long']]);
});

test('a reference into somebody’s store is no text', () => {
  const text = { ref: 'sha256:0', sha256: '0', bytes: 1, preview: '' };
  const entries = [{ ...userEntry(1), message: { role: 'user', text } as const }];
  const { life, problems } = readLayout(toLayout(ORIGIN, { ...LIFE, entries, archived: [], episodes: [] }, []));
  expect([life.entries, problems]).toEqual([[], ['perdura.json entry 1: not an entry']]);
});
