import { checkChat } from './check-chat.js';
import { checkResponses } from './check-responses.js';

const open = { type: 'object', properties: { a: { type: 'string' } } };
const closed = { ...open, required: ['a'], additionalProperties: false };

const tool = { name: 'read_file', parameters: { type: 'object', properties: {} } };

describe('Chat Completions', () => {
  const call = (id: string, fields: object = {}): object => ({
    id,
    type: 'function',
    function: { name: 'read_file', arguments: '{}', ...fields },
  });
  const user = { role: 'user', content: 'go' };
  const calling = (...calls: object[]): object => ({ role: 'assistant', content: null, tool_calls: calls });
  const result = (id: string): object => ({ role: 'tool', tool_call_id: id, content: 'done' });
  const words = (parts: object): string | undefined => checkChat({ model: 'gpt', messages: [user], ...parts })?.message;

  const inFormat = (schema: object): object => ({
    response_format: { type: 'json_schema', json_schema: { name: 'a', strict: true, schema } },
  });

  test('takes a closed schema, and any that is not strict', () => {
    expect(words(inFormat(closed))).toBeUndefined();
    expect(words({ response_format: { type: 'json_schema', json_schema: { name: 'a', schema: open } } })).toBeUndefined();
  });

  test('takes what is right', () => {
    expect(
      words({ tools: [{ type: 'function', function: tool }], messages: [user, calling(call('a'), call('b')), result('b'), result('a')] }),
    ).toBeUndefined();
  });

  test.each<[string, object, RegExp]>([
    ['a field that is none', { max_output_tokens: 5 }, /Unrecognized request argument supplied: max_output_tokens/],
    ['no messages', { messages: [] }, /Invalid 'messages': empty array/],
    ['a call without its result', { messages: [user, calling(call('a')), user] }, /must be followed by tool messages.*: a$/],
    ['one of two results', { messages: [user, calling(call('a'), call('b')), result('a')] }, /did not have response messages: b$/],
    ['a result without its call', { messages: [user, result('a')] }, /must be a response to a preceeding message/],
    ['an id that is too long', { messages: [user, calling(call('x'.repeat(41)))] }, /\.id': string too long.*maximum length 40/],
    ['a name that cannot be', { messages: [user, calling(call('a', { name: 'a b' }))] }, /does not match pattern/],
    ['an input that is no text', { messages: [user, calling(call('a', { arguments: {} }))] }, /arguments': expected a string/],
    ['an assistant without words', { messages: [user, { role: 'assistant', content: null }] }, /expected a string, got null/],
    [
      'a picture of another kind',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/bmp;base64,aGk=' } }] }] },
      /unsupported image/,
    ],
    [
      'a file as a picture',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'file:///a' } }] }] },
      /valid URL/,
    ],
    [
      'sound in another format',
      { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'aGk=', format: 'ogg' } }] }] },
      /Supported values are: 'wav' and 'mp3'/,
    ],
    ['a schema that is no object', { tools: [{ type: 'function', function: { name: 'a', parameters: {} } }] }, /got 'type: "None"'/],
    ['an empty list of tools', { tools: [] }, /Invalid 'tools': empty array/],
    ['a format that is none', { response_format: { type: 'yaml' } }, /Invalid value for 'response_format.type'/],
    ['a schema without a name', { response_format: { type: 'json_schema', json_schema: { schema: closed } } }, /json_schema\.name'/],
    ['an open schema', inFormat(open), /In context=\(\), 'additionalProperties' is required/],
    ['an optional property', inFormat({ ...closed, required: [] }), /Missing 'a'/],
    [
      'the length of a text',
      inFormat({ ...closed, properties: { a: { type: 'string', minLength: 1 } } }),
      /In context=\('properties', 'a'\), 'minLength' is not permitted/,
    ],
    ['a list of anything', inFormat({ ...closed, properties: { a: { type: 'array' } } }), /array schema missing items/],
  ])('refuses %s', (_, parts, expected) => {
    expect(words(parts)).toMatch(expected);
  });
});

describe('Responses', () => {
  const user = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'go' }] };
  const call = { type: 'function_call', call_id: 'a', name: 'read_file', arguments: '{}' };
  const output = { type: 'function_call_output', call_id: 'a', output: 'done' };
  const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'c2ln' };
  const words = (parts: object): string | undefined => checkResponses({ model: 'gpt', input: [user], store: false, ...parts })?.message;

  test('takes what is right', () => {
    expect(words({ tools: [{ type: 'function', strict: false, ...tool }], input: [user, reasoning, call, output] })).toBeUndefined();
  });

  test.each<[string, object, RegExp]>([
    ['a format that is none', { text: { format: { type: 'yaml' } } }, /Invalid value for 'text.format.type'/],
    ['an open schema', { text: { format: { type: 'json_schema', name: 'a', strict: true, schema: open } } }, /'additionalProperties'/],
    ['a field that is none', { max_completion_tokens: 50 }, /Unknown parameter: 'max_completion_tokens'/],
    ['too few tokens', { max_output_tokens: 15 }, /Expected a value >= 16, but got 15/],
    ['a call without its output', { input: [user, call] }, /No tool output found for function call a/],
    ['an output without its call', { input: [user, output] }, /No tool call found for function call output with call_id a/],
    ['reasoning that leads to nothing', { input: [user, reasoning, user] }, /without its required following item/],
    ['reasoning that lies nowhere', { input: [user, { ...reasoning, encrypted_content: null }, call, output] }, /Items are not persisted/],
    ['reasoning in plain words', { input: [user, { ...reasoning, content: [{}] }, call, output] }, /array too long/],
    [
      'reasoning without a summary',
      { input: [user, { ...reasoning, summary: undefined }, call, output] },
      /Missing required parameter: 'input\[1\].summary'/,
    ],
    [
      'words of a user as an assistant’s',
      { input: [{ role: 'assistant', content: [{ type: 'input_text', text: 'x' }] }] },
      /Supported values are: 'output_text'/,
    ],
    ['a strict tool with an open schema', { tools: [{ type: 'function', ...tool }] }, /'additionalProperties' is required/],
    [
      'reasoning of a model that does not',
      { model: 'gpt-4o', include: ['reasoning.encrypted_content'] },
      /Encrypted content is not supported/,
    ],
  ])('refuses %s', (_, parts, expected) => {
    expect(words(parts)).toMatch(expected);
  });
});
