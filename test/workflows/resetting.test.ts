/** `/new` in all of its forms: an update, a signal, a typed text. */
import { callTool, gate, text } from '../support/provider-apis/reply.js';
import { outside, type Outside } from '../support/outside.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { testReplays } from '../support/replays.js';
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

async function started(): Promise<string> {
  const id = world.id();
  await program.start(id);
  return id;
}

const status = (id: string): Promise<{ session: number; turns: number; turn: number; phase: string }> =>
  program.query(id, 'status') as Promise<{ session: number; turns: number; turn: number; phase: string }>;

test('a typed /new is answered as a reset and reaches no model', async () => {
  const id = await started();
  await program.update(id, 'send', say(id, 'remember the word melon'));
  expect(await program.update(id, 'send', ' /new\n')).toEqual({
    turnId: null,
    text: 'Session cleared.',
    stopReason: 'reset',
    usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, costUsd: 0 },
    toolCalls: 0,
  });
  expect(await program.update(id, 'send', say(id, 'hi'))).toMatchObject({ turnId: 'turn_0002' });
  expect(stage.requests(id)).toHaveLength(2);
  expect(JSON.stringify(stage.requests(id)[1]?.messages)).not.toContain('melon');
});

test('a reset names the session that begins, and counters and usage go on', async () => {
  const id = await started();
  expect(await program.update(id, 'reset', {})).toEqual({
    reply: 'Session cleared.',
    session: 1,
    consolidation: 'nothing-to-do',
  });
  await program.update(id, 'send', say(id, 'one'));
  expect(await program.update(id, 'reset', { id: 'r1' })).toMatchObject({ reply: 'Session cleared.', session: 2 });
  expect(await program.update(id, 'reset', { id: 'r1' })).toMatchObject({ reply: 'Session cleared.', session: 2 });
  expect(await program.query(id, 'status')).toMatchObject({
    session: 2,
    epoch: 2,
    turn: 1,
    turns: 1,
    // The consolidation is paid for too.
    usage: { inputTokens: expect.any(Number) as unknown },
    context: { chunks: 0, tokens: 0 },
  });
});

test('the signal new resets, with an id, with nothing, and once for the same id', async () => {
  const id = await started();
  await program.update(id, 'send', say(id, 'one'));
  await program.signal(id, 'new', { id: 'r1' });
  await program.signal(id, 'new', { id: 'r1' });
  await waitFor(
    () => status(id),
    ({ session }) => session === 2,
  );
  await program.update(id, 'send', say(id, 'two'));
  await program.signal(id, 'new', { id: 'r1' });
  await program.update(id, 'send', say(id, 'three'));
  expect(await status(id)).toMatchObject({ session: 2 });
  expect(stage.requests(id)[2]?.messages).toHaveLength(3);
  await program.signal(id, 'new');
  await waitFor(
    () => status(id),
    ({ session }) => session === 3,
  );
});

test('a reset stops the turn that runs, and what was sent after it is answered in the new session', async () => {
  const id = await started();
  const hold = gate();
  stage.play(id, { text: ['The old story begins.', 'And goes on.'], hold }, text('New.'));
  const old = program.update(id, 'send', say(id, 'tell me the old story'));
  await hold.reached;
  await program.signal(id, 'new');
  const next = program.update(id, 'send', say(id, 'hi'));
  expect(await old).toMatchObject({ turnId: 'turn_0001', stopReason: 'interrupted' });
  expect(await next).toMatchObject({ turnId: 'turn_0002', text: 'New.' });
  expect(JSON.stringify(stage.requests(id)[1]?.messages)).not.toContain('old story');
  const turns = (await world.client.history(id)).map(({ session, turn }) => `${session} ${turn}`);
  // What the model had told by then is kept, where the worker still hears of it.
  expect(turns.filter((one) => one !== '1 turn_0001')).toEqual(['2 turn_0002', '2 turn_0002']);
  expect(turns.indexOf('2 turn_0002')).toBe(turns.length - 2);
});

test('a reset in the middle of a tool ends that turn, and the late result is in no later prompt', async () => {
  const id = await started();
  stage.play(id, callTool('read_file', { path: 'missing.txt' }), { text: 'never', hold: gate() }, text('New.'));
  const old = program.update(id, 'send', say(id, 'read it'));
  await stage.waitForRequest(id, 2);
  expect(await program.update(id, 'send', '/new')).toMatchObject({ stopReason: 'reset' });
  expect(await old).toMatchObject({ stopReason: 'interrupted', toolCalls: 1 });
  expect(await program.update(id, 'send', say(id, 'hi'))).toMatchObject({ text: 'New.' });
  expect(stage.requests(id)[2]?.messages).toHaveLength(1);
});

test('messages before a waiting reset are the old session, those after it the new; two resets in a row are one', async () => {
  const id = await started();
  const hold = gate();
  stage.play(id, { text: 'One.', hold }, text('Two.'), text('Three.'));
  await program.signal(id, 'message', { id: 'm1', text: say(id, 'one') });
  await hold.reached;
  await program.signal(id, 'message', { id: 'm2', text: say(id, 'two') });
  await program.signal(id, 'new', { id: 'r1' });
  await program.signal(id, 'new', { id: 'r2' });
  await program.signal(id, 'message', { id: 'm3', text: say(id, 'three') });
  await waitFor(
    () => program.query(id, 'queue'),
    (queue) => (queue as unknown[]).length === 3,
  );
  hold.release();
  await waitFor(
    () => status(id),
    ({ turns }) => turns === 3,
  );
  expect(await status(id)).toMatchObject({ session: 2 });
  const said = (await world.client.history(id)).flatMap(({ messageId, session }) => (messageId ? [[messageId, session]] : []));
  expect(said).toEqual([
    ['m1', 1],
    ['m2', 1],
    ['m3', 2],
  ]);
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('a reset under the id of a message is answered, and the other way round', async () => {
  const id = await started();
  await program.update(id, 'send', { id: 'same', text: say(id, 'hi') });
  expect(await program.update(id, 'reset', { id: 'same' })).toMatchObject({ reply: 'Session cleared.' });
  await program.update(id, 'reset', { id: 'other' });
  expect(await program.update(id, 'send', { id: 'other', text: say(id, 'hi') })).toMatchObject({ stopReason: 'end' });
});

testReplays(() => world);
