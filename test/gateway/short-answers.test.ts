/**
 * A turn that ends with an error keeps what the model said, in every protocol, live and not, and after it has ended; and each protocol says
 * in its words why there is less than an answer.
 */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { saidIn } from '../support/echo-model.js';
import { TOKEN } from '../support/event-reader.js';
import { begunSince, listedIds } from '../support/listed-ids.js';
import { fault, refusal } from '../support/provider-apis/faults.js';
import { text, type Reply } from '../support/provider-apis/reply.js';
import { fetchInto } from '../support/into-app.js';
import { startWorld, type World } from '../support/world.js';

const WORDS = { cut: 'Half of what I', refuse: 'That I will not say.', fail: 'I was about to say' } as const;
type Ending = keyof typeof WORDS;
const ENDINGS = Object.keys(WORDS) as Ending[];

let world: World;
let app: GatewayApp;
let openai: OpenAI;
let anthropic: Anthropic;

function answer(said: string): Reply {
  if (said.startsWith('cut')) return { ...text(WORDS.cut), stopReason: 'max_tokens' };
  if (said.startsWith('refuse')) return refusal(null, WORDS.refuse);
  const broken = { kind: 'error-event', at: 'before-block-stop', type: 'permission_error', message: 'not for this account' } as const;
  if (said.startsWith('fail')) return fault(broken, text(WORDS.fail));
  return text(`You said: ${said}`);
}

beforeAll(async () => {
  world = await startWorld({ engine: 'memory', answer: (request) => answer(saidIn(request).at(-1) ?? '') });
  app = createGateway({ client: world.client, authenticate: oneToken(TOKEN), agents: () => Promise.resolve(['default']) });
  const fetch = fetchInto(app);
  openai = new OpenAI({ apiKey: TOKEN, baseURL: 'http://localhost/v1', maxRetries: 0, fetch });
  anthropic = new Anthropic({ authToken: TOKEN, apiKey: null, baseURL: 'http://localhost', maxRetries: 0, fetch });
});
afterAll(() => world.close());

const model = 'default';
const user = (content: string) => ({ role: 'user' as const, content });

async function post(path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return app.request(`http://localhost${path}`, {
    method: 'POST',
    headers: { host: 'localhost', authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

/** The data of its server-sent events. */
async function frames<T>(path: string, body: object, headers: Record<string, string> = {}): Promise<T[]> {
  const sent = await (await post(path, body, { accept: 'text/event-stream', ...headers })).text();
  return sent.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice('data: '.length)) as T] : []));
}

/** In an error of either protocol: what was said before it. */
const failed = (): object =>
  expect.objectContaining({
    perdura: { conversation: expect.any(String) as string, turn: 'turn_0001', text: WORDS.fail },
  }) as object;

describe('chat completions', () => {
  const FINISH = { cut: 'length', refuse: 'content_filter' } as const;

  test.each(['cut', 'refuse'] as const)('%s: the text and the reason, streamed and not', async (ending) => {
    const whole = await openai.chat.completions.create({ model, messages: [user(`${ending} one`)] });
    expect(whole.choices[0]).toMatchObject({ finish_reason: FINISH[ending], message: { content: WORDS[ending] } });
    let shown = '';
    let finish: string | null = null;
    for await (const { choices } of await openai.chat.completions.create({ model, stream: true, messages: [user(`${ending} two`)] })) {
      shown += choices[0]?.delta.content ?? '';
      finish = choices[0]?.finish_reason ?? finish;
    }
    expect([shown, finish]).toEqual([WORDS[ending], FINISH[ending]]);
  });

  test('a failure after words is an error after them', async () => {
    const stream = await openai.chat.completions.create({ model, stream: true, messages: [user('fail three')] });
    let shown = '';
    const read = async (): Promise<void> => {
      for await (const { choices } of stream) shown += choices[0]?.delta.content ?? '';
    };
    await expect(read()).rejects.toMatchObject({ message: expect.stringContaining('not for this account') as string, error: failed() });
    expect(shown).toBe(WORDS.fail);
  });

  test('a failure that was not streamed is an error with those words, and says where to go on', async () => {
    const asked = [user('fail seven')];
    const refused = openai.chat.completions.create({ model, messages: asked });
    await expect(refused).rejects.toMatchObject({ status: 500, code: 'forbidden', error: failed() });
    const { error } = (await refused.catch((one: unknown) => one)) as { error: { perdura: { conversation: string; text: string } } };
    const { conversation, text: words } = error.perdura;
    const next = await openai.chat.completions.create(
      { model, messages: [...asked, { role: 'assistant', content: words }, user('go on')] },
      { headers: { 'x-perdura-conversation': conversation } },
    );
    expect(next.choices[0]?.message.content).toBe('You said: go on');
    expect(JSON.stringify(world.api.hits.at(-1)?.body?.messages)).toContain(WORDS.fail);
  });

  test.each(ENDINGS)('%s: "continue" goes on in the same conversation, with those words', async (ending) => {
    const began = user(`${ending} four`);
    await openai.chat.completions.create({ model, messages: [began] }).catch(() => undefined);
    const before = await listedIds(world.client);
    const messages = [began, { role: 'assistant' as const, content: WORDS[ending] }, user('continue')];
    const { choices } = await openai.chat.completions.create({ model, messages });
    expect(choices[0]?.message.content).toBe('You said: continue');
    expect(await begunSince(world.client, before)).toEqual([]);
    expect(JSON.stringify(world.api.hits.at(-1)?.body?.messages)).toContain(WORDS[ending]);
  });
});

test.each([
  ['cut', 'incomplete', { reason: 'max_output_tokens' }],
  ['refuse', 'incomplete', { reason: 'content_filter' }],
  ['fail', 'failed', null],
] as const)('responses, %s: the text and the reason, streamed and not, and asked for later', async (ending, status, incomplete_details) => {
  const expected = { status, incomplete_details, output: [{ status: 'incomplete', content: [{ text: WORDS[ending] }] }] };
  const whole = await openai.responses.create({ model, input: `${ending} one` });
  expect(whole).toMatchObject(expected);
  expect(await openai.responses.retrieve(whole.id)).toMatchObject({ ...expected, usage: whole.usage });
  const events = [];
  for await (const event of await openai.responses.create({ model, input: `${ending} two`, stream: true })) events.push(event);
  expect(events.at(-1)).toMatchObject({ type: `response.${status}`, response: expected });
  expect(events.flatMap((event) => (event.type === 'response.output_text.delta' ? [event.delta] : [])).join('')).toBe(WORDS[ending]);
  expect(events.flatMap((event) => (event.type === 'response.output_item.done' ? [event.item] : []))).toMatchObject([
    { content: [{ text: WORDS[ending] }] },
  ]);
  const next = await openai.responses.create({ model, input: 'continue', previous_response_id: whole.id });
  expect(next.output_text).toBe('You said: continue');
});

describe('messages', () => {
  test.each([
    ['cut', 'max_tokens'],
    ['refuse', 'refusal'],
  ] as const)('%s: the text and the reason, streamed and not', async (ending, stop_reason) => {
    const base = { model, max_tokens: 100 };
    const expected = { stop_reason, content: [{ type: 'text', text: WORDS[ending] }] };
    expect(await anthropic.messages.create({ ...base, messages: [user(`${ending} five`)] })).toMatchObject(expected);
    expect(await anthropic.messages.stream({ ...base, messages: [user(`${ending} six`)] }).finalMessage()).toMatchObject(expected);
  });

  test('a failure is an error with those words, streamed and not', async () => {
    const base = { model, max_tokens: 100 };
    const expected = { error: { type: 'error', error: failed() } };
    const shown: string[] = [];
    await expect(anthropic.messages.create({ ...base, messages: [user('fail eight')] })).rejects.toMatchObject({
      status: 500,
      ...expected,
    });
    const stream = anthropic.messages.stream({ ...base, messages: [user('fail nine')] }).on('text', (piece) => shown.push(piece));
    await expect(stream.finalMessage()).rejects.toMatchObject(expected);
    expect(shown.join('')).toBe(WORDS.fail);
  });
});

test.each(ENDINGS)(
  'native, %s: the last event has the text, and so has the turn, the record and the stream of one who comes later',
  async (ending) => {
    const id = world.id();
    interface Event {
      readonly kind?: string;
      readonly result?: { readonly text: string };
    }
    const events = await frames<Event>(`/v1/conversations/${id}/messages`, { text: ending, start: {} });
    expect(events.at(-1)).toMatchObject({ kind: 'turn-finished', result: { text: WORDS[ending] } });
    const get = (path: string): Promise<Response> =>
      Promise.resolve(
        app.request(`http://localhost/v1/conversations/${id}/${path}`, {
          headers: { host: 'localhost', authorization: `Bearer ${TOKEN}` },
        }),
      );
    expect(await (await get('turns/turn_0001')).json()).toMatchObject({ text: WORDS[ending], error: {} });
    expect(await (await get('turns/turn_0001/events')).text()).toContain(`"text":"${WORDS[ending]}"`);
    const { entries } = (await (await get('entries')).json()) as { entries: { message: object }[] };
    expect(entries.map(({ message }) => message)).toMatchObject([{ role: 'user' }, { blocks: [{ text: WORDS[ending] }] }]);
  },
);

interface Chunk {
  readonly type: string;
  readonly delta?: string;
  readonly finishReason?: string;
}

test.each([
  ['cut', 'length'],
  ['refuse', 'content-filter'],
  ['fail', 'error'],
] as const)('the AI SDK, %s: the text is not void, and the page has it when it comes back', async (ending, finishReason) => {
  const id = world.id();
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: ending }] };
  const chunks = await frames<Chunk>('/api/chat', { id, messages: [message] });
  expect(chunks.flatMap(({ type, delta }) => (type === 'text-delta' ? [delta] : [])).join('')).toBe(WORDS[ending]);
  expect(JSON.stringify(chunks)).not.toContain('void');
  expect(chunks.find(({ type }) => type === 'finish')).toMatchObject({ finishReason });
  const headers = { host: 'localhost', authorization: `Bearer ${TOKEN}` };
  const later = await app.request(`http://localhost/api/chat/${id}/messages`, { headers });
  expect(await later.text()).toContain(WORDS[ending]);
});

test.each(ENDINGS)('AG-UI, %s: no snapshot takes the text away', async (ending) => {
  const body = {
    threadId: world.id(),
    runId: 'r1',
    tools: [],
    context: [],
    state: {},
    forwardedProps: {},
    messages: [{ id: 'm1', ...user(ending) }],
  };
  const events = await frames<{ type: string; delta?: string; metadata?: object }>('/agui', body);
  expect(events.flatMap(({ type, delta }) => (type === 'TEXT_MESSAGE_CONTENT' ? [delta] : [])).join('')).toBe(WORDS[ending]);
  expect(events.filter(({ type }) => type === 'MESSAGES_SNAPSHOT')).toEqual([]);
  expect(events.find(({ type }) => type === 'TEXT_MESSAGE_END')?.metadata).toBeUndefined();
});

test.each([
  ['cut', 'TASK_STATE_FAILED'],
  ['refuse', 'TASK_STATE_REJECTED'],
  ['fail', 'TASK_STATE_FAILED'],
] as const)('A2A, %s: the text is an artifact, live and of the task', async (ending, state) => {
  const params = { message: { role: 'ROLE_USER', messageId: world.id(), contextId: world.id(), parts: [{ text: ending }] } };
  const call = (method: string, given: object) => ({ jsonrpc: '2.0', id: 1, method, params: given });
  const live = await frames<{ result: { task?: { id: string }; artifactUpdate?: { artifact: { parts: { text: string }[] } } } }>(
    '/a2a',
    call('SendStreamingMessage', params),
    { 'A2A-Version': '1.0' },
  );
  const artifacts = live.flatMap(({ result }) => result.artifactUpdate?.artifact.parts ?? []);
  expect(artifacts.map((part) => part.text).join('')).toBe(WORDS[ending]);
  expect(live.at(-1)).toMatchObject({ result: { statusUpdate: { status: { state } } } });
  const id = live.find(({ result }) => result.task)?.result.task?.id;
  const read = await post('/a2a', call('GetTask', { id }), { 'A2A-Version': '1.0' });
  expect(await read.json()).toMatchObject({ result: { status: { state }, artifacts: [{ parts: [{ text: WORDS[ending] }] }] } });
});

test.each(ENDINGS)('MCP, %s: the answer has the text and the reason', async (ending) => {
  const id = world.id();
  await world.client.start(id);
  const params = { name: 'send_message', arguments: { conversation: id, text: ending } };
  const sent = await post(
    '/mcp',
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
    { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' },
  );
  expect(await sent.text()).toContain(WORDS[ending]);
});
