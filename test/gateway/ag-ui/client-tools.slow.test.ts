/** Tools that a front end brings, by AG-UI's own client, unchanged: its verifier looks at every event, and two gateways serve it. */
import { buildResumeArray, HttpAgent, type BaseEvent } from '@ag-ui/client';
import type { Message } from '@ag-ui/core';
import { type Redis as RedisClient, Redis } from 'ioredis';
import { z } from 'zod';
import { oneToken } from '../../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../../src/gateway/index.js';
import { defineTool } from '../../../src/tools/define-tool.js';
import { callTools, text } from '../../support/provider-apis/reply.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { createStage, resultTexts, say } from '../../support/stage.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';
import { expectNoWarnings } from './strict-client.js';

const TOKEN = 'a-token-that-only-tests-have';
const own = defineTool({
  name: 'own',
  description: 'Of the agent.',
  input: z.object({}),
  policy: { repeatable: true, approval: 'allow' },
  run: () => 'own result',
});
const pay = defineTool({ name: 'pay', description: 'Pays.', input: z.object({}), policy: { approval: 'ask' }, run: () => 'paid' });
const tools = [
  {
    name: 'weather',
    description: 'Weather.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
  { name: 'wipe', description: 'Wipes the page.' },
];

const stage = createStage();
let world: World;
let redis: RedisServer;
let store: RedisClient;
let gateways: ServedGateway[];

beforeAll(async () => {
  redis = await startRedis();
  store = new Redis(redis.url);
  world = await startWorld({
    answer: stage.answer,
    redisUrl: redis.url,
    tools: [own, pay],
    agent: { approvals: [{ tool: 'client__wipe', policy: 'ask' }] },
  });
  const serve = (): Promise<ServedGateway> => serveGateway({ client: world.client, authenticate: oneToken(TOKEN), port: 0 });
  gateways = [await serve(), await serve()];
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.close();
  await world.close();
  await store.quit();
  await redis.stop();
});
expectNoWarnings(() => world);

const agentOf = (threadId: string, at = 0): HttpAgent =>
  new HttpAgent({ url: `${gateways[at]?.url}/agui`, threadId, headers: { authorization: `Bearer ${TOKEN}` } });

interface Ran {
  readonly types: string[];
  readonly last: BaseEvent;
  /** As the client has it, by its own reckoning. */
  readonly pending: readonly string[];
}

async function run(agent: HttpAgent, params: Parameters<HttpAgent['runAgent']>[0] = {}): Promise<Ran> {
  const events: BaseEvent[] = [];
  let pending: readonly string[] = [];
  await agent.runAgent(
    { tools, ...params },
    {
      onEvent: ({ event }) => void events.push(structuredClone(event)),
      onRunFinishedEvent: (finished) => void (pending = finished.outcome === 'success' ? (finished.pendingToolCallIds ?? []) : []),
    },
  );
  return { types: events.map(({ type }) => type), last: events.at(-1) as BaseEvent, pending };
}

function ask(agent: HttpAgent, id: string, content: string): Promise<Ran> {
  agent.addMessage({ id, role: 'user', content });
  return run(agent);
}

const callsIn = (agent: HttpAgent) => agent.messages.flatMap((one) => (one.role === 'assistant' ? (one.toolCalls ?? []) : []));
/** As a front end does: what has no result is run, and what it says is a message. */
function answer(agent: HttpAgent, say_: (city: string) => string = (city) => `rain in ${city}`, only?: string): void {
  const done = new Set(agent.messages.flatMap((one) => (one.role === 'tool' ? [one.toolCallId] : [])));
  for (const { id, function: made } of callsIn(agent)) {
    if (done.has(id) || (only !== undefined && id !== only)) continue;
    const { city = '' } = JSON.parse(made.arguments) as { city?: string };
    agent.addMessage({ id: `mine-${id}`, role: 'tool', toolCallId: id, content: say_(city) });
  }
}
const words = (messages: readonly Message[]): string[] =>
  messages.flatMap((one) => (one.role === 'assistant' && one.content !== undefined ? [one.content] : []));
const roles = (agent: HttpAgent): string[] => agent.messages.map(({ role }) => role);
const weather = (city: string): { name: string; input: { city: string } } => ({ name: 'client__weather', input: { city } });
const soFar = (request: Parameters<typeof resultTexts>[0]) => text(`So: ${resultTexts(request).join(', ')}`);

test('a call of the client’s tool ends the run, and its message goes on with the same turn, in another gateway, round by round', async () => {
  const id = world.id();
  stage.play(id, { text: 'I look.', ...callTools(weather('Oslo'), weather('Rome'), { name: 'own' }) }, callTools(weather('Bonn')), soFar);
  const first = agentOf(id);
  const one = await ask(first, 'm1', say(id, 'look'));
  expect(one.last).toMatchObject({ outcome: { type: 'success', pendingToolCallIds: ['turn_0001/c1', 'turn_0001/c2'] } });
  expect(one.pending).toEqual(['turn_0001/c1', 'turn_0001/c2']);
  expect(
    callsIn(first)
      .map(({ function: { name, arguments: given } }) => `${name} ${given}`)
      .sort(),
  ).toEqual(['own {}', 'weather {"city":"Oslo"}', 'weather {"city":"Rome"}']);
  expect(first.state).toMatchObject({ perdura: { phase: 'waiting' } });
  expect(stage.requests(id)[0]?.tools?.map(({ name }) => name)).toEqual(expect.arrayContaining(['client__weather', 'client__wipe']));

  answer(first);
  const second = agentOf(id, 1);
  second.setMessages(first.messages);
  const two = await run(second);
  expect(two.pending).toEqual(['turn_0001/c4']);
  answer(second);
  const three = await run(second);
  expect(three.last).toMatchObject({ outcome: { type: 'success' }, result: { turn: 'turn_0001', stopReason: 'end' } });
  expect(three.types).not.toContain('MESSAGES_SNAPSHOT');
  expect(three.types).not.toContain('TOOL_CALL_RESULT');
  expect(words(second.messages).at(-1)).toBe('So: rain in Bonn');
  expect(roles(second).filter((role) => role === 'tool')).toHaveLength(4);
  expect(stage.requests(id)).toHaveLength(3);

  // A client that lost it all has the turn once, with what its tools have answered, and is asked to run nothing.
  const reloaded = agentOf(id);
  const again = await ask(reloaded, 'm1', say(id, 'look'));
  expect(again.pending).toEqual([]);
  expect(reloaded.messages.flatMap((m) => (m.role === 'tool' ? [m.content] : [])).sort()).toEqual(
    ['rain in Oslo', 'rain in Rome', 'rain in Bonn', 'own result'].sort(),
  );
  expect(stage.requests(id)).toHaveLength(3);
});

test('the same answer once more decides nothing, and the client has the turn once', async () => {
  const id = world.id();
  stage.play(id, callTools(weather('Oslo')), soFar);
  const agent = agentOf(id);
  await ask(agent, 'm1', say(id, 'look'));
  answer(agent);
  const before = structuredClone(agent.messages);
  await run(agent);
  const twin = agentOf(id, 1);
  twin.setMessages(before);
  expect((await run(twin)).last).toMatchObject({ outcome: { type: 'success' } });
  expect(words(twin.messages)).toEqual(words(agent.messages));
  expect(roles(twin).filter((role) => role === 'tool')).toHaveLength(1);
  expect(stage.requests(id)).toHaveLength(2);
  // And where it has the end already, from its beginning.
  await run(twin);
  expect(words(twin.messages)).toEqual(words(agent.messages));
  expect(roles(twin).filter((role) => role === 'tool')).toHaveLength(1);
});

test('an error of the tool, words beside its answer, and a next turn with tools of its own', async () => {
  const id = world.id();
  stage.play(
    id,
    callTools(weather('Oslo')),
    (request) => text(`${JSON.stringify(request.messages.at(-1)?.content)}`),
    text('No tools now.'),
  );
  const agent = agentOf(id);
  await ask(agent, 'm1', say(id, 'look'));
  agent.addMessage({ id: 'mine', role: 'tool', toolCallId: 'turn_0001/c1', content: 'half', error: 'no network' });
  agent.addMessage({ id: 'm2', role: 'user', content: 'and quickly' });
  await run(agent);
  const said = words(agent.messages).at(-1) ?? '';
  expect(said).toContain('half');
  expect(said).toContain('no network');
  expect(said).toContain('and quickly');
  expect(stage.requests(id)[1]?.messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content))).toContainEqual(
    expect.objectContaining({ type: 'tool_result', is_error: true }),
  );
  agent.addMessage({ id: 'm3', role: 'user', content: 'next' });
  expect((await run(agent, { tools: [] })).last).toMatchObject({ result: { turn: 'turn_0002' } });
  expect(
    stage
      .requests(id)
      .at(-1)
      ?.tools?.map(({ name }) => name),
  ).not.toContain('client__weather');
});

test('a call that a person must allow first is not the client’s to run before that', async () => {
  const id = world.id();
  stage.play(id, callTools({ name: 'client__wipe' }, weather('Oslo')), soFar);
  const agent = agentOf(id);
  const { last } = await ask(agent, 'm1', say(id, 'wipe it'));
  expect(last).toMatchObject({
    outcome: {
      type: 'interrupt',
      interrupts: [{ id: 'turn_0001/c1', reason: 'tool_call', metadata: { perdura: { tool: 'wipe', arguments: {} } } }],
    },
  });
  expect(callsIn(agent).map(({ function: { name } }) => name)).toEqual(['weather']);
  const interrupts = structuredClone(agent.pendingInterrupts);
  answer(agent);
  const resume = buildResumeArray(interrupts, { 'turn_0001/c1': { status: 'resolved', payload: { approved: true } } });
  const two = await run(agent, { resume });
  expect(two.pending).toEqual(['turn_0001/c1']);
  expect(callsIn(agent).map(({ function: { name } }) => name)).toEqual(['weather', 'wipe']);
  answer(agent, () => 'wiped');
  await run(agent);
  expect(words(agent.messages).at(-1)).toContain('wiped');
  expect(words(agent.messages).at(-1)).toContain('rain in Oslo');
  expect(roles(agent).filter((role) => role === 'tool')).toHaveLength(2);
});

test('a new message while the client is waited for is refused, a tool message for what is not the client’s too', async () => {
  const id = world.id();
  stage.play(id, callTools(weather('Oslo'), { name: 'pay' }), soFar);
  const agent = agentOf(id);
  await ask(agent, 'm1', say(id, 'look'));
  const other = agentOf(id);
  expect((await ask(other, 'm2', 'hello?')).last).toMatchObject({ type: 'RUN_ERROR', code: 'interrupted' });
  const forger = agentOf(id);
  forger.setMessages([...agent.messages, { id: 'x', role: 'tool', toolCallId: 'turn_0001/c2', content: 'yes' }]);
  expect((await run(forger)).last).toMatchObject({ type: 'RUN_ERROR', message: expect.stringContaining('an approval or a refusal') });
  expect(await world.client.approvals(id)).toHaveLength(2);
});

test('an answer that comes too late is history: what the turn had instead is shown, and words beside it are a message', async () => {
  const id = world.id();
  stage.play(id, callTools(weather('Oslo')), text('Second.'));
  const agent = agentOf(id);
  await ask(agent, 'm1', say(id, 'look'));
  await world.client.interrupt(id);
  await world.client.turn(id, 'turn_0001');
  answer(agent);
  const late = await run(agent);
  expect(late.last).toMatchObject({ outcome: { type: 'cancelled' } });
  expect(agent.messages.find(({ role }) => role === 'tool')).toMatchObject({ content: expect.stringContaining('Interrupted') });
  agent.addMessage({ id: 'm2', role: 'user', content: 'once more' });
  expect((await run(agent)).last).toMatchObject({ result: { turn: 'turn_0002' } });
  expect(words(agent.messages).at(-1)).toBe('Second.');
});

test('a thread that is copied under another id begins a conversation with its new words; without any it is refused', async () => {
  const [id, copyId] = [world.id(), world.id()];
  stage.play(id, callTools(weather('Oslo')), text('Begun.'));
  const agent = agentOf(id);
  await ask(agent, 'm1', say(id, 'look'));
  answer(agent);
  const copy = agentOf(copyId);
  copy.setMessages(agent.messages);
  expect((await run(copy)).last).toMatchObject({ type: 'RUN_ERROR', code: 'not-found' });
  expect((await ask(copy, 'm2', say(id, 'once more'))).last).toMatchObject({ result: { turn: 'turn_0001' } });
  expect(words(copy.messages).at(-1)).toBe('Begun.');
  expect(await world.client.approvals(id)).toHaveLength(1);
});

test('live events that are lost, and with them that the turn waits: a run ends all the same, with the call', async () => {
  const id = world.id();
  stage.play(id, callTools(weather('Oslo')), soFar);
  const inputSchema = { type: 'object' };
  await world.client.start(id);
  await world.client.enqueue(id, { id: 'm1', text: say(id, 'look'), tools: [{ name: 'weather', inputSchema }] });
  await waitFor(
    () => world.client.approvals(id),
    (waiting) => waiting.length === 1,
  );
  const feeds = (await store.keys('*feed*')).filter((key) => key.includes(id));
  expect(await store.del(...feeds)).toBeGreaterThan(0);
  const agent = agentOf(id);
  expect((await ask(agent, 'm1', say(id, 'look'))).pending).toEqual(['turn_0001/c1']);
  answer(agent);
  await run(agent);
  expect(words(agent.messages).at(-1)).toBe('So: rain in Oslo');
});

test.each<[string, object[], string]>([
  ['a name that no provider takes', [{ name: 'a b', description: '' }], 'tools'],
  ['two of one name', [tools[0], tools[0]] as object[], 'tools'],
  ['a schema of no object', [{ name: 'a', description: '', parameters: { type: 'array' } }], 'tools'],
  ['a schema that is none', [{ name: 'a', description: '', parameters: { properties: { a: { type: 'what' } } } }], 'the tool "a"'],
])('%s is refused', async (_, wrong, about) => {
  const agent = agentOf(world.id());
  agent.addMessage({ id: 'm1', role: 'user', content: 'x' });
  await expect(run(agent, { tools: wrong as typeof tools })).rejects.toMatchObject({
    status: 400,
    payload: { code: 'invalid', message: expect.stringContaining(about) as string },
  });
});
