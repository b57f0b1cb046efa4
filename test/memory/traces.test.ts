import type { AssistantBlock, BodyRef, ConversationMessage, Entry } from '../../src/records/message.js';
import { toTraces } from '../../src/memory/traces.js';

const TEXT_BODY: BodyRef = { ref: 'sha256:ab', sha256: 'ab', bytes: 50_000, preview: 'It begins' };

function entry(message: ConversationMessage, over: Partial<Entry> = {}): Entry {
  return { v: 1, slot: 7, session: 1, turn: 'turn_0002', seq: 3, ts: 1738100002.45, message, ...over };
}

function answer(blocks: readonly AssistantBlock[], stop: 'end' | 'tool-calls' | 'interrupted' = 'end'): Entry {
  return entry({ role: 'assistant', blocks, model: 'scripted/one', stop });
}

const common = { ts: 1738100002.45, turn_id: 'turn_0002', conversation_id: 'conv_8', slot: 7 };

test('what a person said is a user trace', () => {
  expect(toTraces(entry({ role: 'user', text: 'Please refactor the parser.' }), 'conv_8')).toEqual([
    {
      ...common,
      id: 'rt_007',
      seq: 3,
      trace_type: 'user',
      content: 'Please refactor the parser.',
      source_event: 'LLMUserMessageReadyEvent',
      tags: ['processed'],
    },
  ]);
});

test('a line begins like the seed’s own', () => {
  const [trace] = toTraces(entry({ role: 'user', text: 'Hello' }), 'conv_8');
  expect(JSON.stringify(trace)).toMatch(
    /^{"id":"rt_007","ts":1738100002.45,"turn_id":"turn_0002","seq":3,"trace_type":"user","content":"Hello",/,
  );
});

test('images are its media: by url, by reference, or themselves', () => {
  const images = [
    { mediaType: 'image/png', url: 'https://example.org/a.png' },
    { mediaType: 'image/png', ref: 'sha256:cd' },
    { mediaType: 'image/png', base64: 'AAAA' },
  ];
  expect(toTraces(entry({ role: 'user', text: 'Look', images }), 'conv_8')[0]?.media).toEqual({
    images: ['https://example.org/a.png', 'sha256:cd', 'data:image/png;base64,AAAA'],
    audio: [],
    video: [],
  });
});

test('audio and video are its media too', () => {
  const audio = [{ mediaType: 'audio/mpeg', base64: 'AAAA' }];
  const video = [{ mediaType: 'video/mp4', ref: 'sha256:cd' }];
  expect(toTraces(entry({ role: 'user', text: 'Listen', audio, video }), 'conv_8')[0]?.media).toEqual({
    images: [],
    audio: ['data:audio/mpeg;base64,AAAA'],
    video: ['sha256:cd'],
  });
});

test('an answer with calls is an assistant trace, then one per call, numbered on', () => {
  const traces = toTraces(
    answer(
      [
        { kind: 'thinking', text: 'hm', provider: 'anthropic' },
        { kind: 'text', text: 'I look. ' },
        { kind: 'tool-call', callId: 'turn_0002/c1', name: 'list_directory', input: { path: 'src' } },
        { kind: 'text', text: 'And read.' },
        { kind: 'tool-call', callId: 'turn_0002/c2', name: 'read_file', input: null, inputRef: TEXT_BODY },
      ],
      'tool-calls',
    ),
    'conv_8',
  );
  expect(traces).toEqual([
    {
      ...common,
      id: 'rt_007',
      seq: 3,
      trace_type: 'assistant',
      content: 'I look. And read.',
      source_event: 'LLMCompleteResponseReceivedEvent',
    },
    {
      ...common,
      id: 'rt_007_1',
      seq: 4,
      trace_type: 'tool_call',
      content: '',
      source_event: 'PendingToolInvocationEvent',
      tool_name: 'list_directory',
      tool_call_id: 'turn_0002/c1',
      correlation_id: 'turn_0002/c1',
      tool_args: { path: 'src' },
    },
    {
      ...common,
      id: 'rt_007_2',
      seq: 5,
      trace_type: 'tool_call',
      content: '',
      source_event: 'PendingToolInvocationEvent',
      tool_name: 'read_file',
      tool_call_id: 'turn_0002/c2',
      correlation_id: 'turn_0002/c2',
      tool_args: { ...TEXT_BODY },
    },
  ]);
});

test('an answer of calls alone has no assistant trace', () => {
  const traces = toTraces(answer([{ kind: 'tool-call', callId: 'c1', name: 'now', input: {} }], 'tool-calls'), 'conv_8');
  expect(traces.map(({ id, seq, trace_type }) => ({ id, seq, trace_type }))).toEqual([{ id: 'rt_007', seq: 3, trace_type: 'tool_call' }]);
});

test('a last answer is tagged final, an interrupted one interrupted', () => {
  expect(toTraces(answer([{ kind: 'text', text: 'Done.' }]), 'conv_8')[0]?.tags).toEqual(['final']);
  expect(toTraces(answer([{ kind: 'text', text: 'I wa' }], 'interrupted'), 'conv_8')[0]?.tags).toEqual(['interrupted']);
});

test('an answer without words leaves a trace all the same', () => {
  expect(toTraces(answer([]), 'conv_8')).toMatchObject([{ id: 'rt_007', trace_type: 'assistant', content: '' }]);
});

test.each([
  ['ok', { tool_result: 'app.ts' }],
  ['error', { tool_error: 'app.ts' }],
  ['rejected', { tool_error: 'app.ts', tags: ['rejected'] }],
  ['cancelled', { tool_error: 'app.ts', tags: ['cancelled'] }],
  ['unknown', { tool_error: 'app.ts', tags: ['unknown'] }],
] as const)('a tool’s outcome "%s" is told apart', (outcome, told) => {
  expect(toTraces(entry({ role: 'tool', callId: 'c1', name: 'list_directory', outcome, text: 'app.ts' }), 'conv_8')).toEqual([
    {
      ...common,
      id: 'rt_007',
      seq: 3,
      trace_type: 'tool_result',
      content: '',
      source_event: 'ToolResultEvent',
      tool_name: 'list_directory',
      tool_call_id: 'c1',
      correlation_id: 'c1',
      ...told,
    },
  ]);
});

test('of a long text the trace has the beginning and where the whole lies', () => {
  const [result] = toTraces(entry({ role: 'tool', callId: 'c1', name: 'read_file', outcome: 'ok', text: TEXT_BODY }), 'conv_8');
  expect(result).toMatchObject({ tool_result: 'It begins… (50000 bytes in all: sha256:ab)', tool_result_ref: 'sha256:ab' });
  expect(toTraces(entry({ role: 'user', text: TEXT_BODY }), 'conv_8')[0]).toMatchObject({ content_ref: 'sha256:ab' });
  const blocks = [
    { kind: 'text', text: 'Short. ' },
    { kind: 'text', text: TEXT_BODY },
  ] as const;
  expect(toTraces(answer(blocks), 'conv_8')[0]).toMatchObject({ content_ref: 'sha256:ab' });
  expect(toTraces(answer([blocks[0]]), 'conv_8')[0]).not.toHaveProperty('content_ref');
});

test('ids grow beyond three digits and never meet', () => {
  const call = (slot: number) => ({
    ...answer([
      { kind: 'text', text: 'x' },
      { kind: 'tool-call', callId: 'c', name: 'n', input: {} },
    ]),
    slot,
  });
  const ids = [1, 11, 111, 1111].flatMap((slot) => toTraces(call(slot), 'conv_8').map(({ id }) => id));
  expect(ids).toEqual(['rt_001', 'rt_001_1', 'rt_011', 'rt_011_1', 'rt_111', 'rt_111_1', 'rt_1111', 'rt_1111_1']);
});
