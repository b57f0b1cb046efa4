import { checkOllama } from './check-ollama.js';

const words = (parts: object): string | undefined =>
  checkOllama({ model: 'llama', messages: [{ role: 'user', content: 'go' }], ...parts })?.message;

test('takes what is right, and what it does not know', () => {
  expect(words({ sparkle: true })).toBeUndefined();
});

test.each<[string, object, RegExp]>([
  ['a format that is none', { format: 'yaml' }, /invalid format: "yaml"/],
  ['no model', { model: '' }, /model is required/],
  [
    'a text that is none',
    { messages: [{ role: 'user', content: [] }] },
    /cannot unmarshal array into Go struct field ChatRequest.messages.content of type string/,
  ],
  [
    'an input as text',
    { messages: [{ role: 'assistant', content: '', tool_calls: [{ function: { name: 'a', arguments: '{}' } }] }] },
    /cannot unmarshal string/,
  ],
  [
    'a picture that is no base64',
    { messages: [{ role: 'user', content: 'x', images: ['https://example.org/a.png'] }] },
    /illegal base64 data/,
  ],
])('refuses %s', (_, parts, expected) => {
  expect(words(parts)).toMatch(expected);
});
