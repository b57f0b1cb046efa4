/** Conversations for editors: by the client of the protocol's own library, over the bytes of a connection. */
import type { ClientConnection, RequestPermissionRequest, SessionNotification, SessionUpdate } from '@agentclientprotocol/sdk' with {
  'resolution-mode': 'import',
};
import { createAcpAgent } from '../../src/gateway/acp/agent.js';
import { BEGINS_ANEW } from '../../src/gateway/acp/updates.js';
import { createConversations } from '../../src/gateway/core/conversations.js';
import { latestResults, saidIn } from '../support/echo-model.js';
import { callTool, gate, text, type Gate, type Reply } from '../support/provider-apis/reply.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

let world: World;
let held: Gate | undefined;
const connections: { close(): void }[] = [];
const logged: string[] = [];

beforeAll(async () => {
  world = await startWorld({ agent: { approvals: [{ tool: 'write_file', policy: 'ask' }] }, answer });
});
afterAll(async () => {
  for (const connection of connections) connection.close();
  await world.close();
});
afterEach(() => expect(logged.splice(0)).toEqual([]));

let attempts = 0;

function answer(request: Parameters<typeof saidIn>[0]): Reply {
  const said = saidIn(request).at(-1) ?? '';
  const isFirst = latestResults(request).length === 0;
  if (said.startsWith('write') && isFirst) return callTool('write_file', { path: 'note.txt', content: said });
  if (said === 'ask' && isFirst) return callTool('ask_user', { question: 'Which colour?' });
  if (said === 'page' && isFirst) return callTool('client__page', {});
  if (said === 'hold' && held) return { ...text('held, and never heard'), hold: held };
  if (said === 'stumble' && (attempts += 1) === 1)
    return { ...text('This is lost on the way.'), fault: { kind: 'reset', at: 'before-block-stop' } };
  if (!isFirst) return text(`Result: ${JSON.stringify(latestResults(request)[0]?.content)}`);
  return text(`You said: ${said}`);
}

interface Editor {
  readonly connection: ClientConnection;
  readonly updates: SessionUpdate[];
  readonly permissions: RequestPermissionRequest[];
  decide: string | undefined;
}

/** An editor and an agent at the two ends of a pipe. */
async function openEditor(): Promise<Editor> {
  const { client, methods, ndJsonStream, PROTOCOL_VERSION } = await import('@agentclientprotocol/sdk');
  const [up, down] = [new TransformStream<Uint8Array, Uint8Array>(), new TransformStream<Uint8Array, Uint8Array>()];
  const log = (line: string): void => void logged.push(line);
  const agent = await createAcpAgent({ conversations: createConversations(world.client, log), version: '1', log });
  connections.push(agent.connect(ndJsonStream(down.writable, up.readable)));
  const editor: { -readonly [Key in keyof Editor]: Editor[Key] } = {
    updates: [],
    permissions: [],
    decide: 'allow',
    connection: undefined as never,
  };
  editor.connection = client({ name: 'test' })
    .onNotification(methods.client.session.update, ({ params }: { params: SessionNotification }) => void editor.updates.push(params.update))
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      editor.permissions.push(params);
      return { outcome: editor.decide === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: editor.decide } };
    })
    .connect(ndJsonStream(up.writable, down.readable));
  connections.push(editor.connection);
  const initialized = await editor.connection.agent.request('initialize', { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  expect(initialized).toMatchObject({ protocolVersion: PROTOCOL_VERSION, agentCapabilities: { loadSession: true } });
  return editor;
}

const begin = async ({ connection }: Editor): Promise<string> =>
  (await connection.agent.request('session/new', { cwd: '/', mcpServers: [] })).sessionId;
const say = ({ connection }: Editor, sessionId: string, said: string) =>
  connection.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: said }] });

/** Messages of the agent, each put together from its chunks. */
function messagesOf({ updates }: Editor): string[] {
  const messages = new Map<string, string>();
  for (const update of updates) {
    if (update.sessionUpdate !== 'agent_message_chunk' || update.content.type !== 'text') continue;
    const id = update.messageId ?? 'none';
    messages.set(id, (messages.get(id) ?? '') + update.content.text);
  }
  return [...messages.values()];
}

test('a prompt is streamed, and ends', async () => {
  const editor = await openEditor();
  const id = await begin(editor);
  expect(await say(editor, id, 'hello')).toEqual({ stopReason: 'end_turn' });
  expect(messagesOf(editor)).toEqual(['You said: hello']);
});

test('an attempt that failed is a message of its own, and the answer is whole', async () => {
  const editor = await openEditor();
  const id = await begin(editor);
  expect(await say(editor, id, 'stumble')).toEqual({ stopReason: 'end_turn' });
  const messages = messagesOf(editor);
  expect(messages.at(-1)).toBe('You said: stumble');
  for (const before of messages.slice(0, -1)) expect(before.endsWith(BEGINS_ANEW)).toBe(true);
});

test.each([
  ['allow', 'completed'],
  ['refuse', 'failed'],
])('what waits for a person is a permission request: %s', async (decision, status) => {
  const editor = await openEditor();
  editor.decide = decision;
  const id = await begin(editor);
  expect(await say(editor, id, `write ${decision}`)).toEqual({ stopReason: 'end_turn' });
  expect(editor.permissions).toMatchObject([{ sessionId: id, toolCall: { rawInput: { path: 'note.txt', content: `write ${decision}` } } }]);
  expect(editor.updates).toContainEqual(expect.objectContaining({ sessionUpdate: 'tool_call_update', status }));
});

test('a question ends the prompt, and the next prompt answers it', async () => {
  const editor = await openEditor();
  const id = await begin(editor);
  expect(await say(editor, id, 'ask')).toEqual({ stopReason: 'end_turn' });
  expect(messagesOf(editor).join('')).toContain('Which colour?');
  expect(await say(editor, id, 'blue')).toEqual({ stopReason: 'end_turn' });
  expect(messagesOf(editor).at(-1)).toContain('blue');
  expect(await world.client.status(id)).toMatchObject({ turns: 1 });
});

test('cancel stops the turn, and the prompt ends as cancelled', async () => {
  held = gate();
  const editor = await openEditor();
  const id = await begin(editor);
  const prompted = say(editor, id, 'hold');
  await held.reached;
  await editor.connection.agent.notify('session/cancel', { sessionId: id });
  expect(await prompted).toEqual({ stopReason: 'cancelled' });
  held.release();
});

test('an editor that ends leaves its turn running; another loads the session, with its calls, and goes on', async () => {
  held = gate();
  const first = await openEditor();
  const id = await begin(first);
  await say(first, id, 'write this');
  const lost = say(first, id, 'hold').catch(() => 'lost');
  await held.reached;
  first.connection.close();
  await lost;
  held.release();
  await waitFor(
    () => world.client.history(id),
    (entries) => entries.length === 6,
  );

  const second = await openEditor();
  await second.connection.agent.request('session/load', { sessionId: id, cwd: '/', mcpServers: [] });
  expect(messagesOf(second).at(-1)).toBe('held, and never heard');
  expect(second.updates.filter(({ sessionUpdate }) => sessionUpdate === 'user_message_chunk')).toHaveLength(2);
  expect(second.updates).toContainEqual(expect.objectContaining({ sessionUpdate: 'tool_call', title: 'write_file' }));
  expect(await say(second, id, 'again')).toEqual({ stopReason: 'end_turn' });
  expect(messagesOf(second).at(-1)).toBe('You said: again');
});

test('a session that there is not is refused', async () => {
  const { connection } = await openEditor();
  await expect(connection.agent.request('session/load', { sessionId: 'nobody', cwd: '/', mcpServers: [] })).rejects.toThrow(/not found/i);
  await expect(connection.agent.request('session/load', { sessionId: '../x', cwd: '/', mcpServers: [] })).rejects.toThrow(/cannot be/);
});

test('a session that waits for a tool of another client says so, and does not take the prompt', async () => {
  const editor = await openEditor();
  const id = await begin(editor);
  await world.client.enqueue(id, { text: 'page', tools: [{ name: 'page', inputSchema: { type: 'object' } }] });
  await waitFor(
    () => world.client.approvals(id),
    (waiting) => waiting.length === 1,
  );
  expect(await say(editor, id, 'hello')).toEqual({ stopReason: 'refusal' });
  expect(messagesOf(editor).join()).toContain(`${id} waits for what page (turn_0001/c1) answers`);
  expect((await world.client.status(id)).queued).toBe(0);
  await world.client.decide(id, { callId: 'turn_0001/c1', decision: 'approve', output: 'seen' });
  await world.client.turn(id, 'turn_0001');
  expect(await say(editor, id, 'hello')).toEqual({ stopReason: 'end_turn' });
  expect(messagesOf(editor).at(-1)).toBe('You said: hello');
});
