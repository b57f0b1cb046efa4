/** Tools that the client runs, by the unmodified `openai` and `@anthropic-ai/sdk`, over sockets, with a real worker behind two gateways. */
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import OpenAI from 'openai';
import { z } from 'zod';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { serveGateway, type ServedGateway } from '../../src/gateway/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { latestResults, resultText, roundsSoFar, saidIn } from '../support/echo-model.js';
import { listedIds } from '../support/listed-ids.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { callTools, text, type Reply } from '../support/provider-apis/reply.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const TOKEN = 'a-token-that-only-tests-have';
const OTHER = 'a-token-that-another-client-has';
let world: World;
let gateways: ServedGateway[];
let requests: ApiRequest[] = [];

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({}),
  policy: { repeatable: true },
  run: () => 'own look',
});
const pay = defineTool({ name: 'pay', description: 'Pays.', input: z.object({}), policy: { approval: 'ask' }, run: () => 'paid' });

/** What is said names the calls, round by round: `weather:Oslo weather:Bergen look / weather:Rome`; then the model repeats their results. */
function answer(request: ApiRequest): Reply {
  requests.push(request);
  const said = (saidIn(request).at(-1) ?? '').split('\n').at(-1) ?? '';
  const rounds = said.includes('weather:') ? said.replace(/^\S+! /, '').split(' / ') : [];
  const round = rounds[roundsSoFar(request)];
  if (round === undefined) {
    const results = latestResults(request).map((result) => `${result.is_error ? '!' : ''}${resultText(result)}`);
    return text(`So: ${results.join(', ')} (${said})`);
  }
  const calls = round.split(' ').map((one) => {
    const [name = '', city = ''] = one.split(':');
    return name === 'weather' ? { name: 'client__get_weather', input: city === '7' ? { city: 7 } : { city } } : { name };
  });
  return { text: 'Let me see.', ...callTools(...calls) };
}

beforeAll(async () => {
  world = await startWorld({ answer, tools: [look, pay] });
  const serve = (): Promise<ServedGateway> =>
    serveGateway({
      client: world.client,
      authenticate: async (token) => (await oneToken(TOKEN)(token)) ?? ((await oneToken(OTHER)(token)) && { name: 'other', role: 'admin' }),
      agents: () => Promise.resolve(['default']),
      port: 0,
    });
  gateways = [await serve(), await serve()];
});
afterAll(async () => {
  for (const gateway of gateways) await gateway.close();
  await world.close();
});
beforeEach(() => {
  requests = [];
});

const model = 'default';
const SCHEMA = { type: 'object' as const, properties: { city: { type: 'string' as const } }, required: ['city'] };
const chatTool = { type: 'function' as const, function: { name: 'get_weather', description: 'Weather.', parameters: SCHEMA } };
const responseTool = { type: 'function' as const, name: 'get_weather', description: 'Weather.', parameters: SCHEMA, strict: null };
const anthropicTool = { name: 'get_weather', description: 'Weather.', input_schema: SCHEMA };
const openai = (at = 0, apiKey = TOKEN): OpenAI => new OpenAI({ apiKey, baseURL: `${gateways[at]?.url}/v1`, maxRetries: 0 });
const anthropic = (at = 0): Anthropic => new Anthropic({ apiKey: TOKEN, baseURL: gateways[at]?.url ?? '', maxRetries: 0 });
const conversations = async (): Promise<number> => (await listedIds(world.client)).length;
const weatherIn = (given: string): string => `rain in ${(JSON.parse(given) as { city: string }).city}`;

type ChatMessage = OpenAI.ChatCompletionMessageParam;
const chat = (messages: ChatMessage[], at = 0, more: object = {}): Promise<OpenAI.ChatCompletion> =>
  openai(at).chat.completions.create({ model, messages, tools: [chatTool], ...more });
const streamedChat = (messages: ChatMessage[], at = 0): Promise<OpenAI.ChatCompletion> =>
  openai(at)
    .chat.completions.stream({ model, messages, tools: [chatTool] })
    .finalChatCompletion();

function answered({ choices }: OpenAI.ChatCompletion): ChatMessage[] {
  const message = choices[0]?.message;
  if (!message) throw new Error('no message');
  const calls = message.tool_calls ?? [];
  const outputs = calls.map((call): ChatMessage => {
    if (call.type !== 'function') throw new Error(call.type);
    return { role: 'tool', tool_call_id: call.id, content: weatherIn(call.function.arguments) };
  });
  return [message, ...outputs];
}

describe('chat completions', () => {
  test.each([
    ['not streamed', chat],
    ['streamed', streamedChat],
  ])('a call waits for its client, and any gateway goes on with the same turn, %s', async (how, ask) => {
    const before = await conversations();
    const first: ChatMessage[] = [{ role: 'user', content: `${how.replace(/ /g, '')}! weather:Oslo weather:Bergen` }];
    const one = await ask(first);
    expect(one.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { content: 'Let me see.', tool_calls: [{ function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } }, {}] },
    });
    const second = [...first, ...answered(one)];
    const two = await ask(second, 1);
    const said = `So: rain in Oslo, rain in Bergen (${first[0]?.content as string})`;
    expect(two.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: said } });
    expect(two.choices[0]?.message).not.toHaveProperty('tool_calls');
    expect(await conversations()).toBe(before + 1);
    // The same once more is the same answer, and no model is asked.
    const asked = requests.length;
    expect((await ask(second)).choices[0]?.message.content).toBe(said);
    expect((await ask(first, 1)).choices[0]?.finish_reason).toBe('tool_calls');
    expect(requests.length - asked).toBe(1);
    expect(await conversations()).toBe(before + 2);
    // The next turn is of the same conversation: its history has the calls.
    const three = await ask([...second, { role: 'assistant', content: said }, { role: 'user', content: 'and now?' }]);
    expect(three.choices[0]?.message.content).toBe('So:  (and now?)');
    expect(await conversations()).toBe(before + 2);
  });

  test('usage is that of the part, not of the whole turn', async () => {
    const first: ChatMessage[] = [{ role: 'user', content: 'usage! weather:Oslo' }];
    const one = await chat(first);
    const two = await chat([...first, ...answered(one)]);
    const [{ turn = 0, usage }] = await Promise.all([world.client.status(two.id.replace(/^chatcmpl-|-turn.*$/g, ''))]);
    expect(turn).toBe(1);
    expect((one.usage?.prompt_tokens ?? 0) + (two.usage?.prompt_tokens ?? 0)).toBe(usage.inputTokens);
    expect(one.usage?.prompt_tokens).toBeGreaterThan(0);
  });

  test('several rounds, own tools and one that a person must allow, in one turn', async () => {
    const first: ChatMessage[] = [{ role: 'user', content: 'mixed! weather:Oslo look pay / weather:Rome' }];
    const one = await chat(first);
    const id = one.id.replace(/^chatcmpl-|-turn.*$/g, '');
    expect(one.choices[0]?.message.tool_calls).toHaveLength(1);
    const going = streamedChat([...first, ...answered(one)]);
    const [approval] = (await world.client.approvals(id)).filter(({ kind }) => kind === 'approval');
    await world.client.decide(id, { callId: approval?.callId ?? '', decision: 'approve' });
    const two = await going;
    expect(two.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { tool_calls: [{ function: { arguments: '{"city":"Rome"}' } }] },
    });
    const three = await chat([...first, ...answered(one), ...answered(two)], 1);
    expect(three.choices[0]?.message.content).toMatch(/^So: rain in Rome/);
  });

  test('the tool runner of the client, streamed and not', async () => {
    const runs: string[] = [];
    const run = { ...chatTool.function, parse: JSON.parse, function: ({ city }: { city: string }) => (runs.push(city), `rain in ${city}`) };
    const tools = [{ type: 'function' as const, function: run }];
    const messages = (name: string): ChatMessage[] => [{ role: 'user', content: `${name}! weather:Oslo / weather:Rome weather:Bergen` }];
    const before = await conversations();
    const whole = openai().chat.completions.runTools({ model, messages: messages('runner'), tools } as never);
    expect(await whole.finalContent()).toMatch(/^So: rain in Rome, rain in Bergen/);
    const stream = openai(1).chat.completions.runTools({ model, messages: messages('streaming'), tools, stream: true } as never);
    expect(await stream.finalContent()).toMatch(/^So: rain in Rome, rain in Bergen/);
    expect(runs).toEqual(['Oslo', 'Rome', 'Bergen', 'Oslo', 'Rome', 'Bergen']);
    expect(await conversations()).toBe(before + 2);
  });

  test('arguments that do not fit never reach the client', async () => {
    const one = await chat([{ role: 'user', content: 'misfit! weather:7 weather:Oslo' }]);
    expect(one.choices[0]?.message.tool_calls).toHaveLength(1);
    const two = await chat([{ role: 'user', content: 'misfit! weather:7 weather:Oslo' }, ...answered(one)]);
    expect(two.choices[0]?.message.content).toMatch(
      /^So: !Rejected[^]*Not run: the arguments do not fit the tool's schema: \/city must be string, rain in Oslo/,
    );
  });

  test('a history with calls of elsewhere begins a conversation that says so; and words beside answers join the turn', async () => {
    const before = await conversations();
    const foreign: ChatMessage[] = [
      { role: 'user', content: 'foreign' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_abc', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
      },
      { role: 'tool', tool_call_id: 'call_abc', content: 'result' },
    ];
    await chat(foreign);
    expect(await conversations()).toBe(before + 1);
    expect(saidIn(requests.at(-1) as ApiRequest).at(-1)).toMatch(
      /Supplied by the client[^]*"calls":\[\{"name":"f","arguments":\{"a":1\},"answer":"result"\}\][^]*have answered/,
    );
    const first: ChatMessage[] = [{ role: 'user', content: 'beside! weather:Oslo' }];
    const one = await chat(first);
    const second: ChatMessage[] = [...first, ...answered(one), { role: 'user', content: 'quickly' }];
    const two = await chat(second);
    expect(two.choices[0]?.message.content).toMatch(/quickly\)$/);
    await chat([...second, { role: 'assistant', content: two.choices[0]?.message.content ?? '' }, { role: 'user', content: 'next' }]);
    expect(await conversations()).toBe(before + 2);
  });

  test('another token, another user value or a changed history does not reach the turn that waits', async () => {
    const first: ChatMessage[] = [{ role: 'user', content: 'mine! weather:Oslo' }];
    const one = await chat(first);
    const id = one.id.replace(/^chatcmpl-|-turn.*$/g, '');
    const second = [...first, ...answered(one)];
    const before = await conversations();
    await openai(0, OTHER).chat.completions.create({ model, messages: second, tools: [chatTool] });
    await chat(second, 0, { user: 'bob' });
    await chat([{ role: 'user', content: 'mine! weather:Oslo, please' }, ...second.slice(1)]);
    expect(await conversations()).toBe(before + 3);
    expect(await world.client.approvals(id)).toHaveLength(1);
    // Those who have it go on.
    expect((await chat(second)).choices[0]?.message.content).toMatch(/^So: rain in Oslo/);
  });

  test('an answer after the turn was stopped begins a conversation of its own, and one that is missing is named', async () => {
    const first: ChatMessage[] = [{ role: 'user', content: 'late! weather:Oslo weather:Rome' }];
    const one = await chat(first);
    const id = one.id.replace(/^chatcmpl-|-turn.*$/g, '');
    const all = answered(one);
    await expect(chat([...first, ...all.slice(0, -1)])).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('No tool output') as string,
    });
    await world.client.interrupt(id);
    await world.client.turn(id, 'turn_0001');
    const before = await conversations();
    await chat([...first, ...all]);
    expect(await conversations()).toBe(before + 1);
  });

  test('a named conversation', async () => {
    const named = { headers: { 'x-perdura-conversation': `named-${Date.now()}` } };
    const ask = (messages: ChatMessage[]): Promise<OpenAI.ChatCompletion> =>
      openai().chat.completions.create({ model, messages, tools: [chatTool] }, named);
    const one = await ask([{ role: 'user', content: 'named! weather:Oslo' }]);
    await expect(ask([{ role: 'user', content: 'something else' }])).rejects.toMatchObject({ status: 400 });
    const two = await ask(answered(one));
    expect(two.choices[0]?.message.content).toMatch(/^So: rain in Oslo/);
  });

  test.each<[string, object, string]>([
    ['a choice among some', { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [] } } }, 'tool_choice'],
    ['a choice of what is not there', { tool_choice: { type: 'function', function: { name: 'other' } } }, 'tool_choice'],
    ['a choice of nothing', { tool_choice: 'required', tools: [] }, 'tool_choice'],
    ['a tool of another type', { tools: [{ type: 'custom', custom: { name: 'x' } }] }, 'tools.0.type'],
    ['a bad name', { tools: [{ type: 'function', function: { name: 'a b' } }] }, 'tools'],
    [
      'a bad schema',
      { tools: [{ type: 'function', function: { name: 'a', parameters: { properties: { a: { type: 'what' } } } } }] },
      'tools',
    ],
    ['a schema of no object', { tools: [{ type: 'function', function: { name: 'a', parameters: { type: 'array' } } }] }, 'tools'],
  ])('%s is refused', async (_, more, param) => {
    await expect(chat([{ role: 'user', content: 'refused' }], 0, more)).rejects.toMatchObject({ status: 400, param });
  });

  test.each<[string, object, string[]]>([
    ['required', { tool_choice: 'required' }, ['client__get_weather', 'client__other']],
    ['a name', { tool_choice: { type: 'function', function: { name: 'get_weather' } } }, ['client__get_weather']],
  ])('with tool_choice %s the turn begins with a call, and goes on freely', async (how, more, offered) => {
    const other = { type: 'function' as const, function: { name: 'other', parameters: { type: 'object' as const } } };
    const first: ChatMessage[] = [{ role: 'user', content: `choice-${how.length}! weather:Oslo` }];
    const one = await chat(first, 0, { ...more, tools: [chatTool, other] });
    const [asked] = requests;
    expect([asked?.tool_choice, asked?.tools?.map(({ name }) => name)]).toEqual([{ type: 'any' }, offered]);
    const two = await chat([...first, ...answered(one)], 0, { tools: [chatTool, other] });
    expect(two.choices[0]?.message.content).toMatch(/^So: rain in Oslo/);
    expect(requests.at(-1)?.tool_choice).toBeUndefined();
    expect(requests.at(-1)?.tools).toHaveLength(4);
  });

  test('with tool_choice "none" the model has none of them', async () => {
    await chat([{ role: 'user', content: 'none of them' }], 0, { tool_choice: 'none' });
    expect(requests.at(-1)?.tools?.map(({ name }) => name)).toEqual(['look', 'pay']);
  });
});

test('tools of a message that joins a turn under way are not taken; of one that begins a turn they are, however it was sent', async () => {
  const id = world.id();
  const tool = (name: string): object => ({ name, inputSchema: { type: 'object' } });
  const offered = (): unknown[] => (requests.at(-1)?.tools ?? []).map(({ name }) => name).filter((name) => name.startsWith('client__'));
  await world.client.start(id);
  await world.client.enqueue(id, { text: 'joins! weather:Oslo / weather:Rome', tools: [tool('get_weather')] as never });
  const waiting = await waitFor(
    () => world.client.approvals(id),
    (all) => all.length === 1,
  );
  await world.client.enqueue(id, { text: 'and this', delivery: 'steer', tools: [tool('other')] as never });
  await world.client.decide(id, { callId: waiting[0]?.callId ?? '', decision: 'approve', output: 'rain' });
  await world.client.turn(id, 'turn_0001');
  expect(saidIn(requests.at(-1) as ApiRequest).at(-1)).toBe('and this');
  expect(offered()).toEqual(['client__get_weather']);
  await world.client.send(id, { text: 'next', delivery: 'steer', tools: [tool('other')] as never });
  expect(offered()).toEqual(['client__other']);
});

describe('responses', () => {
  type Response = OpenAI.Responses.Response;
  const outputs = ({ output }: Response): OpenAI.Responses.ResponseInputItem[] =>
    output.flatMap((item) =>
      item.type === 'function_call'
        ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: weatherIn(item.arguments) }]
        : [],
    );
  const base = { model, tools: [responseTool] };

  test('function_call_output goes on after a previous response, in another gateway, and once more with the same', async () => {
    const one = await openai().responses.create({ ...base, input: 'r1! weather:Oslo weather:Rome / weather:Bergen' });
    expect(one).toMatchObject({ status: 'completed', output_text: 'Let me see.' });
    expect(one.output.map(({ type }) => type)).toEqual(['message', 'function_call', 'function_call']);
    expect(await openai(1).responses.retrieve(one.id)).toMatchObject({ status: 'completed', output: one.output });
    const input = outputs(one);
    const two = await openai(1).responses.create({ ...base, previous_response_id: one.id, input });
    expect(two.output).toMatchObject([{ type: 'message' }, { type: 'function_call', arguments: '{"city":"Bergen"}' }]);
    expect(two.id).not.toBe(one.id);
    const asked = requests.length;
    expect(await openai().responses.create({ ...base, previous_response_id: one.id, input })).toMatchObject({
      id: two.id,
      output: two.output,
    });
    expect(requests.length).toBe(asked);
    expect((await openai().responses.retrieve(one.id)).output).toEqual(one.output);
    const three = await openai().responses.create({ ...base, previous_response_id: two.id, input: outputs(two) });
    expect(three.output_text).toMatch(/^So: rain in Bergen/);
    expect((await openai(1).responses.retrieve(one.id)).output).toEqual(one.output);
    expect((await openai(1).responses.retrieve(two.id)).output).toEqual(two.output);
    expect((await openai(1).responses.retrieve(three.id)).output_text).toBe(three.output_text);
    const four = await openai().responses.create({ model, previous_response_id: three.id, input: 'and now?' });
    expect(four.output_text).toBe('So:  (and now?)');
  });

  test('streamed, with arguments, and gone on with after any number', async () => {
    const conversation = `stream-${Date.now()}`;
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of await openai().responses.create({ ...base, conversation, input: 'r2! weather:Oslo', stream: true }))
      events.push(event);
    const types = events.map(({ type }) => type);
    expect(types.slice(-6)).toEqual([
      'response.output_item.done',
      'response.output_item.added',
      'response.function_call_arguments.delta',
      'response.function_call_arguments.done',
      'response.output_item.done',
      'response.completed',
    ]);
    const last = events.at(-1);
    if (last?.type !== 'response.completed') throw new Error('not completed');
    const again: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of await openai(1).responses.retrieve(last.response.id, { stream: true, starting_after: 3 })) again.push(event);
    const same = (list: typeof events): unknown[] => list.map(({ type, sequence_number: n }) => [type, n]);
    expect(same(again)).toEqual(same(events.slice(4)));
    const stream = openai().responses.stream({ ...base, conversation, input: outputs(last.response) });
    const final = await stream.finalResponse();
    expect(final.output_text).toMatch(/^So: rain in Oslo/);
    expect(final.id).not.toBe(last.response.id);
  });

  test('in the background: it is looked at until it waits', async () => {
    const { id } = await openai().responses.create({ ...base, input: 'r3! weather:Oslo', background: true });
    let response = await openai().responses.retrieve(id);
    while (response.status !== 'completed') response = await openai(1).responses.retrieve(id);
    expect(response.output.at(-1)).toMatchObject({ type: 'function_call', name: 'get_weather' });
  });

  test('with the whole history in each request', async () => {
    const before = await conversations();
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'r4! weather:Oslo' }];
    const one = await openai().responses.create({ ...base, input });
    input.push(...(one.output as OpenAI.Responses.ResponseInputItem[]), ...outputs(one));
    const two = await openai(1).responses.create({ ...base, input });
    expect(two.output_text).toMatch(/^So: rain in Oslo/);
    expect(await conversations()).toBe(before + 1);
  });

  test('with a tool_choice by name', async () => {
    const one = await openai().responses.create({
      ...base,
      tool_choice: { type: 'function', name: 'get_weather' },
      input: 'r6! weather:Oslo',
    });
    expect(requests[0]?.tool_choice).toEqual({ type: 'any' });
    expect(one.output.at(-1)).toMatchObject({ type: 'function_call', name: 'get_weather' });
  });

  test('what does not answer the calls of the response before is refused', async () => {
    const one = await openai().responses.create({ ...base, input: 'r5! weather:Oslo' });
    const refused = (input: OpenAI.Responses.ResponseInput, status: number): Promise<void> =>
      expect(openai().responses.create({ ...base, previous_response_id: one.id, input })).rejects.toMatchObject({ status });
    await refused([{ role: 'user', content: 'hello?' }], 400);
    await refused([{ type: 'function_call_output', call_id: 'call_unknown', output: 'x' }], 400);
    const input = outputs(one);
    await openai().responses.create({ ...base, previous_response_id: one.id, input });
    await refused(
      input.map((item) => ({ ...item, output: 'another' }) as OpenAI.Responses.ResponseInputItem),
      409,
    );
  });
});

describe('messages', () => {
  const base = { model, max_tokens: 1_000, tools: [anthropicTool] };
  type Message = Anthropic.Message;
  const results = ({ content }: Message, isError = false): Anthropic.MessageParam => ({
    role: 'user',
    content: content.flatMap((block) =>
      block.type === 'tool_use'
        ? [
            {
              type: 'tool_result' as const,
              tool_use_id: block.id,
              content: [{ type: 'text' as const, text: `rain in ${(block.input as { city: string }).city}` }],
              is_error: isError,
            },
          ]
        : [],
    ),
  });

  test.each([
    ['whole', (messages: Anthropic.MessageParam[]): Promise<Message> => anthropic().messages.create({ ...base, messages })],
    [
      'streamed',
      (messages: Anthropic.MessageParam[]): Promise<Message> =>
        anthropic(1)
          .messages.stream({ ...base, messages })
          .finalMessage(),
    ],
  ])('tool_use blocks, and their results, %s', async (how, ask) => {
    const before = await conversations();
    const first: Anthropic.MessageParam[] = [{ role: 'user', content: `${how}! weather:Oslo weather:Rome` }];
    const one = await ask(first);
    expect(one).toMatchObject({
      stop_reason: 'tool_use',
      content: [
        { type: 'text', text: 'Let me see.' },
        { type: 'tool_use', name: 'get_weather', input: { city: 'Oslo' } },
        { input: { city: 'Rome' } },
      ],
    });
    const second: Anthropic.MessageParam[] = [...first, { role: 'assistant', content: one.content }, results(one, true)];
    const two = await ask(second);
    expect(two).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text' }] });
    expect(two.content[0]).toMatchObject({ text: expect.stringMatching(/^So: !rain in Oslo, !rain in Rome/) as string });
    expect((await ask(second)).content).toEqual(two.content);
    await ask([...second, { role: 'assistant', content: two.content }, { role: 'user', content: 'next' }]);
    expect(await conversations()).toBe(before + 1);
  });

  test.each<[string, Anthropic.ToolChoice]>([
    ['any', { type: 'any' }],
    ['tool', { type: 'tool', name: 'get_weather' }],
  ])('with a tool_choice of the type %s', async (how, choice) => {
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: `choice-${how}! weather:Oslo` }];
    const one = await anthropic().messages.create({ ...base, messages, tool_choice: choice });
    expect([requests[0]?.tool_choice, requests[0]?.tools?.map(({ name }) => name)]).toEqual([{ type: 'any' }, ['client__get_weather']]);
    expect(one.stop_reason).toBe('tool_use');
  });

  test('the tool runner of the client', async () => {
    const runs: string[] = [];
    const tool = betaTool({
      name: 'get_weather',
      description: 'Weather.',
      inputSchema: SCHEMA,
      run: ({ city }) => (runs.push(city as string), `rain in ${city as string}`),
    });
    const before = await conversations();
    const final = await anthropic().beta.messages.toolRunner({
      model,
      max_tokens: 1_000,
      messages: [{ role: 'user', content: 'toolrunner! weather:Oslo / weather:Rome' }],
      tools: [tool],
    });
    expect(final.content[0]).toMatchObject({ text: expect.stringMatching(/^So: rain in Rome/) as string });
    expect(runs).toEqual(['Oslo', 'Rome']);
    expect(await conversations()).toBe(before + 1);
  });

  test.each<[string, object]>([
    ['a choice of what is not there', { tool_choice: { type: 'tool', name: 'other' } }],
    ['a tool of the provider', { tools: [{ type: 'bash_20250124', name: 'bash' }] }],
  ])('%s is refused', async (_, more) => {
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'refused' }];
    await expect(anthropic().messages.create({ ...base, ...more, messages })).rejects.toMatchObject({ status: 400 });
  });
});
