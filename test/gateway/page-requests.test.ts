/** What AG-UI's client and the AI SDK's transport, both unchanged, send beside words, as it reaches the model: choices, and files of results. */
import { HttpAgent, type RunAgentParameters } from '@ag-ui/client';
import type * as Ai from 'ai';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../src/gateway/index.js';
import { blocksOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { callTools, text, type Reply } from '../support/provider-apis/reply.js';
import { startWorld, type World } from '../support/world.js';

const TOKEN = 'a-token-that-only-tests-have';
const headers = { authorization: `Bearer ${TOKEN}` };
let world: World;
let served: ServedGateway;
let requests: ApiRequest[] = [];
/** What the model answers next, and then `done`. */
let replies: Reply[] = [];

beforeAll(async () => {
  world = await startWorld({
    engine: 'memory',
    answer: (request) => {
      requests.push(request);
      return replies.shift() ?? text('done');
    },
  });
  served = await serveGateway({ client: world.client, authenticate: oneToken(TOKEN), port: 0 });
});
afterAll(async () => {
  await served.close();
  await world.close();
});
beforeEach(() => {
  requests = [];
  replies = [{ ...callTools({ name: 'client__weather', input: { city: 'Oslo' } }, { name: 'client__weather', input: { city: 'Rome' } }) }];
});

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
/** A 1x1 PNG. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const chosen = { toolChoice: 'required', parallelToolCalls: false, stop: { at: ['STOP'], tokens: 77 } };
const forRest = { toolChoice: 'none', output: SCHEMA };

/** One call of two, as the model was told; then a picture, no tool, and JSON in place of what did not fit. */
function expectSeen(): void {
  expect(requests[0]).toMatchObject({
    tool_choice: { type: 'any', disable_parallel_tool_use: true },
    stop_sequences: ['STOP'],
    max_tokens: 77,
  });
  const seen = JSON.stringify(requests[1]?.messages);
  expect(seen).toContain('It rains.\\n[image/png: in the message after the results]');
  expect(seen).toContain('[What the tool weather has answered: image/png]');
  const pictures = (requests[1]?.messages ?? []).flatMap(({ content }) => blocksOf(content)).filter(({ type }) => type === 'image');
  expect(pictures).toHaveLength(1);
  expect((requests[1]?.tools ?? []).filter(({ name }) => name.startsWith('client__'))).toEqual([]);
  expect(requests).toHaveLength(3);
}

test('AG-UI', async () => {
  const agent = new HttpAgent({ url: `${served.url}/agui`, threadId: world.id(), headers });
  const run = (perdura: object): Promise<unknown> =>
    agent.runAgent({
      tools: [{ name: 'weather', description: 'Weather.', parameters: SCHEMA }],
      forwardedProps: { perdura },
    } as RunAgentParameters);
  agent.addMessage({ id: 'm1', role: 'user', content: 'How is it?' });
  await run(chosen);
  const calls = agent.messages.flatMap((one) => (one.role === 'assistant' ? (one.toolCalls ?? []) : []));
  expect(calls).toHaveLength(1);
  const content = [
    { type: 'text', text: 'It rains.' },
    { type: 'image', source: { type: 'data', value: PNG, mimeType: 'image/png' } },
  ];
  agent.addMessage({ id: 'r1', role: 'tool', toolCallId: calls[0]?.id ?? '', content: content as never });
  replies = [text('not JSON'), text('{"city":"Oslo"}')];
  await run(forRest);
  expectSeen();
  expect(JSON.stringify(agent.messages.at(-1))).toContain('Oslo');
});

test.each([
  [
    'as the SDK has it',
    {
      type: 'content',
      value: [
        { type: 'text', text: 'It rains.' },
        { type: 'media', data: PNG, mediaType: 'image/png' },
      ],
    },
  ],
  [
    'as MCP has it',
    {
      content: [
        { type: 'text', text: 'It rains.' },
        { type: 'image', data: PNG, mimeType: 'image/png' },
      ],
    },
  ],
])('the AI SDK, with a picture %s', async (_, output) => {
  const { DefaultChatTransport, readUIMessageStream } = require('ai') as typeof Ai;
  const chatId = world.id();
  const transport = new DefaultChatTransport({ api: `${served.url}/api/chat`, headers });
  const messages: Ai.UIMessage[] = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'How is it?' }] }];
  const send = async (more: object): Promise<Ai.UIMessage> => {
    const body = { tools: { weather: { description: 'Weather.', inputSchema: SCHEMA } }, ...more };
    const sent = { trigger: 'submit-message', chatId, messageId: undefined, messages, abortSignal: undefined, body } as const;
    let latest: Ai.UIMessage | undefined;
    for await (const message of readUIMessageStream({ stream: await transport.sendMessages(sent) })) latest = message;
    if (!latest) throw new Error('no message');
    return latest;
  };
  const first = await send(chosen);
  const calls = first.parts.filter(({ type }) => type === 'tool-weather');
  expect(calls).toMatchObject([{ state: 'input-available', input: { city: 'Oslo' } }]);
  const parts = first.parts.map((part) => (part.type === 'tool-weather' ? { ...part, state: 'output-available', output } : part));
  messages.push({ ...first, parts: parts as never });
  replies = [text('not JSON'), text('{"city":"Oslo"}')];
  const last = await send(forRest);
  expectSeen();
  expect(JSON.stringify(last.parts)).toContain('Oslo');
});

test.each([
  ['a tool that is not there', { toolChoice: { type: 'tool', toolName: 'nothing' } }],
  ['no tool at all', { toolChoice: {} }],
])('a choice of %s is refused in words', async (_, choice) => {
  const post = (path: string, body: object): Promise<Response> =>
    fetch(served.url + path, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) });
  const [threadId, id] = [world.id(), world.id()];
  const props = { forwardedProps: { perdura: choice }, tools: [], context: [], state: {} };
  const refused = [
    await post('/agui', { threadId, runId: 'r', messages: [{ id: 'm', role: 'user', content: 'x' }], ...props }),
    await post('/api/chat', { id, messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'x' }] }], ...choice }),
  ];
  for (const response of refused) expect([response.status, await response.text()]).toEqual([400, expect.stringMatching(/names no tool/)]);
  expect(requests).toEqual([]);
});
