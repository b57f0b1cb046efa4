/** Servers that speak nearly as OpenAI does: what they refuse is learnt from their first refusal, and the turn does not notice. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Model, ModelRequest } from '../../src/models/model.js';
import { createOpenAIModel } from '../../src/models/openai/client.js';
import { createModels } from '../../src/models/providers.js';
import { call, request, result, says, thinking, user } from './builders.js';

interface Body {
  readonly messages: readonly { readonly role: string; readonly content: unknown; readonly reasoning_content?: string }[];
  readonly [field: string]: unknown;
}

/** A server's rule: the words and the status with which it refuses a body; undefined where it takes it. */
type Rule = (body: Body) => readonly [status: number, error: unknown] | undefined;

let server: Server;
let bodies: Body[];
let rule: Rule;
let model: Model;

beforeEach(async () => {
  bodies = [];
  server = createServer((incoming, outgoing) => {
    let text = '';
    incoming.on('data', (piece: Buffer) => (text += piece.toString()));
    incoming.on('end', () => {
      const body = JSON.parse(text) as Body;
      bodies.push(body);
      const refused = rule(body);
      outgoing.writeHead(refused?.[0] ?? 200, { 'content-type': refused ? 'application/json' : 'text/event-stream' });
      if (refused) outgoing.end(JSON.stringify(refused[1]));
      else outgoing.end('data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  model = createOpenAIModel({ apiKey: 'key-of-a-test', baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` });
});

afterEach(() => server.close());

const history: ModelRequest['messages'] = [
  user('What time is it?'),
  says(thinking('I look.', 'openai'), call('a', 'get_time')),
  result('a', 'noon'),
  user('And now?'),
];

const ask = async (name = 'm'): Promise<string> =>
  await model
    .stream(request({ model: name, system: 'Be terse.', messages: history }), { signal: new AbortController().signal, onDelta: () => {} })
    .then(
      ({ stop }) => stop,
      (error: unknown) => (error as Error).message,
    );

const lacks = (field: string, body: Body): boolean => body.messages.some((message) => message.role === 'assistant' && !(field in message));
const roles = (body: Body): string => body.messages.map(({ role }) => role).join(' ');

test.each<[string, Rule]>([
  [
    'one that knows only the newer limit',
    (body) =>
      'max_tokens' in body
        ? [
            400,
            {
              error: {
                message: "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                code: 'unsupported_parameter',
              },
            },
          ]
        : undefined,
  ],
  [
    'one that refuses what it does not know, as Mistral does',
    (body) =>
      'stream_options' in body
        ? [422, { message: { detail: [{ loc: ['body', 'stream_options'], msg: 'Extra inputs are not permitted' }] } }]
        : undefined,
  ],
  [
    'one that wants its thoughts back, as DeepSeek does',
    (body) =>
      lacks('reasoning_content', body)
        ? [400, { error: { message: 'Missing `reasoning_content` field in the assistant message at index 2' } }]
        : undefined,
  ],
  [
    'one whose template has no user after a tool',
    (body) =>
      roles(body).includes('tool user') ? [400, { object: 'error', message: "Unexpected role 'user' after role 'tool'" }] : undefined,
  ],
  ['one without a system', (body) => (roles(body).includes('system') ? [500, { error: 'System role not supported' }] : undefined)],
])('%s: is asked once more, and from then on so', async (_who, itsRule) => {
  rule = itsRule;
  expect(await ask()).toBe('end');
  expect(bodies).toHaveLength(2);
  expect(await ask()).toBe('end');
  expect(bodies).toHaveLength(3);
});

test('one that wants all of it at once learns us all of it; another model behind the address is not concerned', async () => {
  rule = (body) =>
    'max_tokens' in body
      ? [400, { error: { message: 'Unknown field: max_tokens' } }]
      : 'stream_options' in body
        ? [400, { error: { message: 'unknown field "stream_options"' } }]
        : roles(body).includes('system')
          ? [400, { error: { message: 'Only user and assistant roles are supported!' } }]
          : undefined;
  expect(await ask()).toBe('end');
  expect(bodies.at(-1)).toMatchObject({
    max_completion_tokens: expect.any(Number),
    messages: [{ role: 'user', content: 'Be terse.\n\nWhat time is it?' }, {}, {}, {}],
  });
  rule = () => undefined;
  await ask('other');
  expect(bodies.at(-1)).toMatchObject({
    max_tokens: expect.any(Number),
    stream_options: {},
    messages: [{ role: 'system' }, {}, {}, {}, {}],
  });
});

test.each<[string, readonly [number, unknown]]>([
  ['a limit that is too high is no unknown field', [400, { error: { message: 'max_tokens is too large: 4096 > 2048' } }]],
  ['a wrong key', [401, { error: { message: 'Unknown key: max_tokens' } }]],
])('%s: asked once', async (_what, refused) => {
  rule = () => refused;
  expect(await ask()).toContain(JSON.stringify((refused[1] as { error: { message: string } }).error.message).slice(1, 20));
  expect(bodies).toHaveLength(1);
});

test('one that refuses whatever it is sent is asked five times at most', async () => {
  rule = (body) => [400, { error: { message: `Unknown field: ${'max_tokens' in body ? 'max_tokens' : 'max_completion_tokens'}` } }];
  expect(await ask()).toContain('Unknown field');
  expect(bodies.length).toBeLessThanOrEqual(5);
});

test('what a user says of a server is taken from the first request on, and what it refuses all the same is learnt', async () => {
  const { port } = server.address() as AddressInfo;
  const models = createModels({
    openai: { apiKey: 'key-of-a-test', baseURL: `http://127.0.0.1:${port}/v1` },
    declared: { 'openai/*': { compat: { limitField: 'max_completion_tokens', usage: false, system: 'user' } } },
  });
  model = models('openai/m');
  rule = (body) => ('max_completion_tokens' in body ? [400, { error: { message: 'max_completion_tokens is not supported' } }] : undefined);
  expect(await ask()).toBe('end');
  expect(bodies.map((body) => ['max_completion_tokens' in body, 'stream_options' in body, roles(body).includes('system')])).toEqual([
    [true, false, false],
    [false, false, false],
  ]);
});
