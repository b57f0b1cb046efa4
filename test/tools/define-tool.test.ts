import fc from 'fast-check';
import { z } from 'zod';
import type { JsonValue } from '../../src/records/message.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { RESULT_BYTES } from '../../src/tools/result-text.js';
import type { ToolResult } from '../../src/tools/tool.js';
import { toolContext } from './tool-context.js';

const weather = defineTool({
  name: 'get_weather',
  description: 'Tells the weather.',
  input: z.object({ city: z.string(), days: z.int().min(1).default(1), where: z.strictObject({ lat: z.number() }).optional() }),
  run: ({ city, days }) => `${city} for ${days}`,
});

/** A tool as plain JavaScript could write it: it hands back anything. */
function returning(make: () => unknown): Promise<ToolResult> {
  const tool = defineTool({ name: 'odd', description: 'Odd.', input: z.object({}), run: make as () => string });
  return tool.run({}, toolContext());
}

const text = (result: ToolResult): string => (result.ok ? result.content : result.error);

describe('a definition', () => {
  it('becomes the JSON Schema of its input, where a default makes a field optional', () => {
    expect(weather.inputSchema).toEqual({
      type: 'object',
      properties: {
        city: { type: 'string' },
        days: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 1 },
        where: { type: 'object', properties: { lat: { type: 'number' } }, required: ['lat'], additionalProperties: false },
      },
      required: ['city'],
      additionalProperties: false,
    });
  });

  it('is not repeatable and not quick unless it says so', () => {
    expect(weather.policy).toEqual({ repeatable: false, quick: false, timeoutMs: 60_000 });
  });

  it.each([
    ['an empty name', { name: '' }, /1 to 64 letters/],
    ['a name with a dot', { name: 'a.b' }, /1 to 64 letters/],
    ['a name that ends in a line break', { name: 'a\n' }, /1 to 64 letters/],
    ['a name of 65 letters', { name: 'n'.repeat(65) }, /1 to 64 letters/],
    ['an empty description', { description: ' ' }, /description/],
    ['quick without repeatable', { policy: { quick: true } }, /quick tool must be repeatable/],
    ['quick, and tried several times', { policy: { quick: true, repeatable: true, attempts: 2 } }, /not quick/],
    ['quick, and run elsewhere', { policy: { quick: true, repeatable: true, taskQueue: 'gpu' } }, /cannot be quick/],
    ['a task queue without a name', { policy: { taskQueue: '' } }, /taskQueue must be 1 to 200 letters/],
    ["a task queue of Temporal's", { policy: { taskQueue: '/_sys/x' } }, /begin with a letter or digit/],
    ['a timeout of 0', { policy: { timeoutMs: 0 } }, /timeoutMs/],
    ['an input that JSON cannot say', { input: z.object({ at: z.date() }) }, /no JSON Schema/],
  ])('is refused at once: %s', (_, wrong, reason) => {
    expect(() => defineTool({ name: 'n', description: 'd', input: z.object({}), run: () => '', ...wrong })).toThrow(reason);
  });

  it('may ask for extra keys', async () => {
    const open = defineTool({ name: 'open', description: 'd', input: z.looseObject({}), run: (input) => JSON.stringify(input) });

    expect(await open.run({ more: 1 }, toolContext())).toEqual({ ok: true, content: '{"more":1}' });
  });
});

describe('an input', () => {
  it('that fits runs the tool, with defaults filled in', async () => {
    expect(await weather.run({ city: 'Köln' }, toolContext())).toEqual({ ok: true, content: 'Köln for 1' });
  });

  it('that does not fit is reported field by field, with what was sent', async () => {
    const result = await weather.run({ days: 0, where: { lat: 'north', lon: 1 }, town: 'Köln' }, toolContext());

    expect(result).toEqual({
      ok: false,
      error: [
        'get_weather did not run: its arguments do not fit its schema.',
        '- city: Invalid input: expected string, received undefined',
        '- days: Too small: expected number to be >=1',
        '- where.lat: Invalid input: expected number, received string',
        '- where.lon: no such field',
        '- town: no such field',
        'Fields of get_weather: city, days, where.',
        'You sent: {"days":0,"where":{"lat":"north","lon":1},"town":"Köln"}',
      ].join('\n'),
    });
  });

  it.each<[string, JsonValue]>([
    ['a text', '{"city":"Köln"}'],
    ['null', null],
    ['a list', [{ city: 'Köln' }]],
    ['an own __proto__', JSON.parse('{"city":"Köln","__proto__":{"days":9}}') as JsonValue],
    ['an own constructor', { city: 'Köln', constructor: 1 }],
    ['a million letters in the wrong field', { city: 'Köln', wrong: 'w'.repeat(1_000_000) }],
    ['a key of a million letters', { city: 'Köln', ['k'.repeat(1_000_000)]: 1 }],
    ['ten thousand wrong fields', { city: 'Köln', ...Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`f${n}`, n])) }],
    ['5,000 levels', { city: 'Köln', deep: JSON.parse('['.repeat(5_000) + ']'.repeat(5_000)) as JsonValue }],
  ])('that is %s is refused in a bounded text', async (_, input) => {
    const result = await weather.run(input, toolContext());

    expect(result).toEqual({ ok: false, error: expect.stringContaining('did not run') });
    expect(text(result).length).toBeLessThan(6_000);
  });
});

describe('a failure', () => {
  it.each<[string, unknown, string]>([
    ['an error', new Error('the door is shut'), 'the door is shut'],
    [
      'an error with a cause',
      new Error('cannot enter', { cause: new Error('the door is shut') }),
      'cannot enter (cause: the door is shut)',
    ],
    ['an error without a message', new TypeError(), 'TypeError'],
    ['a text', 'shut', 'shut'],
    ['nothing', undefined, 'the tool failed without saying why'],
    ['null', null, 'null'],
    ['an object', { code: 7 }, '{"code":7}'],
  ])('thrown as %s is text for the model', async (_, thrown, error) => {
    const now = returning(() => {
      throw thrown;
    });

    expect(await now).toEqual({ ok: false, error });
    expect(await returning(() => Promise.reject(thrown as Error))).toEqual({ ok: false, error });
  });

  it('of a check in the schema is text too', async () => {
    const schema = z.object({
      a: z.string().refine(() => {
        throw new Error('broken check');
      }),
    });
    const tool = defineTool({ name: 'checked', description: 'd', input: schema, run: () => 'ran' });

    expect(await tool.run({ a: 'x' }, toolContext())).toEqual({ ok: false, error: 'broken check' });
  });
});

describe('a strange result', () => {
  const circle: { self?: unknown; name: string } = { name: 'circle' };
  circle.self = circle;

  it.each<[string, unknown, string]>([
    ['nothing', undefined, '(the tool returned nothing)'],
    ['null', null, 'null'],
    ['a number', 42, '42'],
    ['no number', Number.NaN, 'NaN'],
    ['a BigInt', 2n ** 64n, '18446744073709551616'],
    ['a BigInt inside', { n: 1n }, '{"n":1}'],
    ['a circle', circle, '{"name":"circle","self":"[circular]"}'],
    ['one part twice, which is no circle', [[1], [1]], '[[1],[1]]'],
    ['a date', new Date(0), '"1970-01-01T00:00:00.000Z"'],
    ['an error', { cause: new RangeError('too far') }, '{"cause":"RangeError: too far"}'],
    ['a Map and a Set', [new Map([['a', 1]]), new Set([2])], '[[["a",1]],[2]]'],
    ['binary', Buffer.alloc(3_000_000), '"[binary, 3000000 bytes]"'],
    ['binary inside', { image: new Uint8Array(5) }, '{"image":"[binary, 5 bytes]"}'],
    ['a function and a symbol', [() => 1, Symbol('s'), undefined], '["[function]","[symbol]","[undefined]"]'],
    [
      'a getter that throws',
      Object.defineProperty({}, 'x', { enumerable: true, get: () => raise('no') }),
      '(a result that cannot be shown: no)',
    ],
    ['a proxy that throws', new Proxy({}, { ownKeys: () => raise('no keys') }), '(a result that cannot be shown: no keys)'],
    ['a result with a content that is no text', { ok: true, content: { a: 1 } }, '{"a":1}'],
    ['a lone surrogate', 'a\ud83d', 'a\ufffd'],
  ])('is described: %s', async (_, value, content) => {
    expect(await returning(() => value)).toEqual({ ok: true, content });
  });

  it('that is a failure stays one, bounded', async () => {
    expect(await returning(() => ({ ok: false, error: 'no such city' }))).toEqual({ ok: false, error: 'no such city' });
    const long = await returning(() => ({ ok: false, error: 'e'.repeat(3_000_000) }));
    expect(Buffer.byteLength(text(long))).toBeLessThanOrEqual(RESULT_BYTES);
  });

  it.each<[string, () => unknown]>([
    ['3 MB of text', () => 'x'.repeat(3_000_000)],
    ['3 MB of emoji, cut within one', () => `x${'📝'.repeat(750_000)}`],
    ['a list of millions', () => Array.from({ length: 3_000_000 }, (_, n) => n)],
    ['a large Set', () => new Set(Array.from({ length: 100_000 }, (_, n) => `entry ${n}`))],
    ['100,000 levels', () => Array.from({ length: 100_000 }).reduce<unknown>((inner) => [inner], 1)],
    ['shared parts that stand for 2^60', () => Array.from({ length: 60 }).reduce<unknown>((inner) => [inner, inner], 1)],
  ])('is cut, and says so: %s', async (_, make) => {
    const content = text(await returning(make));

    expect(Buffer.byteLength(content)).toBeLessThanOrEqual(RESULT_BYTES);
    expect(content).toMatch(/\[cut here: |deeper levels left out/);
    expect(Buffer.from(content).toString()).toBe(content);
    expect(content).not.toContain('\ufffd');
  });

  it('of exactly the size that fits is not cut, one byte more says how much is missing', async () => {
    expect(text(await returning(() => 'x'.repeat(RESULT_BYTES)))).toBe('x'.repeat(RESULT_BYTES));
    expect(text(await returning(() => 'x'.repeat(RESULT_BYTES + 1)))).toMatch(/\[cut here: the first \d+ of 262145 bytes are shown\]$/);
  });

  it('is what JSON.stringify makes of it, where it is plain JSON', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ noUnicodeString: false }), async (value) => {
        // `{ ok, content }` is a result of ours, and a text is shown as it is.
        fc.pre(typeof value !== 'string' && !Object.is(value, -0) && !JSON.stringify(value).includes('-0'));
        expect(text(await returning(() => value))).toBe(JSON.stringify(value));
      }),
    );
  });
});

describe('what a result has besides its text', () => {
  it('is a task and files', async () => {
    const told = { ok: true, content: 'done', task: { goal: 'g', openTasks: ['t'] }, files: { written: ['a.txt'] } };
    expect(await returning(() => told)).toEqual(told);
    expect(await returning(() => ({ ok: true, content: 'done', files: { read: undefined, edited: ['b'] } }))).toEqual({
      ok: true,
      content: 'done',
      files: { edited: ['b'] },
    });
  });

  it.each<[string, object]>([
    ['a task that is none', { task: 'finish' }],
    ['a goal too long', { task: { goal: 'x'.repeat(501), openTasks: [] } }],
    ['a path that is none', { files: { read: [7] } }],
    ['too many paths', { files: { read: Array(201).fill('a') } }],
  ])('is left out and said, where it cannot be used: %s', async (_, beside) => {
    const result = await returning(() => ({ ok: true, content: 'done', ...beside }));
    expect(Object.keys(result)).toEqual(['ok', 'content']);
    expect(text(result)).toMatch(/^done\n\[What the tool returned besides this text was left out: (task|files): /);
  });
});

function raise(message: string): never {
  throw new Error(message);
}
