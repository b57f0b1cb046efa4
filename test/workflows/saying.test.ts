/** The contract as an outside program sees it, part 2: messages, turns, and what may be asked meanwhile. */
import { callTool, gate, text } from '../support/provider-apis/reply.js';
import { failureOf, outside, type Outside } from '../support/outside.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const stage = createStage();
let world: World;
let program: Outside;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer });
  program = outside(world);
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

const NOTHING = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, costUsd: 0 };

async function started(): Promise<string> {
  const id = world.id();
  await program.start(id, { model: 'anthropic/claude-haiku-4-5' });
  return id;
}

test('a message signal is answered, be it a string or an object', async () => {
  const id = await started();
  stage.play(id, text('One.'), text('Two.'));
  await program.signal(id, 'message', say(id, 'as a string'));
  await program.signal(id, 'message', { id: 'm2', text: say(id, 'as an object'), delivery: 'queue' });
  await waitFor(
    () => program.query(id, 'status'),
    (status) => (status as { turns: number }).turns === 2,
  );
  expect(await program.update(id, 'turn', { turnId: 'turn_0001' })).toMatchObject({ text: 'One.' });
  expect(await program.update(id, 'turn', { turnId: 'turn_0002' })).toMatchObject({ text: 'Two.' });
});

test('send answers with the result of its turn, and with nothing else', async () => {
  const id = await started();
  stage.play(id, { text: 'Hello.', usage: { input_tokens: 100, cache_read_input_tokens: 20, output_tokens: 7 } });
  expect(await program.update(id, 'send', { text: say(id, 'hi') })).toEqual({
    turnId: 'turn_0001',
    text: 'Hello.',
    stopReason: 'end',
    usage: { inputTokens: 120, cachedTokens: 20, outputTokens: 7, costUsd: expect.closeTo(100e-6 + 20 * 0.1e-6 + 7 * 5e-6, 10) },
    toolCalls: 0,
  });
});

test('turn answers for a running, a queued and a finished turn, and fails UnknownTurn for others', async () => {
  const id = await started();
  const hold = gate();
  stage.play(id, { text: 'One.', hold }, text('Two.'));
  const first = program.update(id, 'send', say(id, 'one'));
  await hold.reached;
  const second = program.update(id, 'send', say(id, 'two'));
  await waitFor(
    () => program.query(id, 'queue'),
    (queue) => (queue as unknown[]).length === 1,
  );
  const asked = ['turn_0001', 'turn_0002'].map((turnId) => program.update(id, 'turn', { turnId }));
  const unknown = await failureOf(program.update(id, 'turn', { turnId: 'turn_0003' }));
  expect(unknown).toEqual({ type: 'UnknownTurn', message: expect.stringContaining('turn_0003') });
  hold.release();
  expect(await Promise.all(asked)).toEqual(await Promise.all([first, second]));
  expect(await program.update(id, 'turn', { turnId: 'turn_0001' })).toEqual(await first);
  expect(await failureOf(program.update(id, 'turn', { turnId: 'first' }))).toMatchObject({ type: 'InvalidMessage' });
});

test('a turn that is no longer among the last 50 is unknown', async () => {
  const id = await started();
  for (let n = 1; n <= 51; n++) await program.update(id, 'send', say(id, `${n}`));
  expect(await program.update(id, 'turn', { turnId: 'turn_0002' })).toMatchObject({ stopReason: 'end' });
  expect(await failureOf(program.update(id, 'turn', { turnId: 'turn_0001' }))).toMatchObject({ type: 'UnknownTurn' });
});

test('the seventh send that would wait gets its turn at once', async () => {
  const id = await started();
  const hold = gate();
  stage.play(id, { text: 'Answer 1.', hold }, ...[2, 3, 4, 5, 6, 7].map((n) => text(`Answer ${n}.`)));
  const waiting: Promise<unknown>[] = [];
  for (let n = 1; n <= 6; n++) {
    waiting.push(program.update(id, 'send', say(id, `message ${n}`)));
    await waitFor(
      () => program.query(id, 'status'),
      (status) => (status as { turn: number; queued: number }).turn + (status as { queued: number }).queued === n,
    );
  }
  const seventh = { turnId: 'turn_0007', text: '', stopReason: 'queued', usage: NOTHING, toolCalls: 0 };
  expect(await program.update(id, 'send', say(id, 'message 7'))).toEqual(seventh);
  hold.release();
  expect(await Promise.all(waiting)).toMatchObject([1, 2, 3, 4, 5, 6].map((n) => ({ turnId: `turn_000${n}`, text: `Answer ${n}.` })));
  expect(await program.update(id, 'turn', { turnId: 'turn_0007' })).toMatchObject({ text: 'Answer 7.', stopReason: 'end' });
});

test('a steering message that waits beside six others gets the turn which it joined, with its answer', async () => {
  const id = await started();
  const hold = gate({ events: 1 });
  stage.play(id, { ...callTool('get_time'), holdAfter: hold }, text('As you like.'));
  const waiting = [program.update(id, 'send', say(id, 'begin'))];
  await hold.reached;
  for (let n = 2; n <= 6; n++) waiting.push(program.update(id, 'send', say(id, `${n}`)));
  await waitFor(
    () => program.query(id, 'status'),
    (status) => (status as { queued: number }).queued === 5,
  );
  const steering = world.client.send(id, { text: say(id, 'but quickly'), delivery: 'steer' });
  await waitFor(
    () => program.query(id, 'status'),
    (status) => (status as { queued: number }).queued === 6,
  );
  hold.release();
  expect(await steering).toMatchObject({ turnId: 'turn_0001', text: 'As you like.', stopReason: 'end', toolCalls: 1 });
  expect(await Promise.all(waiting)).toHaveLength(6);
});

test('status and queue show what runs and what waits, in order', async () => {
  const id = await started();
  const hold = gate();
  stage.play(id, { text: 'One.', hold });
  await program.signal(id, 'message', { id: 'a', text: say(id, 'one') });
  await hold.reached;
  await program.signal(id, 'message', { id: 'b', text: 'größer' });
  await program.signal(id, 'message', { id: 'c', text: 'three', delivery: 'steer' });
  await program.signal(id, 'message', { id: 'd', text: 'four' });
  await waitFor(
    () => program.query(id, 'status'),
    (status) => (status as { queued: number }).queued === 3,
  );
  expect(await program.query(id, 'status')).toMatchObject({ phase: 'thinking', turn: 1, turns: 0, session: 1 });
  expect(await program.query(id, 'queue')).toEqual([
    expect.objectContaining({
      event: { kind: 'message', messageId: 'b', turnId: 'turn_0002', bytes: 8, delivery: 'queue', preview: 'größer' },
    }),
    expect.objectContaining({ event: expect.objectContaining({ messageId: 'c', delivery: 'steer' }) }),
    { id: 'qevt_000004', event: expect.objectContaining({ messageId: 'd', turnId: 'turn_0003' }), queuedAt: expect.any(Number) },
  ]);
  hold.release();
  await waitFor(
    () => program.query(id, 'status'),
    (status) => (status as { turns: number }).turns === 4,
  );
  expect(await program.query(id, 'queue')).toEqual([]);
});

test('a signal of an unknown name is reported in the status, and nothing breaks', async () => {
  const id = await started();
  await program.signal(id, 'frobnicate', 1, 2, 3);
  const rejected = await waitFor(
    async () => ((await program.query(id, 'status')) as { rejectedInputs: { count: number } }).rejectedInputs,
    ({ count }) => count === 1,
  );
  expect(rejected).toEqual({ count: 1, last: [{ name: 'frobnicate', reason: 'no signal of that name', at: expect.any(Number) }] });
});
