/** Which requests are one by the id that the gateway gives them: a repeat and its first one, and nothing else. */
import { Hono } from 'hono';
import type { GatewayVariables } from '../../src/gateway/context.js';
import { toProblem } from '../../src/gateway/core/errors.js';
import { idOfRequest } from '../../src/gateway/core/read-body.js';
import { createRepeatedRequests, notesInMemory } from '../../src/gateway/core/repeated-requests.js';

interface Sent {
  readonly token?: string;
  readonly tenant?: string;
  readonly path?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

function createApp(joinsEqual = false): (attempt: number | undefined, sent?: Sent) => Promise<Response> {
  const record = createRepeatedRequests(notesInMemory(), { joinsEqual });
  const app = new Hono<GatewayVariables>();
  app.use(async (context, next) => {
    const tenant = context.req.header('x-tenant');
    context.set('principal', { name: context.req.header('x-token') ?? '', role: 'user', ...(tenant !== undefined && { tenant }) });
    context.set('repeated', { record, joinsEqual });
    await next();
  });
  app.post('*', async (context) => context.text(await idOfRequest(context as never)));
  app.onError((error, context) => context.json(toProblem(error), toProblem(error).status));
  return async (attempt, { token = 'ada', tenant, path = '/v1/chat', body = '{"a":1}', headers = {}, signal } = {}) => {
    const counted: Record<string, string> = attempt === undefined ? {} : { 'x-stainless-retry-count': `${attempt}` };
    const named: Record<string, string> = { 'x-token': token, ...(tenant !== undefined && { 'x-tenant': tenant }), ...counted, ...headers };
    return app.request(new Request(`http://localhost${path}`, { method: 'POST', body, headers: named, ...(signal && { signal }) }));
  };
}

test.each<[string, Sent]>([
  ['token', { token: 'bob' }],
  ['tenant', { tenant: 'acme' }],
  ['path', { path: '/v1/messages' }],
  ['query', { path: '/v1/chat?tenant=acme' }],
  ['body', { body: '{"a":2}' }],
  ['conversation', { headers: { 'x-perdura-conversation': 'c' } }],
  ['key', { headers: { 'idempotency-key': 'k' } }],
])('a repeat with another %s is no repeat of it', async (_, other) => {
  const send = createApp();
  const first = await (await send(0)).text();
  expect(await (await send(1, other)).text()).not.toBe(first);
  expect(await (await send(1)).text()).toBe(first);
});

test('equal requests that count nothing are several, and one where that is set', async () => {
  const ids = async (joinsEqual: boolean): Promise<Set<string>> => {
    const send = createApp(joinsEqual);
    return new Set([await (await send(undefined)).text(), await (await send(undefined)).text()]);
  };
  expect([(await ids(false)).size, (await ids(true)).size]).toEqual([2, 1]);
});

test('one whose client has given up before it was noted is not taken', async () => {
  const answer = await createApp()(0, { signal: AbortSignal.abort() });
  expect([answer.status, await answer.json()]).toMatchObject([503, { type: 'aborted' }]);
});
