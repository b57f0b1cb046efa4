/** Sessions of editors: the MCP servers that they bring, their modes, and the list of them. */
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import type { ClientConnection, McpServer, RequestPermissionRequest, SessionUpdate } from '@agentclientprotocol/sdk' with {
  'resolution-mode': 'import',
};
import { createAcpAgent } from '../../src/gateway/acp/agent.js';
import { toolKind } from '../../src/gateway/acp/updates.js';
import { createConversations } from '../../src/gateway/core/conversations.js';
import { openSessionServers } from '../../src/tools/mcp/session-servers.js';
import { latestResults, saidIn } from '../support/echo-model.js';
import { EVERYTHING } from '../support/mcp.js';
import { callTool, text, type Reply } from '../support/provider-apis/reply.js';
import { startWorld, type World } from '../support/world.js';

let world: World;
const offered: string[][] = [];
const ends: (() => Promise<void> | void)[] = [];

beforeAll(async () => {
  world = await startWorld({ engine: 'memory', agent: { approvals: [{ tool: 'write_file', policy: 'ask' }] }, answer });
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});
afterAll(() => world.close());

function answer(request: Parameters<typeof saidIn>[0]): Reply {
  const said = saidIn(request).at(-1) ?? '';
  offered.push(request.tools?.map(({ name }) => name) ?? []);
  if (latestResults(request).length > 0) return text(`Result: ${JSON.stringify(latestResults(request)[0]?.content)}`);
  const [, tool, input] = /^call (\S+) (.*)$/.exec(said) ?? [];
  return tool === undefined ? text(`You said: ${said}`) : callTool(tool, JSON.parse(input ?? '{}') as Record<string, string>);
}

interface Editor {
  readonly connection: ClientConnection;
  readonly updates: SessionUpdate[];
  readonly permissions: RequestPermissionRequest[];
  readonly logged: string[];
  decide: string;
  close(): Promise<void>;
}

async function openEditor(): Promise<Editor> {
  const { client, methods, ndJsonStream, PROTOCOL_VERSION } = await import('@agentclientprotocol/sdk');
  const [up, down] = [new TransformStream<Uint8Array, Uint8Array>(), new TransformStream<Uint8Array, Uint8Array>()];
  const logged: string[] = [];
  const log = (line: string): void => void logged.push(line);
  const opened: { close(): Promise<void> }[] = [];
  const agent = await createAcpAgent({
    ...{ conversations: createConversations(world.client, log), version: '1', log },
    openServers(servers, folder) {
      const here = openSessionServers(servers, folder, { variables: process.env, version: '1', log });
      opened.push(here);
      return here;
    },
  });
  const serving = agent.connect(ndJsonStream(down.writable, up.readable));
  const editor = { updates: [] as SessionUpdate[], permissions: [] as RequestPermissionRequest[], logged, decide: 'allow' };
  const connection = client({ name: 'test' })
    .onNotification(methods.client.session.update, ({ params }) => void editor.updates.push(params.update))
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      editor.permissions.push(params);
      return { outcome: { outcome: 'selected', optionId: editor.decide } };
    })
    .connect(ndJsonStream(up.writable, down.readable));
  const close = async (): Promise<void> => {
    connection.close();
    serving.close();
    await Promise.all(opened.map((servers) => servers.close()));
  };
  ends.push(close);
  await connection.agent.request('initialize', { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  return Object.assign(editor, { connection, close });
}

const CANARY = 'canary-0123456789abcdef';
const everything: McpServer = {
  name: 'every',
  command: process.execPath,
  args: [EVERYTHING, 'stdio'],
  env: [{ name: 'API_TOKEN', value: CANARY }],
};

const begin = async ({ connection }: Editor, mcpServers: McpServer[] = []): Promise<string> =>
  (await connection.agent.request('session/new', { cwd: tmpdir(), mcpServers })).sessionId;
const say = ({ connection }: Editor, sessionId: string, said: string) =>
  connection.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: said }] });
const spoken = ({ updates }: Editor): string =>
  updates.flatMap((one) => (one.sessionUpdate === 'agent_message_chunk' && one.content.type === 'text' ? [one.content.text] : [])).join('');
const statuses = ({ updates }: Editor): unknown[] =>
  updates.flatMap((one) => (one.sessionUpdate === 'tool_call' || one.sessionUpdate === 'tool_call_update' ? [one.status] : []));

const ECHO = 'call client__every__echo {"message":"hello"}';

describe('MCP servers of the editor', () => {
  test('work in their session alone, each call with leave, and what they are started with stays with the editor', async () => {
    const editor = await openEditor();
    const id = await begin(editor, [everything]);
    expect(await say(editor, id, ECHO)).toEqual({ stopReason: 'end_turn' });
    expect(spoken(editor)).toContain('Echo: hello');
    expect(editor.permissions).toMatchObject([
      { sessionId: id, toolCall: { title: expect.stringMatching(/^every__echo/), rawInput: { message: 'hello' } } },
    ]);
    expect(statuses(editor)).toEqual(['pending', 'in_progress', 'completed']);
    expect(offered.at(-1)).toEqual(expect.arrayContaining(['client__every__echo', 'client__every__get-sum', 'read_file']));
    expect(JSON.stringify([await world.client.history(id), await world.client.runs(id).catch(() => [])])).not.toContain(CANARY);

    const other = await begin(editor);
    await say(editor, other, 'hello');
    expect(offered.at(-1)).not.toContain('client__every__echo');
    expect(editor.logged).toEqual([]);
  });

  test('a tool that is allowed for the session is not asked about again; one that is refused does not run', async () => {
    const editor = await openEditor();
    const id = await begin(editor, [everything]);
    editor.decide = 'refuse';
    await say(editor, id, ECHO);
    expect(spoken(editor)).toContain('Not run. They say: its person did not allow the call');
    editor.decide = 'always';
    await say(editor, id, ECHO);
    await say(editor, id, ECHO);
    expect(editor.permissions).toHaveLength(2);
    expect(spoken(editor).split('Echo: hello')).toHaveLength(3);
  });

  test('pictures in results reach the model, in a message after them', async () => {
    const editor = await openEditor();
    const id = await begin(editor, [everything]);
    await say(editor, id, 'call client__every__get-tiny-image {}');
    const messages = JSON.stringify(world.api.hits.at(-1)?.body?.messages);
    expect(messages).toContain('[What the tool every__get-tiny-image has answered: image/png]');
    expect(messages).toContain('[image/png: in the message after the results]');
    expect(messages.split('"type":"image"')).toHaveLength(2);
    expect(world.api.problems).toEqual([]);
  });

  test('a call that waits when the editor ends is made by the session that is loaded with the same servers', async () => {
    const first = await openEditor();
    const id = await begin(first, [everything]);
    await first.close();
    const tools = [{ name: 'every__echo', inputSchema: { type: 'object' } }];
    await world.client.enqueue(id, { text: ECHO, tools });
    const second = await openEditor();
    await second.connection.agent.request('session/load', { sessionId: id, cwd: tmpdir(), mcpServers: [everything] });
    expect(await say(second, id, 'and now?')).toEqual({ stopReason: 'end_turn' });
    expect(second.permissions).toHaveLength(1);
    const said = JSON.stringify(await world.client.history(id));
    expect(said).toContain('Echo: hello');
    expect(said).toContain('You said: and now?');
  });

  test('a server that cannot be used is refused in words; one that does not start is said, and the session goes on', async () => {
    const editor = await openEditor();
    const start = (mcpServers: McpServer[], cwd = tmpdir()) => editor.connection.agent.request('session/new', { cwd, mcpServers });
    await expect(start([{ type: 'sse', name: 'old', url: 'http://x', headers: [] }])).rejects.toThrow(/old is of the type sse/);
    await expect(start([everything, everything])).rejects.toThrow(/two MCP servers are named "every"/);
    await expect(start([everything], 'here')).rejects.toThrow(/cwd must be an absolute path/);
    const id = await begin(editor, [{ name: 'gone', command: join(tmpdir(), 'no-such-program'), args: [], env: [] }]);
    expect(await say(editor, id, 'hello')).toEqual({ stopReason: 'end_turn' });
    expect(spoken(editor)).toContain('You said: hello');
    expect(editor.logged.join()).toMatch(/MCP server gone: .*ENOENT/);
  });
});

describe('modes', () => {
  const WRITE = `call write_file {"path":"note.txt","content":"x"}`;
  test('one asks, one allows, one refuses', async () => {
    const editor = await openEditor();
    const { sessionId: id, modes } = await editor.connection.agent.request('session/new', { cwd: tmpdir(), mcpServers: [everything] });
    expect(modes).toMatchObject({ currentModeId: 'ask', availableModes: [{ id: 'ask' }, { id: 'allow' }, { id: 'refuse' }] });
    const mode = (modeId: string) => editor.connection.agent.request('session/set_mode', { sessionId: id, modeId });
    await say(editor, id, WRITE);
    expect(editor.permissions).toMatchObject([{ toolCall: { kind: 'edit' } }]);
    await mode('allow');
    await say(editor, id, WRITE);
    await say(editor, id, ECHO);
    expect(editor.permissions).toHaveLength(1);
    expect(spoken(editor)).toContain('Echo: hello');
    await mode('refuse');
    await say(editor, id, WRITE);
    expect(spoken(editor)).toContain('the mode of the session refuses what needs a permission');
    expect(editor.permissions).toHaveLength(1);
    await expect(mode('yolo')).rejects.toThrow(/there is no mode "yolo"; there are: ask, allow, refuse/);
  });
});

test('a session that is deleted is gone, with its conversation, also one that was never closed', async () => {
  const editor = await openEditor();
  const { agent } = editor.connection;
  const id = await begin(editor);
  await say(editor, id, 'hello');
  expect(await agent.request('session/delete', { sessionId: id })).toEqual({});
  await expect(agent.request('session/load', { sessionId: id, cwd: '/', mcpServers: [] })).rejects.toThrow(/not found/i);
  await expect(world.client.describe(id)).rejects.toMatchObject({ kind: 'not-found' });
  // Of one that is gone the SDK of editors takes "not found" for done.
  expect(await agent.request('session/delete', { sessionId: id })).toEqual({});
});

test('sessions are listed, resumed without a replay, and closed', async () => {
  const editor = await openEditor();
  const { agent } = editor.connection;
  const id = await begin(editor);
  await say(editor, id, 'hello');
  const { sessions } = await agent.request('session/list', { cwd: '/here' });
  expect(sessions).toContainEqual(expect.objectContaining({ sessionId: id, cwd: '/here', updatedAt: expect.stringMatching(/Z$/) }));
  await expect(agent.request('session/list', { cursor: 'x' })).rejects.toThrow(/cursor/);
  editor.updates.length = 0;
  expect(await agent.request('session/resume', { sessionId: id, cwd: '/' })).toMatchObject({ modes: { currentModeId: 'ask' } });
  expect(editor.updates).toEqual([]);
  await expect(agent.request('session/resume', { sessionId: 'nobody', cwd: '/' })).rejects.toThrow(/not found/i);
  await agent.request('session/close', { sessionId: id });
  expect(await say(editor, id, 'again')).toEqual({ stopReason: 'end_turn' });
});

test.each([
  ['read_file', 'read'],
  ['write_file', 'edit'],
  ['run_command', 'execute'],
  ['fetch_url', 'fetch'],
  ['search_memory', 'search'],
  ['delegate', 'think'],
  ['ask_user', 'other'],
  ['mcp__files__read_text_file', 'read'],
  ['mcp__files__move_file', 'move'],
  ['client__files__delete_file', 'delete'],
  ['mcp__files__list_directory', 'search'],
  ['mcp__github__createPullRequest', 'edit'],
  ['mcp__browser__browser_navigate', 'fetch'],
  ['mcp__x__sequentialthinking', 'think'],
  ['mcp__x__frobnicate', 'other'],
  ['constructor', 'other'],
])('the tool %s is shown as one that does: %s', (name, kind) => expect(toolKind(name)).toBe(kind));
