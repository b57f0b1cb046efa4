import type { BodyRef } from '../../src/records/message.js';
import { estimateMessageTokens, estimateStringTokens } from '../../src/memory/tokens.js';
import { MEDIA_TOKENS } from '../../src/records/token-estimate.js';
import { answer, calls, result, user } from './builders.js';

const BODY: BodyRef = { ref: 'sha256:ab', sha256: 'ab', bytes: 50_000, preview: 'It begins' };

test.each([
  ['', 0],
  ['a', 1],
  ['abcd', 1],
  ['abcde', 2],
])('%j is %d tokens: characters over four, rounded up', (text, tokens) => {
  expect(estimateStringTokens(text)).toBe(tokens);
});

test('a text counts its characters, one that lies in the store its bytes', () => {
  expect(estimateMessageTokens(user('x'.repeat(401)))).toBe(101);
  expect(estimateMessageTokens({ ...user(''), text: BODY })).toBe(12_500);
  expect(estimateMessageTokens({ ...result('c1'), text: BODY })).toBeGreaterThanOrEqual(12_500);
});

test('a picture counts the same whatever its size', () => {
  const images = [
    { mediaType: 'image/png', url: 'https://example.org/a.png' },
    { mediaType: 'image/png', base64: 'A'.repeat(1_000_000) },
  ];
  expect(estimateMessageTokens({ ...user('abcd'), images })).toBe(1 + 2 * MEDIA_TOKENS.images);
});

test('all blocks of an answer count, tool inputs too, also one that lies in the store', () => {
  const input = { path: 'x'.repeat(400) };
  expect(estimateMessageTokens(calls(['c1', 'read_file', input]))).toBeGreaterThanOrEqual(100);
  const blocks = [{ kind: 'tool-call', callId: 'c1', name: 'n', input: null, inputRef: BODY }] as const;
  expect(estimateMessageTokens({ ...answer(''), blocks })).toBeGreaterThanOrEqual(12_500);
  const thinking = { kind: 'thinking', text: 'x'.repeat(40), signature: 'y'.repeat(40), provider: 'anthropic' } as const;
  const opaque = { kind: 'opaque', provider: 'anthropic', value: { data: 'z'.repeat(400) } } as const;
  expect(estimateMessageTokens({ ...answer(''), blocks: [thinking, opaque, { kind: 'text', text: BODY }] })).toBeGreaterThanOrEqual(12_620);
});
