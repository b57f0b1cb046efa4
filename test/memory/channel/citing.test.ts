import { isKept, newFrom, shownWhole } from '../../../src/conversation/context/citing.js';
import type { ConversationMessage, ToolResultMessage } from '../../../src/records/message.js';
import { CITED_BYTES, citeOld, frameNew } from '../../../src/memory/channel/cite-results.js';
import { shownTokensOf, tokensOf } from '../../../src/memory/tokens.js';
import { answer, calls, result, user } from '../builders.js';

const LONG = 'x'.repeat(8_000);
const kept = (callId: string, text = LONG, citation = `{"actionName":"look"}`): ToolResultMessage => ({
  ...result(callId, text),
  item: { id: `mem_${callId}`, citation },
});
const shown = (messages: readonly ConversationMessage[], budget = 100_000): string[] =>
  frameNew(
    citeOld(messages).map(({ message }) => message),
    budget,
  ).flatMap((message) => (message.role === 'tool' && typeof message.text === 'string' ? [message.text] : []));

test('a new result is shown whole, with the word where it lies; once the model has spoken it is cited', () => {
  const first = [user('go'), calls(['a']), kept('a')];
  expect(shown(first)).toEqual([`Action results:\n${LONG}\n\n(Stored in memory as mem_a)`]);
  expect(shown([...first, calls(['b']), kept('b')])).toEqual([
    'Action results (compacted):\n{"actionName":"look"}\n\n(Full result in memory: mem_a)',
    `Action results:\n${LONG}\n\n(Stored in memory as mem_b)`,
  ]);
});

test('a result that is not kept is as it was, new or old', () => {
  const messages = [user('go'), calls(['a'], ['b']), result('a', 'short'), result('b', 'short too'), answer('done'), user('and?')];
  expect(shown(messages)).toEqual(['short', 'short too']);
});

test('what stands before the newest answer is never rewritten again', () => {
  const messages: ConversationMessage[] = [user('go')];
  let before: ConversationMessage[] = [];
  for (let n = 0; n < 40; n += 1) {
    const cited = citeOld(messages).map(({ message }) => message);
    const settled = cited.slice(0, newFrom(messages));
    expect(settled.slice(0, before.length)).toEqual(before);
    before = settled;
    messages.push(calls([`c${n}`]), kept(`c${n}`, LONG, JSON.stringify({ actionName: 'look', head: 'y'.repeat(n * 20) })));
  }
});

test('citations are bounded together: later ones say in a line what there is', () => {
  const messages = Array.from({ length: 80 }, (_, n) => [calls([`c${n}`]), kept(`c${n}`, LONG, 'c'.repeat(900))]).flat();
  const cited = shown([user('go'), ...messages, answer('done')]);
  expect(cited.filter((text) => text.includes('ccc'))).toHaveLength(Math.floor(CITED_BYTES / 900));
  expect(cited.at(-1)).toBe('Action results (compacted):\nlook, 8000 bytes\n\n(Full result in memory: mem_c79)');
});

test('texts of old results are not read, those of new ones are', () => {
  const stored = { ref: 'sha256:1', sha256: '1', bytes: 8_000, preview: 'x' };
  const messages = [user('go'), calls(['a']), { ...kept('a'), text: stored }, calls(['b']), { ...kept('b'), text: stored }];
  expect(citeOld(messages).map(({ needsText }) => needsText)).toEqual([true, true, false, true, true]);
});

test('what would take more than a quarter of the budget is cited at once, with its beginning and its end', () => {
  const text = `${'a'.repeat(50_000)}${'b'.repeat(50_000)}`;
  const [at] = shown([user('go'), calls(['a']), kept('a', text)], 80_000);
  expect(at).toMatch(/^Action results \(compacted\):\na{2000}\n\[96000 of 100000 characters are left out here.*\]\nb{2000}\n\n\(Full/);
  expect(shown([user('go'), calls(['a']), kept('a', text)], 200_000)[0]).toContain(text);
});

test('new results together take at most half of the budget; the rest of them is cited at once', () => {
  expect(shownWhole([200, 240, 100, 50, 20, 260, 1], 1_000)).toEqual([true, true, false, true, false, false, true]);
  const many = Array.from({ length: 10 }, (_, n) => kept(`c${n}`, 'z'.repeat(40_000)));
  const texts = shown([user('go'), calls(...many.map(({ callId }) => [callId] as const)), ...many], 100_000);
  expect(texts.map((text) => text.startsWith('Action results:'))).toEqual([
    ...Array<boolean>(5).fill(true),
    ...Array<boolean>(5).fill(false),
  ]);
});

test('what a model has made to stand for a result is shown in its place, however many there are', () => {
  const messages = [user('go'), ...Array.from({ length: 20 }, (_, n) => [calls([`c${n}`]), kept(`c${n}`)]).flat(), answer('done')];
  const made = new Map(Array.from({ length: 20 }, (_, n) => [`mem_c${n}`, `${n}: ${'m'.repeat(900)}`]));
  const texts = citeOld(messages, made).flatMap(({ message }) => (isKept(message) ? [String(message.text)] : []));
  expect(texts.every((text, n) => text.includes(`\n${n}: mmm`))).toBe(true);
});

test('an estimate counts old results as what stands for them, and new ones whole', () => {
  const messages = [user('go'), calls(['a']), kept('a'), calls(['b']), kept('b')];
  expect(tokensOf(messages)).toBeGreaterThan(4_000);
  expect(shownTokensOf(messages)).toBeGreaterThan(2_000);
  expect(shownTokensOf(messages)).toBeLessThan(2_100);
  expect(shownTokensOf([...messages, answer('done')])).toBeLessThan(100);
});
