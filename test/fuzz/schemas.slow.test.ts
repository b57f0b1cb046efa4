/** Random JSON Schemas of a stranger, made to be slow, against a worker whose other conversation goes on all the while. */
import fc from 'fast-check';
import type { JsonObject } from '../../src/records/message.js';
import { answerTo, echo, saidIn } from '../support/echo-model.js';
import { text } from '../support/provider-apis/reply.js';
import { figure, sceneTest } from '../support/scene.js';

const MESSAGES = 48;
const AT_ONCE = 4;
const DATA = 'data ';

const pattern = fc.oneof(
  fc.constantFrom('^(a+)+$', '^(a|aa)+$', '^(a|a?)+$', '(x+x+)+y', '^(([a-z])+.)+[A-Z]([a-z])+$', '(?=(a+))a*b\\1', '(.*)*(.*)*(.*)*$'),
  fc
    .tuple(fc.constantFrom('a', 'aa', '[ab]', '.', 'a?'), fc.constantFrom('+', '*', '{1,60}'))
    .map(([unit, times]) => `^((${unit})${times})+$`),
);
const NAMES = ['l0', 'l1', 'l2', 'l3', 'l4', 'l5'] as const;
const reference = fc.constantFrom('#', ...NAMES.map((name) => `#/$defs/${name}`));
const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 5, withCrossShrink: false },
    pattern.map((one): JsonObject => ({ type: 'string', pattern: one })),
    reference.map((to): JsonObject => ({ $ref: to })),
    pattern.map((one): JsonObject => ({ patternProperties: { [one]: { type: 'string' } } })),
    fc.constantFrom<JsonObject>({ type: 'object' }, { uniqueItems: true }, { type: ['string', 'null'], format: 'email' }),
    fc
      .tuple(fc.constantFrom('anyOf', 'oneOf', 'allOf'), fc.array(tie('schema'), { minLength: 2, maxLength: 4 }))
      .map(([how, all]): JsonObject => ({ [how]: all })),
    tie('schema').map((one): JsonObject => ({ not: one })),
    tie('schema').map((one): JsonObject => ({ items: one, properties: { a: one }, additionalProperties: one })),
  ),
}));
/** Steps that double with each level, in about 3 KB. */
const doubling = fc.integer({ min: 18, max: 24 }).map((levels): JsonObject => {
  const level = (at: number): JsonObject => ({
    anyOf: [{ allOf: [{ $ref: `#/$defs/${at + 1}` }, { type: 'boolean' }] }, { $ref: `#/$defs/${at + 1}` }],
  });
  const all = Array.from({ length: levels }, (_, at) => [String(at), level(at)] as const);
  return { $defs: { ...Object.fromEntries(all), [levels]: { type: 'number' } }, $ref: '#/$defs/0' };
});
const whole = fc.oneof(
  fc.tuple(schema, fc.array(schema, { minLength: NAMES.length, maxLength: NAMES.length })).map(([one, defs]): JsonObject => ({
    ...one,
    $defs: Object.fromEntries(NAMES.map((name, at) => [name, defs[at] ?? {}])),
  })),
  doubling,
);
const data = fc.constantFrom<unknown>(
  `${'a'.repeat(60)}!`,
  { [`${'a'.repeat(60)}!`]: { a: [1, [2, ['aaaa']]] } },
  [[[[`${'x'.repeat(80)}`]]]],
  { a: 1 },
);

sceneTest(
  'a worker stands still for none of them, and answers others meanwhile',
  {
    impatient: true,
    answer: (request) => {
      const said = saidIn(request).findLast((one) => one.startsWith(DATA));
      return said === undefined ? echo(request) : text(said.slice(DATA.length).split('\n')[0] ?? '');
    },
  },
  async (scene) => {
    const worker = await scene.startWorker();
    const sent = fc.sample(fc.record({ schema: whole, data }), MESSAGES);
    const [honest, hostile] = [scene.id(), Array.from({ length: AT_ONCE }, () => scene.id())];
    let [isOver, answered, longest] = [false, 0, 0];
    const talking = (async () => {
      for (; !isOver; answered += 1) {
        const began = performance.now();
        const { text: said } = await scene.client.send(honest, { id: `m${answered}`, text: 'hello' }, { start: {} });
        expect(said).toBe(answerTo('hello'));
        longest = Math.max(longest, performance.now() - began);
      }
    })();
    const stops = await Promise.all(
      hostile.map(async (id, lane) => {
        const ended: (string | undefined)[] = [];
        for (const [at, one] of sent.entries()) {
          if (at % AT_ONCE !== lane) continue;
          const message = { id: `h${at}`, text: `${DATA}${JSON.stringify(one.data)}`, output: one.schema };
          const turn = await scene.client.send(id, message, { start: {} }).catch((error: Error) => ({ stopReason: error.name, error }));
          ended.push(turn.error?.message.includes('takes more than') ? 'too slow' : turn.stopReason);
        }
        return ended;
      }),
    );
    isOver = true;
    await talking;
    const counts = stops.flat().reduce((all, stop = 'none') => all.set(stop, (all.get(stop) ?? 0) + 1), new Map<string, number>());
    const ends = [...counts].map(([stop, times]) => `${times} ${stop}`).join(', ');
    figure(`schemas: ${ends}; ${answered} other turns, the longest ${Math.round(longest)} ms`);
    // A thread beside the worker counts what it computes in one piece: a busy machine alone makes it say nothing.
    expect(worker.log()).not.toContain('stands still');
    expect(counts.get('too slow')).toBeGreaterThan(MESSAGES / 8);
    expect(answered).toBeGreaterThan(MESSAGES / AT_ONCE);
    const last = hostile.map((id) => scene.client.send(id, { id: 'last', text: 'hello' }));
    expect((await Promise.all(last)).map((turn) => turn.stopReason)).toEqual(hostile.map(() => 'end'));
  },
  600_000,
);
