/** MCP over HTTP, by the protocol's own clients over a socket: of 2025-11-25, and of 2026-07-28. */
import { randomUUID } from 'node:crypto';
import type { Client as ModernClient, ElicitResult } from '@modelcontextprotocol/client' with { 'resolution-mode': 'import' };
import type { Client } from '@modelcontextprotocol/sdk/client/index.js' with { 'resolution-mode': 'import' };
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js' with { 'resolution-mode': 'import' };
import type { Authenticate } from '../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../src/gateway/index.js';
import { createMcpServer } from '../../src/gateway/mcp/server.js';
import { createSeal } from '../../src/platform/seal.js';
import { latestResults, saidIn } from '../support/echo-model.js';
import { callTool, gate, text, type Gate } from '../support/provider-apis/reply.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const ADMIN = 'a-token-that-only-tests-have';
const USER = 'a-token-of-one-who-only-talks';
const authenticate: Authenticate = (presented) =>
  Promise.resolve(presented === ADMIN ? { name: 'admin', role: 'admin' } : presented === USER ? { name: 'user', role: 'user' } : undefined);

let world: World;
let served: ServedGateway;
let held: Gate | undefined;
const clients: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  world = await startWorld({
    agent: { approvals: [{ tool: 'write_file', policy: 'ask' }] },
    answer: (request) => {
      const said = saidIn(request).at(-1) ?? '';
      if (said === 'write' && latestResults(request).length === 0) return callTool('write_file', { path: 'note.txt', content: 'hi' });
      if (said === 'page' && latestResults(request).length === 0) return callTool('client__page', {});
      if (said === 'page') return text(`Seen: ${JSON.stringify(latestResults(request))}`);
      if (said === 'hold' && held) return { ...text('held, and answered'), hold: held };
      return text(`You said: ${said}`);
    },
  });
  served = await serveGateway({ client: world.client, authenticate, port: 0, version: '1' });
});
afterAll(async () => {
  for (const client of clients) await client.close();
  await served.close();
  await world.close();
});

const LEGACY = '2025-11-25';
const MODERN = '2026-07-28';
const REVISIONS = [LEGACY, MODERN] as const;

/** What both clients have. */
type AnyClient = Pick<Client, 'callTool' | 'listTools' | 'readResource' | 'close'>;

async function connect(token: string, revision: string = LEGACY): Promise<AnyClient> {
  return revision === MODERN ? ((await connectModern(token)) as unknown as AnyClient) : connectLegacy(token);
}

async function connectLegacy(token: string): Promise<Client> {
  const [{ Client: McpClient }, { StreamableHTTPClientTransport }] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
  ]);
  const client = new McpClient({ name: 'test', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL(`${served.url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  await client.connect(transport as Transport);
  clients.push(client);
  return client;
}

async function connectModern(token: string, capabilities: object = {}): Promise<ModernClient> {
  const { Client: McpClient, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const client = new McpClient({ name: 'test', version: '1' }, { capabilities, versionNegotiation: { mode: { pin: MODERN } } });
  const headers = { authorization: `Bearer ${token}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${served.url}/mcp`), { requestInit: { headers } }));
  clients.push(client);
  return client;
}

/** As `perdura mcp` serves it: one server for all of a client's requests. */
async function overPipe(capabilities: object) {
  const [{ Client: TheClient }, { InMemoryTransport }] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/index.js'),
    import('@modelcontextprotocol/server'),
  ]);
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const seal = createSeal([randomUUID()], 'mcp-call');
  const pair = await createMcpServer({
    client: world.client,
    version: '1',
    era: 'legacy',
    principal: { name: 'stdio', role: 'admin' },
    seal,
  });
  await pair.connect(ours);
  const client = new TheClient({ name: 'test', version: '1' }, { capabilities });
  await client.connect(theirs as unknown as Transport);
  return { client, pair };
}

async function call(client: Pick<AnyClient, 'callTool'>, name: string, given: Record<string, unknown>): Promise<string> {
  const { content, isError } = await client.callTool({ name, arguments: given });
  const words = (content as { text: string }[]).map((part) => part.text).join('\n');
  if (isError === true) throw new Error(words);
  return words;
}

test.each(REVISIONS)('%s: a conversation is begun, talked to and read; the same message id is one message', async (revision) => {
  const client = await connect(ADMIN, revision);
  const { conversation } = JSON.parse(await call(client, 'start_conversation', { title: 'over HTTP' })) as { conversation: string };
  const message = { conversation, text: 'hello', message_id: 'm1' };
  const answers = await Promise.all([1, 2, 3].map(() => call(client, 'send_message', message)));
  for (const answer of answers) expect(JSON.parse(answer)).toMatchObject({ answer: 'You said: hello', turnId: 'turn_0001' });
  expect(JSON.parse(await call(client, 'get_status', { conversation }))).toMatchObject({ title: 'over HTTP', turns: 1 });
  const { contents } = await client.readResource({ uri: `conversation://${conversation}` });
  expect(contents).toMatchObject([{ text: expect.stringContaining('You said: hello') }]);
});

test.each(REVISIONS)('%s: a call that waits for a person is listed with its arguments, and allowed by its hash alone', async (revision) => {
  const client = await connect(ADMIN, revision);
  const id = world.id();
  await world.client.start(id);
  await world.client.message(id, 'write');
  const listed = await waitFor(
    async () => JSON.parse(await call(client, 'list_approvals', { conversation: id })) as { approvals: { callId: string; hash: string }[] },
    ({ approvals }) => approvals.length === 1,
  );
  const [{ callId, hash } = { callId: '', hash: '' }] = listed.approvals;
  expect(listed).toMatchObject({ approvals: [{ tool: 'write_file', arguments: { path: 'note.txt', content: 'hi' } }] });
  expect(JSON.parse(await call(client, 'list_approvals', {}))).toMatchObject({ approvals: [{ callId }] });
  const decided = { conversation: id, call_id: callId, decision: 'approve' };
  await expect(call(client, 'decide_approval', { ...decided, hash: '0'.repeat(hash.length) })).rejects.toThrow();
  expect(JSON.parse(await call(client, 'decide_approval', { ...decided, hash }))).toMatchObject({ callId, decision: 'approve' });
  expect(await world.client.turn(id, 'turn_0001')).toMatchObject({ text: 'You said: write', toolCalls: 1 });
});

test.each(REVISIONS)(
  '%s: a message whose turn waits for a person says so at once, with what is to be decided, and is gone on with',
  async (revision) => {
    const client = await connect(ADMIN, revision);
    const id = world.id();
    await world.client.start(id);
    const message = { conversation: id, text: 'write', message_id: 'm1', wait_seconds: 3_000 };
    const { structuredContent } = await client.callTool({ name: 'send_message', arguments: message });
    expect(structuredContent).toMatchObject({
      state: 'waiting',
      waits_for: expect.stringContaining(`${id} waits for a permission for write_file (turn_0001/c1)`),
      approvals: [{ kind: 'approval', tool: 'write_file', call_id: 'turn_0001/c1', arguments: { path: 'note.txt', content: 'hi' } }],
    });
    const [{ call_id, hash }] = (structuredContent as { approvals: [{ call_id: string; hash: string }] }).approvals;
    await call(client, 'decide_approval', { conversation: id, call_id, hash, decision: 'deny' });
    const last = JSON.parse(await call(client, 'send_message', message)) as object;
    expect(last).toMatchObject({ answer: 'You said: write', stopReason: 'end' });
    expect(last).not.toHaveProperty('approvals');
  },
);

test.each([
  ['approve', true],
  ['deny', false],
])('a client with elicitation asks its person, who decides: %s', async (decision, isDone) => {
  const { client, pair } = await overPipe({ elicitation: {} });
  const asked: string[] = [];
  const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params.message);
    return { action: 'accept', content: { decision } };
  });
  const id = world.id();
  await world.client.start(id);
  const answer = JSON.parse(await call(client, 'send_message', { conversation: id, text: 'write' })) as object;
  expect(answer).toMatchObject({ answer: 'You said: write', toolCalls: 1 });
  expect(asked).toEqual([expect.stringMatching(/^The agent wants to call write_file .*\n\{\n {2}"path": "note.txt"/)]);
  expect(JSON.stringify(await world.client.history(id)).includes('did not allow')).toBe(!isDone);
  await pair.close();
});

test.each([
  ['goes away', { action: 'cancel' }],
  // As clients do that accept for their person.
  ['accepts, and fills in nothing', { action: 'accept' }],
  ['accepts with an empty form', { action: 'accept', content: {} }],
] as const)('a person who %s has not decided: it waits, and the answer says so', async (_what, result) => {
  const { client, pair } = await overPipe({ elicitation: {} });
  const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  client.setRequestHandler(ElicitRequestSchema, () => result);
  const id = world.id();
  await world.client.start(id);
  expect(JSON.parse(await call(client, 'send_message', { conversation: id, text: 'write' }))).toMatchObject({ state: 'waiting' });
  await pair.close();
});

describe('a client of 2026-07-28 with elicitation', () => {
  const FORMS = { elicitation: { form: {} } };

  async function withPerson(result: object): Promise<{ client: AnyClient; asked: string[] }> {
    const client = await connectModern(ADMIN, FORMS);
    const asked: string[] = [];
    client.setRequestHandler('elicitation/create', ({ params }) => {
      asked.push(params.message);
      return result as ElicitResult;
    });
    return { client: client as unknown as AnyClient, asked };
  }

  test.each([
    ['approve', true],
    ['deny', false],
  ])('asks its person, who decides: %s', async (decision, isDone) => {
    const { client, asked } = await withPerson({ action: 'accept', content: { decision } });
    const answer = JSON.parse(await call(client, 'start_conversation', { message: 'write' })) as { conversation: string };
    expect(answer).toMatchObject({ answer: 'You said: write', toolCalls: 1, turnId: 'turn_0001' });
    expect(asked).toEqual([expect.stringMatching(/^The agent wants to call write_file .*\n\{\n {2}"path": "note.txt"/)]);
    expect(JSON.stringify(await world.client.history(answer.conversation)).includes('did not allow')).toBe(!isDone);
  });

  test.each([
    ['goes away', { action: 'cancel' }],
    ['accepts, and fills in nothing', { action: 'accept' }],
    ['accepts with an empty form', { action: 'accept', content: {} }],
    ['accepts with a word that is no decision', { action: 'accept', content: { decision: 'yes' } }],
  ])('has a person who %s, and nothing is decided', async (_what, result) => {
    const { client, asked } = await withPerson(result);
    const id = world.id();
    await world.client.start(id);
    expect(JSON.parse(await call(client, 'send_message', { conversation: id, text: 'write' }))).toMatchObject({ state: 'waiting' });
    expect(asked).toHaveLength(1);
    expect(await world.client.approvals(id)).toHaveLength(1);
  });

  test('brings back its own call, and no other', async () => {
    const id = world.id();
    await world.client.start(id);
    const params = { name: 'send_message', arguments: { conversation: id, text: 'write' } };
    const { result } = await ask(ADMIN, 'tools/call', params, FORMS);
    expect(result).toMatchObject({ resultType: 'input_required' });
    const { inputRequests, requestState } = result as { inputRequests: object; requestState: string };
    const [key = ''] = Object.keys(inputRequests);
    const again = { ...params, requestState, inputResponses: { [key]: { action: 'accept', content: { decision: 'approve' } } } };
    const changed = requestState.startsWith('A') ? `B${requestState.slice(1)}` : `A${requestState.slice(1)}`;
    expect(await ask(ADMIN, 'tools/call', { ...again, requestState: changed }, FORMS)).toMatchObject({ error: { code: -32_602 } });
    expect(await ask(USER, 'tools/call', again, FORMS)).toMatchObject({ error: { code: -32_602 } });
    expect(await world.client.approvals(id)).toHaveLength(1);
    // An answer to something else is asked for again.
    const other = { ...again, inputResponses: { [`${key}0`]: { action: 'accept', content: { decision: 'approve' } } } };
    expect(await ask(ADMIN, 'tools/call', other, FORMS)).toMatchObject({ result: { inputRequests: { [key]: {} } } });
    const answered = await ask(ADMIN, 'tools/call', again, FORMS);
    expect(answered).toMatchObject({ result: { structuredContent: { answer: 'You said: write', turnId: 'turn_0001' } } });
    expect((await world.client.status(id)).turns).toBe(1);
  });
});

interface Answer {
  readonly result?: object;
  readonly error?: object;
}

/** A request of 2026-07-28, as it is on the wire. */
async function ask(token: string, method: string, params: object, capabilities: object = {}): Promise<Answer> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
  const name = (params as { name?: string }).name;
  const response = await fetch(`${served.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
      ...(name !== undefined && { 'mcp-name': name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  });
  const body = await response.text();
  return JSON.parse(/^data: (.*)$/m.exec(body)?.[1] ?? body) as Answer;
}

test.each(REVISIONS)('%s: each tool has a schema of its answer, and its answer is of it', async (revision) => {
  const client = await connect(ADMIN, revision);
  const { tools } = await client.listTools();
  for (const { name, outputSchema } of tools) expect({ name, type: outputSchema?.type }).toEqual({ name, type: 'object' });
  const { conversation } = JSON.parse(await call(client, 'start_conversation', { message: 'hello' })) as { conversation: string };
  // The library's client checks what is structured against the schema that it has listed.
  for (const [name, given] of [
    ['get_status', { conversation }],
    ['get_history', { conversation }],
    ['list_conversations', {}],
    ['list_approvals', {}],
    ['interrupt_conversation', { conversation }],
    ['read_memory', { scope: 'default' }],
    ['search_memory', { scope: 'default', question: 'hello' }],
  ] as const) {
    expect((await client.callTool({ name, arguments: given })).structuredContent).toBeDefined();
  }
});

const NOWHERE = ['conversation://nobody', 'conversation://../x', 'memory://default/OTHER.md', 'file:///etc/passwd', 'nonsense'];

test.each([
  [LEGACY, -32_002],
  [MODERN, -32_602],
])('%s: a resource that there is not has the code of the protocol', async (revision, code) => {
  const client = await connect(ADMIN, revision);
  for (const uri of NOWHERE) await expect(client.readResource({ uri })).rejects.toMatchObject({ code, data: { uri } });
});

test('memory is read and searched by an operator, and not offered to others', async () => {
  const client = await connect(ADMIN);
  const id = world.id();
  await world.client.start(id, { scope: 'harbour' });
  await world.client.send(id, 'The ferry leaves at noon.');
  const found = await call(client, 'search_memory', { scope: 'harbour', question: 'When do ferries leave?' });
  expect(found).toContain('> The ferry leaves at noon.');
  const [, at = ''] = /\[(\S+)\]/.exec(found) ?? [];
  expect(await call(client, 'open_memory', { scope: 'harbour', at })).toContain('> You said: The ferry leaves at noon.');
  expect(await call(client, 'search_memory', { scope: 'default', question: 'When do ferries leave?' })).toContain('[no message fits');
  await expect(call(client, 'search_memory', { scope: 'other.harbour', question: 'ferry' })).rejects.toThrow();
  const { contents } = await client.readResource({ uri: 'memory://default/MEMORY.md' });
  expect(contents).toMatchObject([{ mimeType: 'text/markdown', text: await call(client, 'read_memory', { scope: 'default' }) }]);
  const user = await connect(USER);
  const names = (await user.listTools()).tools.map(({ name }) => name);
  expect(names).toContain('send_message');
  expect(names.filter((name) => name.endsWith('_memory'))).toEqual([]);
  await expect(call(user, 'list_approvals', {})).rejects.toThrow('conversation');
  await expect(user.readResource({ uri: 'memory://default/MEMORY.md' })).rejects.toThrow();
});

test.each(REVISIONS)('%s: a client that leaves in the middle of a call leaves the turn running', async (revision) => {
  held = gate();
  const client = await connect(ADMIN, revision);
  const id = world.id();
  await world.client.start(id);
  const leaving = new AbortController();
  const params = { name: 'send_message', arguments: { conversation: id, text: 'hold', message_id: 'm1' } };
  const options = { signal: leaving.signal };
  const sent =
    revision === MODERN ? (client as unknown as ModernClient).callTool(params, options) : client.callTool(params, undefined, options);
  await held.reached;
  leaving.abort();
  await expect(sent).rejects.toThrow();
  await client.close();
  held.release();
  expect(await world.client.turn(id, 'turn_0001')).toMatchObject({ text: 'held, and answered', stopReason: 'end' });
});

describe('what is refused', () => {
  const post = (body: string, headers: Record<string, string> = {}, method = 'POST'): Promise<Response> =>
    fetch(`${served.url}/mcp`, {
      method,
      headers: {
        authorization: `Bearer ${ADMIN}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      ...(method === 'POST' && { body }),
    });
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

  test.each([
    ['a wrong token', 401, () => post(JSON.stringify(list), { authorization: 'Bearer wrong' })],
    ['a page of another site', 403, () => post(JSON.stringify(list), { origin: 'http://localhost.evil.com' })],
    ['broken JSON', 400, () => post('{"jsonrpc":')],
    ['what is no message', 400, () => post('{"hello":1}')],
    ['JSON that is very deep', 400, () => post('['.repeat(200_000) + ']'.repeat(200_000))],
    ['a long batch', 400, () => post(JSON.stringify(Array.from({ length: 100 }, () => list)))],
    ['a body of 2 MB', 413, () => post(JSON.stringify({ ...list, params: { x: 'x'.repeat(2_000_000) } }))],
    ['a GET', 405, () => post('', {}, 'GET')],
    ['a DELETE', 405, () => post('', {}, 'DELETE')],
    ['a client that takes no events', 406, () => post(JSON.stringify(list), { accept: 'text/html' })],
  ])('%s', async (_what, status, ask) => {
    const response = await ask();
    const body = await response.text();
    expect({ status: response.status, body }).toMatchObject({ status });
    expect(body).not.toMatch(/\n\s+at |node_modules|\.ts:/);
  });

  test('arguments that are wrong are the answer of the tool', async () => {
    const client = await connect(ADMIN);
    await expect(call(client, 'send_message', { conversation: '../../etc', text: 'x' })).rejects.toThrow('conversation');
    await expect(call(client, 'get_status', { conversation: 'nobody' })).rejects.toThrow('nobody');
  });
});

test('a conversation that waits for a tool of another client says so, and what it answers may come from here', async () => {
  const client = await connect(ADMIN);
  const id = world.id();
  await world.client.start(id);
  await world.client.enqueue(id, { id: 'm1', text: 'page', tools: [{ name: 'page', inputSchema: { type: 'object' } }] });
  const { approvals } = await waitFor(
    async () => JSON.parse(await call(client, 'list_approvals', { conversation: id })) as { approvals: { callId: string; hash: string }[] },
    (listed) => listed.approvals.length === 1,
  );
  const words = `${id} waits for what page (turn_0001/c1) answers`;
  await expect(call(client, 'send_message', { conversation: id, text: 'hello' })).rejects.toThrow(words);
  expect((await world.client.status(id)).queued).toBe(0);
  const again = { conversation: id, text: 'page', message_id: 'm1', wait_seconds: 1 };
  expect(JSON.parse(await call(client, 'send_message', again))).toMatchObject({
    state: 'running',
    waits_for: expect.stringContaining(words),
  });
  const [{ callId, hash } = { callId: '', hash: '' }] = approvals;
  await call(client, 'decide_approval', { conversation: id, call_id: callId, hash, decision: 'approve', output: { at: 1 } });
  expect(JSON.parse(await call(client, 'send_message', { ...again, wait_seconds: 30 }))).toMatchObject({
    answer: expect.stringMatching(/^Seen: .*at/),
  });
});
