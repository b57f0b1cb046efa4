/** JSON Schemas of strangers: judged beside the worker, and ended after their time. */
import { createSchemaCheck } from '../../../src/platform/json-schema/check.js';
import { z } from 'zod';
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

describe('a schema is judged by its own draft', () => {
  const of = (draft: string): string => `http://json-schema.org/${draft}/schema#`;
  const modern = z.toJSONSchema(z.object({ a: z.tuple([z.string(), z.number()]), b: z.email().optional(), c: z.literal('x') }));

  test.each<[string, JsonObject, JsonValue, string]>([
    ['2020-12, as zod writes it', modern as JsonObject, { a: ['a', 1], c: 'x' }, 'fits'],
    ['2020-12, by prefixItems', modern as JsonObject, { a: [1, 'a'], c: 'x' }, 'violated'],
    ['2020-12, by $defs', { $defs: { t: { type: 'string' } }, properties: { a: { $ref: '#/$defs/t' } } }, { a: 1 }, 'violated'],
    ['2020-12, by unevaluatedProperties', { allOf: [{ properties: { a: {} } }], unevaluatedProperties: false }, { a: 1, b: 2 }, 'violated'],
    ['2020-12, by dependentRequired', { dependentRequired: { a: ['b'] } }, { a: 1 }, 'violated'],
    ['2020-12 over TLS and with a hash', { $schema: 'https://json-schema.org/draft/2020-12/schema#', const: 1 }, 1, 'fits'],
    ['2019-09', { $schema: 'https://json-schema.org/draft/2019-09/schema', items: [{ type: 'string' }] }, [1], 'violated'],
    ['draft-07, by its tuples', { $schema: of('draft-07'), items: [{ type: 'string' }], additionalItems: false }, ['a', 'b'], 'violated'],
    ['draft-06', { $schema: of('draft-06'), exclusiveMinimum: 3 }, 3, 'violated'],
    ['draft-04, by its bounds', { $schema: of('draft-04'), id: 'http://x/y', minimum: 3, exclusiveMinimum: true }, 3, 'violated'],
    ['none named, but a tuple of before', { items: [{ type: 'string' }] }, [1], 'violated'],
    ['none named, but bounds of before', { maximum: 3, exclusiveMaximum: true }, 3, 'violated'],
    ['a format only explains', { type: 'string', format: 'email' }, 'no address', 'fits'],
    ['a pattern for other languages', { pattern: '^[\\w-.]+$' }, 'a.b', 'fits'],
    ['$async makes no promise of it', { $async: true, type: 'string' }, 1, 'violated'],
    ['nullable of OpenAPI', { type: 'string', nullable: true }, null, 'fits'],
    ['nullable without a type', { nullable: true, anyOf: [{ type: 'string' }] }, 'a', 'fits'],
    ['an id of before that names nothing', { id: 'thing', type: 'string' }, 'a', 'fits'],
    ['an absent constructor', { properties: { constructor: { type: 'string' } } }, {}, 'fits'],
  ])('%s', async (_what, schema, data, kind) => {
    expect(await check({ schema, data }, PATIENCE_MS)).toMatchObject({ kind });
  });
});

test.each<[string, JsonObject, RegExp]>([
  ['an unknown $schema', { $schema: 'https://example.com/mine' }, /\$schema "https:\/\/example.com\/mine" is not known/],
  ['a $schema that is no text', { $schema: 7 }, /\$schema "7" is not known/],
  ['no type that there is', { properties: { a: { type: 'strin' } } }, /^at \/properties\/a\/type it must/],
  [
    'words of another draft than the named',
    { $schema: 'https://json-schema.org/draft/2020-12/schema', items: [{}] },
    /^at \/items it must/,
  ],
  [
    'a reference to nowhere',
    { properties: { a: { $ref: '#/$defs/b' } } },
    /^at \/properties\/a\/\$ref it refers to #\/\$defs\/b, which is not in it/,
  ],
  [
    'a reference to elsewhere',
    { properties: { a: { $ref: 'https://127.0.0.1:1/b.json' } } },
    /^at \/properties\/a\/\$ref .* no other schema is fetched/,
  ],
  ['no regular expression', { properties: { 'a/b': { pattern: '(' } } }, /^at \/properties\/a~1b\/pattern it has no regular expression/],
])('one with %s is refused, with its place', async (_what, schema, why) => {
  expect(await refusal(schema, PATIENCE_MS)).toMatch(why);
});

test('one that can be used is not judged again: no thread is waited for', async () => {
  expect(await refusal(text, PATIENCE_MS)).toBeUndefined();
  const ended: string[] = [];
  const [, hostile, value] = HOSTILE[0] ?? ['', {}, null];
  const taken = ['one thread', 'the other'].map((name) => check({ schema: hostile, data: value }, 500).then(() => ended.push(name)));
  expect([await refusal(text, PATIENCE_MS), ...ended]).toEqual([undefined]);
  await Promise.all(taken);
});

// @rule platform/schemas-beside-the-worker
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
