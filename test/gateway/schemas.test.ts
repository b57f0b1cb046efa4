/** A schema that cannot be used costs no call of a model, whichever way it comes; one that can is right end to end. */
import { z } from 'zod';
import { createGateway } from '../../src/gateway/app.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import type { JsonObject } from '../../src/records/message.js';
import { messageSignal, WORKFLOW_TYPE } from '../../src/workflows/messages.js';
import { text } from '../support/provider-apis/reply.js';
import { rpc, said, user } from '../support/route-requests.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const TOKEN = 'a-token-that-only-tests-have';
const ANSWER = JSON.stringify({ name: 'Ada', tags: ['a', 1] });
let world: World;
let app: GatewayApp;
let calls = 0;

beforeAll(async () => {
  world = await startWorld({ answer: () => ((calls += 1), text(ANSWER)), agent: { memory: { enabled: false } } });
  app = createGateway({ client: world.client, authenticate: oneToken(TOKEN), agents: () => Promise.resolve(['default']) });
});
afterAll(() => world.close());
beforeEach(() => (calls = 0));

async function post(
  path: string,
  body: object,
  more: Record<string, string> = {},
): Promise<{ readonly status: number; readonly body: string }> {
  const headers = { host: 'localhost', authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...more };
  const response = await app.request(`http://localhost${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: response.status, body: await response.text() };
}

const bad: JsonObject = { type: 'object', properties: { when: { $ref: 'https://127.0.0.1:1/when.json' } } };
const PLACE = 'at /properties/when/$ref it refers to https://127.0.0.1:1/when.json';
const unknown: JsonObject = { $schema: 'https://example.com/mine', type: 'object' };

type Ask = (schema: JsonObject) => Promise<{ readonly status: number; readonly body: string }>;
const format = (schema: JsonObject): object => ({ name: 'answer', schema });

const OF_ANSWERS: readonly (readonly [string, Ask])[] = [
  ['the native API', (output) => post(`/v1/conversations/${world.id()}/messages`, { text: 'hi', output, start: {} })],
  [
    'Chat Completions',
    (schema) =>
      post('/v1/chat/completions', {
        model: 'default',
        messages: [user],
        response_format: { type: 'json_schema', json_schema: format(schema) },
      }),
  ],
  [
    'Responses',
    (schema) => post('/v1/responses', { model: 'default', input: 'hi', text: { format: { type: 'json_schema', ...format(schema) } } }),
  ],
  [
    'A2A',
    async (output) => {
      const {
        method: _,
        path,
        body = {},
        headers = {},
      } = rpc('/a2a', 'SendMessage', { message: { ...said, messageId: world.id(), metadata: { output } } });
      const answered = await post(path, body as object, headers as Record<string, string>);
      // JSON-RPC refuses in its body.
      return { ...answered, status: answered.body.includes('"code":-32602') ? 400 : answered.status };
    },
  ],
];
const OF_TOOLS: readonly (readonly [string, Ask])[] = [
  [
    'the native API',
    (inputSchema) => post(`/v1/conversations/${world.id()}/messages`, { text: 'hi', tools: [{ name: 'look', inputSchema }], start: {} }),
  ],
  [
    'Chat Completions',
    (parameters) =>
      post('/v1/chat/completions', {
        model: 'default',
        messages: [user],
        tools: [{ type: 'function', function: { name: 'look', parameters } }],
      }),
  ],
  [
    'Responses',
    (parameters) => post('/v1/responses', { model: 'default', input: 'hi', tools: [{ type: 'function', name: 'look', parameters }] }),
  ],
  [
    'Messages',
    (input_schema) => post('/v1/messages', { model: 'default', max_tokens: 9, messages: [user], tools: [{ name: 'look', input_schema }] }),
  ],
  [
    'AG-UI',
    (parameters) =>
      post('/agui', {
        ...{ threadId: world.id(), runId: 'r', state: {}, context: [], forwardedProps: {} },
        messages: [{ id: 'm', ...user }],
        tools: [{ name: 'look', description: 'Looks.', parameters }],
      }),
  ],
  [
    'the AI SDK',
    (inputSchema) =>
      post('/api/chat', {
        id: world.id(),
        messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'x' }] }],
        tools: { look: { inputSchema } },
      }),
  ],
];

describe.each([
  ['an answer', OF_ANSWERS],
  ['a tool', OF_TOOLS],
] as const)('a schema of %s that cannot be used is refused with its place', (_what, protocols) => {
  test.each(protocols)('by %s', async (_protocol, ask) => {
    const [first, second] = [await ask(bad), await ask(unknown)];
    expect([first.body, second.body]).toEqual([expect.stringContaining(PLACE), expect.stringContaining('https://example.com/mine')]);
    expect([first.status, second.status]).toEqual([400, 400]);
    expect(calls).toBe(0);
  });
});

test('the client refuses it before it sends, however it sends', async () => {
  const { client } = world;
  const message = { text: 'hi', output: bad };
  const id = world.id();
  for (const send of [
    () => client.send(id, message, { start: {} }),
    () => client.message(id, message),
    () => client.enqueue(id, message),
  ]) {
    await expect(send()).rejects.toMatchObject({ kind: 'invalid', message: expect.stringContaining(PLACE) });
  }
  await expect(client.describe(id)).rejects.toMatchObject({ kind: 'not-found' });
});

test.each([
  ['its answer', { output: bad }],
  ['its tool', { tools: [{ name: 'look', inputSchema: bad }] }],
])('a signal that no client has looked at fails its turn for the schema of %s before a model is called', async (_what, beside) => {
  const id = world.id();
  await world.temporal.workflow.signalWithStart(WORKFLOW_TYPE, {
    ...{ workflowId: id, taskQueue: world.taskQueue, args: [{}] },
    ...{ signal: messageSignal, signalArgs: [{ id: 'm1', text: 'hi', ...beside }] },
  });
  await waitFor(
    () => world.client.status(id),
    ({ turns }) => turns === 1,
  );
  const result = await world.client.turn(id, 'turn_0001');
  expect(result).toMatchObject({ stopReason: 'failed', error: { type: 'output-schema', message: expect.stringContaining(PLACE) } });
  expect(calls).toBe(0);
  expect(await world.client.send(id, 'and now?')).toMatchObject({ stopReason: 'end' });
});

test('what zod writes is right at the first answer: one call, and its data', async () => {
  const answer = z.strictObject({
    name: z.string(),
    tags: z.tuple([z.string(), z.number()]),
    note: z.string().optional(),
    mail: z.email().optional(),
  });
  const output = z.toJSONSchema(answer) as JsonObject;
  expect(output['$schema']).toBe('https://json-schema.org/draft/2020-12/schema');
  const { status, body } = await post(`/v1/conversations/${world.id()}/messages`, { text: 'who?', output, start: {} });
  expect([status, JSON.parse(body)]).toMatchObject([200, { stopReason: 'end', payload: { name: 'Ada', tags: ['a', 1] } }]);
  expect(calls).toBe(1);
});
