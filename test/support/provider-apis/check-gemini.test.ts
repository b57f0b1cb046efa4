import { checkGemini } from './check-gemini.js';

const user = { role: 'user', parts: [{ text: 'go' }] };
const call = (name: string, thoughtSignature?: string): object => ({
  functionCall: { name, args: {} },
  ...(thoughtSignature && { thoughtSignature }),
});
const model = (...parts: object[]): object => ({ role: 'model', parts });
const results = (...names: string[]): object => ({
  role: 'user',
  parts: names.map((name) => ({ functionResponse: { name, response: { output: 'done' } } })),
});
const words = (parts: object, name = 'gemini-3-test'): string | undefined => checkGemini({ contents: [user], ...parts }, name)?.message;

test('takes what is right', () => {
  expect(words({ contents: [user, model(call('a', 'sig'), call('b')), results('a', 'b')] })).toBeUndefined();
});

test('a signature is asked for in the turn that goes on, and from the third generation on', () => {
  const unsigned = { contents: [user, model(call('a')), results('a')] };
  expect(words(unsigned)).toMatch(/missing a thought_signature/);
  expect(words(unsigned, 'gemini-2.5-flash')).toBeUndefined();
  expect(words({ contents: [user, model(call('a')), results('a'), model({ text: 'Done.' }), user] })).toBeUndefined();
});

const answering = (config: object, parts: object = {}): object => ({ generationConfig: config, ...parts });
const json = { responseMimeType: 'application/json', responseJsonSchema: { type: 'object' } };

test('takes a schema for the answer', () => {
  expect(words(answering(json))).toBeUndefined();
});

test.each<[string, object, RegExp]>([
  ['a schema without a type of the answer', answering({ responseJsonSchema: {} }), /only allowed when response_mime_type/],
  ['JSON beside tools', answering(json, { tools: [{ functionDeclarations: [] }] }), /Function calling with a response mime type/],
  ['a field that is none', { messages: [] }, /Unknown name "messages"/],
  ['a field of a part that is none', { contents: [{ role: 'user', parts: [{ text: 'x', cached: true }] }] }, /Unknown name "cached"/],
  ['no contents', { contents: [] }, /contents is not specified/],
  ['another role', { contents: [{ role: 'assistant', parts: [{ text: 'x' }] }] }, /valid role: user, model/],
  ['a content without parts', { contents: [{ role: 'user', parts: [] }] }, /must not be empty/],
  ['a part without anything', { contents: [{ role: 'user', parts: [{}] }] }, /must have one initialized field/],
  [
    'a call after an answer',
    { contents: [user, model({ text: 'x' }), model(call('a', 's')), results('a')] },
    /comes immediately after a user turn/,
  ],
  [
    'a call without its result',
    { contents: [user, model(call('a', 's'), call('b')), results('a')] },
    /number of function response parts is equal/,
  ],
  ['a result without its call', { contents: [user, model({ text: 'x' }), results('a')] }, /function response turn comes immediately after/],
  ['a name that cannot be', { contents: [user, model(call('9a', 's')), results('9a')] }, /Invalid function name/],
  [
    'a picture of another kind',
    { contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/gif', data: 'aGk=' } }] }] },
    /Unsupported MIME type: image\/gif/,
  ],
])('refuses %s', (_, parts, expected) => {
  expect(words(parts)).toMatch(expected);
});
