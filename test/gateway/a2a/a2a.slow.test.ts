/** Tasks for other agents: by the protocol's own client, unmodified, over sockets, with a real worker. */
import { randomUUID } from 'node:crypto';
import type { Message, StreamResponse, Task } from '@a2a-js/sdk' with { 'resolution-mode': 'import' };
import type { Client } from '@a2a-js/sdk/client' with { 'resolution-mode': 'import' };
import { oneToken } from '../../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../../src/gateway/index.js';
import { latestResults, resultText, saidIn } from '../../support/echo-model.js';
import { callTool, gate, text, type Gate, type Reply } from '../../support/provider-apis/reply.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';
import { artifactsAfter, clientOf, collect, stateIn, TOKEN } from './a2a-client.js';

let world: World;
let gateway: ServedGateway;
let client: Client;
let held: Gate | undefined;
let stumbled = 0;

beforeAll(async () => {
  world = await startWorld({ agent: { approvals: [{ tool: 'write_file', policy: 'ask' }] }, answer });
  await world.writeAgent('other', {});
  gateway = await serveGateway({
    client: world.client,
    authenticate: oneToken(TOKEN),
    agents: () => Promise.resolve(['default', 'other']),
    port: 0,
  });
  client = await clientOf(gateway.url);
});
afterAll(async () => {
  await gateway.close();
  await world.close();
});

function answer(request: Parameters<typeof saidIn>[0]): Reply {
  const said = saidIn(request).at(-1) ?? '';
  const [result] = latestResults(request);
  if (said.startsWith('write') && !result) return { ...callTool('write_file', { path: 'note.txt', content: said }), text: 'I write it.' };
  if (said === 'delegate' && !result) return callTool('delegate', { task: 'write by another', title: 'write' });
  if (said.includes('write by another') && !result) return callTool('write_file', { path: 'sub.txt', content: 'of another' });
  if (said === 'ask' && !result) return callTool('ask_user', { question: 'Which colour?', options: ['blue', 'red'] });
  if (said === 'page' && !result) return callTool('client__page', {});
  if (said === 'work' && held) return { ...callTool('read_file', { path: 'none.txt' }), hold: held };
  if (said === 'and this') return text(`You said: ${said}`);
  if (said.startsWith('hold') && held) return { ...text('held back until it is let go'), hold: held };
  if (said === 'stumble' && (stumbled += 1) === 1) return { ...text('This is lost.'), fault: { kind: 'reset', at: 'before-block-stop' } };
  if (said === 'refuse') return { ...text(''), stopReason: 'refusal' };
  if (said.includes('fits this schema')) return text('{"city":"Oslo"}');
  return text(result ? `Result: ${resultText(result)}` : `You said: ${said}`);
}

const message = (said: string, more: Partial<Message> = {}): Message => ({
  messageId: randomUUID(),
  contextId: '',
  taskId: '',
  role: 1,
  parts: [{ content: { $case: 'text', value: said }, metadata: undefined, filename: '', mediaType: '' }],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
  ...more,
});
const request = (own: Message, configuration?: { returnImmediately: boolean }) => ({
  tenant: '',
  message: own,
  configuration: configuration && { ...configuration, acceptedOutputModes: [], taskPushNotificationConfig: undefined },
  metadata: undefined,
});

async function send(own: Message): Promise<Task> {
  const result = await client.sendMessage(request(own));
  if (!('status' in result)) throw new Error('a message, and no task');
  return result;
}

const textsIn = ({ artifacts }: Pick<Task, 'artifacts'>): unknown[] =>
  artifacts.map(({ parts }) => parts.map(({ content }) => content?.value).join(''));

test('a message is a task that ends with its answer, and the same message is the same task', async () => {
  const own = message('hello');
  const task = await send(own);
  expect(stateIn(task)).toBe('TASK_STATE_COMPLETED');
  expect(textsIn(task)).toEqual(['You said: hello']);
  expect(task.history).toMatchObject([{ messageId: own.messageId, parts: [{ content: { value: 'hello' } }] }]);
  expect(await send(own)).toEqual(task);
  expect(await client.getTask({ tenant: '', id: task.id })).toEqual(task);
  const next = await send(message('again', { contextId: task.contextId }));
  expect(next.contextId).toBe(task.contextId);
  expect(next.id).not.toBe(task.id);
  expect((await world.client.status(task.contextId)).turns).toBe(2);
  const sparse = { messageId: randomUUID(), role: 1, parts: [{ content: { $case: 'text', value: 'sparse' } }] };
  const events = await collect(client.sendMessageStream({ message: sparse } as never));
  expect(artifactsAfter(events)).toEqual(['You said: sparse']);
});

test('a stream begins with the task, and ends with its final state and all of its text', async () => {
  const events = await collect(client.sendMessageStream(request(message('stream', { contextId: 'any string: Straße 7' }))));
  expect(events[0]?.payload).toMatchObject({ $case: 'task', value: { contextId: 'any string: Straße 7' } });
  expect(artifactsAfter(events)).toEqual(['You said: stream']);
  expect(events.at(-1)?.payload).toMatchObject({ $case: 'statusUpdate', value: { status: { state: 3 } } });
});

test('what a failed attempt has said is taken back', async () => {
  const events = await collect(client.sendMessageStream(request(message('stumble'))));
  expect(stumbled).toBe(2);
  expect(artifactsAfter(events)).toEqual(['You said: stumble']);
});

test('a question is input that the task requires, and a message with its id answers it', async () => {
  const first = message('ask');
  const events = await collect(client.sendMessageStream(request(first)));
  expect(events.at(-1)?.payload).toMatchObject({
    $case: 'statusUpdate',
    value: { status: { state: 6, message: { parts: [{ content: { value: 'Which colour? (blue, red)' } }, {}] } } },
  });
  const { taskId = '', contextId = '' } = events.at(-1)?.payload?.value as { taskId?: string; contextId?: string };
  const blue = message('blue', { taskId });
  const answered = await send(blue);
  expect(answered).toMatchObject({ id: taskId, contextId });
  expect(stateIn(answered)).toBe('TASK_STATE_COMPLETED');
  expect(textsIn(answered)[0]).toContain('blue');
  expect(answered.history.map(({ role, parts }) => [role, parts[0]?.content?.value])).toEqual([
    [1, 'ask'],
    [2, 'Which colour? (blue, red)'],
    [1, 'blue'],
  ]);
  expect(await send(blue)).toEqual(answered);
  expect((await client.getTask({ tenant: '', id: taskId, historyLength: 1 })).history).toHaveLength(1);
});

test('a call is allowed by its hash alone', async () => {
  const asked = await send(message('write it'));
  expect(stateIn(asked)).toBe('TASK_STATE_INPUT_REQUIRED');
  const [words, data] = asked.status?.message?.parts ?? [];
  expect(words?.content?.value).toMatch(/write_file.*"approve [0-9a-f]{12}"/);
  await expect(send(message('approve', { taskId: asked.id }))).rejects.toThrow(/approve [0-9a-f]{12}/);
  await expect(send(message(`approve ${'0'.repeat(12)}`, { taskId: asked.id }))).rejects.toThrow(/no call that waits/);
  await expect(send(message('of course', { taskId: asked.id }))).rejects.toThrow(/waits for a decision/);
  const { asks } = data?.content?.value as { asks: { hash: string; callId: string; arguments: object }[] };
  expect(asks).toMatchObject([{ arguments: { path: 'note.txt', content: 'write it' } }]);
  const part = { metadata: undefined, filename: '', mediaType: '' };
  const decide = (value: object): Message => message('', { taskId: asked.id, parts: [{ content: { $case: 'data', value }, ...part }] });
  await expect(send(decide({ decision: 'approve', callId: asks[0]?.callId }))).rejects.toThrow(/needs the hash/);
  await expect(send(decide({ decision: 'approve', hash: 'f'.repeat(64) }))).rejects.toThrow(/nothing that waits/);
  const yes = decide({ decision: 'approve', hash: asks[0]?.hash });
  const done = await send(yes);
  expect(stateIn(done)).toBe('TASK_STATE_COMPLETED');
  expect(textsIn(done)).toEqual(['I write it.', expect.stringContaining('Result:')]);
  expect(await send(yes)).toEqual(done);
});

test.each([
  ['with its hash', (code: string) => `approve ${code}`, 'ok'],
  ['by a word', () => 'deny: not now', 'rejected'],
])('in words: %s', async (_, words, outcome) => {
  const asked = await send(message(`write ${outcome}`));
  const [, code = ''] = /"approve (\w+)"/.exec(String(asked.status?.message?.parts[0]?.content?.value)) ?? [];
  const done = await send(message(words(code), { taskId: asked.id }));
  expect(stateIn(done)).toBe('TASK_STATE_COMPLETED');
  const entries = await world.client.history(asked.contextId);
  expect(entries.flatMap(({ message: said }) => (said.role === 'tool' ? [said.outcome] : []))).toEqual([outcome]);
});

test('a stream ends at what a sub-agent asks, which is answered as the task’s own', async () => {
  const events = await collect(client.sendMessageStream(request(message('delegate'))));
  const task = events[0]?.payload?.$case === 'task' ? events[0].payload.value : undefined;
  expect(events.at(-1)?.payload).toMatchObject({ $case: 'statusUpdate', value: { taskId: task?.id, status: { state: 6 } } });
  const [asked] = await world.client.approvals(task?.contextId ?? '');
  expect([asked?.conversation, asked?.tool]).toEqual([`${task?.contextId}:turn_0001:1`, 'write_file']);
  const decision = { content: { $case: 'data' as const, value: { decision: 'approve', hash: asked?.hash } } };
  const parts = [{ ...decision, metadata: undefined, filename: '', mediaType: '' }];
  const rest = await collect(client.sendMessageStream(request(message('', { taskId: task?.id ?? '', parts }))));
  expect(artifactsAfter(rest).at(-1)).toMatch(/^Result: /);
  // The task itself where it had ended by then.
  expect(rest.at(-1)?.payload?.value).toMatchObject({ status: { state: 3 } });
});

test('a task that waits for a tool of another client requires input, says which, and takes it as data alone', async () => {
  const contextId = world.id();
  await world.client.start(contextId);
  await world.client.enqueue(contextId, { id: 'm1', text: 'page', tools: [{ name: 'page', inputSchema: { type: 'object' } }] });
  await waitFor(
    () => world.client.approvals(contextId),
    (waiting) => waiting.length === 1,
  );
  const words = `${contextId} waits for what page (turn_0001/c1) answers`;
  // Sent again, it is the task as it stands.
  const task = await send(message('page', { contextId, messageId: 'm1' }));
  expect(stateIn(task)).toBe('TASK_STATE_INPUT_REQUIRED');
  const [said, data] = task.status?.message?.parts.map(({ content }) => content?.value) ?? [];
  expect(said).toContain(words);
  expect(data).toMatchObject({ asks: [{ kind: 'client-tool', callId: 'turn_0001/c1', tool: 'client__page' }] });
  await expect(send(message('seen', { taskId: task.id }))).rejects.toThrow(words);
  await expect(send(message('hello', { contextId }))).rejects.toThrow(words);
  expect((await world.client.status(contextId)).queued).toBe(0);
  const part = { $case: 'data' as const, value: { callId: 'turn_0001/c1', output: { at: 1 } } };
  const parts = [{ content: part, metadata: undefined, filename: '', mediaType: '' }];
  const done = await send(message('', { taskId: task.id, parts }));
  expect([stateIn(done), textsIn(done)]).toEqual(['TASK_STATE_COMPLETED', ['Result: {"at":1}']]);
  expect(stateIn(await send(message('', { taskId: task.id, parts })))).toBe('TASK_STATE_COMPLETED');
});

test('a subscription begins with what there is, goes on over a question, and ends with the task', async () => {
  const asked = await send(message('ask'));
  const streams = [1, 2].map(() => client.resubscribeTask({ tenant: '', id: asked.id }));
  const firsts = await Promise.all(streams.map((stream) => stream.next()));
  const done = await send(message('red', { taskId: asked.id }));
  for (const [at, stream] of streams.entries()) {
    const events = [firsts[at]?.value as StreamResponse, ...(await collect(stream))];
    expect(events[0]?.payload).toMatchObject({ $case: 'task', value: { status: { state: 6 } } });
    expect(artifactsAfter(events)).toEqual(textsIn(done));
    expect(events.at(-1)?.payload).toMatchObject({ $case: 'statusUpdate', value: { status: { state: 3 } } });
  }
  await expect(collect(client.resubscribeTask({ tenant: '', id: done.id }))).rejects.toThrow(/has ended/);
});

test('after a lost connection a subscription begins with what was said, and has what is missed', async () => {
  held = gate();
  const stop = new AbortController();
  let id = '';
  const before: StreamResponse[] = [];
  for await (const event of client.sendMessageStream(request(message('hold on')), { signal: stop.signal })) {
    before.push(event);
    if (event.payload?.$case === 'task') id = event.payload.value.id;
    if (artifactsAfter(before)[0] === 'held back un') break;
  }
  stop.abort();
  const events: StreamResponse[] = [];
  for await (const event of client.resubscribeTask({ tenant: '', id })) {
    events.push(event);
    // In the task itself, or right after it where the feed is slow.
    if (artifactsAfter(events)[0] === 'held back un') held.release();
  }
  held = undefined;
  expect(events[0]?.payload).toMatchObject({ $case: 'task', value: { status: { state: 2 }, history: [{ role: 1 }] } });
  expect(artifactsAfter(events)).toEqual(['held back until it is let go']);
  expect(textsIn(await client.getTask({ tenant: '', id }))).toEqual(['held back until it is let go']);
});

test('cancelling stops the turn, and what waits behind it is taken back', async () => {
  held = gate();
  const contextId = `c-${randomUUID()}`;
  const running = await client.sendMessage(request(message('hold', { contextId }), { returnImmediately: true }));
  await held.reached;
  const queued = await client.sendMessage(request(message('later', { contextId }), { returnImmediately: true }));
  expect([stateIn(running), stateIn(queued)]).toEqual(['TASK_STATE_SUBMITTED', 'TASK_STATE_SUBMITTED']);
  const of = (task: typeof running): { tenant: string; id: string; metadata: undefined } => ({
    ...{ tenant: '', id: 'id' in task ? task.id : '', metadata: undefined },
  });
  await expect(send(message('more', { taskId: of(queued).id }))).rejects.toThrow(/has not begun/);
  expect(stateIn(await client.getTask(of(running)))).toBe('TASK_STATE_WORKING');
  expect(stateIn(await client.getTask(of(queued)))).toBe('TASK_STATE_SUBMITTED');
  expect(stateIn(await client.cancelTask(of(queued)))).toBe('TASK_STATE_CANCELED');
  expect(stateIn(await client.cancelTask(of(running)))).toBe('TASK_STATE_CANCELED');
  held.release();
  held = undefined;
  await expect(client.cancelTask(of(running))).rejects.toThrow(/has ended/);
  await expect(send(message('more', { taskId: of(running).id }))).rejects.toThrow(/has ended/);
});

test('what is said to a task that works reaches the model in the same turn where it goes on, and is the next task where it ends', async () => {
  const steer = async (said: string): Promise<{ before: string; task: Task; conversation: string }> => {
    held = gate();
    const begun = (await client.sendMessage(request(message(said), { returnImmediately: true }))) as Task;
    await held.reached;
    const own = message('and this', { taskId: begun.id });
    const steered = send(own);
    await waitFor(
      () => world.client.queue(begun.contextId),
      (queue) => queue.length > 0,
    );
    held.release();
    held = undefined;
    const task = await steered;
    expect(await send(own)).toEqual(task);
    return { before: begun.id, task, conversation: begun.contextId };
  };
  const goesOn = await steer('work');
  expect(goesOn.task.id).toBe(goesOn.before);
  expect(textsIn(goesOn.task).at(-1)).toBe('You said: and this');
  const ended = await steer('hold still');
  expect(ended.task.id).not.toBe(ended.before);
  expect(ended.task.contextId).toBe(ended.conversation);
  expect(textsIn(ended.task)).toEqual(['You said: and this']);
});

test('tasks are listed, newest first, by page, state and time', async () => {
  const contextId = `c-${randomUUID()}`;
  const ids: string[] = [];
  for (const said of ['one', 'two', 'refuse']) ids.unshift((await send(message(said, { contextId }))).id);
  const ask = (more: object) =>
    client.listTasks({ tenant: '', contextId, status: 0, pageToken: '', statusTimestampAfter: undefined, ...more });
  const first = await ask({ pageSize: 2 });
  expect(first).toMatchObject({ totalSize: 3, pageSize: 2, tasks: [{ id: ids[0], status: { state: 7 }, artifacts: [] }, { id: ids[1] }] });
  expect(await ask({ pageSize: 2, pageToken: first.nextPageToken })).toMatchObject({ tasks: [{ id: ids[2] }], nextPageToken: '' });
  expect((await ask({ status: 3, includeArtifacts: true })).tasks.map(textsIn)).toEqual([['You said: two'], ['You said: one']]);
  expect((await ask({ statusTimestampAfter: '2999-01-01T00:00:00Z' })).totalSize).toBe(0);
  expect((await ask({ contextId: 'nothing-here' })).tasks).toEqual([]);
  expect((await ask({ contextId: '' })).tasks.map(({ id }) => id)).toEqual(expect.arrayContaining(ids));
  await expect(ask({ pageToken: 'invented' })).rejects.toThrow(/pageToken/);
  await expect(ask({ pageSize: 1_000 })).rejects.toThrow(/pageSize/);
});

test('an answer of a schema is data; a picture reaches the model; the agent is chosen; /new clears', async () => {
  const asked = message('where', { metadata: { output: { type: 'object', properties: { city: { type: 'string' } } } } });
  expect((await send(asked)).artifacts).toMatchObject([{ parts: [{ content: { $case: 'data', value: { city: 'Oslo' } } }] }]);
  const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg==', 'base64');
  const picture = { content: { $case: 'raw' as const, value: png }, metadata: undefined, filename: 'a.png', mediaType: 'image/png' };
  const pictured = await send(message('', { parts: [...message('look').parts, picture] }));
  expect(textsIn(pictured)).toEqual(['You said: look']);
  expect(JSON.stringify((await world.client.history(pictured.contextId))[0])).toContain('image/png');
  const sound = { ...picture, content: { $case: 'raw' as const, value: Buffer.from('ID3\x03\x00') }, mediaType: 'application/pdf' };
  await expect(send(message('', { parts: [sound] }))).rejects.toThrow(/by its content the file "a.png" is no PNG/);
  const other = await send(message('who', { metadata: { agent: 'other' } }));
  expect(await world.client.describe(other.contextId)).toMatchObject({ agent: 'other' });
  await expect(send(message('who', { metadata: { agent: 'nobody' } }))).rejects.toThrow(/there is no agent nobody/);
  expect(await client.sendMessage(request(message('/new', { contextId: other.contextId })))).toMatchObject({
    parts: [{ content: { value: 'Session cleared.' } }],
  });
});

test('cards: a stranger reads no name of an agent, and who has a token does', async () => {
  const open = await fetch(`${gateway.url}/.well-known/agent-card.json`);
  const card = await open.text();
  expect(open.status).toBe(200);
  expect(card).not.toContain('other');
  expect(JSON.parse(card)).toMatchObject({
    supportedInterfaces: [{ url: `${gateway.url}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }, { protocolVersion: '0.3' }],
    capabilities: { streaming: true },
  });
  const etag = open.headers.get('etag') ?? '';
  expect((await fetch(open.url, { headers: { 'if-none-match': etag } })).status).toBe(304);
  const extended = await client.getAgentCard();
  expect(extended.skills.map(({ id }) => id)).toEqual(['default', 'other']);
  const path = `${gateway.url}/a2a/other/.well-known/agent-card.json`;
  expect((await fetch(path)).status).toBe(401);
  const own = await clientOf(`${gateway.url}/a2a/other/`);
  const task = (await own.sendMessage(request(message('by path', { metadata: { agent: 'default' } })))) as Task;
  expect(await world.client.describe(task.contextId)).toMatchObject({ agent: 'other' });
});

test('unknown fields are ignored; 0.3 is spoken, also where no version is named', async () => {
  const call = async (version: string, method: string, params: object): Promise<Response> => {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', 'a2a-version': version };
    return fetch(`${gateway.url}/a2a`, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id: 'x', method, params }) });
  };
  const odd = { messageId: 'm1', contextId: randomUUID(), role: 'ROLE_USER', later: 1, parts: [{ text: 'hello', later: 2 }] };
  const sent = await call('1.0', 'SendMessage', { message: odd, later: 3, tenant: 'someone-else' });
  expect(await sent.json()).toMatchObject({ id: 'x', result: { task: { status: { state: 'TASK_STATE_COMPLETED' } } } });
  const old = { kind: 'message', messageId: 'm1', role: 'user', contextId: randomUUID(), parts: [{ kind: 'text', text: 'hello' }] };
  const artifacts = [{ parts: [{ kind: 'text', text: 'You said: hello' }] }];
  for (const version of ['', '0.3']) {
    const { result } = (await (await call(version, 'message/send', { message: old })).json()) as { result: object };
    expect(result).toMatchObject({ kind: 'task', contextId: old.contextId, status: { state: 'completed' }, artifacts });
  }
  const streamed = await call('0.3', 'message/stream', { message: { ...old, messageId: 'm2' } });
  const last = (await streamed.text()).trim().split('\n\n').at(-1) ?? '';
  expect([last.includes('"state":"completed"'), last.includes('"final":true')]).toEqual([true, true]);
});
