/** What Temporal's page says of each signal, update and query. */
import * as messages from '../../src/workflows/messages.js';

const defined = Object.values<unknown>(messages).filter(
  (one): one is { type: keyof typeof messages.DESCRIPTIONS; name: string } =>
    typeof one === 'object' &&
    one !== null &&
    'name' in one &&
    ['signal', 'update', 'query'].includes((one as { type?: string }).type ?? ''),
);

test('each has one, and nothing else has', () => {
  const named = (list: readonly { type: string; name: string }[]): string[] =>
    [...new Set(list.map(({ type, name }) => `${type} ${name}`))].sort();
  const described = Object.entries(messages.DESCRIPTIONS).flatMap(([type, names]) => Object.keys(names).map((name) => ({ type, name })));
  expect(defined.length).toBeGreaterThan(40);
  expect(named(described)).toEqual(named(defined));
});
