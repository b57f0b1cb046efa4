/** What stands in for a call that no recording answers. */
import { z } from 'zod';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { standIn, toStub } from '../../src/whatif/stub.js';

const tool = (output?: z.ZodType) =>
  defineTool({ name: 'rate', description: 'A rate.', input: z.object({}), ...(output && { output }), run: () => 'ran' });

test('stubs are a function, or answers by the name of the tool', async () => {
  const call = { conversation: 'c', turn: 'turn_0001', name: 'book', input: { what: 'tea' } };
  expect(await toStub(({ name }: { name: string }) => ({ name }), 'stubs.ts')(call)).toBe('{"name":"book"}');
  expect(await toStub({ book: (input: { what: string }) => `stub ${input.what}` }, 'stubs.ts')(call)).toBe('stub tea');
  expect(await toStub({ pay: 'paid' }, 'stubs.ts')(call)).toBeUndefined();
  expect(() => toStub(7, 'stubs.ts')).toThrow(/stubs.ts is no stubs: export as default/);
});

test('a tool that does not say what it answers, and one of an MCP server, get a sentence that says so', () => {
  expect(standIn('rate', tool())).toMatch(/^\(rate was not run: no recording has this call, and nothing says what rate answers\./);
  expect(standIn('mcp__files__list', undefined)).toMatch(/nothing says what mcp__files__list answers/);
});

const tree: z.ZodType = z.object({
  name: z.string(),
  get next() {
    return tree.optional();
  },
});

test.each<[what: string, output: z.ZodType, value: unknown]>([
  ['a text as it is', z.string(), 'text'],
  ['what is required, and nothing else', z.object({ rate: z.number(), note: z.string().optional() }), { rate: 0 }],
  [
    'bounds',
    z.object({ a: z.int().min(3), b: z.number().gt(5), c: z.string().min(6), d: z.number().max(-2) }),
    { a: 3, b: 6, c: 'text..', d: -2 },
  ],
  [
    'lists',
    z.object({ none: z.array(z.string()), two: z.array(z.boolean()).min(2), pair: z.tuple([z.string(), z.int()]) }),
    { none: [], two: [false, false], pair: ['text', 0] },
  ],
  ['choices', z.object({ a: z.enum(['EUR', 'USD']), b: z.literal(7), c: z.union([z.null(), z.string()]) }), { a: 'EUR', b: 7, c: null }],
  ['what goes together', z.intersection(z.object({ a: z.string() }), z.object({ b: z.boolean() })), { a: 'text', b: false }],
  ['one that has itself in it', tree, { name: 'text' }],
  ['an example of its author', z.object({ code: z.string().meta({ examples: ['EUR'] }) }), { code: 'EUR' }],
])('by the schema of its results: %s', (_what, output, value) => {
  const { outputSchema, inputSchema } = tool(output);
  const text = standIn('rate', { outputSchema });
  expect(typeof value === 'string' ? text : JSON.parse(text)).toEqual(value);
  expect(new Ajv2020({ strict: false }).validate(outputSchema!, value)).toBe(true);
  expect(inputSchema).toEqual(tool().inputSchema);
});

test('a schema that leads to itself without an end comes to one', () => {
  const outputSchema = { type: 'object', properties: { next: { $ref: '#' } }, required: ['next'] };
  expect(standIn('rate', { outputSchema }).length).toBeLessThan(1_000);
});
