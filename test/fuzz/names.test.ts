/** The fuzzer knows every name of the contract. */
import * as messages from '../../src/workflows/messages.js';
import { NAMES } from './grammar.js';

test.each(['signal', 'update', 'query'])('each %s of the conversation', (type) => {
  const defined = Object.values(messages as Readonly<Record<string, unknown>>).flatMap((one) =>
    typeof one === 'object' && one !== null && 'name' in one && 'type' in one && one.type === type ? [String(one.name)] : [],
  );
  expect(defined.length).toBeGreaterThan(4);
  expect(defined.filter((name) => !NAMES[type]?.includes(name))).toEqual([]);
});
