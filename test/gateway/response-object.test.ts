/** A response has every field of the open specification, has again what its request has set, and is the same whenever it is read. */
import OpenAI from 'openai';
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { readSettings, toEcho } from '../../src/gateway/openai/settings.js';
import { latestResults } from '../support/echo-model.js';
import { TOKEN } from '../support/event-reader.js';
import { callTools, text } from '../support/provider-apis/reply.js';
import { fetchInto } from '../support/into-app.js';
import { startWorld, type World } from '../support/world.js';

let world: World;
let app: GatewayApp;
let openai: OpenAI;

beforeAll(async () => {
  world = await startWorld({
    engine: 'memory',
    answer: (request) => {
      const tools = request.tools?.map(({ name }) => name) ?? [];
      if (tools.includes('client__where') && latestResults(request).length === 0) return callTools({ name: 'client__where', input: {} });
      return { ...text('{"city":"Oslo"}'), usage: { input_tokens: 70, output_tokens: 7 } };
    },
  });
  app = createGateway({ client: world.client, authenticate: oneToken(TOKEN), agents: () => Promise.resolve(['default']) });
  const fetch = fetchInto(app);
  openai = new OpenAI({ apiKey: TOKEN, baseURL: 'http://localhost/v1', maxRetries: 0, fetch });
});
afterAll(() => world.close());

/** As `ResponseResource` of the open specification requires them (openresponses.org, 2026-04-24). */
const REQUIRED =
  'id object created_at completed_at status incomplete_details model previous_response_id instructions output error tools tool_choice truncation ' +
  'parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs temperature reasoning usage max_output_tokens max_tool_calls ' +
  'store background service_tier metadata safety_identifier prompt_cache_key';

const base = { model: 'default', input: 'Where is it?' };
const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
const SET = {
  instructions: 'Be short.',
  metadata: { trip: '7' },
  temperature: 0.5,
  top_p: 0.9,
  max_output_tokens: 500,
  truncation: 'auto' as const,
  reasoning: { effort: 'low' as const },
  safety_identifier: 'user-7',
  prompt_cache_key: 'trips',
  service_tier: 'flex' as const,
  text: { format: { type: 'json_schema' as const, name: 'place', schema: SCHEMA, strict: true } },
};

/** When it ended is told live by the clock of the gateway, and later by the record. */
const withoutTimes = ({ created_at: _created, completed_at: _completed, ...rest }: OpenAI.Responses.Response): object => rest;

test('with what was set, and the same when it is read later', async () => {
  const made = await openai.responses.create({ ...base, ...SET });
  expect(made).toMatchObject({ ...SET, reasoning: { effort: 'low', summary: null }, status: 'completed', usage: { output_tokens: 7 } });
  const read = await openai.responses.retrieve(made.id);
  expect(withoutTimes(read)).toEqual(withoutTimes(made));
  for (const response of [made, read]) {
    expect(Object.keys(response)).toEqual(expect.arrayContaining(REQUIRED.split(' ')));
    expect(response.completed_at).toEqual(expect.any(Number));
  }
});

test('with the defaults of the specification where nothing was set', async () => {
  const numbers = { temperature: 1, top_p: 1, presence_penalty: 0, frequency_penalty: 0, top_logprobs: 0 };
  const expected = { ...numbers, truncation: 'disabled', tools: [], text: { format: { type: 'text' } }, service_tier: 'default' };
  expect(await openai.responses.create(base)).toMatchObject(expected);
});

test('of a turn that waited for its client, each response has its tools and its own usage', async () => {
  const tools = [{ type: 'function' as const, name: 'where', parameters: { type: 'object', properties: {} }, strict: null }];
  const asked = await openai.responses.create({ ...base, tools, metadata: { step: '1' } });
  const call = asked.output.find((one) => one.type === 'function_call');
  const output = [{ type: 'function_call_output' as const, call_id: call?.call_id ?? '', output: 'Norway' }];
  const ended = await openai.responses.create({ ...base, tools, metadata: { step: '1' }, previous_response_id: asked.id, input: output });
  expect(ended.usage?.output_tokens).toBe(7);
  for (const made of [asked, ended]) {
    const read = await openai.responses.retrieve(made.id);
    expect(read).toMatchObject({
      tools: [{ name: 'where', description: null }],
      metadata: { step: '1' },
      usage: made.usage,
      output: made.output,
    });
  }
});

test('of settings that are too long the short ones are kept', () => {
  const long = 'x'.repeat(20_000);
  const kept = toEcho(
    readSettings({ metadata: { a: 'b' }, instructions: long, tools: [{ type: 'function', name: 'f', description: long }] }),
  );
  expect(kept).toEqual({ metadata: { a: 'b' } });
  expect(toEcho(readSettings({ temperature: 'warm', tools: 7 }))).toBeUndefined();
});

test('every answer names its request, and those of Messages by that protocol too', async () => {
  const ask = (path: string, body?: object): Promise<Response> =>
    Promise.resolve(
      app.request(`http://localhost${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { host: 'localhost', authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      }),
    );
  const answers = await Promise.all([
    ask('/healthz'),
    ask('/v1/models'),
    ask('/nowhere'),
    ask('/v1/responses', {}),
    ask('/v1/responses', { ...base, stream: true }),
  ]);
  const ids = answers.map(({ headers }) => headers.get('x-request-id'));
  expect(ids).toEqual(ids.map(() => expect.stringMatching(/^req_[0-9a-f]{32}$/)));
  expect(new Set(ids).size).toBe(ids.length);
  const refused = await ask('/v1/messages', {});
  const id = refused.headers.get('request-id');
  expect(id).toBe(refused.headers.get('x-request-id'));
  expect(await refused.json()).toMatchObject({ type: 'error', request_id: id });
});
