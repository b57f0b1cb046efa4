/** The contract as an outside program sees it, part 1: how conversations start and end. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text, type Reply } from '../support/provider-apis/reply.js';
import { failureOf, outside, type Outside } from '../support/outside.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { textOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { consolidationReply } from '../support/provider-apis/consolidation-reply.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const stage = createStage();
let world: World;

/** A consolidation that costs nothing, so that sums are those of the turns. */
function free(request: ApiRequest): Reply | undefined {
  const reply = consolidationReply(request);
  return reply && { ...reply, usage: { input_tokens: 0, output_tokens: 0 } };
}
let program: Outside;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, aside: free });
  await mkdir(join(world.dir, 'agents', 'scribe'));
  await writeFile(join(world.dir, 'agents', 'scribe', 'agent.json'), JSON.stringify({ model: 'anthropic/claude-scribe' }));
  await writeFile(join(world.dir, 'agents', 'scribe', 'SOUL.md'), 'You write things down.');
  program = outside(world);
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

const EMPTY = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, costUsd: 0 };

test('started with nothing, a conversation is idle, and the default agent is its own scope', async () => {
  const id = world.id();
  await program.start(id);
  expect(await program.query(id, 'status')).toEqual({
    phase: 'idle',
    session: 1,
    turn: 0,
    turns: 0,
    epoch: 1,
    mode: 'auto',
    stepLock: null,
    queued: 0,
    context: { tokens: 0, budget: 0, chunks: 0, prefixHash: null, prefixChanges: 0, prefixCause: null, compactions: 0 },
    window: { since: expect.any(Number), messages: 0, consolidated: 0, limit: null, consolidating: 0, owed: 0 },
    pendingApprovals: 0,
    budget: null,
    pausedBy: null,
    nextStep: null,
    usage: EMPTY,
    historyEvents: expect.any(Number),
    agent: 'default',
    scope: 'default',
    model: null,
    chosenModel: null,
    title: null,
    life: expect.stringMatching(/^[0-9a-f-]{36}$/),
    rejectedInputs: { count: 0, last: [] },
  });
  expect(await program.query(id, 'queue')).toEqual([]);
});

test('an agent that is named at the start answers with its own model and soul, and is the scope', async () => {
  const id = world.id();
  await program.start(id, { agent: 'scribe' });
  expect(await program.update(id, 'send', say(id, 'hi'))).toMatchObject({ stopReason: 'end' });
  expect(stage.requests(id)[0]).toMatchObject({ model: 'claude-scribe' });
  expect(JSON.stringify(stage.requests(id)[0]?.system)).toContain('You write things down.');
  expect(await program.query(id, 'status')).toMatchObject({ agent: 'scribe', scope: 'scribe', model: 'anthropic/claude-scribe' });
});

test('scope, title and model are those of the start, and the model wins over that of the agent', async () => {
  const id = world.id();
  await program.start(id, { agent: 'scribe', scope: 'team_1', title: 'Minutes', model: 'anthropic/claude-other' });
  await program.update(id, 'send', say(id, 'hi'));
  expect(stage.requests(id)[0]).toMatchObject({ model: 'claude-other' });
  expect(await program.query(id, 'status')).toMatchObject({ scope: 'team_1', title: 'Minutes', model: 'anthropic/claude-other' });
});

test('a field of a start that there is not is refused by its name', async () => {
  const id = world.id();
  await program.start(id, { mode: 'auto', fancy: [true] });
  expect(await failureOf(program.outcome(id))).toEqual({ type: 'InvalidStart', message: expect.stringContaining('fancy is not a field') });
});

test('a start has its first message with it', async () => {
  const id = world.id();
  await program.start(id, { message: { id: 'm1', text: say(id, 'hello') } });
  expect(await world.client.send(id, { id: 'm1', text: 'again' })).toMatchObject({ turnId: 'turn_0001', text: 'Understood.' });
});

test('the message of a start comes before a signal that came together with it', async () => {
  const id = world.id();
  await program.signalWithStart(
    id,
    'message',
    { id: 'm2', text: 'and more', delivery: 'steer' },
    { message: { id: 'm1', text: say(id, 'hello') } },
  );
  await program.update(id, 'send', say(id, 'and now?'));
  const said = stage
    .requests(id)
    .at(-1)
    ?.messages.flatMap(({ role, content }) => (role === 'user' ? [textOf(content)] : []));
  expect(said?.join(' ')).toMatch(/hello.*and more.*and now/s);
});

test('a start of a running id attaches to it and changes nothing', async () => {
  const id = world.id();
  stage.play(id, text('One.'), text('Two.'));
  expect(await world.client.start(id, { title: 'first' })).toEqual({ id, attached: false });
  await program.update(id, 'send', say(id, 'one'));
  expect(await world.client.start(id, { title: 'second' })).toEqual({ id, attached: true });
  await expect(program.start(id, { title: 'third' })).rejects.toThrow(/already started/i);
  expect(await program.updateWithStart(id, 'send', say(id, 'two'), { title: 'fourth' })).toMatchObject({
    turnId: 'turn_0002',
    text: 'Two.',
  });
  expect(await program.query(id, 'status')).toMatchObject({ title: 'first', turns: 2 });
});

test('an update with start is start and answer in one round trip', async () => {
  const id = world.id();
  stage.play(id, text('Welcome.'));
  expect(await program.updateWithStart(id, 'send', say(id, 'hi'), {})).toMatchObject({ turnId: 'turn_0001', text: 'Welcome.' });
});

test('a new start under the id of a conversation that has closed is a new life which sees nothing of the old one', async () => {
  const id = world.id();
  await program.start(id);
  await program.update(id, 'send', { id: 'm1', text: say(id, 'my secret') });
  await program.signal(id, 'close');
  await program.outcome(id);
  await program.start(id);
  expect(await program.update(id, 'send', { id: 'm1', text: say(id, 'hi') })).toMatchObject({ turnId: 'turn_0001', stopReason: 'end' });
  expect(stage.requests(id)).toHaveLength(2);
  expect(JSON.stringify(stage.requests(id)[1]?.messages)).not.toContain('secret');
});

test('a close runs the queue out, refuses what comes later, and the conversation completes with its sums', async () => {
  const id = world.id();
  const usage = { input_tokens: 10, output_tokens: 5 };
  stage.play(id, { text: 'One.', usage }, { text: 'Two.', usage }, { text: 'Three.', usage });
  await program.start(id, { model: 'anthropic/claude-haiku-4-5' });
  await program.update(id, 'send', say(id, 'one'));
  await program.update(id, 'reset', {});
  await Promise.all([program.signal(id, 'message', say(id, 'two')), program.signal(id, 'message', say(id, 'three'))]);
  await program.signal(id, 'close');
  const late = failureOf(program.update(id, 'send', say(id, 'late')));
  expect(await program.outcome(id)).toEqual({
    turns: 3,
    sessions: 2,
    usage: { inputTokens: 30, cachedTokens: 0, outputTokens: 15, costUsd: expect.closeTo(3 * (10 * 1e-6 + 5 * 5e-6), 10) },
  });
  expect((await late).message).toMatch(/closing|completed|not found/i);
  expect(stage.requests(id)).toHaveLength(3);
  expect(await program.query(id, 'status')).toMatchObject({ phase: 'closing', queued: 0 });
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('while a conversation closes, updates are refused by type and signals are shown as rejected', async () => {
  const id = world.id();
  let finish = (): void => {};
  const until = new Promise<void>((resolve) => (finish = resolve));
  stage.play(id, { text: 'Last words.', hold: until });
  await program.start(id);
  const last = program.update(id, 'send', say(id, 'one'));
  await stage.waitForRequest(id, 1);
  await program.signal(id, 'close');
  expect(await failureOf(program.update(id, 'send', say(id, 'late')))).toMatchObject({ type: 'ConversationClosing' });
  expect(await failureOf(program.update(id, 'reset', {}))).toMatchObject({ type: 'ConversationClosing' });
  await program.signal(id, 'message', say(id, 'late too'));
  await waitFor(
    () => program.query(id, 'status'),
    (status) => JSON.stringify(status).includes('the conversation is closing'),
  );
  finish();
  expect(await last).toMatchObject({ text: 'Last words.', stopReason: 'end' });
  expect(await program.outcome(id)).toMatchObject({ turns: 1, sessions: 1 });
});
