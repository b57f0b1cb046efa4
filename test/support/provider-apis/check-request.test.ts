import type { ApiRequest } from './api-request.js';
import { checkBody, checkHeaders } from './check-body.js';
import { checkRequest } from './check-request.js';
import { getTime } from './client.js';

type Loose = Record<string, unknown>;

const user = (...content: Loose[]): Loose => ({ role: 'user', content });
const assistant = (...content: Loose[]): Loose => ({ role: 'assistant', content });
const text = (words: string, rest: Loose = {}): Loose => ({ type: 'text', text: words, ...rest });
const use = (id: string, rest: Loose = {}): Loose => ({ type: 'tool_use', id, name: 'get_time', input: {}, ...rest });
const result = (id: string, rest: Loose = {}): Loose => ({ type: 'tool_result', tool_use_id: id, content: 'noon', ...rest });
const thinking = (rest: Loose = {}): Loose => ({ type: 'thinking', thinking: 'Hm.', signature: 'EqQB', ...rest });
const ask = user(text('What time is it?'));
const marked = (words: string): Loose => text(words, { cache_control: { type: 'ephemeral' } });

const talk = (...messages: Loose[]): Loose => ({ model: 'claude-test', max_tokens: 100, tools: [getTime], messages });
const plain = talk(ask);
const without = (field: string): Loose => Object.fromEntries(Object.entries(plain).filter(([key]) => key !== field));
const tool = (rest: Loose): Loose => ({ ...plain, tools: [{ ...getTime, ...rest }] });
const answering = (schema: Loose): Loose => ({ ...plain, output_config: { format: { type: 'json_schema', schema } } });

describe('the API takes', () => {
  const taken: [string, Loose][] = [
    ['the smallest request', { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] }],
    ['a call and its result', talk(ask, assistant(text('Let me see.'), use('toolu_1')), user(result('toolu_1')))],
    ['several results and then a text', talk(ask, assistant(use('a'), use('b')), user(result('b'), result('a'), text('And?')))],
    ['messages of one role in a row, which are one turn', talk(ask, ask, assistant(use('a')), user(result('a')), user(text('And?')))],
    ['results over two messages in a row', talk(ask, assistant(use('a'), use('b')), user(result('a')), user(result('b')))],
    ['an empty result', talk(ask, assistant(use('a')), user(result('a', { content: '' })))],
    ['no result content at all', talk(ask, assistant(use('a')), user({ type: 'tool_result', tool_use_id: 'a' }))],
    ['a final assistant message to go on with', talk(ask, assistant(text('It is')))],
    ['an empty final assistant message', talk(ask, { role: 'assistant', content: [] })],
    ['thinking with its signature', talk(ask, assistant(thinking(), use('a')), user(result('a')))],
    [
      'four cache marks',
      { ...plain, system: [marked('a'), marked('b')], tools: [{ ...getTime, cache_control: {} }], messages: [user(marked('c'))] },
    ],
    ['a closed schema for the answer', answering({ type: 'object', properties: { a: { type: 'string' } }, additionalProperties: false })],
    ['an image', talk(user({ type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }))],
    ['whole emoji', talk(user(text('👋🏽')))],
    ['a deeply nested tool input', talk(ask, assistant(use('a', { input: nested(20_000) })), user(result('a')))],
  ];
  test.each(taken)('%s', (_, body) => {
    expect(checkRequest(body)).toBeUndefined();
  });

  test('a count of tokens without max_tokens', () => {
    expect(checkRequest(without('max_tokens'), { counting: true })).toBeUndefined();
  });

  test('a temperature only with the API version of before', () => {
    const body = { ...plain, temperature: 1 };
    expect(checkRequest(body, { version: '2023-06-01' })).toBeUndefined();
    expect(checkRequest(body, { version: '2026-10-21' })?.message).toBe('temperature: Extra inputs are not permitted');
  });
});

describe('the API refuses', () => {
  const missing = (index: number, ids: string): string =>
    `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids}. ` +
    'Each `tool_use` block must have a corresponding `tool_result` block in the next message.';
  const orphan = (path: string, id: string): string =>
    `${path}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. ` +
    'Each `tool_result` block must have a corresponding `tool_use` block in the previous message.';
  const empty = (index: number): string =>
    `messages.${index}: all messages must have non-empty content except for the optional final assistant message`;
  const nonEmpty = 'messages: text content blocks must be non-empty';

  const refused: [string, unknown, string][] = [
    ['a list', [], 'Input should be a valid dictionary or object to extract fields from'],
    ['no model', without('model'), 'model: Field required'],
    ['no max_tokens', without('max_tokens'), 'max_tokens: Field required'],
    ['no tokens', { ...plain, max_tokens: 0 }, 'max_tokens: must be greater than or equal to 1'],
    ['half a token', { ...plain, max_tokens: 0.5 }, 'max_tokens: Input should be a valid integer'],
    [
      'another kind of output',
      { ...plain, output_config: { format: { type: 'xml' } } },
      "output_config.format.type: Input should be 'json_schema'",
    ],
    [
      'an open schema for the answer',
      answering({ type: 'object', properties: {} }),
      "output_config.format.schema: 'additionalProperties' is required to be supplied and to be false",
    ],
    [
      'bounds in the schema of the answer',
      answering({ type: 'object', properties: { a: { type: 'number', minimum: 0 } }, additionalProperties: false }),
      "output_config.format.schema.properties.a: 'minimum' is not permitted",
    ],
    ['no messages field', without('messages'), 'messages: Field required'],
    ['no messages', talk(), 'messages: at least one message is required'],
    ['a field it does not know', { ...plain, conversation: 'c' }, 'conversation: Extra inputs are not permitted'],
    ['a field of ours in a message', talk({ ...ask, seq: 1 }), 'messages.0.seq: Extra inputs are not permitted'],
    ['a field of ours in a block', talk(user(text('a', { id: 1 }))), 'messages.0.content.0.text.id: Extra inputs are not permitted'],
    ['an assistant that begins', talk(assistant(text('Hi'))), 'messages: first message must use the "user" role'],
    ['a role of ours', talk(ask, { role: 'tool', content: 'a' }), "messages.1.role: Input should be 'user' or 'assistant'"],
    ['a system message', talk({ role: 'system', content: 'a' }), expect.stringContaining('messages: Unexpected role "system"') as string],
    ['a block of ours', talk(user({ type: 'video' })), expect.stringContaining("messages.0.content.0: Input tag 'video' found") as string],

    ['a call without result at the end', talk(ask, assistant(use('toolu_1'))), missing(1, 'toolu_1')],
    ['a call without result in the middle', talk(ask, assistant(use('toolu_1')), user(text('Well?'))), missing(1, 'toolu_1')],
    ['two calls and one result', talk(ask, assistant(use('a'), use('b'), use('c')), user(result('b'))), missing(1, 'a, c')],
    ['a result a message late', talk(ask, assistant(use('a')), ask, assistant(text('x')), user(result('a'))), missing(1, 'a')],
    ['a text before the results', talk(ask, assistant(use('a')), user(text('Here:'), result('a'))), missing(1, 'a')],
    ['a text between the results', talk(ask, assistant(use('a'), use('b')), user(result('a'), text('and'), result('b'))), missing(1, 'b')],
    ['a result without call', talk(user(result('toolu_9'))), orphan('messages.0.content.0', 'toolu_9')],
    ['a result more than calls', talk(ask, assistant(use('a')), user(result('a'), result('b'))), orphan('messages.2.content.1', 'b')],
    [
      'two results of one call',
      talk(ask, assistant(use('a')), user(result('a'), result('a'))),
      'messages.2.content.1: each `tool_use` must have a single result. Found multiple `tool_result` blocks with id: a',
    ],
    [
      'two calls with one id',
      talk(ask, assistant(use('a'), use('a')), user(result('a'))),
      'messages.1.content.1: `tool_use` ids must be unique',
    ],
    [
      'an id used before',
      talk(ask, assistant(use('a')), user(result('a')), assistant(use('a')), user(result('a'))),
      'messages.3.content.0: `tool_use` ids must be unique',
    ],
    ['a call by the user', talk(user(use('a'))), 'messages.0: `tool_use` blocks can only be in `assistant` messages'],
    ['a result by the assistant', talk(ask, assistant(result('a'))), 'messages.1: `tool_result` blocks can only be in `user` messages'],
    [
      'talk of tools without tools',
      { ...talk(ask, assistant(use('a')), user(result('a'))), tools: undefined },
      'Requests which include `tool_use` or `tool_result` blocks must define tools.',
    ],
    [
      'a call id with a dot',
      talk(ask, assistant(use('call.1')), user(result('call.1'))),
      "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ],
    [
      'a result id with a colon',
      talk(user(result('a:1'))),
      "messages.0.content.0.tool_result.tool_use_id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ],
    [
      'a called name with a slash',
      talk(ask, assistant(use('a', { name: 'mcp/x' })), user(result('a'))),
      "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'",
    ],
    [
      'an input that is no object',
      talk(ask, assistant(use('a', { input: '{}' })), user(result('a'))),
      'messages.1.content.0.tool_use.input: Input should be a valid dictionary',
    ],
    [
      'an error without words',
      talk(ask, assistant(use('a')), user(result('a', { is_error: true, content: '' }))),
      'messages.2.content.0.tool_result: content cannot be empty if `is_error` is true',
    ],

    ['an empty text', talk(user(text(''))), nonEmpty],
    ['an empty text among others', talk(ask, assistant(text('Hi'), text('')), ask), nonEmpty],
    ['an empty text in a result', talk(ask, assistant(use('a')), user(result('a', { content: [text('')] }))), nonEmpty],
    ['nothing but space', talk(user(text(' \n'))), 'messages: text content blocks must contain non-whitespace text'],
    [
      'nothing but space as a string',
      talk({ role: 'user', content: '\t' }),
      'messages: text content blocks must contain non-whitespace text',
    ],
    ['an empty message', talk({ role: 'user', content: '' }), empty(0)],
    ['a message without blocks', talk(user()), empty(0)],
    ['an empty assistant message in the middle', talk(ask, assistant(), ask), empty(1)],
    ['an end in space', talk(ask, assistant(text('It is '))), 'messages: final assistant content cannot end with trailing whitespace'],
    ['an empty system text', { ...plain, system: [text('')] }, 'system: text content blocks must be non-empty'],

    [
      'thinking without signature',
      talk(ask, assistant({ type: 'thinking', thinking: 'Hm.' }, text('a')), ask),
      'messages.1.content.0.thinking.signature: Field required',
    ],
    [
      'thinking with an empty signature',
      talk(ask, assistant(thinking({ signature: '' }), text('a')), ask),
      'messages.1.content.0: Invalid `signature` in `thinking` block',
    ],
    [
      'thinking and nothing else',
      talk(ask, assistant(thinking()), ask),
      'messages.1: The final block in an assistant message cannot be `thinking`.',
    ],
    [
      'more thinking than tokens',
      { ...plain, max_tokens: 1024, thinking: { type: 'enabled', budget_tokens: 1024 } },
      '`max_tokens` must be greater than `thinking.budget_tokens`.',
    ],

    ['a tool with a dot', tool({ name: 'fs.read' }), "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"],
    ['a tool with a long name', tool({ name: 'x'.repeat(65) }), "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"],
    ['a tool without schema', tool({ input_schema: undefined }), 'tools.0.custom.input_schema: Field required'],
    ['a schema without type', tool({ input_schema: {} }), 'tools.0.custom.input_schema.type: Field required'],
    ['a schema of a list', tool({ input_schema: { type: 'array' } }), "tools.0.custom.input_schema.type: Input should be 'object'"],
    [
      'a schema that is a choice',
      tool({ input_schema: { type: 'object', oneOf: [] } }),
      'tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level',
    ],
    ['a field of ours in a tool', tool({ policy: 1 }), 'tools.0.custom.policy: Extra inputs are not permitted'],
    ['two tools of one name', { ...plain, tools: [getTime, getTime] }, 'tools: Tool names must be unique.'],
    [
      'the choice of a tool that is not there',
      { ...plain, tool_choice: { type: 'tool', name: 'fly' } },
      "tool_choice: Tool 'fly' not found in provided tools",
    ],
    [
      'five cache marks',
      {
        ...plain,
        system: [marked('a'), marked('b')],
        tools: [{ ...getTime, cache_control: {} }],
        messages: [user(marked('c'), marked('d'))],
      },
      'A maximum of 4 blocks with cache_control may be provided. Found 5.',
    ],
    ['half an emoji', talk(user(text('cut \ud83d'))), expect.stringContaining('no low surrogate in string') as string],
    ['half an emoji in a key', talk(ask, assistant(use('a', { input: { '\ud83d': 1 } }))), expect.stringContaining('surrogate') as string],
  ];
  test.each(refused)('%s', (_, body, message) => {
    expect(checkRequest(body)).toEqual({ status: 400, type: 'invalid_request_error', message });
  });
});

describe('a raw body', () => {
  const invalid = 'The request body is not valid JSON: ';
  test.each([
    ['{"a":"\\ud83d"}', `${invalid}no low surrogate in string: line 1 column 13 (char 12)`],
    ['{"a":"\\ud83d\\u0041"}', `${invalid}invalid low surrogate in string: line 1 column 13 (char 12)`],
    ['{"a":"\\udc4b"}', `${invalid}invalid high surrogate in string: line 1 column 7 (char 6)`],
    ['{"a":"\\ud83d\\udc4b \\ud83d"}', `${invalid}no low surrogate in string: line 1 column 26 (char 25)`],
    ['{"a":', expect.stringContaining(invalid) as string],
  ])('%s is refused', (body, message) => {
    expect(checkBody(body)?.message).toEqual(message);
  });

  test.each(['{"a":"\\ud83d\\udc4b"}', '{"a":"\\\\ud83d"}', '{"a":"👋"}', '[]'])('%s is taken', (body) => {
    expect(checkBody(body)).toBeUndefined();
  });
});

test('headers need a key and a version', () => {
  const version = { 'anthropic-version': '2023-06-01' };
  expect(checkHeaders({ ...version })?.status).toBe(401);
  expect(checkHeaders({ 'x-api-key': 'k' })?.message).toBe('anthropic-version: header is required');
  expect(checkHeaders({ 'x-api-key': 'k', 'anthropic-version': '2020-01-01' })?.status).toBe(400);
  expect(checkHeaders({ 'x-api-key': 'k', ...version })).toBeUndefined();
  expect(checkHeaders({ authorization: 'Bearer k', ...version }, 'k')).toBeUndefined();
});

test('a request of our own type is taken', () => {
  const request: ApiRequest = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] };
  expect(checkRequest(request)).toBeUndefined();
});

function nested(depth: number): Loose {
  let value: Loose = {};
  for (let index = 0; index < depth; index++) value = { a: value };
  return value;
}
