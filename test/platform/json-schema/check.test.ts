/** JSON Schemas of strangers: judged beside the worker, and ended after their time. */
import { createSchemaCheck } from '../../../src/platform/json-schema/check.js';
import type { JsonObject, JsonValue } from '../../../src/records/message.js';

const { judge: check, refusal } = createSchemaCheck();
/** Only a hang meets it; each honest question takes milliseconds. */
const PATIENCE_MS = 60_000;

const text = { type: 'object', properties: { city: { type: 'string', minLength: 2 } }, required: ['city'] };

/** Steps that double with each level: 2^40 of them. */
function doubling(levels: number): JsonObject {
  const $defs = Object.fromEntries(
    Array.from({ length: levels }, (_, at) => {
      const next = { $ref: `#/$defs/l${at + 1}` };
      return [`l${at}`, { anyOf: [{ allOf: [next, { type: 'string' }] }, { allOf: [next, { type: 'boolean' }] }] }];
    }),
  );
  return { $defs: { ...$defs, [`l${levels}`]: { type: 'number' } }, $ref: '#/$defs/l0' };
}

const HOSTILE: readonly (readonly [string, JsonObject, JsonValue])[] = [
  ['a pattern that tries every way', { type: 'string', pattern: '^(a+)+$' }, `${'a'.repeat(60)}!`],
  ['names by such a pattern', { patternProperties: { '^(a|aa)+$': { type: 'string' } } }, { [`${'a'.repeat(80)}!`]: 1 }],
  ['references that double', doubling(40), 1],
];

test.each<[string, JsonObject, JsonValue, object]>([
  ['what fits', text, { city: 'Oslo' }, { kind: 'fits' }],
  ['what does not', text, { city: 'O' }, { kind: 'violated', problems: expect.stringContaining('/city') }],
  ['a reference to nowhere', { $ref: '#/nowhere' }, {}, { kind: 'unusable', why: expect.stringContaining('nowhere') }],
  ['a reference that leads back', { $ref: '#' }, {}, { kind: expect.stringMatching(/unusable|fits/) }],
])('%s', async (_what, schema, data, verdict) => {
  expect(await check({ schema, data }, PATIENCE_MS)).toEqual(expect.objectContaining(verdict));
});

// @rule tools/schemas-beside-the-worker
test.each(HOSTILE)('%s is ended, and others are answered meanwhile and after it', async (_what, schema, data) => {
  let turns = 0;
  const ticking = setInterval(() => (turns += 1), 1);
  try {
    const hostile = check({ schema, data }, 500);
    const others = Array.from({ length: 10 }, () => check({ schema: text, data: { city: 'Oslo' } }, PATIENCE_MS));
    expect(await Promise.all(others)).toEqual(others.map(() => ({ kind: 'fits' })));
    expect(await hostile).toEqual({ kind: 'unusable', why: expect.stringContaining('takes more than 500 ms') });
  } finally {
    clearInterval(ticking);
  }
  // The loop of the worker ran all the while: it has two turns where it was held up.
  expect(turns).toBeGreaterThan(5);
  expect(await check({ schema: text, data: { city: 'Bergen' } }, PATIENCE_MS)).toEqual({ kind: 'fits' });
});

test('one that takes all the memory ends its thread, and nothing else', async () => {
  const filling = {
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: 150_000 }, (_, at) => [`p${at}`, { pattern: `^${at}$` }])),
  };
  expect(await check({ schema: filling, data: {} }, PATIENCE_MS)).toEqual({ kind: 'unusable', why: expect.stringContaining('128 MB') });
  expect(await check({ schema: text, data: { city: 'Bergen' } }, PATIENCE_MS)).toEqual({ kind: 'fits' });
});
