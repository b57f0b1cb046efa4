/** Events out: a real worker, a real Temporal, and a receiver over HTTP that checks signatures with the library that receivers use. */
import { z } from 'zod';
import { WEBHOOK_EVENTS, type WebhookEventType } from '../../src/records/turn-end.js';
import type { WebhookEndpoint } from '../../src/config.js';
import { createStartDelivery, deliveryId } from '../../src/client/webhook-deliveries.js';
import { askUser, delegate } from '../../src/tools/builtin/conversation-tools.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { callTool, callTools, text } from '../support/provider-apis/reply.js';
import { httpError } from '../support/provider-apis/faults.js';
import { expectReplays } from '../support/replays.js';
import { runsOf, workflowTaskFailures } from '../support/run-chain.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { SECRET, startReceiver, type Receiver } from '../support/webhook-receiver.js';
import { startWorld, type World } from '../support/world.js';

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ euros: z.number() }),
  policy: { approval: 'ask' },
  run: ({ euros }) => `paid ${euros}`,
});

const stage = createStage();
let world: World;
let receiver: Receiver;
/** In memory a delivery that failed is tried again at once, but while this is set. */
let holding = false;

const to = (url: string | null, more: Partial<WebhookEndpoint> = {}): WebhookEndpoint => ({
  url,
  secrets: [SECRET],
  events: WEBHOOK_EVENTS,
  ...more,
});

beforeAll(async () => {
  receiver = await startReceiver();
  const failures: readonly WebhookEventType[] = ['turn.failed'];
  const endpoints = [to(null, { scope: 'quiet' }), to(receiver.url, { scope: 'failures', events: failures }), to(receiver.url)];
  const agent = { limits: { handOver: { events: 40 } } };
  // What is not acknowledged in time is posted again, and a busy machine takes its time.
  const holds = (why: string): boolean => holding && why.endsWith('post-webhook');
  world = await startWorld({ answer: stage.answer, tools: [pay, askUser, delegate], agent, webhooks: { endpoints, ms: 10_000 }, holds });
});
afterAll(async () => {
  await world.close();
  await receiver.stop();
});
afterEach(() => expect(receiver.refused).toEqual([]));

/** What has come of this conversation and its sub-agents, oldest first. */
const gotOf = (id: string) =>
  receiver.got.filter(
    ({ event }) => 'conversation' in event.data && (event.data.conversation === id || event.data.conversation.startsWith(`${id}:`)),
  );
const typesOf = (id: string): string[] => gotOf(id).map(({ event }) => event.type);
const arrives = (id: string, count: number) =>
  waitFor(
    async () => gotOf(id).length,
    (n) => n >= count,
  ).then(() => gotOf(id));

async function deliveriesOf(id: string): Promise<{ readonly status: string; readonly workflowId: string }[]> {
  const found: { status: string; workflowId: string }[] = [];
  const query = `WorkflowType = 'webhook' AND WorkflowId STARTS_WITH 'webhook:${id}:'`;
  for await (const { status, workflowId } of world.temporal.workflow.list({ query })) found.push({ status: status.name, workflowId });
  return found;
}

/** Resolves once each delivery of it has ended, and says how. */
async function outcomesOf(id: string, count: number): Promise<unknown[]> {
  const all = await waitFor(
    () => deliveriesOf(id),
    (found) => found.length >= count && found.every(({ status }) => status !== 'RUNNING'),
  );
  return Promise.all(
    all.map(({ workflowId }) =>
      world.temporal.workflow
        .getHandle(workflowId)
        .result()
        .catch((error: unknown) => error),
    ),
  );
}

test('a turn that ends is posted, signed, with its answer, its usage and a sequence', async () => {
  const id = world.id();
  stage.play(id, text('Good morning.'), text('And good night.'));
  await world.client.send(id, say(id, 'hello'), { start: { title: 'Greetings' } });
  await world.client.send(id, say(id, 'bye'));
  const got = await arrives(id, 2);
  expect(
    got
      .map(({ event }) => event)
      .sort((a, b) => (a.type === 'turn.finished' && b.type === 'turn.finished' ? a.data.sequence - b.data.sequence : 0)),
  ).toMatchObject([
    {
      type: 'turn.finished',
      data: {
        conversation: id,
        agent: 'default',
        scope: 'default',
        title: 'Greetings',
        turn: 'turn_0001',
        sequence: 1,
        stopReason: 'end',
        text: 'Good morning.',
        toolCalls: 0,
      },
    },
    {
      type: 'turn.finished',
      data: { turn: 'turn_0002', sequence: 2, text: 'And good night.', usage: { inputTokens: expect.any(Number) } },
    },
  ]);
  expect(new Set(got.map((one) => one.id)).size).toBe(2);
  expect(await outcomesOf(id, 2)).toEqual([
    { outcome: 'delivered', status: 204 },
    { outcome: 'delivered', status: 204 },
  ]);
});

test('a scope that has none costs a turn nothing more, and one may ask for single events', async () => {
  const [quiet, failures] = [world.id(), world.id()];
  for (const id of [quiet, failures]) stage.play(id, text('Yes.'));
  await world.client.send(quiet, say(quiet, 'hello'), { start: { scope: 'quiet' } });
  await world.client.send(failures, say(failures, 'hello'), { start: { scope: 'failures' } });
  for (const id of [quiet, failures]) {
    const [events = []] = await runsOf(world, id);
    expect(JSON.stringify(events)).not.toContain('"name":"deliver"');
    expect(events.length).toBeLessThanOrEqual(13);
  }
  stage.play(failures, httpError(401));
  await world.client.send(failures, say(failures, 'again'));
  await arrives(failures, 1);
  expect(typesOf(failures)).toEqual(['turn.failed']);
  expect(gotOf(quiet)).toEqual([]);
});

test('the first turn of an agent that cannot be used is posted as failed, with why', async () => {
  const id = world.id();
  await world.client.send(id, say(id, 'hello'), { start: { agent: 'nobody' } });
  const [got] = await arrives(id, 1);
  expect(got?.event).toMatchObject({
    type: 'turn.failed',
    data: { stopReason: 'failed', text: '', error: { type: 'unknown-agent', message: expect.stringContaining('nobody') } },
  });
});

test('what fails is posted again under the same id with the same bytes, until one answer of 2xx, and never after it', async () => {
  const id = world.id();
  stage.play(id, text('At last.'));
  const soon = { 'retry-after': '1' };
  receiver.answer(
    { status: 503, headers: soon },
    { status: 302, headers: { ...soon, location: receiver.url } },
    { status: 429, headers: soon },
    202,
  );
  await world.client.send(id, say(id, 'hello'), { start: {} });
  expect(await outcomesOf(id, 1)).toEqual([{ outcome: 'delivered', status: 202 }]);
  const got = gotOf(id);
  expect(got).toHaveLength(4);
  expect(new Set(got.map((one) => `${one.id} ${one.body}`)).size).toBe(1);
  // Each attempt is signed anew, with its own time.
  expect(new Set(got.map(({ headers }) => headers['webhook-timestamp'])).size).toBeGreaterThan(1);
});

test('a receiver that hangs or is away holds nothing up: the next turn runs, the conversation hands over and ends', async () => {
  const id = world.id();
  receiver.answer('hang');
  await world.client.send(id, say(id, 'hello'), { start: {} });
  await arrives(id, 1);
  await receiver.stop();
  for (let i = 2; i <= 6; i++) expect(await world.client.send(id, say(id, `${i}`))).toMatchObject({ stopReason: 'end' });
  expect((await runsOf(world, id)).length).toBeGreaterThan(1);
  await world.client.closeConversation(id);
  await world.temporal.workflow.getHandle(id).result();
  expect((await deliveriesOf(id)).map(({ status }) => status)).toEqual(Array(6).fill('RUNNING'));
  await receiver.restart();
  expect(await outcomesOf(id, 6)).toEqual(Array(6).fill({ outcome: 'delivered', status: 204 }));
  const sequences = gotOf(id).map(({ event }) => (event.type === 'turn.finished' ? event.data.sequence : 0));
  expect([...new Set(sequences)].sort()).toEqual([1, 2, 3, 4, 5, 6]);
  expect(sequences).toHaveLength(7);
});

test('a long answer is cut, and a delivery that has begun is begun no second time, also after its end', async () => {
  const id = world.id();
  const long = 'A long story. '.repeat(2_000);
  stage.play(id, text(long));
  await world.client.send(id, say(id, 'tell me'), { start: {} });
  const [got] = await arrives(id, 1);
  expect(got?.event).toMatchObject({ data: { text: long.slice(0, 16_000), isCut: true } });
  expect(await outcomesOf(id, 1)).toEqual([{ outcome: 'delivered', status: 204 }]);
  const handle = world.temporal.workflow.getHandle(deliveryId({ conversation: id, id: got!.id }));
  const { runId } = await handle.describe();
  const { connection } = world.temporal;
  const start = createStartDelivery({ connection, namespace: 'default', taskQueue: world.taskQueue });
  const identity = { life: 'l', agent: 'default', scope: 'default' };
  await start({ id: got!.id, type: 'turn.finished', identity, conversation: id, body: got!.body });
  expect((await handle.describe()).runId).toBe(runId);
});

test('410 ends the delivery of that event, and of no other', async () => {
  const id = world.id();
  receiver.answer(410);
  await world.client.send(id, say(id, 'hello'), { start: {} });
  expect(await outcomesOf(id, 1)).toEqual([{ outcome: 'gone', status: 410 }]);
  await world.client.send(id, say(id, 'more'));
  await arrives(id, 2);
  expect(gotOf(id)).toHaveLength(2);
});

test('approvals and questions that wait are posted with what answers them, each once, many at once too', async () => {
  const id = world.id();
  const asked = Array.from({ length: 25 }, (_, i) => ({ name: 'pay', input: { euros: i + 1 } }));
  stage.play(id, callTools(...asked, { name: 'ask_user', input: { question: 'Which one?' } }), text('All paid.'));
  const sent = world.client.send(id, say(id, 'pay them'), { start: {} });
  const got = await arrives(id, 26);
  expect(got.filter(({ event }) => event.type === 'approval.waiting')).toHaveLength(25);
  const question = got.find(({ event }) => event.type === 'question.waiting');
  expect(question?.event).toMatchObject({ data: { tool: 'ask_user', command: `perdura answer ${id} turn_0001/c26` } });
  for (const { event } of got) {
    if (event.type !== 'approval.waiting') continue;
    const { callId, hash } = event.data;
    await world.client.decide(id, { callId, decision: 'approve', hash });
  }
  await world.client.decide(id, { callId: 'turn_0001/c26', decision: 'approve', note: 'the red one' });
  expect(await sent).toMatchObject({ stopReason: 'end' });
  await arrives(id, 27);
  expect(gotOf(id)).toHaveLength(27);
  expect(typesOf(id).at(-1)).toBe('turn.finished');
});

test('an approval that was decided before the receiver took it is posted no more', async () => {
  const id = world.id();
  stage.play(id, callTool('pay', { euros: 5 }), text('Paid.'));
  receiver.answer({ status: 500, headers: { 'retry-after': '20' } });
  holding = true;
  const sent = world.client.send(id, say(id, 'pay'), { start: {} });
  await arrives(id, 1);
  await world.client.decide(id, { callId: 'turn_0001/c1', decision: 'approve' });
  await sent;
  await world.advance(20_000);
  holding = false;
  const outcomes = await outcomesOf(id, 2);
  expect(outcomes).toContainEqual({ outcome: 'over' });
  expect(typesOf(id)).toEqual(['approval.waiting', 'turn.finished']);
});

test('a sub-agent’s approval is posted with its own conversation and its parent; its turn is not', async () => {
  const id = world.id();
  const helper = world.id();
  stage.play(helper, callTool('pay', { euros: 7 }), text('Signed.'));
  stage.play(id, callTool('delegate', { task: say(helper, 'pay'), title: 'pay' }), text('It is paid.'));
  const sent = world.client.send(id, say(id, 'have it paid'), { start: {} });
  const [got] = await arrives(id, 1);
  expect(got?.event).toMatchObject({
    type: 'approval.waiting',
    data: { conversation: `${id}:turn_0001:1`, callId: 'turn_0001/c1', parent: { conversation: id, callId: 'turn_0001/c1' } },
  });
  await world.client.decide(id, { callId: 'turn_0001/c1', conversation: `${id}:turn_0001:1`, decision: 'approve' });
  await sent;
  await arrives(id, 2);
  await outcomesOf(id, 2);
  expect(typesOf(id)).toEqual(['approval.waiting', 'turn.finished']);
});

test('an interrupted turn says so; a fork and a rewind post nothing again, and numbers go on', async () => {
  const id = world.id();
  stage.play(id, text('One.'), callTool('pay', { euros: 1 }));
  await world.client.send(id, say(id, 'one'), { start: {} });
  const second = world.client.send(id, say(id, 'two'));
  await arrives(id, 2);
  await world.client.interrupt(id);
  await second;
  await arrives(id, 3);
  expect(typesOf(id)).toEqual(['turn.finished', 'approval.waiting', 'turn.finished']);
  expect(gotOf(id)[2]?.event).toMatchObject({ data: { stopReason: 'interrupted', sequence: 3 } });
  await world.client.rewind(id, 'turn_0001');
  const fork = world.id();
  await world.client.fork(id, { id: fork, at: 'turn_0001' });
  stage.play(id, text('Three.'));
  await world.client.send(fork, say(id, 'elsewhere'));
  await world.client.send(id, say(id, 'three'));
  await Promise.all([arrives(id, 4), arrives(fork, 1)]);
  expect(gotOf(id).map(({ event }) => ('sequence' in event.data ? event.data.sequence : 0))).toEqual([1, 2, 3, 4]);
  expect(gotOf(fork).map(({ event }) => ('sequence' in event.data ? event.data.sequence : 0))).toEqual([1]);
});

test('every history replays, no workflow task has failed, and neither the secret nor the address is in any of them', async () => {
  await expectReplays(world);
  const query = `TaskQueue = '${world.taskQueue}'`;
  for await (const { workflowId, runId } of world.temporal.workflow.list({ query })) {
    expect(await workflowTaskFailures(world, workflowId)).toEqual([]);
    const history = await world.temporal.workflow.getHandle(workflowId, runId).fetchHistory();
    const bytes = JSON.stringify(history, (_, value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString() : value));
    expect(bytes).not.toContain('secret-path');
    expect(bytes).not.toContain(SECRET);
  }
});

test('a deleted conversation takes the deliveries that still try along', async () => {
  const id = world.id();
  receiver.answer({ status: 500, headers: { 'retry-after': '600' } });
  holding = true;
  await world.client.send(id, say(id, 'hello'), { start: {} });
  await arrives(id, 1);
  await world.client.closeConversation(id);
  await world.temporal.workflow.getHandle(id).result();
  await world.client.deleteConversation(id);
  await waitFor(
    () => deliveriesOf(id),
    (found) => found.length === 0,
  );
});
