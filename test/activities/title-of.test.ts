/** A title of what was said first: short, on one line, and nothing in it that must not stand in a list. */
import { createKnownSecrets } from '../../src/platform/known-secrets.js';
import { toTitle } from '../../src/activities/make-title.js';

test.each([
  ['Plan my trip to Lisbon', 'Plan my trip to Lisbon'],
  ['  \n\n## Plan:\r\n\tmy   trip ', 'Plan: my trip'],
  [
    'Please look at the tests of the parser and tell me why the third of them is slow',
    'Please look at the tests of the parser and tell me why the…',
  ],
  ['x'.repeat(100), `${'x'.repeat(59)}…`],
  ['東京への旅行を計画してください', '東京への旅行を計画してください'],
  ['👩‍🚀 go', '👩 🚀 go'],
  ['safe\u202egnp.exe \u001b[31mred\u0007', 'safe gnp.exe [31mred'],
])('%j', (text, title) => expect(toTitle(text)).toBe(title));

test.each(['', ' \n ', '...', '\u200b', '🚀', '---'])('%j says nothing', (text) => expect(toTitle(text)).toBeUndefined());

test('no longer than sixty characters, whatever is said', () => {
  for (const text of ['a b '.repeat(5_000), '語'.repeat(5_000), '👩‍🚀'.repeat(500)])
    expect([...(toTitle(text) ?? 'x')].length).toBeLessThanOrEqual(60);
});

test('a secret that is known, or looks like one, is not in it, also where the title is cut in its middle', () => {
  const known = createKnownSecrets(['hunter2hunter2']);
  expect(toTitle('my password is hunter2hunter2', known)).toBe('my password is [redacted]');
  expect(toTitle('hunter2hunter2', known)).toBeUndefined();
  const key = `sk-ant-${'a1B2'.repeat(10)}`;
  for (const before of ['use ', `${'x'.repeat(40)} `, 'word '.repeat(10)]) {
    const title = toTitle(`${before}${key} for it`) ?? '';
    expect(title).not.toContain('sk-ant');
    expect(title).not.toContain('a1B2a1B2');
  }
  expect(toTitle('token qX7pL2mZ9vK4tR8wN3bY6cJ1hF5dG0sA')).toBeUndefined();
});
