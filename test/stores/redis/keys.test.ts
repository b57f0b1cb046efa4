import { KEY_NAMES, SCOPE_KEY_NAMES } from '../../../src/stores/redis/keys.js';

// Two kinds of values under one name would be one key, and Redis refuses what comes second.
test.each([
  ['conversation', KEY_NAMES],
  ['scope', SCOPE_KEY_NAMES],
] as const)('no two things of a %s have one key', (_of, names: readonly string[]) => {
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
});
