/** People in the loop: leave, answers, budgets, messages taken back, data in and out, through the client and a real worker. */
import { z } from 'zod';
import type { Pending } from '../../src/client.js';
import { callTool, callTools, gate, text } from '../support/provider-apis/reply.js';
import { askUser } from '../../src/tools/builtin/conversation-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { testReplays } from '../support/replays.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, resultTexts, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const ran: unknown[] = [];
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ to: z.string(), euros: z.number() }),
  policy: { approval: 'ask' },
  run: (input) => {
    ran.push(input);
    return `paid ${input.euros} to ${input.to}`;
  },
});
const whoAmI = defineTool({
  name: 'who_am_i',
  description: 'Says who is logged in, without a secret.',
  input: z.object({}),
  policy: { repeatable: true },
  run: (_, { context }) => ({ ok: true, content: `user ${String(context['user'])}`, context: { seen: true, user: null } }),
});

/** Ends when so many of it are running. */
let together = 0;
const toldAll = gate();
const keep = defineTool({
  name: 'keep',
  description: 'Keeps a value, beside the others that do.',
  input: z.object({ key: z.string() }),
  policy: { repeatable: true },
  run: async ({ key }, { context }) => {
    together += 1;
    if (together === 3) toldAll.release();
    await toldAll.until;
    return { ok: true, content: `saw ${Object.keys(context).join(' ')}`, context: { [key]: true, ...(key === 'c' && { user: null }) } };
  },
});
const shared = defineTool({
  name: 'shared',
  description: 'Says which values there are.',
  input: z.object({}),
  policy: { repeatable: true },
  run: (_, { context }) => Object.keys(context).sort().join(' '),
});

/** Looked at: how often. */
let looks = 0;
const fickle = defineTool({
  name: 'fickle',
  description: 'Means something else the second time that it is looked at, as a path does that is swapped for a link.',
  input: z.object({ at: z.enum(['once', 'twice', 'elsewhere']) }),
  examine: ({ at }) => {
    looks += 1;
    if (at === 'elsewhere') return { real: { at: looks > 1 ? 'private/plan.md' : 'notes/plan.md' } };
    return looks > 1 || at === 'once' ? { asks: { why: 'it may hold secrets' } } : {};
  },
  run: () => {
    ran.push('fickle');
    return 'shown';
  },
});

/** As a page that redirects. */
const leads = defineTool({
  name: 'leads',
  description: 'Says whether it may go elsewhere.',
  input: z.object({ to: z.string() }),
  run: (_, { refusalOf }) => ['here', 'there', 'away'].map((to) => refusalOf?.({ to }) ?? 'open').join('; '),
});

const stage = createStage();
let world: World;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, tools: [pay, whoAmI, keep, shared, fickle, leads, askUser] });
  await world.writeAgent('hasty', { approvalExpiryMs: 1_000 });
  await world.writeAgent('closed', { approvals: [{ tool: 'fickle', where: { at: 'private/*' }, policy: 'deny' }] });
  await world.writeAgent('careful', { approvals: [{ tool: 'pay', where: { to: 'Eve' }, policy: 'deny' }] });
  const leadsTo = (to: string, policy: string) => ({ tool: 'leads', where: { to }, policy });
  await world.writeAgent('led', { approvals: [leadsTo('here', 'allow'), leadsTo('there', 'ask'), leadsTo('away', 'deny')] });
});
afterAll(() => world.close());
beforeEach(() => ran.splice(0));
afterEach(() => expect(world.api.problems).toEqual([]));

/** Sends in a conversation that asks, and waits until it does. */
async function asked(
  id: string,
  ...lines: Parameters<typeof stage.play>[1][]
): Promise<{ sent: ReturnType<World['client']['send']>; one: Pending }> {
  stage.play(id, ...lines);
  const sent = world.client.send(id, say(id, 'go'), { start: {} });
  sent.catch(() => undefined);
  return { sent, one: await waiting(id) };
}

async function waiting(id: string, count = 1): Promise<Pending> {
  const found = await waitFor(
    () => world.client.approvals(id).catch(() => []),
    (list) => list.length === count,
  );
  return found[0] as Pending;
}

async function expectHealthy(id: string): Promise<void> {
  expect(await workflowTaskFailures(world, id)).toEqual([]);
}

test('what waits is reported with its whole arguments, and runs once it is allowed', async () => {
  const id = world.id();
  const input = { to: `Ada ${'x'.repeat(30_000)}`, euros: 5 };
  const { sent, one } = await asked(id, callTool('pay', input), text('Paid.'));
  expect(one).toMatchObject({ conversation: id, via: id, callId: 'turn_0001/c1', kind: 'approval', tool: 'pay', arguments: input });
  expect(await world.client.status(id)).toMatchObject({ phase: 'waiting-for-person', pendingApprovals: 1 });
  expect(ran).toEqual([]);
  expect(await world.client.decide(id, { callId: one.callId, decision: 'approve', hash: one.hash })).toEqual({
    callId: 'turn_0001/c1',
    decision: 'approve',
  });
  expect(await sent).toMatchObject({ text: 'Paid.', stopReason: 'end' });
  expect(ran).toEqual([input]);
  await expectHealthy(id);
});

test('a call whose arguments ask for it waits, and one that has come to ask since does not run', async () => {
  looks = 0;
  const id = world.id();
  const { sent, one } = await asked(id, callTool('fickle', { at: 'once' }), text('Seen.'));
  expect(one).toMatchObject({ tool: 'fickle', why: 'it may hold secrets' });
  await world.client.decide(id, { callId: one.callId, decision: 'approve' });
  expect(await sent).toMatchObject({ text: 'Seen.' });
  expect(ran.splice(0)).toEqual(['fickle']);

  looks = 0;
  const other = world.id();
  stage.play(other, callTool('fickle', { at: 'twice' }), text('Not seen.'));
  expect(await world.client.send(other, say(other, 'go'), { start: {} })).toMatchObject({ text: 'Not seen.' });
  expect(ran).toEqual([]);
  expect(resultTexts(stage.requests(other).at(-1)).join()).toContain('no person has approved it: it may hold secrets');
  await expectHealthy(id);
  await expectHealthy(other);
});

test('a call that has come to mean what a rule denies does not run', async () => {
  looks = 0;
  const id = world.id();
  stage.play(id, callTool('fickle', { at: 'elsewhere' }), text('Not seen.'));
  expect(await world.client.send(id, say(id, 'go'), { start: { agent: 'closed' } })).toMatchObject({ text: 'Not seen.' });
  expect(ran).toEqual([]);
  expect(resultTexts(stage.requests(id).at(-1)).join()).toContain('fickle did not run: the rules of agent "closed" do not allow');
});

test('a call learns where the rules would not have let it go by itself', async () => {
  const id = world.id();
  stage.play(id, callTool('leads', { to: 'here' }), text('Seen.'));
  await world.client.send(id, say(id, 'go'), { start: { agent: 'led' } });
  expect(resultTexts(stage.requests(id).at(-1)).join()).toMatch(
    /^open; a person has to approve that address; the rules of agent "led" do not/,
  );
});

test('another model answers from the next call on, is carried by a fork, and one that no worker has fails the turn in words', async () => {
  const id = world.id();
  stage.play(id, text('one'), text('two'), text('three'), text('four'));
  await world.client.send(id, say(id, 'first'), { start: {} });
  const { model: own } = await world.client.status(id);
  expect(await world.client.setModel(id, 'anthropic/claude-other')).toBe('anthropic/claude-other');
  expect(await world.client.status(id)).toMatchObject({ model: 'anthropic/claude-other', chosenModel: 'anthropic/claude-other' });
  await world.client.send(id, say(id, 'second'));
  expect(stage.requests(id).map(({ model }) => `anthropic/${model}`)).toEqual([own, 'anthropic/claude-other']);
  const fork = await world.client.fork(id, { at: 'turn_0002', id: world.id() });
  expect(await world.client.status(fork.id)).toMatchObject({ chosenModel: 'anthropic/claude-other' });

  await world.client.setModel(id, 'nobody/nothing');
  const failed = await world.client.send(id, say(id, 'third'));
  expect(failed).toMatchObject({
    stopReason: 'failed',
    error: { message: expect.stringMatching(/no provider "nobody"\. Known ones: anthropic/) as unknown },
  });
  await world.client.setModel(id, null);
  await world.client.send(id, say(id, 'fourth'));
  expect(await world.client.status(id)).toMatchObject({ model: own, chosenModel: null });
  await expect(world.client.setModel(id, 'claude')).rejects.toThrow(/setModel.model must look like "provider\/model"/);
  await expectHealthy(id);
});

test('a person may change the arguments; the model is told', async () => {
  const id = world.id();
  const { sent, one } = await asked(id, callTool('pay', { to: 'Ada', euros: 500 }), text('Paid less.'));
  await world.client.decide(
    id,
    { callId: one.callId, decision: 'approve', input: { to: 'Ada', euros: 5 }, note: 'five is enough' },
    { awaited: true },
  );
  await sent;
  expect(ran).toEqual([{ to: 'Ada', euros: 5 }]);
  const [result] = resultTexts(stage.requests(id).at(-1));
  expect(result).toContain('paid 5 to Ada');
  expect(result).toContain('five is enough');
  expect(result).toContain('changed the arguments');
});

// @rule tools/edited-is-checked
test.each([
  ['what the rules deny', { to: 'Eve', euros: 5 }, 'the rules of agent "careful" do not allow pay'],
  ['what is no argument of it', { to: 'Ada', euros: 'five' }, 'euros'],
])('a person cannot change the arguments to %s', async (_what, input, why) => {
  const id = world.id();
  await world.client.start(id, { agent: 'careful' });
  const { sent, one } = await asked(id, callTool('pay', { to: 'Ada', euros: 500 }), text('Not paid.'));
  await world.client.decide(id, { callId: one.callId, decision: 'approve', input });
  await sent;
  expect(ran).toEqual([]);
  expect(resultTexts(stage.requests(id).at(-1))).toEqual([expect.stringContaining(why)]);
});

test('a call that is denied does not run, and the model reads why', async () => {
  const id = world.id();
  const { sent, one } = await asked(id, callTool('pay', { to: 'Eve', euros: 9 }), text('I will not.'));
  await world.client.decide(id, { callId: one.callId, decision: 'deny', note: 'we owe Eve nothing' });
  expect(await sent).toMatchObject({ text: 'I will not.', stopReason: 'end' });
  expect(ran).toEqual([]);
  expect(resultTexts(stage.requests(id).at(-1))).toEqual([
    expect.stringContaining('Not run: a person did not allow this call. They say: we owe Eve nothing'),
  ]);
});

test('nobody is asked about arguments that do not fit: the model reads what is wrong with them, and asks again', async () => {
  const id = world.id();
  const { sent, one } = await asked(
    id,
    callTool('pay', { to: 'Ada', euros: 'five' }),
    callTool('pay', { to: 'Ada', euros: 5 }),
    text('Paid.'),
  );
  expect(one).toMatchObject({ callId: 'turn_0001/c2', arguments: { to: 'Ada', euros: 5 } });
  await world.client.decide(id, { callId: one.callId, decision: 'approve' });
  expect(await sent).toMatchObject({ text: 'Paid.' });
  expect(resultTexts(stage.requests(id)[1])).toEqual([
    expect.stringMatching(/^Rejected: this call did not run\.\nNot run: pay did not run: .*\n- euros/),
  ]);
  expect(ran).toEqual([{ to: 'Ada', euros: 5 }]);
});

test('the first decision counts, and whoever comes later, or looked at other arguments, hears so', async () => {
  const id = world.id();
  const { sent, one } = await asked(id, callTool('pay', { to: 'Ada', euros: 1 }), text('Done.'));
  const { callId } = one;
  await expect(world.client.decide(id, { callId, decision: 'approve', hash: 'another' })).rejects.toMatchObject({ kind: 'not-waiting' });
  await expect(world.client.decide(id, { callId, decision: 'approve', hash: 'another' }, { awaited: true })).rejects.toMatchObject({
    kind: 'not-waiting',
    message: expect.stringContaining('other arguments'),
  });
  await world.client.decide(id, { callId, decision: 'deny' });
  await expect(world.client.decide(id, { callId, decision: 'approve' })).rejects.toMatchObject({ kind: 'not-waiting' });
  await expect(world.client.decide(id, { callId, decision: 'approve' }, { awaited: true })).rejects.toMatchObject({ kind: 'not-waiting' });
  await sent;
  expect(ran).toEqual([]);
});

test('a question is answered in a person’s words', async () => {
  const id = world.id();
  const { sent, one } = await asked(id, callTool('ask_user', { question: 'Which colour?', options: ['red', 'blue'] }), text('Blue it is.'));
  expect(one).toMatchObject({ kind: 'question', arguments: { question: 'Which colour?', options: ['red', 'blue'] } });
  await world.client.decide(id, { callId: one.callId, decision: 'approve', note: 'blue, as the sea' });
  expect(await sent).toMatchObject({ text: 'Blue it is.' });
  expect(resultTexts(stage.requests(id).at(-1))).toEqual(['blue, as the sea']);
});

test('what nobody decides in time is not run, and the conversation goes on', async () => {
  const id = world.id();
  stage.play(id, callTool('pay', { to: 'Ada', euros: 1 }), text('Nobody said yes.'));
  const result = await world.client.send(id, say(id, 'go'), { start: { agent: 'hasty' } });
  expect(result).toMatchObject({ text: 'Nobody said yes.', stopReason: 'end' });
  expect(resultTexts(stage.requests(id).at(-1))).toEqual([expect.stringContaining('Not run: nobody allowed it until ')]);
  expect(ran).toEqual([]);
  expect(await world.client.approvals(id)).toEqual([]);
});

test('what waits anywhere is found, and a conversation that ended is none', async () => {
  const [first, second, ended] = [world.id(), world.id(), world.id()];
  const a = await asked(first, callTool('pay', { to: 'Ada', euros: 1 }));
  const b = await asked(second, callTool('ask_user', { question: 'Why?' }));
  await world.client.start(ended);
  await world.client.terminate(ended);
  const both = await waitFor(
    async () => (await world.client.allApprovals()).approvals.filter(({ conversation }) => [first, second, ended].includes(conversation)),
    (list) => list.length === 2,
  );
  expect(new Set(both.map(({ conversation, tool }) => `${conversation} ${tool}`))).toEqual(new Set([`${first} pay`, `${second} ask_user`]));
  for (const id of [first, second]) await world.client.interrupt(id);
  await Promise.all([a.sent, b.sent]);
});

test('a stop while a person is waited for ends the turn; the call was not run', async () => {
  const id = world.id();
  const { sent } = await asked(id, callTool('pay', { to: 'Ada', euros: 1 }));
  await world.client.interrupt(id);
  expect(await sent).toMatchObject({ stopReason: 'interrupted' });
  expect(ran).toEqual([]);
  stage.play(id, text('Still here.'));
  expect(await world.client.send(id, say(id, 'and now?'))).toMatchObject({ text: 'Still here.' });
  await expectHealthy(id);
});

test('what a conversation may use ends its turns; more of it goes on', async () => {
  const id = world.id();
  stage.play(id, { ...text('One.'), usage: { input_tokens: 900, output_tokens: 200 } });
  expect(await world.client.send(id, say(id, 'one'), { start: { budget: { maxTokens: 1_000 } } })).toMatchObject({ text: 'One.' });
  expect(await world.client.send(id, say(id, 'two'))).toMatchObject({
    stopReason: 'budget',
    error: { type: 'budget', message: expect.stringContaining('1100 of its 1000 tokens') },
  });
  expect(stage.requests(id)).toHaveLength(1);
  // Nothing was called in it, which is no reason to say that it is not there.
  expect(await world.client.timeline(id, 'turn_0002')).toMatchObject({ complete: true, bars: [] });
  await expect(world.client.timeline(id, 'turn_0003')).rejects.toMatchObject({ kind: 'not-found' });
  expect(await world.client.raiseBudget(id, { maxTokens: 100_000 })).toEqual({ maxTokens: 100_000 });
  stage.play(id, text('Two.'));
  expect(await world.client.send(id, say(id, 'two again'))).toMatchObject({ text: 'Two.', stopReason: 'end' });
  expect(await world.client.status(id)).toMatchObject({ budget: { maxTokens: 100_000 } });
  expect(await world.client.raiseBudget(id, {})).toEqual({});
  expect(await world.client.status(id)).toMatchObject({ budget: null });
});

test('a budget within the agent’s lowers its limits, and lifts none, as they are now', async () => {
  await world.writeAgent('limited', { limits: { maxTokens: 1_000 } });
  const start = (budget: object) => ({ start: { agent: 'limited', budget: { ...budget, within: 'agent' as const } } });
  const usage = { input_tokens: 900, output_tokens: 200 };
  for (const budget of [{}, { maxTokens: 100_000 }]) {
    const id = world.id();
    stage.play(id, { ...text('One.'), usage });
    expect(await world.client.send(id, say(id, 'one'), start(budget))).toMatchObject({ text: 'One.' });
    const over = { stopReason: 'budget', error: { message: expect.stringContaining('1100 of its 1000 tokens') } };
    expect(await world.client.send(id, say(id, 'two'))).toMatchObject(over);
    await world.client.raiseBudget(id, { maxTokens: 5_000, within: 'agent' });
    expect(await world.client.send(id, say(id, 'three'))).toMatchObject(over);
    expect(await world.client.status(id)).toMatchObject({ budget: { maxTokens: 1_000 } });
    expect(stage.requests(id)).toHaveLength(1);
  }
  const id = world.id();
  stage.play(id, { ...text('One.'), usage });
  await world.client.send(id, say(id, 'one'), start({ maxTokens: 500 }));
  expect(await world.client.status(id)).toMatchObject({ budget: { maxTokens: 500 } });
  await world.writeAgent('limited', { limits: { maxTokens: 2_000 } });
  await world.client.raiseBudget(id, { within: 'agent' });
  stage.play(id, text('Two.'));
  expect(await world.client.send(id, say(id, 'two'))).toMatchObject({ text: 'Two.' });
  // An operator's goes before them.
  await world.client.raiseBudget(id, {});
  expect(await world.client.status(id)).toMatchObject({ budget: null });
});

test('an answer that does not fit its schema is asked for once more, and comes back as data', async () => {
  const id = world.id();
  const output = { type: 'object', properties: { count: { type: 'integer' } }, required: ['count'], additionalProperties: false };
  stage.play(id, text('There are three.'), text('{"count":3}'));
  const result = await world.client.send(id, { text: say(id, 'count them'), payload: ['a', 'b', 'c'], output }, { start: {} });
  expect(result).toMatchObject({ stopReason: 'end', payload: { count: 3 } });
  const [first, second] = stage.requests(id);
  expect(JSON.stringify(first?.messages)).toContain('\\"b\\"');
  expect(JSON.stringify(second?.messages.at(-1))).toContain('does not fit the schema');
  expect(stage.requests(id)).toHaveLength(2);
  await expectHealthy(id);
});

test('tools see the context, and change it for each other; no byte of it reaches the model', async () => {
  const id = world.id();
  const secret = `token-${world.id()}`;
  stage.play(id, callTool('who_am_i'), text('You are Ada.'));
  await world.client.send(id, say(id, 'who am I?'), { start: { context: { user: 'Ada', secret } } });
  expect(resultTexts(stage.requests(id).at(-1))).toEqual(['user Ada']);
  stage.play(id, callTool('who_am_i'), text('Nobody now.'));
  await world.client.send(id, say(id, 'and now?'));
  expect(resultTexts(stage.requests(id).at(-1))).toEqual(['user undefined']);
  stage.play(id, callTool('who_am_i'), text('Bob.'));
  await world.client.send(id, { text: say(id, 'and now?'), context: { user: 'Bob', secret } });
  expect(resultTexts(stage.requests(id).at(-1))).toEqual(['user Bob']);
  expect(JSON.stringify(stage.requests(id))).not.toContain(secret);
});

test('tools that run side by side take nothing back of what the others change', async () => {
  const id = world.id();
  const calls = ['a', 'b', 'c'].map((key) => ({ name: 'keep', input: { key } }));
  stage.play(id, callTools(...calls), callTool('shared'), callTool('who_am_i'), callTool('shared'), text('All of them.'));
  await world.client.send(id, say(id, 'keep these'), { start: { context: { user: 'Ada', other: 1 } } });
  expect(stage.requests(id).flatMap((request, n) => (n === 0 ? [] : [resultTexts(request)]))).toEqual([
    ['saw user other', 'saw user other', 'saw user other'],
    ['a b c other'],
    ['user undefined'],
    ['a b c other seen'],
  ]);
  await expectHealthy(id);
});

test('a message is taken back while it waits, and not after; a receipt says where it stands', async () => {
  const id = world.id();
  const held = gate();
  stage.play(id, { ...text('One, slowly.'), hold: held });
  const sent = world.client.send(id, say(id, 'one'), { start: {} });
  await held.reached;
  const receipt = { messageId: 'second', turnId: 'turn_0002', acceptedAs: 'queue', position: 0 };
  // The same update: the same receipt. By another way it is known to be the same message.
  for (const _ of [1, 2]) expect(await world.client.enqueue(id, { id: 'second', text: say(id, 'two') })).toEqual(receipt);
  const again = world.temporal.workflow
    .getHandle(id)
    .executeUpdate<unknown, [object]>('enqueue', { args: [{ id: 'second', text: 'two' }] });
  expect(await again).toMatchObject({ acceptedAs: 'duplicate', turnId: 'turn_0002' });
  expect(await world.client.withdraw(id, 'second')).toEqual({ messageId: 'second', withdrawn: true });
  expect(await world.client.withdraw(id, 'second')).toMatchObject({ withdrawn: false, reason: expect.any(String) });
  expect(await world.client.withdraw(id, 'never-came')).toMatchObject({ withdrawn: false });
  held.release();
  expect(await sent).toMatchObject({ text: 'One, slowly.' });
  expect(await world.client.turn(id, 'turn_0002')).toMatchObject({ stopReason: 'withdrawn' });
  stage.play(id, text('Three.'));
  expect(await world.client.send(id, say(id, 'three'))).toMatchObject({ text: 'Three.' });
  expect(JSON.stringify(stage.requests(id).at(-1)?.messages)).not.toContain('two');
  await expectHealthy(id);
});

test('of several that wait each is decided by itself, and what need not wait does not', async () => {
  const id = world.id();
  stage.play(
    id,
    callTools({ name: 'pay', input: { to: 'a', euros: 1 } }, { name: 'who_am_i' }, { name: 'ask_user', input: { question: 'Sure?' } }),
    text('All done.'),
  );
  await world.client.start(id);
  await world.client.message(id, say(id, 'go'));
  await waiting(id, 2);
  await world.client.decide(id, { callId: 'turn_0001/c3', decision: 'approve', note: 'sure' });
  await world.client.decide(id, { callId: 'turn_0001/c1', decision: 'approve' });
  expect(await world.client.turn(id, 'turn_0001')).toMatchObject({ text: 'All done.' });
  expect(resultTexts(stage.requests(id).at(-1))).toEqual(['paid 1 to a', 'user undefined', 'sure']);
});

testReplays(() => world);
