/** What the store is owed, as decisions: the rules of pending-writes.ts. */
import fc from 'fast-check';
import { apply } from '../../../src/conversation/apply.js';
import type { StoreStepInput, Writes } from '../../../src/conversation/outbox/writes.js';
import { nextStep } from '../../../src/conversation/next-step.js';
import { pendingWrites } from '../../../src/conversation/outbox/pending-writes.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { utf8Length } from '../../../src/records/text.js';
import { answered, applyAll, interrupted, isEffect, namesOf, open, said, settle, STORE_AWAY, stored, take } from '../drive.js';

const KIB = 1024;
/** What an activity's input may have, as JSON. */
const INPUT_BYTES = KIB * KIB;
const long = (id: string, bytes: number) => said(id, { text: 'x'.repeat(bytes) });
const bytesOf = (input: unknown): number => utf8Length(JSON.stringify(input));

/** Every step's input, in their order, until nothing is left to do; what a part is stored as is its own text. */
function inputsOf(state: ConversationState) {
  const writes: Writes[] = [];
  const parts: string[] = [];
  const inputs: unknown[] = [];
  const store = (input: StoreStepInput) => {
    const { part, write } = input;
    if (part) parts.push(part.text);
    writes.push(write);
    inputs.push(input);
    return stored(input, part && { part: `ref-${parts.length}` });
  };
  const { state: after, steps } = settle(state, {
    store,
    step: (input) => {
      writes.push(input.write);
      inputs.push(input);
      return answered(input);
    },
  });
  return { after, names: namesOf(steps), messages: writes.flatMap(({ messages }) => messages), parts, inputs };
}

describe('(outbox/large-message-in-parts) a message that is too large for one input', () => {
  test.each([
    ['of plain letters', 'x'.repeat(900 * KIB)],
    ['of letters that are three bytes each', '語'.repeat(300 * KIB)],
    ['of what JSON must write in six', '\u0001'.repeat(200 * KIB)],
    ['of pairs that must stay together', '🙂'.repeat(220 * KIB)],
  ])('%s is stored in parts, and is whole when these are joined', (_, text) => {
    const { after, names, messages, parts, inputs } = inputsOf(apply(open(), said('long', { text })));
    expect(parts.length).toBeGreaterThan(1);
    expect(names.slice(0, parts.length + 1).filter((name) => name === 'store-step').length).toBeGreaterThanOrEqual(parts.length);
    expect(names.slice(-2)).toEqual(['model-step', 'wait']);
    expect(messages).toMatchObject([{ messageId: 'long', slot: 1, text: '', parts: parts.map((__, i) => `ref-${i + 1}`) }]);
    expect(JSON.parse(parts.join(''))).toEqual({ text });
    expect(parts.every((part) => part.isWellFormed())).toBe(true);
    expect(Math.max(...inputs.map(bytesOf))).toBeLessThan(INPUT_BYTES);
    expect(after.turnsEnded).toBe(1);
  });

  test('takes its pictures, its schema and its values along', () => {
    const text = 'x'.repeat(700 * KIB);
    const more = {
      text,
      images: [{ mediaType: 'image/png', base64: 'a'.repeat(200 * KIB) }],
      output: { type: 'object' },
      context: { a: 1 },
    };
    const { parts, messages } = inputsOf(apply(open(), said('long', more)));
    expect(JSON.parse(parts.join(''))).toEqual(more);
    expect(messages).toEqual([expect.not.objectContaining({ images: expect.anything() as unknown })]);
  });

  test('is stored from the queue too, and its text leaves state with the last part', () => {
    const { state: calling } = take(apply(open(), said('a')), 'model-step');
    let state = apply(calling, long('long', 900 * KIB));
    const sizes: number[] = [];
    for (let step = nextStep(state); isEffect(step, 'store-step'); step = nextStep(state)) {
      const { state: writing, input, done } = take(state, 'store-step');
      state = apply(writing, done(stored(input)));
      sizes.push(JSON.stringify(state).length);
    }
    expect(sizes.map((size) => size > 900 * KIB)).toEqual([true, true, true, false, false]);
    expect(state.queue).toMatchObject([{ messageId: 'long', recorded: true }]);
    expect(state.queue[0]).not.toHaveProperty('parts');
  });

  test('goes on with the part that failed', () => {
    const first = take(apply(open(), long('long', 900 * KIB)), 'store-step');
    const second = take(apply(first.state, first.done(stored(first.input))), 'store-step');
    const failed = applyAll(second.state, second.failed(STORE_AWAY), { kind: 'turn-begun', at: 1001 });
    expect(nextStep(failed)).toMatchObject({ kind: 'wait', why: 'the store' });
    const again = take(apply(failed, { kind: 'time-passed', at: 60_000 }), 'store-step');
    expect(again.input.part).toEqual(second.input.part);
    expect(again.input.part).not.toEqual(first.input.part);
  });
});

test('queued text beyond 256 KiB goes to the store, the oldest first; less of it waits for its turn in state', () => {
  const { state: calling } = take(apply(open(), said('a')), 'model-step');
  const little = applyAll(calling, ...['b', 'c'].map((id) => long(id, 120 * KIB)));
  expect(nextStep(little).kind).toBe('wait');
  const { state: writing, input, done } = take(apply(little, long('d', 120 * KIB)), 'store-step');
  expect(input.write.messages.map(({ messageId }) => messageId)).toEqual(['b', 'c', 'd']);
  const { queue } = apply(writing, done(stored(input)));
  expect(queue).toMatchObject(['b', 'c', 'd'].map((messageId) => ({ messageId, recorded: true, bytes: 120 * KIB })));
  expect(JSON.stringify(queue).length).toBeLessThan(KIB);
});

test('a steering message is not stored before it has its turn', () => {
  const { state: calling } = take(apply(open(), said('a')), 'model-step');
  const steered = applyAll(calling, said('s', { delivery: 'steer', text: 'x'.repeat(300 * KIB) }));
  expect(nextStep(steered).kind).toBe('wait');
});

test('(outbox/no-write-twice-at-once) no two steps carry the same', () => {
  const { state: calling } = take(apply(open(), said('a')), 'model-step');
  const queued = applyAll(calling, ...['b', 'c', 'd'].map((id) => long(id, 100 * KIB)));
  const { state: writing, input } = take(queued, 'store-step');
  expect(input.write.messages).toHaveLength(3);
  // The turn ends meanwhile, and the next one takes a message that is on its way.
  const ended = applyAll(writing, ...interrupted(2000), { kind: 'time-passed', at: 4000 }, { kind: 'turn-begun', at: 4001 });
  expect(ended.outbox.messages.map(({ messageId }) => messageId)).toEqual(['a', 'b']);
  // `a` was the call's, which is given up.
  expect(pendingWrites(ended).write.messages.map(({ messageId }) => messageId)).toEqual(['a']);
});

test('whatever is owed goes in steps that fit, all of it and each thing once', () => {
  const size = fc.oneof(fc.integer({ min: 1, max: 2_000 }), fc.integer({ min: 50_000, max: 1_000_000 }));
  fc.assert(
    fc.property(fc.array(size, { minLength: 1, maxLength: 12 }), fc.constantFrom('x', '語', '\n'), (sizes, letter) => {
      const text = (bytes: number): string => letter.repeat(Math.ceil(bytes / utf8Length(letter)));
      const { after, messages, inputs } = inputsOf(applyAll(open(), ...sizes.map((bytes, i) => said(`m${i}`, { text: text(bytes) }))));
      expect(messages.map(({ messageId }) => messageId).sort()).toEqual(sizes.map((_, i) => `m${i}`).sort());
      expect(Math.max(...inputs.map(bytesOf))).toBeLessThan(INPUT_BYTES);
      expect(after).toMatchObject({ turnsEnded: sizes.length, outbox: { messages: [] } });
    }),
    { numRuns: 30 },
  );
});

test('a start’s values go with the first step, once', () => {
  const state = { ...open(), startContext: { user: 'u1' } };
  const first = take(apply(state, said('a')), 'model-step');
  expect(first.input.write.startContext).toEqual({ user: 'u1' });
  const after = apply(first.state, first.done(answered(first.input)));
  expect(after).toMatchObject({ appContext: { ref: 'start-context' } });
  expect(take(apply(after, said('b')), 'model-step').input).toMatchObject({ appContext: { ref: 'start-context' } });
  expect(take(apply(after, said('b')), 'model-step').input.write).not.toHaveProperty('startContext');
});
