import { isKept, shownWhole } from '../../../src/conversation/context/citing.js';
import type { ConversationMessage, ToolResultMessage } from '../../../src/records/message.js';
import { citedBytes, citeOld, frameNew } from '../../../src/memory/channel/citations.js';
import { hasBodies } from '../../../src/memory/bodies.js';
import { countShown, countMessageTokens } from '../../../src/memory/tokens.js';
import { answer, calls, result, user } from '../builders.js';

const LONG = 'x'.repeat(8_000);
const kept = (callId: string, text = LONG, citation = `{"actionName":"look"}`): ToolResultMessage => ({
  ...result(callId, text),
  item: { id: `mem_${callId}`, citation },
});
const shown = (messages: readonly ConversationMessage[], budget = 100_000): string[] =>
  frameNew(citeOld(messages, budget), budget).flatMap((message) =>
    message.role === 'tool' && typeof message.text === 'string' ? [message.text] : [],
  );

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

/** As the plugin for pages makes them, and as one of a user does. */
const page = (n: number): string =>
  JSON.stringify(
    {
      ...{ actionName: 'Web Page Content', url: `https://example.org/page-${n}`, title: `Page ${n}`, excerpt: `${'words '.repeat(80)}...` },
      ...{ contentLength: 51_000, memoryId: `mem_c${n}`, retrieveWith: `retrieve_from_memory with id="mem_c${n}"` },
    },
    null,
    2,
  );
const ofUser = (n: number): string => JSON.stringify({ verdict: `court ${n} says no`, dissent: n % 3, pages: ['a', 'b'] });

const rounds = (count: number, citation: (n: number) => string): ConversationMessage[] => [
  user('go'),
  ...Array.from({ length: count }, (_, n) => [calls([`c${n}`]), kept(`c${n}`, LONG, citation(n))]).flat(),
];

test.each([
  ['pages', page, (n: number) => [`https://example.org/page-${n}`, `Page ${n}`]],
  ['a plugin of the user’s own', ofUser, (n: number) => [`court ${n} says no`]],
])('of 60 results each keeps a useful line, the newest all of its citation: %s', (_, citation, words) => {
  const budget = 100_000;
  const cited = shown([...rounds(60, citation), answer('done')], budget);
  expect(cited).toHaveLength(60);
  for (const [n, text] of cited.entries()) {
    for (const word of words(n)) expect(text).toContain(word);
    expect(text).toContain(`(Full result in memory: mem_c${n})`);
  }
  expect(cited.at(-1)).toContain(citation(59));
  const whole = cited.filter((text, n) => text.includes(citation(n)));
  expect(whole.reduce((sum, text) => sum + text.length, 0)).toBeLessThan(citedBytes(budget) * 1.2);
  // The oldest shorten first.
  const firstWhole = cited.findIndex((text, n) => text.includes(citation(n)));
  expect(cited.slice(firstWhole).every((text, i) => text.includes(citation(firstWhole + i)))).toBe(true);
  for (const text of cited.slice(0, firstWhole)) expect(text.length).toBeLessThan(300);
});

test('the oldest are shortened many at once: of 60 results few change the beginning of the prompt, and each changes once', () => {
  let before: string[] = [];
  const changes: number[] = [];
  const rewritten = new Map<number, number>();
  for (let n = 1; n <= 60; n += 1) {
    const now = shown([...rounds(n, page), answer('done')]);
    const differing = before.flatMap((text, at) => (text === now[at] ? [] : [at]));
    if (differing.length > 0) changes.push(differing.length);
    for (const at of differing) rewritten.set(at, (rewritten.get(at) ?? 0) + 1);
    before = now;
  }
  expect(changes.length).toBeGreaterThan(1);
  expect(changes.length).toBeLessThanOrEqual(6);
  expect(Math.min(...changes)).toBeGreaterThanOrEqual(8);
  expect([...rewritten.values()].every((times) => times === 1)).toBe(true);
});

test('a larger budget of the prompt keeps more citations as they were made, up to a bound', () => {
  /** The most that there are before the oldest are shortened. */
  const mostWhole = (budget: number): number =>
    Math.max(
      ...Array.from({ length: 40 }, (_, i) => shown([...rounds(i + 1, page), answer('done')], budget)).map(
        (texts) => texts.filter((text, n) => text.includes(page(n))).length,
      ),
    );
  expect(mostWhole(10_000)).toBeLessThan(mostWhole(60_000));
  expect(mostWhole(60_000)).toBeLessThan(mostWhole(90_000));
  expect(mostWhole(90_000)).toBe(mostWhole(2_000_000));
});

test('a line says what there is, whatever a plugin has made: nothing breaks it, and nothing makes it long', () => {
  const lines = (citation: string): string[] => shown([...rounds(40, () => citation), answer('done')], 1_000);
  expect(lines('no JSON\nat all '.repeat(60))[0]).toMatch(/\nlook · no JSON at all .{20,}\n/);
  expect(lines(JSON.stringify({ long: 'x'.repeat(400), more: { deep: [1, 2] }, memoryId: 'm' }))[0]).toContain(
    ` · ${'x'.repeat(60)} · more {" · 8000 bytes\n`,
  );
});

test('texts of old results are not read, those of new ones are', () => {
  const stored = { ref: 'sha256:1', sha256: '1', bytes: 8_000, preview: 'x' };
  const messages = [user('go'), calls(['a']), { ...kept('a'), text: stored }, calls(['b']), { ...kept('b'), text: stored }];
  expect(citeOld(messages, 100_000).map(hasBodies)).toEqual([false, false, false, false, true]);
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
  const texts = citeOld(messages, 100_000, made).flatMap((message) => (isKept(message) ? [String(message.text)] : []));
  expect(texts.every((text, n) => text.includes(`\n${n}: mmm`))).toBe(true);
});

test('an estimate counts old results as what stands for them, and new ones whole', () => {
  const messages = [user('go'), calls(['a']), kept('a'), calls(['b']), kept('b')];
  expect(countMessageTokens(messages)).toBeGreaterThan(4_000);
  expect(countShown(messages)).toBeGreaterThan(2_000);
  expect(countShown(messages)).toBeLessThan(2_100);
  expect(countShown([...messages, answer('done')])).toBeLessThan(100);
});
