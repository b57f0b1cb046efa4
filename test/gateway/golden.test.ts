/**
 * A turn with a tool of the client, as each protocol puts it on the wire: what was recorded once (golden/NAME.txt) is what comes. Whoever
 * changes a frame sees it here first. `PERDURA_GOLDEN=write` records anew, and the difference is to be read.
 * Ids become numbers in the order in which they come; times and counts are left out.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAcpAgent } from '../../src/gateway/acp/agent.js';
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { createConversations } from '../../src/gateway/core/conversations.js';
import type { JsonValue } from '../../src/records/message.js';
import { latestResults, resultText } from '../support/echo-model.js';
import { callTools, text } from '../support/provider-apis/reply.js';
import { TOKEN } from '../support/event-reader.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

let world: World;
let app: GatewayApp;

beforeAll(async () => {
  world = await startWorld({
    tools: [],
    answer: (request) => {
      const [result] = latestResults(request);
      if (result) return text(`It is ${resultText(result)}.`);
      return { text: 'I look.', ...callTools({ name: 'client__weather', input: { city: 'Oslo' } }) };
    },
  });
  app = createGateway({ client: world.client, authenticate: oneToken(TOKEN), agents: () => Promise.resolve(['default']) });
});
afterAll(() => world.close());

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const ASKED = 'What is the weather?';
const RESULT = 'raining';

type Data = { readonly [name: string]: JsonValue };
interface Frame {
  readonly event: string;
  readonly data: Data;
}

async function frames(path: string, body: object, headers: Record<string, string> = {}): Promise<Frame[]> {
  const response = await app.request(`http://localhost${path}`, {
    method: 'POST',
    headers: { host: 'localhost', authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const sent = await response.text();
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${sent}`);
  if (response.headers.get('content-type')?.includes('json')) return [{ event: '', data: JSON.parse(sent) as Data }];
  return sent.split('\n\n').flatMap((frame): Frame[] => {
    const field = (name: string): string | undefined =>
      frame
        .split('\n')
        .find((line) => line.startsWith(`${name}: `))
        ?.slice(name.length + 2);
    const data = field('data');
    if (data === undefined || data === '[DONE]') return [];
    return [{ event: field('event') ?? '', data: JSON.parse(data) as Data }];
  });
}

const VOLATILE =
  /^(id|messageId|message_id|threadId|thread_id|runId|contextId|taskId|conversation|item_id|call_id|previous_response_id|artifactId|attempt)$/;
const COUNTED =
  /^(created|created_at|completed_at|until|expiresAt|timestamp|ts|inputTokens|outputTokens|cachedTokens|cachedInputTokens|totalTokens|costUsd|.*_tokens|askedIn|hash|cursor|after|obfuscation)$/;

function createNormalize(): (value: JsonValue, name?: string) => JsonValue {
  const ids = new Map<string, string>();
  const idOf = (id: string): string => {
    const known = ids.get(id) ?? `#${ids.size + 1}`;
    ids.set(id, known);
    return known;
  };
  const normalize = (value: JsonValue, name = ''): JsonValue => {
    if (Array.isArray(value)) return value.map((one) => normalize(one as JsonValue, name));
    if (typeof value === 'object' && value !== null) {
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, normalize(one as JsonValue, key)]));
    }
    if (value === null || value === '') return value;
    if (COUNTED.test(name)) return '…';
    if (typeof value !== 'string') return value;
    if (/^turn_\d{4}/.test(value)) return value;
    if (VOLATILE.test(name) || /^(call|toolu|resp|msg|chatcmpl|fc|item)[_-]/.test(value)) return idOf(value);
    return value
      .replace(/c-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, idOf)
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
      .replace(/(Tokens": )\d+/g, '$1…');
  };
  return normalize;
}

type Normalize = ReturnType<typeof createNormalize>;

/** One line a frame; an event that its data names too is not said twice. */
function lines(all: readonly Frame[], normalize: Normalize): string[] {
  return all.map(({ event, data }) => {
    const shown = JSON.stringify(normalize(data));
    return event === '' || event === data['type'] || event === data['kind'] ? shown : `${event} ${shown}`;
  });
}

type Protocol = (id: string) => AsyncGenerator<Frame[]>;
const first = { role: 'user', content: ASKED };
const idIn = (all: readonly Frame[], pattern: RegExp): string => pattern.exec(JSON.stringify(all))?.[1] ?? '';

const PROTOCOLS: Readonly<Record<string, Protocol>> = {
  async *native(id) {
    const tools = [{ name: 'weather', inputSchema: SCHEMA }];
    const sending = frames(
      `/v1/conversations/${id}/messages`,
      { id: 'm1', text: ASKED, tools, start: {} },
      { accept: 'text/event-stream' },
    );
    await waitForCall(id);
    await world.client.decide(id, { callId: 'turn_0001/c1', decision: 'approve', output: RESULT });
    yield await sending;
  },
  async *'chat-completions'() {
    const tools = [{ type: 'function', function: { name: 'weather', parameters: SCHEMA } }];
    const of = (messages: object[]): Promise<Frame[]> =>
      frames('/v1/chat/completions', { model: 'default', stream: true, tools, messages });
    const asked = await of([first]);
    yield asked;
    const id = idIn(asked, /:"(call_[\w-]+)"/);
    const made = { id, type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } };
    const call = { role: 'assistant', content: 'I look.', tool_calls: [made] };
    yield await of([first, call, { role: 'tool', tool_call_id: id, content: RESULT }]);
  },
  async *responses() {
    const base = { model: 'default', stream: true, tools: [{ type: 'function', name: 'weather', parameters: SCHEMA }] };
    const asked = await frames('/v1/responses', { ...base, input: ASKED });
    yield asked;
    const [call_id, previous_response_id] = [idIn(asked, /:"(call_[\w-]+)"/), idIn(asked, /"id":"(resp_[^"]+)"/)];
    yield await frames('/v1/responses', {
      ...base,
      previous_response_id,
      input: [{ type: 'function_call_output', call_id, output: RESULT }],
    });
  },
  async *messages() {
    const base = { model: 'default', max_tokens: 100, stream: true, tools: [{ name: 'weather', input_schema: SCHEMA }] };
    const asked = await frames('/v1/messages', { ...base, messages: [first] });
    yield asked;
    const id = idIn(asked, /"(toolu_[\w-]+)"/);
    const use = { type: 'tool_use', id, name: 'weather', input: { city: 'Oslo' } };
    const call = { role: 'assistant', content: [{ type: 'text', text: 'I look.' }, use] };
    const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: RESULT }] };
    yield await frames('/v1/messages', { ...base, messages: [first, call, result] });
  },
  async *'ai-sdk'(id) {
    const user = { id: 'm1', role: 'user', parts: [{ type: 'text', text: ASKED }] };
    const tools = { weather: { inputSchema: SCHEMA } };
    const asked = await frames('/api/chat', { id, messages: [user], tools });
    yield asked;
    const part = { type: 'tool-weather', toolCallId: 'turn_0001/c1', state: 'output-available', input: { city: 'Oslo' }, output: RESULT };
    yield await frames('/api/chat', { id, messages: [user, { id: 'turn_0001', role: 'assistant', parts: [part] }], tools });
  },
  async *'ag-ui'(threadId) {
    const user = { id: 'm1', ...first };
    const tools = [{ name: 'weather', description: '', parameters: SCHEMA }];
    const base = { threadId, tools, context: [], state: {}, forwardedProps: {} };
    const asked = await frames('/agui', { ...base, runId: 'r1', messages: [user] });
    yield asked;
    const id = 'turn_0001/c1';
    const call = {
      id: 'turn_0001/p1',
      role: 'assistant',
      toolCalls: [{ id, type: 'function', function: { name: 'weather', arguments: '{}' } }],
    };
    yield await frames('/agui', {
      ...base,
      runId: 'r2',
      messages: [user, call, { id: 'm2', role: 'tool', toolCallId: id, content: RESULT }],
    });
  },
  /** It brings no tools: the turn is one that another client has begun. */
  async *a2a(contextId) {
    await beginElsewhere(contextId);
    const send = (method: string, message: object): Promise<Frame[]> =>
      frames('/a2a', { jsonrpc: '2.0', id: 1, method, params: { message: { role: 'ROLE_USER', ...message } } }, { 'A2A-Version': '1.0' });
    const asked = await send('SendStreamingMessage', { messageId: 'm1', contextId, parts: [{ text: ASKED }] });
    yield asked;
    const taskId = idIn(asked, /"task":\{"id":"([^"]+)"/);
    // A stream has what the turn does meanwhile or has not, as it comes.
    yield await send('SendMessage', { messageId: 'm2', taskId, parts: [{ data: { callId: 'turn_0001/c1', output: RESULT } }] });
  },
  /** As there. */
  async *mcp(conversation) {
    await beginElsewhere(conversation);
    const call = (name: string, given: object): Promise<Frame[]> =>
      frames(
        '/mcp',
        { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: { conversation, ...given } } },
        { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' },
      );
    yield await call('send_message', { text: ASKED, message_id: 'm1', wait_seconds: 1 });
    const [approval] = await world.client.approvals(conversation);
    const decision = { call_id: 'turn_0001/c1', hash: approval?.hash, decision: 'approve', output: RESULT };
    yield await call('decide_approval', decision);
    yield await call('send_message', { text: ASKED, message_id: 'm1' });
  },
};

/** What the editor gets, one line a notification; a prompt by itself, since it brings no tools: the turn is one that another client has begun. */
test('acp', async () => {
  const id = world.id();
  await world.client.start(id);
  const { client, methods, ndJsonStream, PROTOCOL_VERSION } = await import('@agentclientprotocol/sdk');
  const [up, down] = [new TransformStream<Uint8Array, Uint8Array>(), new TransformStream<Uint8Array, Uint8Array>()];
  const agent = await createAcpAgent({ conversations: createConversations(world.client), version: '1' });
  const served = agent.connect(ndJsonStream(down.writable, up.readable));
  const got: Frame[] = [];
  const editor = client({ name: 'test' })
    .onNotification(
      methods.client.session.update,
      ({ params }) => void got.push({ event: 'session/update', data: params as unknown as Data }),
    )
    .connect(ndJsonStream(up.writable, down.readable));
  const ask = async (method: 'initialize' | 'session/load' | 'session/prompt', params: object): Promise<void> => {
    const result = await editor.agent.request(method, params as never);
    got.push({ event: method, data: result as unknown as Data });
  };
  try {
    await ask('initialize', { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
    await beginElsewhere(id);
    const prompt = [{ type: 'text', text: ASKED }];
    await ask('session/prompt', { sessionId: id, prompt });
    await world.client.decide(id, { callId: 'turn_0001/c1', decision: 'approve', output: RESULT });
    await waitFor(
      () => world.client.turn(id, 'turn_0001').catch(() => undefined),
      (ended) => ended !== undefined,
    );
    await ask('session/load', { sessionId: id, cwd: '/', mcpServers: [] });
    await ask('session/prompt', { sessionId: id, prompt: [{ type: 'text', text: 'Thank you.' }] });
  } finally {
    editor.close();
    served.close();
  }
  compare('acp', `${lines(got, createNormalize()).join('\n')}\n`);
});

async function waitForCall(id: string): Promise<void> {
  await waitFor(
    () => world.client.approvals(id).catch(() => []),
    (waiting) => waiting.length === 1,
  );
}

async function beginElsewhere(id: string): Promise<void> {
  await world.client.start(id);
  await world.client.enqueue(id, { id: 'm1', text: ASKED, tools: [{ name: 'weather', inputSchema: SCHEMA }] });
  await waitForCall(id);
}

test.each(Object.keys(PROTOCOLS))('%s', async (name) => {
  const normalize = createNormalize();
  const sent: string[] = [];
  for await (const all of PROTOCOLS[name]?.(world.id()) ?? []) sent.push(...(sent.length > 0 ? [''] : []), ...lines(all, normalize));
  compare(name, `${sent.join('\n')}\n`);
});

function compare(name: string, sent: string): void {
  const file = join(__dirname, 'golden', `${name}.txt`);
  if (process.env['PERDURA_GOLDEN'] === 'write') writeFileSync(file, sent);
  expect(sent).toBe(readFileSync(file, 'utf8'));
}
