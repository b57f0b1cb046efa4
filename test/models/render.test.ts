import type { ConversationMessage } from '../../src/records/message.js';
import { renderRequest } from '../../src/models/anthropic/render.js';
import { normalize } from '../../src/models/normalize.js';
import { checkRequest } from '../support/provider-apis/check-request.js';
import { call, opaque, request, result, says, thinking, user } from './builders.js';

const CACHE = { type: 'ephemeral' };
const readFile = {
  name: 'read_file',
  description: 'Reads a file.',
  inputSchema: { type: 'object', properties: { path: { type: 'string' } } },
};
const listFiles = { name: 'list_files', description: 'Lists files.', inputSchema: { type: 'object', properties: {} } };

const rendered = (...messages: ConversationMessage[]): unknown => renderRequest(request({ system: '', messages })).messages;

test('a whole request, byte by byte', () => {
  const body = renderRequest(
    request({
      tools: [readFile, listFiles],
      messages: [
        user('What is in a.txt?'),
        says(thinking('I should look.'), 'Let me look.', call('turn_0001/c1', 'read_file', { path: 'a.txt' })),
        result('turn_0001/c1', 'hello'),
      ],
    }),
  );
  expect(JSON.stringify(body, null, 2)).toMatchInlineSnapshot(`
   "{
     "model": "claude-sonnet-5-5",
     "max_tokens": 1000,
     "system": [
       {
         "type": "text",
         "text": "You are terse.",
         "cache_control": {
           "type": "ephemeral"
         }
       }
     ],
     "tools": [
       {
         "name": "read_file",
         "description": "Reads a file.",
         "input_schema": {
           "type": "object",
           "properties": {
             "path": {
               "type": "string"
             }
           }
         }
       },
       {
         "name": "list_files",
         "description": "Lists files.",
         "input_schema": {
           "type": "object",
           "properties": {}
         }
       }
     ],
     "messages": [
       {
         "role": "user",
         "content": [
           {
             "type": "text",
             "text": "What is in a.txt?",
             "cache_control": {
               "type": "ephemeral"
             }
           }
         ]
       },
       {
         "role": "assistant",
         "content": [
           {
             "type": "thinking",
             "thinking": "I should look.",
             "signature": "sig(I should look.)"
           },
           {
             "type": "text",
             "text": "Let me look."
           },
           {
             "type": "tool_use",
             "id": "turn_0001_c1",
             "name": "read_file",
             "input": {
               "path": "a.txt"
             }
           }
         ]
       },
       {
         "role": "user",
         "content": [
           {
             "type": "tool_result",
             "tool_use_id": "turn_0001_c1",
             "content": "hello",
             "cache_control": {
               "type": "ephemeral"
             }
           }
         ]
       }
     ],
     "stream": true
   }"
  `);
  expect(checkRequest(body)).toBeUndefined();
});

test('what has no words is left out: system, tools', () => {
  expect(renderRequest(request({ system: ' ' }))).toEqual({
    model: 'claude-sonnet-5-5',
    max_tokens: 1_000,
    messages: [{ role: 'user', content: [{ type: 'text', text: 'hello', cache_control: CACHE }] }],
    stream: true,
  });
});

test('neighbours on the person’s side become one message, tool results first', () => {
  expect(rendered(user('a'), user('b'), says(call('c1')), result('c1', 'one'), user('c'))).toEqual([
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b', cache_control: CACHE },
      ],
    },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'read_file', input: {} }] },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'c1', content: 'one' },
        { type: 'text', text: 'c', cache_control: CACHE },
      ],
    },
  ]);
});

test('each outcome of a tool reads differently, and only ok is no error', () => {
  const outcomes = (['ok', 'error', 'rejected', 'cancelled', 'unknown'] as const).map((outcome) => result(outcome, 'why', outcome));
  const body = rendered(user('go'), says(...outcomes.map(({ callId }) => call(callId))), ...outcomes) as {
    content: { content: string; is_error?: boolean }[];
  }[];
  expect(body[2]?.content.map(({ content, is_error }) => [content, is_error])).toEqual([
    ['why', undefined],
    ['why', true],
    ['Rejected: this call did not run.\nwhy', true],
    ['Cancelled: this call was stopped before it started and did not run.\nwhy', true],
    ['Outcome unknown: this call was interrupted and may or may not have had its effect. Check before repeating it.\nwhy', true],
  ]);
});

test('a result without words says so', () => {
  expect(JSON.stringify(rendered(user('go'), says(call('c1')), result('c1', ' ')))).toContain('"content":"(no output)"');
});

test('ids and names are made to fit, and two ids never become one', () => {
  const body = rendered(
    user('go'),
    says(call('t/c'), call('t_c'), call('é', `read file!${'x'.repeat(99)}`)),
    result('t_c', 'under'),
    result('t/c', 'slash'),
    result('é', 'accent'),
  ) as { content: Record<string, unknown>[] }[];
  expect(body[1]?.content.map(({ id, name }) => [id, name])).toEqual([
    ['t_c', 'read_file'],
    ['t_c-2', 'read_file'],
    ['_', `read_file_${'x'.repeat(54)}`],
  ]);
  expect(body[2]?.content.map(({ tool_use_id: id, content }) => [id, content])).toEqual([
    ['t_c-2', 'under'],
    ['t_c', 'slash'],
    ['_', 'accent'],
  ]);
});

test('images come before the text; one that would be refused becomes a word', () => {
  const images = [
    { mediaType: 'image/png', base64: 'aGk=' },
    { mediaType: 'image/jpeg', url: 'https://example.org/a.jpg' },
    { mediaType: 'image/bmp', base64: 'aGk=' },
    { mediaType: 'image/png', url: 'file:///etc/passwd' },
    { mediaType: 'image/png', ref: 'body/7' },
  ];
  expect(rendered({ ...user('look'), images })).toEqual([
    {
      role: 'user',
      content: [
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } },
        { type: 'image', source: { type: 'url', url: 'https://example.org/a.jpg' } },
        { type: 'text', text: '[An image (image/bmp) that cannot be shown here.]' },
        { type: 'text', text: '[An image (image/png) that cannot be shown here.]' },
        { type: 'text', text: '[An image (image/png) that cannot be shown here. It is kept as body/7.]' },
        { type: 'text', text: 'look', cache_control: CACHE },
      ],
    },
  ]);
});

test('opaque blocks and thinking go back verbatim', () => {
  const redacted = opaque({ type: 'redacted_thinking', data: 'x', more: [1] });
  const body = rendered(user('go'), says(thinking('hm'), redacted, 'Yes.'), user('ok')) as { content: unknown[] }[];
  expect(body[1]?.content).toEqual([
    { type: 'thinking', thinking: 'hm', signature: 'sig(hm)' },
    { type: 'redacted_thinking', data: 'x', more: [1] },
    { type: 'text', text: 'Yes.' },
  ]);
});

test('an input that is no object, or lies elsewhere, is wrapped in one', () => {
  const stored = { ref: 'body/1', sha256: 's', bytes: 9, preview: '{"a' };
  const body = rendered(user('go'), says(call('c1', 'a', [1]), call('c2', 'b', stored)), result('c1'), result('c2')) as {
    content: { input: unknown }[];
  }[];
  expect(body[1]?.content.map(({ input }) => input)).toEqual([{ _value: [1] }, { _stored: '{"a… (9 bytes in all: body/1)' }]);
});

test('history that speaks of tools gets a stand-in that may not be called', () => {
  const body = renderRequest(request({ messages: [user('go'), says(call('c1')), result('c1')] }));
  expect(body.tools?.length).toBe(1);
  expect(body.tool_choice).toEqual({ type: 'none' });
  expect(checkRequest(body)).toBeUndefined();
});

describe('cache marks', () => {
  const marks = (body: unknown): number => JSON.stringify(body).split('"cache_control"').length - 1;
  const long = (turns: number): ConversationMessage[] =>
    Array.from({ length: turns }, (_, t) => [user(`q${t}`), says(thinking('hm'), call(`t${t}/c`)), result(`t${t}/c`), says('a')]).flat();

  test('are four at most, however long the conversation', () => {
    const system = 'You are terse.\n\n# Memory\n\n> Likes tea.';
    const messages = [...long(20), user('end')];
    const body = renderRequest(request({ system, sharedSystem: 'You are terse.'.length, tools: [readFile, listFiles], messages }));
    expect(marks(body)).toBe(4);
    expect(checkRequest(body)).toBeUndefined();
  });

  test('keep the tools and what sessions share by themselves: what is remembered has a mark of its own', () => {
    const remembering = (line: string) =>
      renderRequest(request({ system: `You are terse.\n\n> ${line}`, sharedSystem: 'You are terse.'.length, tools: [readFile] }));
    const [before, after] = [remembering('Likes tea.'), remembering('Likes chess.')];
    expect(before.system).toEqual([
      { type: 'text', text: 'You are terse.', cache_control: CACHE },
      { type: 'text', text: '\n\n> Likes tea.', cache_control: CACHE },
    ]);
    expect([after.tools, (after.system as readonly unknown[])[0]]).toEqual([before.tools, (before.system as readonly unknown[])[0]]);
    expect(JSON.stringify(before.tools)).not.toContain('cache_control');
  });

  test('of a slow conversation are kept for an hour, all of them', () => {
    const body = renderRequest(request({ tools: [readFile], messages: [...long(2), user('end')], cachesForHour: true }));
    expect(JSON.stringify(body).match(/"cache_control":\{[^}]*\}/g)).toEqual(
      Array(3).fill('"cache_control":{"type":"ephemeral","ttl":"1h"}'),
    );
    expect(checkRequest(body)).toBeUndefined();
  });

  test('stand where the request before ended, so that its prefix is found again', () => {
    const before = renderRequest(request({ messages: [...long(2), user('next')] }));
    const after = renderRequest(request({ messages: [...long(2), user('next'), says('a'), user('more')] }));
    expect(after.messages.slice(0, -2).at(-1)).toEqual(before.messages.at(-1));
  });
});

test('a longer conversation begins with the same bytes', () => {
  const turns: ConversationMessage[] = [
    user('go'),
    says(thinking('hm'), call('t1/c'), call('t1_c')),
    result('t1_c'),
    result('t1/c'),
    says('Done.'),
    user('and?'),
    says(call('t2/c')),
    result('t2/c'),
  ];
  const bytes = (count: number): string => {
    const messages = normalize(turns.slice(0, count), { provider: 'anthropic' });
    const unmarked = JSON.stringify(renderRequest(request({ tools: [readFile], messages })).messages).replaceAll(
      ',"cache_control":{"type":"ephemeral"}',
      '',
    );
    return unmarked.slice(0, -2);
  };
  // Up to whole turns: in between, missing results are made up.
  expect(bytes(8).startsWith(bytes(6))).toBe(true);
  expect(bytes(6).startsWith(bytes(4))).toBe(true);
});

describe('a cache mark stands before results that are shown whole only once (anthropic/cached-never-rewritten)', () => {
  const kept = (callId: string): ConversationMessage => ({ ...result(callId, 'Action results: …'), item: { id: 'mem_1', citation: '{}' } });
  /** Role and block, of each that is marked. */
  const marks = (...messages: ConversationMessage[]): string[] =>
    renderRequest(request({ system: '', messages })).messages.flatMap(({ role, content }, at) =>
      typeof content === 'string'
        ? []
        : content.flatMap((block, i) => ('cache_control' in block && block.cache_control ? [`${at} ${role} ${i} ${block.type}`] : [])),
    );

  test('at the end of the answer that asked for them, and there again when they are old', () => {
    const first = [user('go'), says(thinking('hm'), 'Let me look.', call('c1'), call('c2')), result('c1', 'short'), kept('c2')];
    expect(marks(...first)).toEqual(['0 user 0 text', '1 assistant 3 tool_use']);
    const second = [...first, says(call('c3')), kept('c3')];
    expect(marks(...second)).toEqual(['1 assistant 3 tool_use', '3 assistant 0 tool_use']);
    expect(marks(...second, user('and hurry'))).toEqual(['1 assistant 3 tool_use', '3 assistant 0 tool_use']);
    expect(marks(...second, says('done'), user('thanks'))).toEqual(['3 assistant 0 tool_use', '6 user 0 text']);
  });

  test('results that stay as they are have it behind them', () => {
    expect(marks(user('go'), says(call('c1')), result('c1', 'short'))).toEqual(['0 user 0 text', '2 user 0 tool_result']);
  });

  test('what is opaque goes back as it came', () => {
    const block = opaque({ type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: {} });
    expect(marks(user('go'), says(call('c1'), block), kept('c1'))).toEqual(['0 user 0 text', '1 assistant 0 tool_use']);
  });

  test('the API takes it', () => {
    const body = renderRequest(request({ tools: [readFile], messages: [user('go'), says(thinking('hm'), call('c1')), kept('c1')] }));
    expect(checkRequest(JSON.parse(JSON.stringify(body)) as Record<string, unknown>)).toBeUndefined();
  });
});
