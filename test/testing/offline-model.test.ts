import type { ApiBlock, ApiMessage, ApiRequest } from '../../src/testing/api-request.js';
import { checkRequest } from '../../src/testing/check-request.js';
import { offlineAnswer, startOfflineModel } from '../../src/testing/offline-model.js';
import { request, sdk } from './client.js';

const all = ['read_file', 'get_time', 'list_files', 'search_files'];

const said = (content: ApiMessage['content']): ApiMessage => ({ role: 'user', content });
const answered: readonly ApiMessage[] = [said('hello'), { role: 'assistant', content: 'Hi.' }];

function offering(names: readonly string[], ...messages: readonly ApiMessage[]): ApiRequest {
  const tools = names.map((name) => ({ name, description: name, input_schema: { type: 'object', properties: {} } }));
  return { ...request(...messages), tools };
}

/** What it calls in a conversation that has begun. */
function calls(words: string, names = all): unknown {
  return offlineAnswer(offering(names, ...answered, said(words))).toolCalls?.map(({ name, input }) => [name, input]);
}

function afterTool(name: string, content: string, isError = false): string {
  const use: ApiBlock = { type: 'tool_use', id: 'a', name, input: {} };
  const result: ApiBlock = { type: 'tool_result', tool_use_id: 'a', content, is_error: isError };
  const body = offering(all, said('please'), { role: 'assistant', content: [use] }, said([result]));
  expect(checkRequest(body)).toBeUndefined();
  return String(offlineAnswer(body).text);
}

describe('the offline model', () => {
  test('says in its first answer that it is a script and how to use a real model', () => {
    const first = offlineAnswer(request(said('hello'))).text;
    expect(first).toContain('not a language model but a scripted stand-in');
    expect(first).toContain('export ANTHROPIC_API_KEY=');
    expect(offlineAnswer(request(...answered, said('and now?'))).text).not.toContain('ANTHROPIC_API_KEY');
  });

  test('repeats what it was told and counts the messages it has seen', () => {
    expect(offlineAnswer(request(...answered, said('good morning'))).text).toBe(
      'You said: "good morning". That is message 2 of yours that I have seen.',
    );
  });

  test('answers the same request the same, so that a restarted worker goes on', () => {
    const body = offering(all, ...answered, said('read README.md and tell me what time it is'));
    expect(offlineAnswer(body)).toEqual(offlineAnswer(JSON.parse(JSON.stringify(body)) as ApiRequest));
  });

  test.each([
    ['read README.md', [['read_file', { path: 'README.md' }]]],
    ['Please read the file "docs/a-b/notes.txt".', [['read_file', { path: 'docs/a-b/notes.txt' }]]],
    ['What time is it?', [['get_time', {}]]],
    ["what's the time", [['get_time', {}]]],
    ['List the files', [['list_files', {}]]],
    ['search for "lost update"', [['search_files', { query: 'lost update' }]]],
    ['search for TODO.', [['search_files', { query: 'TODO' }]]],
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
    ['I read a lot of books', undefined],
    ['the time is now', undefined],
  ])('calls the tools that are asked for: %s', (words, expected) => {
    expect(calls(words)).toEqual(expected);
  });

  test('calls no tool that it was not offered, and says so', () => {
    expect(calls('read README.md', ['get_time'])).toBeUndefined();
    expect(offlineAnswer(offering([], ...answered, said('read README.md'))).text).toContain('I would call read_file');
  });

  test('hears the newest text of a message, not the notices and memories before it', () => {
    const content: ApiBlock[] = [
      { type: 'text', text: '[MEMORY:EPISODIC] the user asked: read old.md' },
      { type: 'text', text: 'what time is it' },
    ];
    expect(offlineAnswer(offering(all, said(content))).toolCalls).toEqual([{ name: 'get_time', input: {} }]);
  });

  test('answers with what the tool really said', () => {
    expect(afterTool('get_time', '2026-11-21T10:00:00Z')).toBe('It is 2026-11-21T10:00:00Z.');
    const file = Array.from({ length: 30 }, (_, index) => `line ${index + 1}`).join('\n');
    expect(afterTool('read_file', file)).toMatch(/^read_file says:\n> line 1\n> line 2\n[\s\S]*> line 8\n\(and 22 lines more\)$/);
    expect(afterTool('read_file', 'no such file: x.md', true)).toBe('read_file failed: no such file: x.md');
    expect(afterTool('list_files', '')).toBe('list_files had nothing to say.');
  });

  test('answers all of several results, and what was said meanwhile', () => {
    const uses: ApiBlock[] = ['a', 'b'].map((id) => ({ type: 'tool_use', id, name: 'get_time', input: {} }));
    const results: ApiBlock[] = ['a', 'b'].map((id) => ({ type: 'tool_result', tool_use_id: id, content: `noon ${id}` }));
    const reply = offlineAnswer(
      offering(all, said('twice'), { role: 'assistant', content: uses }, said([...results, { type: 'text', text: 'hurry' }])),
    );
    expect(reply).toEqual({ text: 'It is noon a.\n\nIt is noon b.\n\nYou added: "hurry".' });
  });

  test('can talk for long', () => {
    expect(offlineAnswer(request(...answered, said('count to 200'))).text).toMatch(/^1 2 3 .* 199 200$/);
    expect(offlineAnswer(request(...answered, said('repeat 3'))).text).toBe('1 2 3');
    expect(String(offlineAnswer(request(...answered, said('Tell me a long story'))).text).length).toBeGreaterThan(2000);
  });

  test('keeps the memory when it is asked to consolidate it', () => {
    const prompt =
      'You are a memory consolidation agent. Return JSON with "history_entry" and "memory_update".\n\n## Current Long-term Memory\nLikes tea.\n\n' +
      '## Conversation to Process\n[2026-11-21 10:00] user: hello\n[2026-11-21 10:01] assistant: hi';
    const answer = JSON.parse(String(offlineAnswer(request(said(prompt))).text)) as Record<string, string>;
    expect(answer.memory_update).toBe('Likes tea.');
    expect(answer.history_entry).toMatch(/^\[2026-11-21 10:00\] .*2 messages/);
  });

  test('is served over HTTP: streams, calls tools and goes on after them', async () => {
    const model = await startOfflineModel({ delayMs: 0 });
    const client = sdk(model.url);
    const tools = [{ name: 'get_time', description: 'The time.', input_schema: { type: 'object' as const } }];
    const pieces: string[] = [];
    const messages = [{ role: 'user' as const, content: 'What time is it?' }];
    const first = await client.messages
      .stream({ model: 'offline', max_tokens: 100, tools, messages })
      .on('text', (piece) => pieces.push(piece))
      .finalMessage();
    expect([first.stop_reason, pieces.length > 10]).toEqual(['tool_use', true]);
    const call = first.content.find((block) => block.type === 'tool_use');
    const second = await client.messages.create({
      model: 'offline',
      max_tokens: 100,
      tools,
      messages: [
        ...messages,
        { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: call?.id ?? '', content: '10:00' }] },
      ],
    });
    expect(second.content).toMatchObject([{ text: 'It is 10:00.' }]);
    await model.close();
  });

  test('keeps its pace', async () => {
    const model = await startOfflineModel({ delayMs: 5 });
    const begun = Date.now();
    await sdk(model.url)
      .messages.stream({ model: 'offline', max_tokens: 100, messages: [{ role: 'user', content: 'hello' }] })
      .finalMessage();
    expect(Date.now() - begun).toBeGreaterThan(100);
    await model.close();
  });
});
