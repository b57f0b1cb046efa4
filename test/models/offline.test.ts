import timers from 'node:timers/promises';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { ModelInterrupted, type ModelDelta, type ModelRequest, type StreamOptions } from '../../src/models/model.js';
import { createOfflineModel, offlineAnswer } from '../../src/models/offline.js';
import type { ConversationMessage, ToolOutcome } from '../../src/records/message.js';
import { builtinTools } from '../../src/tools/builtin/index.js';

const TOOLS = ['read_file', 'get_time', 'list_files', 'search_files', 'run_command', 'ask_user', 'delegate'];

const said = (text: string): ConversationMessage => ({ role: 'user', text });
const hello: ConversationMessage = { role: 'assistant', blocks: [{ kind: 'text', text: 'Hi.' }], stop: 'end', model: 'offline/scripted' };
const answered = [said('hello'), hello];

function request(messages: readonly ConversationMessage[], tools: readonly string[] = []): ModelRequest {
  const described = tools.map((name) => ({ name, description: name, inputSchema: { type: 'object', properties: {} } }));
  return { model: 'scripted', maxTokens: 100, system: '', tools: described, messages };
}

/** What it calls in a conversation that has begun. */
function calls(words: string, tools = TOOLS): unknown[] {
  return offlineAnswer(request([...answered, said(words)], tools)).calls.map(({ name, input }) => [name, input]);
}

function asking(...names: readonly string[]): ConversationMessage {
  const blocks = names.map((name, i) => ({ kind: 'tool-call' as const, callId: `c${i}`, name, input: {} }));
  return { role: 'assistant', blocks, stop: 'tool-calls', model: 'offline/scripted' };
}

function result(
  name: string,
  text: string,
  { outcome = 'ok', callId = 'c0' }: { outcome?: ToolOutcome; callId?: string } = {},
): ConversationMessage {
  return { role: 'tool', callId, name, outcome, text };
}

function afterTool(name: string, text: string, outcome: ToolOutcome = 'ok'): string {
  return offlineAnswer(request([said('please'), asking(name), result(name, text, { outcome })], TOOLS)).text;
}

test('says in its first answer that it is a script and how to use a real model', () => {
  const first = offlineAnswer(request([said('hello')])).text;
  expect(first).toContain('not a language model but a scripted stand-in');
  expect(first).toContain('export ANTHROPIC_API_KEY=');
  expect(offlineAnswer(request([...answered, said('and now?')])).text).not.toContain('ANTHROPIC_API_KEY');
});

test('repeats what it was asked and counts the messages it has seen', () => {
  expect(offlineAnswer(request([...answered, said('good morning')])).text).toBe(
    'You said: "good morning". That is message 2 of yours that I have seen.',
  );
});

test.each([
  ['read README.md', [['read_file', { path: 'README.md' }]]],
  ['Please read the file "docs/a-b/notes.txt".', [['read_file', { path: 'docs/a-b/notes.txt' }]]],
  ['What time is it?', [['get_time', {}]]],
  ["what's the time", [['get_time', {}]]],
  ['List the files', [['list_files', {}]]],
  ['search for "lost update"', [['search_files', { query: 'lost update' }]]],
  ['search for TODO.', [['search_files', { query: 'TODO' }]]],
  ['run git status', [['run_command', { command: 'git', args: ['status'] }]]],
  ['Please run `ls -l src`.', [['run_command', { command: 'ls', args: ['-l', 'src'] }]]],
  [
    'run date and then read a.md',
    [
      ['run_command', { command: 'date', args: [] }],
      ['read_file', { path: 'a.md' }],
    ],
  ],
  ['in the long run this is better', []],
  ['ask me something', [['ask_user', { question: expect.any(String) as string, options: expect.any(Array) as string[] }]]],
  ['delegate read README.md and count to 3', [['delegate', { task: 'read README.md and count to 3' }]]],
  [
    'Search for TODO and read a.md, then read b.md, list files and say what time it is.',
    [
      ['read_file', { path: 'a.md' }],
      ['read_file', { path: 'b.md' }],
      ['get_time', {}],
      ['list_files', {}],
      ['search_files', { query: 'TODO' }],
    ],
  ],
  ['I read a lot of books', []],
  ['use run_command {"command":"read a.md"}', [['run_command', { command: 'read a.md' }]]],
  ['use get_time {"a"', []],
  ['use get_time []', []],
  ['the time is now', []],
])('calls the tools that are asked for: %s', (words, expected) => {
  expect(calls(words)).toEqual(expected);
});

test.each(['run git status', 'ask me something', 'delegate count to 20', 'read a.md', 'search for TODO', 'list files', 'what time is it'])(
  'what it calls is what the tool takes: %s',
  (words) => {
    const [[name, input]] = calls(words) as [[string, unknown]];
    const tool = builtinTools.find((one) => one.name === name);
    expect(new Ajv2020({ strict: false }).validate(tool?.inputSchema ?? false, input)).toBe(true);
  },
);

test('calls no tool that it was not offered, and says so', () => {
  expect(calls('read README.md', ['get_time'])).toEqual([]);
  expect(offlineAnswer(request([...answered, said('read README.md')])).text).toContain('I would call read_file');
});

test('calls a tool of your own by its name, with the arguments that you write, where it is offered', () => {
  const wish = 'Please use book_room {"room":"Oslo","date":"2026-12-01"}';
  expect(calls(wish, ['book_room'])).toEqual([['book_room', { room: 'Oslo', date: '2026-12-01' }]]);
  expect(offlineAnswer(request([...answered, said(wish)])).text).toContain('I would call book_room');
});

test('hears the newest of several messages, not the notices and memories before it', () => {
  const messages = [said('[MEMORY:EPISODIC] the user asked: read old.md'), said('what time is it')];
  expect(offlineAnswer(request(messages, TOOLS)).calls).toEqual([{ name: 'get_time', input: {} }]);
  expect(offlineAnswer(request([...messages, hello, said('again')])).text).toContain('message 2 of yours');
});

test('answers with what the tool really said', () => {
  expect(afterTool('get_time', '2026-11-21T10:00:00Z')).toBe('It is 2026-11-21T10:00:00Z.');
  const file = Array.from({ length: 30 }, (_, index) => `line ${index + 1}`).join('\n');
  expect(afterTool('read_file', file)).toMatch(/^read_file says:\n> line 1\n> line 2\n[\s\S]*> line 8\n\(and 22 lines more\)$/);
  expect(afterTool('read_file', 'no such file: x.md', 'error')).toBe('read_file failed: no such file: x.md');
  expect(afterTool('list_files', '')).toBe('list_files had nothing to say.');
});

test('answers all of several results, and what was said meanwhile', () => {
  const messages = [
    said('twice'),
    asking('get_time', 'get_time'),
    result('get_time', 'noon a'),
    result('get_time', 'noon b', { callId: 'c1' }),
    said('hurry'),
  ];
  expect(offlineAnswer(request(messages, TOOLS))).toEqual({ text: 'It is noon a.\n\nIt is noon b.\n\nYou added: "hurry".', calls: [] });
});

test('can talk for long', () => {
  const answer = (words: string): string => offlineAnswer(request([...answered, said(words)])).text;
  expect(answer('count to 200')).toMatch(/^1 2 3 .* 199 200$/);
  expect(answer('repeat 3')).toBe('1 2 3');
  expect(answer('Tell me a long story').length).toBeGreaterThan(2000);
});

test('keeps the memory when it is asked to consolidate it', () => {
  const prompt =
    'You are a memory consolidation agent. Return JSON with "history_entry" and "memory_update".\n\n## Current Long-term Memory\nLikes tea.\n\n' +
    '## Conversation to Process\n[2026-11-21 10:00] user: hello\n[2026-11-21 10:01] assistant: hi';
  const answer = JSON.parse(offlineAnswer(request([said(prompt)])).text) as Record<string, string>;
  expect(answer.memory_update).toBe('Likes tea.');
  expect(answer.history_entry).toMatch(/^\[2026-11-21 10:00\] .*2 messages/);
});

test('adds to the memory what a person asked it to remember, once', () => {
  const prompt = (memory: string): string =>
    `You are a memory consolidation agent. Return JSON with "history_entry" and "memory_update".\n\n## Current Long-term Memory\n${memory}\n\n` +
    '## Conversation to Process\n[2026-11-21 10:00] USER: please remember that I sit in Oslo\n[2026-11-21 10:01] ASSISTANT: remember that it rains';
  const remembered = (memory: string): unknown =>
    (JSON.parse(offlineAnswer(request([said(prompt(memory))])).text) as Record<string, unknown>)['memory_update'];
  expect(remembered('(empty)')).toBe('- I sit in Oslo');
  expect(remembered('Likes tea.\n- I sit in Oslo')).toBe('Likes tea.\n- I sit in Oslo');
});

describe('as a model', () => {
  const stream = (words: string, delayMs: number, more: Partial<StreamOptions> = {}) => {
    const deltas: ModelDelta[] = [];
    const options = { signal: new AbortController().signal, onDelta: (delta: ModelDelta) => deltas.push(delta), ...more };
    return { deltas, answer: createOfflineModel({ delayMs }).stream(request([...answered, said(words)], TOOLS), options) };
  };

  test('streams in pieces, and the same for the same request', async () => {
    const { deltas, answer } = stream('good morning', 0);
    const { blocks, stop, usage } = await answer;
    const text = deltas.map((delta) => (delta.kind === 'text' ? delta.text : '')).join('');
    expect([deltas.length > 5, stop, blocks]).toEqual([true, 'end', [{ kind: 'text', text }]]);
    expect(usage.inputTokens).toBeGreaterThan(10);
    expect(await stream('good morning', 0).answer).toEqual({ blocks, stop, usage });
  });

  test('calls tools, each with an id of its own', async () => {
    const { deltas, answer } = stream('read a.md and read b.md', 0);
    const { blocks, stop } = await answer;
    expect(stop).toBe('tool-calls');
    expect(blocks.map((block) => (block.kind === 'tool-call' ? block.callId : block.kind))).toEqual(['text', 'call_1', 'call_2']);
    expect(deltas.at(-1)).toEqual({ kind: 'tool-call', name: 'read_file' });
  });

  test('pauses after each piece', async () => {
    const pause = jest.spyOn(timers, 'setTimeout');
    const { deltas, answer } = stream('hello', 5);
    await answer;
    expect(pause.mock.calls.map(([ms]) => ms)).toEqual(deltas.map(() => 5));
    pause.mockRestore();
  });

  test('stops when it is stopped, without half an answer', async () => {
    const stop = new AbortController();
    const pieces: ModelDelta[] = [];
    const onDelta = (delta: ModelDelta): void => {
      pieces.push(delta);
      stop.abort();
    };
    const { answer } = stream('tell me a long story', 5, { signal: stop.signal, onDelta });
    const error: unknown = await answer.catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(ModelInterrupted);
    expect((error as ModelInterrupted).blocks).toEqual([]);
    expect(pieces).toHaveLength(1);
  });
});
