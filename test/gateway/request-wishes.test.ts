/** What requests of OpenAI's and Anthropic's clients ask for beside their words, as it reaches the model. */
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { blocksOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { callTools, text, type Reply } from '../support/provider-apis/reply.js';
import { startWorld, type World } from '../support/world.js';

const TOKEN = 'a-token-that-only-tests-have';
let world: World;
let app: GatewayApp;
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
  app = createGateway({ client: world.client, authenticate: oneToken(TOKEN), agents: () => Promise.resolve(['default']) });
});
afterAll(() => world.close());
beforeEach(() => {
  [requests, replies] = [[], []];
});

interface Answered {
  readonly status: number;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- bodies of three protocols
  readonly body: any;
}

async function post(path: string, body: object): Promise<Answered> {
  const response = await app.request(`http://localhost${path}`, {
    method: 'POST',
    headers: { host: 'localhost', authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'default', ...body }),
  });
  return { status: response.status, body: await response.json() };
}

const chat = (messages: object[], more: object = {}): Promise<Answered> => post('/v1/chat/completions', { messages, ...more });
const respond = (input: unknown, more: object = {}): Promise<Answered> => post('/v1/responses', { input, ...more });
const message = (messages: object[], more: object = {}): Promise<Answered> =>
  post('/v1/messages', { messages, max_tokens: 1_000, ...more });

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tool = (name: string): object => ({ type: 'function', function: { name, parameters: SCHEMA } });
const tools = [tool('weather'), tool('report')];
const flat = [
  { type: 'function', name: 'weather', parameters: SCHEMA },
  { type: 'function', name: 'report', parameters: SCHEMA },
];
const typed = [
  { name: 'weather', input_schema: SCHEMA },
  { name: 'report', input_schema: SCHEMA },
];
const call = (name: string, city = 'Oslo') => ({ name: `client__${name}`, input: { city } });
const offered = (request: ApiRequest | undefined): string[] =>
  (request?.tools ?? []).flatMap(({ name }) => (name.startsWith('client__') ? [name.slice('client__'.length)] : []));
let asked = 0;
const question = (): { role: string; content: string } => ({ role: 'user', content: `question ${(asked += 1)}` });

/** A 1x1 PNG. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const DATA = `data:image/png;base64,${PNG}`;
const pictures = (request: ApiRequest | undefined): number =>
  (request?.messages ?? []).flatMap(({ content }) => blocksOf(content)).filter(({ type }) => type === 'image').length;
const words = (request: ApiRequest | undefined): string => JSON.stringify(request?.messages);

describe('a choice of a tool binds each request that carries it', () => {
  const named = { type: 'function', function: { name: 'report' } };

  test('Chat Completions, beside results', async () => {
    replies = [callTools(call('weather')), callTools(call('report'))];
    const first = [question()];
    const one = await chat(first, { tools, tool_choice: 'required' });
    expect(requests[0]?.tool_choice).toEqual({ type: 'any' });
    const made = one.body.choices[0].message;
    const second = [...first, made, { role: 'tool', tool_call_id: made.tool_calls[0].id, content: 'rain' }];
    const two = await chat(second, { tools, tool_choice: named });
    expect(two.body.choices[0].message.tool_calls[0].function.name).toBe('report');
    expect([requests[1]?.tool_choice, offered(requests[1])]).toEqual([{ type: 'any' }, ['report']]);
    const last = two.body.choices[0].message;
    const three = await chat([...second, last, { role: 'tool', tool_call_id: last.tool_calls[0].id, content: 'ok' }], {
      tools,
      tool_choice: 'none',
    });
    expect(three.body.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'done' } });
    expect(offered(requests[2])).toEqual([]);
  });

  test('Responses, beside results, and in the same turn other tools', async () => {
    replies = [callTools(call('weather')), callTools({ name: 'client__other', input: {} })];
    const one = await respond(question().content, { tools: flat });
    expect(requests[0]?.tool_choice).toBeUndefined();
    const output = { type: 'function_call_output', call_id: one.body.output[0].call_id, output: 'rain' };
    const other = { type: 'function', name: 'other', parameters: { type: 'object', properties: {} } };
    const more = { previous_response_id: one.body.id, tools: [other], tool_choice: { type: 'function', name: 'other' } };
    const two = await respond([output], more);
    expect(two.body.output[0]).toMatchObject({ type: 'function_call', name: 'other' });
    expect([requests[1]?.tool_choice, offered(requests[1])]).toEqual([{ type: 'any' }, ['other']]);
  });

  test('Messages, beside results; the call after it is free', async () => {
    replies = [callTools(call('weather')), callTools({ name: 'client__weather', input: { city: 7 } })];
    const first = [question()];
    const one = await message(first, { tools: typed });
    const results = one.body.content.map(({ id }: { id: string }) => ({ type: 'tool_result', tool_use_id: id, content: 'rain' }));
    const second = [...first, { role: 'assistant', content: one.body.content }, { role: 'user', content: results }];
    await message(second, { tools: typed, tool_choice: { type: 'any' } });
    // The second call's arguments did not fit, so that the model was asked once more.
    expect(requests.map(({ tool_choice: choice }) => choice)).toEqual([undefined, { type: 'any' }, undefined]);
  });

  test.each<[string, object, string[], unknown]>([
    ['auto', { mode: 'auto' }, ['report'], undefined],
    ['required', { mode: 'required' }, ['report'], { type: 'any' }],
  ])('allowed_tools, %s', async (_, mode, names, choice) => {
    await chat([question()], {
      tools,
      tool_choice: { type: 'allowed_tools', allowed_tools: { ...mode, tools: [named] } },
    });
    expect([offered(requests[0]), requests[0]?.tool_choice]).toEqual([names, choice]);
    await respond(question().content, {
      tools: flat,
      tool_choice: { type: 'allowed_tools', ...mode, tools: [{ type: 'function', name: 'report' }] },
    });
    expect([offered(requests[1]), requests[1]?.tool_choice]).toEqual([names, choice]);
  });
});

test('with parallel calls off an answer has one call, whatever the model does, and the provider is told', async () => {
  replies = [callTools(call('weather'), call('report')), callTools(call('weather'), call('report'))];
  const one = await chat([question()], { tools, parallel_tool_calls: false });
  expect(one.body.choices[0].message.tool_calls).toHaveLength(1);
  const two = await message([question()], { tools: typed, tool_choice: { type: 'any', disable_parallel_tool_use: true } });
  expect(two.body.content.map(({ name }: { name: string }) => name)).toEqual(['weather']);
  expect(requests.map(({ tool_choice: choice }) => choice)).toEqual([
    { type: 'auto', disable_parallel_tool_use: true },
    { type: 'any', disable_parallel_tool_use: true },
  ]);
});

test('an answer ends before the first of its stop texts, streamed too, and no call after it is made', async () => {
  replies = [{ ...text('Thought: look.\nObservation: I made this up'), toolCalls: [call('weather')] }, text('a STOP b')];
  const one = await chat([question()], { tools, stop: ['\nObservation:', 'never'] });
  expect(one.body.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'Thought: look.' } });
  expect((requests[0] as { stop_sequences?: unknown } | undefined)?.stop_sequences).toEqual(['\nObservation:', 'never']);
  const response = await app.request('http://localhost/v1/messages', {
    method: 'POST',
    headers: { host: 'localhost', 'x-api-key': TOKEN, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'default', max_tokens: 99, stream: true, stop_sequences: ['STOP'], messages: [question()] }),
  });
  const deltas = [...(await response.text()).matchAll(/"text_delta","text":"([^"]*)"/g)].map(([, piece = '']) => piece);
  expect(deltas.join('')).toBe('a ');
});

test('Messages tell which stop text ended the answer, streamed too, cut here or by the provider; Chat Completions says "stop"', async () => {
  replies = [text('a END b'), { ...text('a '), stopReason: 'stop_sequence', stopSequence: 'STOP' }, text('none')];
  const at = { stop_sequences: ['STOP', 'END'] };
  const told = async (): Promise<unknown[]> => {
    const { body } = await message([question()], at);
    return [body.stop_reason, body.stop_sequence];
  };
  expect([await told(), await told(), await told()]).toEqual([
    ['stop_sequence', 'END'],
    ['stop_sequence', 'STOP'],
    ['end_turn', null],
  ]);
  replies = [text('a END b'), text('a END b')];
  const streamed = await app.request('http://localhost/v1/messages', {
    method: 'POST',
    headers: { host: 'localhost', 'x-api-key': TOKEN, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'default', max_tokens: 99, stream: true, messages: [question()], ...at }),
  });
  expect(await streamed.text()).toContain('"delta":{"stop_reason":"stop_sequence","stop_details":null,"stop_sequence":"END"');
  const { body } = await chat([question()], { stop: 'END' });
  expect(body.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'a ' } });
});

test('what was read from a cache, and written to one, is in the usage of each protocol, also after a tool', async () => {
  const usage = { input_tokens: 7, cache_read_input_tokens: 5, cache_creation_input_tokens: 3, output_tokens: 9 };
  replies = Array.from({ length: 3 }, () => ({ ...text('ok'), usage }));
  expect((await chat([question()])).body.usage).toMatchObject({
    prompt_tokens: 15,
    prompt_tokens_details: { cached_tokens: 5, cache_write_tokens: 3 },
  });
  expect((await respond(question().content)).body.usage).toMatchObject({
    input_tokens: 15,
    input_tokens_details: { cached_tokens: 5, cache_write_tokens: 3 },
  });
  expect((await message([question()])).body.usage).toMatchObject(usage);
  replies = [
    { ...callTools(call('weather')), usage },
    { ...text('ok'), usage: { ...usage, cache_creation_input_tokens: 1 } },
  ];
  const asks = [question()];
  const one = await message(asks, { tools: typed });
  expect(one.body.usage).toMatchObject(usage);
  const result = { type: 'tool_result', tool_use_id: one.body.content[0].id, content: 'rain' };
  const two = await message([...asks, { role: 'assistant', content: one.body.content }, { role: 'user', content: [result] }], {
    tools: typed,
  });
  expect(two.body.usage).toMatchObject({ ...usage, cache_creation_input_tokens: 1 });
});

test('an answer is made of no more tokens than OpenAI’s clients ask for', async () => {
  await chat([question()], { max_completion_tokens: 77 });
  await respond(question().content, { max_output_tokens: 78 });
  expect(requests.map(({ max_tokens: most }) => most)).toEqual([77, 78]);
});

test('JSON of any kind, and a schema in each place that a client has for it', async () => {
  const format = { type: 'json_schema', name: 'x', schema: SCHEMA, strict: true };
  replies = Array.from({ length: 5 }, () => text('{"city":"Oslo"}'));
  const answers = [
    (await chat([question()], { response_format: { type: 'json_object' } })).body.choices[0].message.content,
    (await chat([question()], { response_format: { type: 'json_schema', json_schema: format } })).body.choices[0].message.content,
    (await respond(question().content, { text: { format: { type: 'json_object' } } })).body.output[0].content[0].text,
    (await respond(question().content, { text: { format } })).body.output[0].content[0].text,
    (await message([question()], { output_config: { format: { type: 'json_schema', schema: SCHEMA } } })).body.content[0].text,
  ];
  expect(answers).toEqual(Array(5).fill('{"city":"Oslo"}'));
  expect(requests.map((request) => words(request).includes('answer with JSON alone'))).toEqual(Array(5).fill(true));
});

test('a schema that comes beside results holds for the answer', async () => {
  replies = [callTools(call('weather')), text('not JSON'), text('{"city":"Oslo"}')];
  const first = [question()];
  const one = await chat(first, { tools });
  const made = one.body.choices[0].message;
  const results = [...first, made, { role: 'tool', tool_call_id: made.tool_calls[0].id, content: 'rain' }];
  const two = await chat(results, { tools, response_format: { type: 'json_schema', json_schema: { name: 'x', schema: SCHEMA } } });
  expect(requests).toHaveLength(3);
  expect(two.body.choices[0].message.content).toContain('{"city":"Oslo"}');
});

describe('files reach the model', () => {
  test('of results of tools, in each protocol, and the history matches later', async () => {
    replies = [callTools(call('weather'))];
    const first = [question()];
    const one = await chat(first, { tools });
    const made = one.body.choices[0].message;
    const answers = { role: 'tool', tool_call_id: made.tool_calls[0].id, content: [{ type: 'image_url', image_url: { url: DATA } }] };
    const second = [...first, made, answers];
    const two = await chat(second, { tools });
    expect([pictures(requests[1]), words(requests[1]).includes('[What the tool weather has answered: image/png]')]).toEqual([1, true]);
    await chat([...second, two.body.choices[0].message, question()], { tools });
    // The picture once, where it was, and no history in words.
    expect([pictures(requests[2]), words(requests[2]).includes('Supplied by the client')]).toEqual([1, false]);

    replies = [callTools(call('weather'))];
    const begun = await respond(question().content, { tools: flat });
    const picture = [{ type: 'input_image', image_url: DATA }];
    const output = { type: 'function_call_output', call_id: begun.body.output[0].call_id, output: picture };
    await respond([output], { previous_response_id: begun.body.id, tools: flat });
    expect(pictures(requests.at(-1))).toBe(1);

    replies = [callTools(call('weather'))];
    const asks = [question()];
    const used = await message(asks, { tools: typed });
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } };
    const found = { type: 'search_result', source: 'https://example.org', title: 'Rain', content: [{ type: 'text', text: 'It rains.' }] };
    const result = { type: 'tool_result', tool_use_id: used.body.content[0].id, content: [image, found] };
    await message([...asks, { role: 'assistant', content: used.body.content }, { role: 'user', content: [result] }], { tools: typed });
    expect([pictures(requests.at(-1)), words(requests.at(-1)).includes('[Search result: Rain, https://example.org]\\nIt rains.')]).toEqual([
      1,
      true,
    ]);
  });

  test('of a supplied history, the latest twenty, and words say of which message', async () => {
    const shown = (content: object[]): object => ({ role: 'user', content });
    const picture = { type: 'image_url', image_url: { url: DATA } };
    const history = [shown([{ type: 'text', text: 'old' }, picture]), { role: 'assistant', content: 'I see.' }];
    const first = [...history, question()];
    const one = await chat(first);
    expect([pictures(requests[0]), words(requests[0]).includes(String.raw`\"files\":[\"image/png\"]`)]).toEqual([1, true]);
    await chat([...first, one.body.choices[0].message, question()]);
    expect([requests.length, pictures(requests[1])]).toEqual([2, 1]);
    const many = [shown(Array(15).fill(picture)), { role: 'assistant', content: 'Many.' }, shown(Array(8).fill(picture))];
    await chat(many);
    expect([pictures(requests[2]), words(requests[2]).split('no longer shown').length - 1]).toEqual([20, 3]);
  });
});

test('fields and items that clients send along are taken', async () => {
  const settings = { seed: 1, n: 1, logprobs: false, user: 'u', store: true, service_tier: 'auto', metadata: { a: 'b' } };
  const history = [
    { role: 'developer', content: 'Be brief.', name: 'dev' },
    { ...question(), name: 'ada' },
    { role: 'assistant', content: null, refusal: 'I will not.', audio: null, function_call: null, tool_calls: null },
    { role: 'user', content: [{ type: 'text', text: 'Then what?', refusal: null }] },
  ];
  expect((await chat(history, settings)).status).toBe(200);
  expect(['Be brief.', 'ada: question', 'I will not.'].filter((one) => !words(requests[0]).includes(one))).toEqual([]);
  const one = await respond(question().content, {
    include: ['reasoning.encrypted_content'],
    truncation: 'auto',
    reasoning: { effort: 'low' },
  });
  const items = [
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: `question ${asked}` }] },
    { type: 'reasoning', id: 'rs_1', summary: [], content: null, encrypted_content: 'x' },
    { type: 'item_reference', id: one.body.output[0].id },
    { role: 'user', content: 'And then?' },
  ];
  const two = await respond(items);
  expect([two.status, two.body.conversation]).toEqual([200, one.body.conversation]);
  expect(await respond([{ type: 'item_reference', id: 'msg_nothing_1' }, question()])).toMatchObject({
    status: 400,
    body: { error: { message: 'Item with id "msg_nothing_1" not found.', param: 'input.0.id' } },
  });
  const thinking = { type: 'thinking', thinking: 'hm', signature: 'x' };
  const blocks = [
    { role: 'user', content: [{ type: 'text', text: 'first', cache_control: { type: 'ephemeral' } }] },
    { role: 'assistant', content: [thinking, { type: 'text', text: 'A thought.' }] },
    { role: 'user', content: [{ type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'Of a page.' }] } }] },
  ];
  expect((await message(blocks, { metadata: { user_id: 'u' }, service_tier: 'auto', thinking: { type: 'disabled' } })).status).toBe(200);
  expect(words(requests.at(-1))).toContain('Of a page.');
});

test.each<[string, string, object, string]>([
  ['chat/completions', 'logprobs', { logprobs: true, messages: [{ role: 'user', content: 'x' }] }, 'logprobs'],
  ['chat/completions', 'sound as answer', { modalities: ['text', 'audio'], messages: [{ role: 'user', content: 'x' }] }, 'modalities'],
  ['chat/completions', 'two answers', { n: 2, messages: [{ role: 'user', content: 'x' }] }, 'n'],
  ['responses', 'a prompt of OpenAI’s', { prompt: { id: 'pmpt_1' }, input: 'x' }, 'prompt'],
  ['responses', 'a search of the provider', { tools: [{ type: 'web_search' }], input: 'x' }, 'tools.0.type'],
  ['responses', 'an item of another kind', { input: [{ type: 'web_search_call', id: 'ws_1' }] }, 'input.0'],
])('%s: %s is refused, and the field named', async (path, _, body, param) => {
  const answer = await post(`/v1/${path}`, body);
  expect(answer).toMatchObject({ status: 400, body: { error: { type: 'invalid_request_error', param } } });
});
