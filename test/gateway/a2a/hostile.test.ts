/** What strangers and broken programs send to /a2a: each answer has the protocol's shape, and nothing of what others have. */
import { oneToken } from '../../../src/gateway/access/entrance.js';
import { taskName } from '../../../src/gateway/a2a/task.js';
import { createGateway } from '../../../src/gateway/app.js';
import { fakeInstallation, unreachedClient } from '../../support/fake-client.js';

const TOKEN = 'a-token-that-only-tests-have';
const { client: unreached, reached } = unreachedClient();
const { client: nothing } = fakeInstallation();
const [app, empty] = [unreached, nothing].map((client) => createGateway({ client, authenticate: oneToken(TOKEN) })) as [
  ReturnType<typeof createGateway>,
  ReturnType<typeof createGateway>,
];
afterEach(() => expect(reached.splice(0)).toEqual([]));

const post = (body: string, headers: Record<string, string> = {}, to = app): Promise<Response> =>
  Promise.resolve(
    to.request('http://localhost/a2a', {
      method: 'POST',
      headers: {
        host: 'localhost',
        authorization: `Bearer ${TOKEN}`,
        'content-type': 'application/json',
        'a2a-version': '1.0',
        ...headers,
      },
      body,
    }),
  );
/** A stream that is refused late has the refusal as its only event. */
const call = async (method: string, params: unknown, headers?: Record<string, string>, to?: typeof app): Promise<Answer> => {
  const body = await (await post(JSON.stringify({ jsonrpc: '2.0', id: 'x', method, params }), headers, to)).text();
  return JSON.parse(body.replace(/^data: /, '')) as Answer;
};

interface Answer {
  readonly id: unknown;
  readonly result?: Record<string, never>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: readonly { readonly reason?: string }[] };
}

const message = (more: object = {}): object => ({ messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello' }], ...more });

test('a wrong token, no token and a foreign host are refused in the shape of JSON-RPC', async () => {
  const wrong = await post('{}', { authorization: 'Bearer wrong' });
  expect([wrong.status, await wrong.json()]).toEqual([
    401,
    { jsonrpc: '2.0', id: null, error: { code: -32_000, message: expect.any(String) } },
  ]);
  expect(wrong.headers.get('www-authenticate')).toBe('Bearer');
  const foreign = await post('{}', { host: 'evil.example' });
  expect([foreign.status, await foreign.json()]).toMatchObject([403, { error: { code: -32_000 } }]);
  const card = await app.request('http://evil.example/.well-known/agent-card.json', { headers: { host: 'evil.example' } });
  expect(card.status).toBe(403);
  expect((await app.request('http://localhost/a2a', { headers: { host: 'localhost', authorization: `Bearer ${TOKEN}` } })).status).toBe(
    405,
  );
});

test.each([
  ['no JSON', '{"jsonrpc":', -32_700],
  ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"GetTask"}]', -32_600],
  ['another version of JSON-RPC', '{"jsonrpc":"1.0","id":1,"method":"GetTask","params":{}}', -32_600],
  ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"GetTask","params":{}}', -32_600],
  ['no method', '{"jsonrpc":"2.0","id":1}', -32_600],
  ['an unknown method', '{"jsonrpc":"2.0","id":1,"method":"DropTables","params":{}}', -32_601],
  ['params that are a list', '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[1]}', -32_602],
])('%s', async (_, body, code) => {
  const { error } = (await (await post(body)).json()) as Answer;
  expect(error).toMatchObject({ code, message: expect.stringMatching(/./) });
});

test.each([
  ['no message', {}, /message is missing/],
  ['no id', { message: message({ messageId: '' }) }, /messageId/],
  ['a long id', { message: message({ messageId: 'x'.repeat(500) }) }, /messageId/],
  ['a long context', { message: message({ contextId: 'x'.repeat(257) }) }, /contextId/],
  ['the role of the agent', { message: message({ role: 'ROLE_AGENT' }) }, /ROLE_USER/],
  ['no parts', { message: message({ parts: [] }) }, /parts/],
  ['a part of nothing', { message: message({ parts: [{}] }) }, /parts\.0/],
  ['nothing said', { message: message({ parts: [{ text: '' }] }) }, /empty/],
  ['a name that is none', { message: message({ metadata: { agent: '../x' } }) }, /agent/],
  ['a picture by a strange address', { message: message({ parts: [{ url: 'file:///etc/passwd', mediaType: 'image/png' }] }) }, /url|https/],
  ['deep data', { message: message({ parts: [{ data: JSON.parse('['.repeat(100) + ']'.repeat(100)) as unknown }] }) }, /deep/],
])('a message with %s', async (_, params, words) => {
  expect((await call('SendMessage', params)).error).toMatchObject({ code: -32_602, message: expect.stringMatching(words) });
});

test('a request that is deeper than any may be is refused before the protocol reads it, in its words', async () => {
  const data = JSON.parse('['.repeat(500) + ']'.repeat(500)) as unknown;
  const { error } = await call('SendMessage', { message: message({ parts: [{ data }] }) });
  expect(error).toMatchObject({ code: -32_600, message: expect.stringMatching(/128 levels deep/) });
});

test('files, media types and push notifications that there are not', async () => {
  const file = await call('SendMessage', { message: message({ parts: [{ raw: 'AAEC', mediaType: 'application/x-unknown' }] }) });
  expect(file.error).toMatchObject({ code: -32_005, data: [{ reason: 'CONTENT_TYPE_NOT_SUPPORTED' }] });
  const wants = { message: message(), configuration: { acceptedOutputModes: ['video/mp4'] } };
  expect((await call('SendMessage', wants)).error?.code).toBe(-32_005);
  const pushed = { message: message(), configuration: { taskPushNotificationConfig: { url: 'https://example.com' } } };
  expect((await call('SendMessage', pushed)).error?.code).toBe(-32_003);
  expect((await call('CreateTaskPushNotificationConfig', { taskId: 'x', url: 'https://example.com' })).error?.code).toBe(-32_003);
  const plain = await post('{}', { 'content-type': 'text/plain' });
  expect([plain.status, await plain.json()]).toMatchObject([415, { error: { code: -32_005 } }]);
});

test('tasks that there are not, by whatever id', async () => {
  const { task: id } = taskName('a-context', 'turn_0001');
  const forged = [
    ...['x', `${id}x`, `${id}=`, 'A'.repeat(5_000), id, taskName('a-context', 'turn_0000').task],
    ...[taskName('another', 'turn_0001').task, taskName('../../x', 'turn_0001').task],
  ];
  for (const method of ['GetTask', 'CancelTask', 'SubscribeToTask']) {
    for (const one of forged) {
      const { error } = await call(method, { id: one }, {}, empty);
      expect([method, one.slice(0, 80), error?.code]).toEqual([method, one.slice(0, 80), -32_001]);
    }
    expect((await call(method, { id: '' })).error?.code).toBe(-32_602);
  }
  expect((await call('SendMessage', { message: message({ messageId: 'm2', taskId: id }) }, {}, empty)).error?.code).toBe(-32_001);
  const mixed = message({ messageId: 'm2', taskId: id, contextId: 'another' });
  expect((await call('SendMessage', { message: mixed })).error).toMatchObject({
    code: -32_602,
    message: expect.stringMatching(/contextId/),
  });
});

test('a body that is too large', async () => {
  const large = await post(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { x: 'x'.repeat(9 * 1024 * 1024) } }));
  expect([large.status, await large.json()]).toMatchObject([413, { jsonrpc: '2.0', error: { code: -32_600 } }]);
});

test('a version that is not spoken is refused', async () => {
  expect((await call('SendMessage', { message: message() }, { 'a2a-version': '9.9' })).error?.code).toBe(-32_009);
});
