/** The checker of a storm's logs has to refuse what is broken: each kind of broken log, and what trying every order refuses. */
import * as fc from 'fast-check';
import {
  effectModel,
  linearize,
  queueModel,
  type EffectOperation,
  type Model,
  type Operation,
  type QueueOperation,
} from './linearizable.js';

type Between = readonly [call: number, end: number];

const within = ([call, end]: Between): Operation => ({ call, return: end });
const accept = (id: string, at: Between, lane: 'queue' | 'free' = 'queue'): QueueOperation => ({ kind: 'accept', id, lane, ...within(at) });
const take = (id: string, at: Between): QueueOperation => ({ kind: 'take', id, process: 'model', ...within(at) });
const withdraw = (id: string, withdrawn: boolean, at: Between): QueueOperation => ({ kind: 'withdraw', id, withdrawn, ...within(at) });
const answer = (id: string, turn: string, at: Between, names: readonly string[] = [id]): QueueOperation => ({
  ...{ kind: 'answer', id, turn, outcome: 'end', names, ...within(at) },
});
const rest = (at: Between): QueueOperation => ({ kind: 'rest', id: '', ...within(at) });

const GOOD: readonly QueueOperation[] = [
  accept('a', [0, 2]),
  accept('b', [1, 3]),
  take('a', [0, 4]),
  // Said again before it was answered: one message.
  accept('a', [4, 5]),
  accept('s', [5, 6], 'free'),
  accept('c', [5, 7]),
  accept('d', [8, 9]),
  take('s', [5, 8]),
  withdraw('d', true, [9, 10]),
  take('b', [1, 11]),
  answer('a', 'turn 1', [0, 9], ['a', 's']),
  answer('s', 'turn 1', [6, 9], ['a', 's']),
  take('c', [5, 12]),
  withdraw('c', false, [12, 13]),
  answer('b', 'turn 2', [1, 13]),
  answer('b', 'turn 2', [14, 15]),
  // Nobody heard whether it was taken, and it was.
  accept('e', [14, Infinity]),
  take('e', [14, 18]),
  answer('c', 'turn 3', [5, 16]),
  rest([19, 20]),
];

const without = (log: readonly QueueOperation[], is: (op: QueueOperation) => boolean): QueueOperation[] => log.filter((op) => !is(op));
const isOf = (kind: QueueOperation['kind'], id: string) => (op: QueueOperation) => op.kind === kind && op.id === id;

test('a log in which each message is taken once, in order, and answered by its own answer, is accepted', () => {
  expect(linearize(queueModel, GOOD)).toEqual({ ok: true });
});

test('a message whose sender heard nothing may be there or not', () => {
  expect(linearize(queueModel, [accept('a', [0, Infinity]), rest([5, 6])])).toEqual({ ok: true });
  expect(linearize(queueModel, [accept('a', [0, Infinity]), take('a', [0, 3]), rest([5, 6])])).toEqual({ ok: true });
});

test.each<readonly [string, readonly QueueOperation[]]>([
  ['a message that was lost', without(GOOD, (op) => op.id === 'c' && op.kind !== 'accept')],
  ['the last message, lost', [accept('a', [0, 1]), rest([2, 3])]],
  ['a message that was doubled: it is taken twice', [...without(GOOD, isOf('rest', '')), take('c', [12, 17]), rest([19, 20])]],
  ['a message that was doubled: it has two answers', [...GOOD, answer('b', 'turn 9', [21, 22])]],
  ['two messages out of order', [accept('a', [0, 1]), accept('b', [2, 3]), take('b', [2, 5]), take('a', [0, 6])]],
  [
    'a message before another that was accepted first, seen only by the order of the model',
    [accept('a', [0, 1]), accept('b', [2, 3]), take('b', [2, 9]), take('a', [0, 9])],
  ],
  ["another's answer", GOOD.map((op) => (isOf('answer', 'c')(op) ? answer('c', 'turn 3', [5, 16], ['b']) : op))],
  ["another's turn", GOOD.map((op) => (isOf('answer', 'c')(op) ? answer('c', 'turn 2', [5, 16]) : op))],
  ['an answer before the message was taken', [accept('a', [0, 1]), answer('a', 'turn 1', [0, 2]), take('a', [3, 4])]],
  ['a message that was withdrawn, and taken all the same', [accept('a', [0, 1]), withdraw('a', true, [2, 3]), take('a', [4, 5])]],
  ['a withdrawal that was refused while the message waited', [accept('a', [0, 1]), withdraw('a', false, [2, 3]), take('a', [4, 5])]],
  ['a message that nobody sent', [take('a', [0, 1])]],
  ['what waits when it rests', [accept('a', [0, 1], 'free'), rest([2, 3]), take('a', [4, 5])]],
])('refused: %s', (_, log) => {
  expect(linearize(queueModel, log)).toMatchObject({ ok: false, why: 'no order' });
});

const reserve = (at: Between, hash = 'h'): EffectOperation => ({ kind: 'reserve', hash, status: 'reserved', ...within(at) });
const commit = (given: string, at: Between, value = given): EffectOperation => ({
  kind: 'commit',
  hash: 'h',
  given,
  status: 'committed',
  value,
  ...within(at),
});
const fence = (at: Between): EffectOperation => ({ kind: 'fence', status: 'fenced', ...within(at) });

test('an effect that two workers try, one of which dies, is committed once', () => {
  const log: readonly EffectOperation[] = [
    reserve([0, 1]),
    // It died: its commit came through.
    { kind: 'commit', hash: 'h', given: 'x', status: 'unheard', ...within([2, Infinity]) },
    reserve([3, 4]),
    commit('y', [5, 6], 'x'),
    { kind: 'reserve', hash: 'h', status: 'committed', value: 'x', ...within([7, 8]) },
    { kind: 'reserve', hash: 'other', status: 'conflict', ...within([7, 9]) },
    { kind: 'fence', status: 'committed', value: 'x', ...within([9, 10]) },
  ];
  expect(linearize(effectModel, log)).toEqual({ ok: true });
});

test.each<readonly [string, readonly EffectOperation[]]>([
  ['two values', [reserve([0, 1]), commit('x', [2, 3]), commit('y', [4, 5])]],
  ['a commit after the fence', [reserve([0, 1]), fence([2, 3]), commit('x', [4, 5])]],
  ['a fence after the commit', [reserve([0, 1]), commit('x', [2, 3]), fence([4, 5])]],
  ['a reservation of what is committed', [reserve([0, 1]), commit('x', [2, 3]), reserve([4, 5])]],
  ['a reservation by another request', [reserve([0, 1]), reserve([2, 3], 'other')]],
  ['a value that was never given', [reserve([0, 1]), commit('x', [2, 3], 'z')]],
  [
    'a commit that was forgotten',
    [reserve([0, 1]), commit('x', [2, 3]), { kind: 'commit', hash: 'h', given: 'y', status: 'committed', value: 'y', ...within([6, 7]) }],
  ],
])('refused: an effect with %s', (_, log) => {
  expect(linearize(effectModel, log)).toMatchObject({ ok: false });
});

/** Every order there is. */
function bruteForce<State, Op extends Operation>({ first, step }: Model<State, Op>, log: readonly Op[]): boolean {
  const go = (state: State, left: readonly Op[]): boolean => {
    if (left.every((op) => op.return === Infinity)) return true;
    return left.some((op) => {
      if (left.some((other) => other.return < op.call)) return false;
      const isFirst = !left.slice(0, left.indexOf(op)).some(({ process }) => process !== undefined && process === op.process);
      const after = isFirst ? step(state, op) : undefined;
      return (
        after !== undefined &&
        go(
          after,
          left.filter((other) => other !== op),
        )
      );
    });
  };
  return go(first, log);
}

const id = fc.constantFrom('a', 'b', 'c');
const queueOp: fc.Arbitrary<QueueOperation> = fc
  .record({ call: fc.integer({ min: 0, max: 8 }), takes: fc.integer({ min: 0, max: 5 }), isHeard: fc.boolean(), lane: fc.boolean() })
  .chain(({ call, takes, isHeard, lane }) => {
    const at: Between = [call, call + takes];
    return fc.oneof(
      { weight: 4, arbitrary: id.map((one) => accept(one, isHeard || takes > 0 ? at : [call, Infinity], lane ? 'queue' : 'free')) },
      { weight: 4, arbitrary: id.map((one) => take(one, at)) },
      { weight: 1, arbitrary: fc.tuple(id, fc.boolean()).map(([one, done]) => withdraw(one, done, at)) },
      { weight: 2, arbitrary: fc.tuple(id, fc.constantFrom('1', '2')).map(([one, turn]) => answer(one, turn, at)) },
      { weight: 1, arbitrary: fc.constant(rest(at)) },
    );
  });
const effectOp: fc.Arbitrary<EffectOperation> = fc
  .record({
    call: fc.integer({ min: 0, max: 8 }),
    takes: fc.integer({ min: 0, max: 5 }),
    value: fc.constantFrom('x', 'y'),
    given: fc.constantFrom('x', 'y'),
  })
  .chain(({ call, takes, value, given }) => {
    const at: Between = [call, call + takes];
    return fc.constantFrom<EffectOperation>(
      reserve(at),
      reserve(at, 'other'),
      { kind: 'reserve', hash: 'h', status: 'committed', value, ...within(at) },
      commit(given, at, value),
      { kind: 'commit', hash: 'h', given, status: 'unheard', ...within([call, Infinity]) },
      { kind: 'commit', hash: 'h', given, status: 'fenced', ...within(at) },
      fence(at),
    );
  });

test('small logs by chance: it says what trying every order says', () => {
  const seen = { true: 0, false: 0 };
  fc.assert(
    fc.property(fc.array(queueOp, { maxLength: 6 }), (log) => {
      const truth = bruteForce(queueModel, log);
      seen[String(truth) as 'true' | 'false'] += 1;
      expect(linearize(queueModel, log).ok).toBe(truth);
    }),
    { numRuns: 3_000 },
  );
  fc.assert(
    fc.property(fc.array(effectOp, { maxLength: 6 }), (log) => {
      expect(linearize(effectModel, log).ok).toBe(bruteForce(effectModel, log));
    }),
    { numRuns: 3_000 },
  );
  // Logs of one kind alone would show nothing.
  expect(Math.min(seen.true, seen.false)).toBeGreaterThan(200);
});
