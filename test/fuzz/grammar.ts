/**
 * What anybody may say to the workflows `conversation` and `memory`: every name of the contract, with arguments that are as they should
 * be, or nearly, or not at all. A corpus entry is what it draws, kept.
 */
import * as fc from 'fast-check';
import type { Said, Written } from './said.js';

type Any = fc.Arbitrary<unknown>;

/** Stand for what `JSON.stringify` cannot write. */
const INFINITE = '@@infinite@@';
const PROTO = '@@proto@@';

const BOUNDS = [64, 128, 200, 300, 500, 8_192, 65_536, 50_000, 1_000_000, 1e9, 1e12, 2 ** 31, 2 ** 53, 8.64e15];
const numbers: Any = fc.oneof(
  fc.constantFrom<unknown>(0, -0, -1, 0.5, 1, 2, 1e-320, 9e15, 1e300, -1e300, INFINITE, NaN, 200_000_000),
  fc.constantFrom(...BOUNDS).chain((bound) => fc.constantFrom(bound - 1, bound, bound + 1, -bound)),
);
const texts: Any = fc.oneof(
  fc.constantFrom(
    ...['', ' ', '/new', '__proto__', 'constructor', 'toString', '__temporal_x', '/_sys/x', '\u0000', '\ud800', '\udc00x', '\u202e', '😀'],
    ...['@@id@@', '@@child@@', '@@life@@', '@@scope@@', 'memory:@@scope@@', 'turn_0001', 'turn_999999999999999', 'turn_0001/c1'],
    ...['qevt_000001', 'prop_0001', '../../etc/passwd', '`code` [x](javascript:1)', '\r\n\r\n# Agents'],
  ),
  fc.constantFrom(64, 65, 128, 129, 300, 501, 70_000).map((length) => 'x'.repeat(length)),
  fc.string({ unit: 'binary', maxLength: 20 }),
);
const shapes: Any = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, [], {}, [[]], [null], [0], ['']),
  fc.constantFrom<unknown>(
    { toString: 1, valueOf: 1 },
    { then: 1 },
    { length: 1e9 },
    { [PROTO]: { polluted: true } },
    { constructor: { prototype: 1 } },
    { toJSON: 1 },
    { 'perdura/unreadable': { toString: 1 } },
  ),
  fc.constantFrom(10, 63, 64, 65, 3_000).map((levels) => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`) as unknown),
  fc.constantFrom(101, 10_001, 50_001).map((length) => Array.from({ length }, () => 0)),
);
const wrong: Any = fc.oneof(numbers, texts, shapes);

/** Mostly as it should be. */
const near = (good: Any): Any => fc.oneof({ arbitrary: good, weight: 4 }, { arbitrary: wrong, weight: 1 });
const one = (...of: readonly unknown[]): Any => near(fc.constantFrom(...of));
const count: Any = near(fc.oneof(fc.nat(5), numbers));
const id: Any = near(fc.constantFrom('m1', 'm2', 'm3', 'm4'));
const callId: Any = one('turn_0001/c1', 'turn_0001/c2', 'turn_0002/c1');
const turnId: Any = one('turn_0000', 'turn_0001', 'turn_0002', 'turn_0007');
const conversation: Any = one('@@id@@', '@@child@@');
const list = (of: Any, most: number): Any => near(fc.array(of, { maxLength: most }));

/** Every field near to what it should be; one may be missing, one more may be there. */
function fields(of: Readonly<Record<string, Any>>, optional: readonly string[] = Object.keys(of)): Any {
  const requiredKeys = Object.keys(of).filter((key) => !optional.includes(key));
  const known = fc.record(of, { requiredKeys });
  const more = fc.dictionary(fc.constantFrom('extra', PROTO, 'constructor', 'toJSON', 'carried', 'k'.repeat(5_000)), wrong, { maxKeys: 1 });
  const missing = fc.constantFrom(...Object.keys(of));
  return fc.oneof(
    { arbitrary: known, weight: 8 },
    { arbitrary: fc.tuple(known, more).map(([base, extra]) => ({ ...base, ...extra })), weight: 1 },
    { arbitrary: fc.tuple(known, missing).map(([base, key]) => ({ ...base, [key]: undefined })), weight: 1 },
    { arbitrary: wrong, weight: 1 },
  );
}

const media = fields({
  mediaType: one('image/png', 'audio/mpeg', 'video/mp4'),
  url: one('https://example.com/a.png'),
  base64: one('aGk='),
  ref: one('sha256:0'),
});
const object = fields({ a: wrong, type: one('object'), properties: wrong }, []);
const clientTool = fields({ name: one('look', 'look', 'a b'), inputSchema: object, mustCall: one(true), single: one(true) }, [
  'mustCall',
  'single',
]);
const message = near(
  fc.oneof(
    fc.constantFrom('hello', '/new', 'do:sign', 'do:dig', 'do:delegate'),
    fields(
      {
        text: one('hello', 'do:sign', 'do:dig', 'do:delegate', '/new'),
        id,
        delivery: one('queue', 'steer', 'interrupt'),
        images: list(media, 2),
        audio: list(media, 1),
        video: list(media, 1),
        payload: wrong,
        output: object,
        context: object,
        tools: list(clientTool, 2),
        stop: fields({ at: list(texts, 2), tokens: count }),
      },
      ['id', 'delivery', 'images', 'audio', 'video', 'payload', 'output', 'context', 'tools', 'stop'],
    ),
  ),
);
const usage = fields({ inputTokens: count, cachedTokens: count, outputTokens: count, costUsd: one(null, 0.5) }, []);
const ask = fields(
  {
    conversation,
    callId,
    turnId,
    kind: one('approval', 'question'),
    tool: one('sign'),
    target: texts,
    hash: texts,
    askedIn: count,
    why: texts,
    askedAt: count,
    expiresAt: count,
  },
  ['why'],
);
const report = fields(
  { text: texts, stopReason: one('end', 'failed'), usage, error: fields({ type: near(texts), message: near(texts) }, []) },
  ['error'],
);
const child = fields({ callId, kind: one('asks', 'ended'), asks: list(ask, 3), report, capability: texts }, ['asks', 'report']);
const decision = fields({ callId, decision: one('approve', 'deny'), conversation, note: texts, input: object, hash: texts }, [
  'conversation',
  'note',
  'input',
  'hash',
]);
const budget = fields({ maxCostUsd: count, maxTokens: count });
const event = fields({ id, type: one('door', 'message', 'reset'), payload: wrong }, ['id', 'payload']);
const chosen = fields({ chunks: list(one('chunk_1', 'chunk_2', 'chunk_999', 'chunk_01', 'x'), 5), id }, ['id']);
const breakpoints = fields({ tools: list(texts, 3), events: list(texts, 3), onError: one(true, false), costUsd: count });
const order = fields(
  { number: count, changes: count, mode: one('auto', 'stepping'), breakpoints, spentUsd: count, step: one('s1'), capability: texts },
  ['step', 'capability'],
);
// Of lives that there are not: what is deleted has nothing to answer.
const gone = fields({ conversation: one('nobody'), lives: list(one('a-life'), 3) }, []);
const optional = (field: string): Any => fields({ [field]: near(texts) });
const news = fields(
  { requestId: one('s1/1-2'), life: one('@@life@@'), consolidation: one('model', 'raw-fallback', 'nothing-to-do'), usage },
  [],
);
const request = fields(
  {
    id: one('r1', 'r2', 'r3', 'r4'),
    requestId: one('s1/1-2', 's1/3-4'),
    conversation,
    life: one('@@life@@'),
    agent: one('default'),
    model: one('', 'anthropic/claude-test'),
    why: one('reset', 'window', 'close'),
    // Another queue that may have workers holds a memory up for two minutes: by design, and too long for this.
    taskQueue: fc.constantFrom<unknown>('@@queue@@', '@@queue@@', '/_sys/x', '\ud800', '', 5, null, '\u0000', 'x'.repeat(2_000)),
    session: count,
    messages: count,
    slots: list(near(fc.tuple(near(fc.nat(3)), near(fc.oneof(fc.nat(9), numbers)))), 4),
  },
  [],
);
const origin = fields({ kind: one('fork', 'resume'), conversation: one('nobody'), life: one('a-life'), run: one('a-run'), turn: turnId }, [
  'run',
  'turn',
]);
const parent = fields({ conversation, life: one('@@life@@'), callId, depth: count, memory: fields({ session: count, until: count }) }, [
  'memory',
]);
const start = fields({
  agent: one('default', 'brief'),
  scope: one('@@scope@@'),
  title: texts,
  model: one('anthropic/claude-test', 'nobody/nothing'),
  mode: one('auto', 'stepping'),
  budget,
  context: object,
  delegation: fields({ parent, task: texts, appContext: object }, []),
  origin,
  carried: wrong,
});

const SIGNALS: Readonly<Record<string, Any>> = {
  message,
  new: optional('id'),
  interrupt: optional('reason'),
  decide: decision,
  child,
  parent: order,
  rename: fields({ title: texts }, []),
  upgrade: fields({ parked: fc.boolean() }, ['parked']),
  event,
  consolidated: news,
};
const UPDATES: Readonly<Record<string, Any>> = {
  send: message,
  enqueue: message,
  turn: fields({ turnId }, []),
  reset: optional('id'),
  withdraw: fields({ messageId: id }, []),
  decide: decision,
  raiseBudget: budget,
  setModel: fields({ model: one(null, 'anthropic/claude-test', 'nobody/nothing', 'anthropic/', '/', `a/${'x'.repeat(129)}`) }, []),
  dispatch: event,
  setMode: fields({ mode: one('auto', 'stepping') }, []),
  step: optional('id'),
  setBreakpoints: breakpoints,
  editQueue: fields({ op: one('drop', 'move', 'clear'), id: one('qevt_000001', 'qevt_000002'), before: one('qevt_000001', null) }),
  truncate: optional('id'),
  executeTruncation: chosen,
  triggerCompaction: chosen,
  compact: optional('id'),
  undoCompaction: optional('id'),
  rewind: fc.oneof(
    fields({ to: turnId, id, message }, ['id', 'message']),
    fields({ before: turnId, id, message, to: turnId }, ['id', 'message', 'to']),
  ),
  opened: wrong,
};
const QUERIES: readonly string[] = [
  'status',
  'queue',
  'approvals',
  'control',
  'context',
  'checkTokenUsage',
  '__stack_trace',
  '__enhanced_stack_trace',
  '__temporal_workflow_metadata',
];
const forget = fields({ text: one('plums', ' ') }, []);
const review = fields({ id: one('prop_0001'), decision: one('accept', 'reject') }, []);
const care = fields({ agent: one('default') });
const MEMORY_SIGNALS: Readonly<Record<string, Any>> = { consolidate: request, forget, accept: review, care, deleted: gone };
const MEMORY_UPDATES: Readonly<Record<string, Any>> = { forget, accept: review, care };
const STARTS: Readonly<Record<string, Any>> = {
  conversation: start,
  memory: fields({ scope: one('@@scope@@'), handOver: count, carried: wrong }, ['handOver', 'carried']),
};
/** By what they are: those of both workflows. */
export const NAMES: Readonly<Record<string, readonly string[]>> = {
  signal: ['close', ...Object.keys(SIGNALS), ...Object.keys(MEMORY_SIGNALS)],
  update: [...Object.keys(UPDATES), ...Object.keys(MEMORY_UPDATES)],
  query: QUERIES,
};
const NO_NAMES = ['__temporal_x', '__stack_trace', '__proto__', 'constructor', 'toString', 'hasOwnProperty', 'then', 'x'.repeat(900), '😀'];

const json = (value: unknown): string =>
  (JSON.stringify(value) ?? 'null').replaceAll(`"${INFINITE}"`, '1e999').replaceAll(`"${PROTO}":`, '"__proto__":');
const raw: fc.Arbitrary<readonly Written[] | undefined> = fc.constantFrom<readonly Written[] | undefined>(
  undefined,
  [],
  [{ encoding: null, data: '"hi"' }],
  [{ encoding: '', data: '"hi"' }],
  [{ encoding: 'binary/encrypted', data: 'x' }],
  [{ encoding: 'binary/null', data: '' }],
  [{ encoding: 'binary/plain', data: [['x', 1_900_000]] }],
  [{ encoding: 'json/protobuf', data: '{}' }],
  [{ encoding: 'x'.repeat(10_000), data: '' }],
  [{ data: '{"text": "half' }],
  [{ data: '' }],
  [{ data: '\ufeff{}' }],
  [
    {
      data: [
        ['[', 100_000],
        [']', 100_000],
      ],
    },
  ],
  [
    {
      data: [
        ['{"text":"hi","payload":', 1],
        ['[', 60],
        ['0,', 900_000],
        ['0', 1],
        [']', 60],
        ['}', 1],
      ],
    },
  ],
  [
    {
      data: [
        ['{"text":"hi","', 1],
        ['k', 1_900_000],
        ['":1}', 1],
      ],
    },
  ],
  [
    {
      data: [
        ['{"perdura/unreadable":"', 1],
        ['k', 1_900_000],
        ['"}', 1],
      ],
    },
  ],
  [{ data: '"hello"' }, { encoding: 'binary/encrypted', data: 'x' }],
);

const written = (argument: Any): fc.Arbitrary<readonly Written[] | undefined> =>
  fc.oneof({ arbitrary: argument.map((value) => [{ data: json(value) }]), weight: 20 }, { arbitrary: raw, weight: 1 });

function saying(to: Said['to'], kind: Said['kind'], of: Readonly<Record<string, Any>>): fc.Arbitrary<Said> {
  return fc
    .constantFrom(...Object.keys(of))
    .chain((name) => written(of[name] ?? wrong).map((payloads) => say({ to, kind, name, payloads })));
}

function say({ payloads, ...rest }: Omit<Said, 'payloads'> & { readonly payloads: readonly Written[] | undefined }): Said {
  return payloads ? { ...rest, payloads } : rest;
}

/** Apart from the others and seldom: what comes after it finds a conversation that ends. */
const closing: fc.Arbitrary<Said> = written(optional('id')).map((payloads) =>
  say({ to: 'conversation', kind: 'signal', name: 'close', payloads }),
);

const misnamed: fc.Arbitrary<Said> = fc
  .tuple(
    fc.constantFrom<Said['to']>('conversation', 'memory'),
    fc.constantFrom<Said['kind']>('signal', 'update', 'query'),
    fc.constantFrom(...NO_NAMES),
    written(wrong),
  )
  .map(([to, kind, name, payloads]) => say({ to, kind, name, payloads }));
const asking: fc.Arbitrary<Said> = fc
  .tuple(fc.constantFrom(...QUERIES), written(wrong))
  .map(([name, payloads]) => say({ to: 'conversation', kind: 'query', name, payloads }));
const starting: fc.Arbitrary<Said> = fc.oneof(
  saying('conversation', 'start', { conversation: STARTS['conversation'] ?? wrong }),
  saying('memory', 'start', { memory: STARTS['memory'] ?? wrong }),
);

export const anything: fc.Arbitrary<Said> = fc.oneof(
  { arbitrary: saying('conversation', 'signal', SIGNALS), weight: 32 },
  { arbitrary: saying('conversation', 'update', UPDATES), weight: 32 },
  { arbitrary: saying('memory', 'signal', MEMORY_SIGNALS), weight: 16 },
  { arbitrary: saying('memory', 'update', MEMORY_UPDATES), weight: 8 },
  { arbitrary: asking, weight: 8 },
  { arbitrary: starting, weight: 8 },
  { arbitrary: misnamed, weight: 4 },
  { arbitrary: closing, weight: 1 },
);
