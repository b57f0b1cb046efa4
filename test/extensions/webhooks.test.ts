/** One attempt at a webhook: what is sent, what each answer means, and what a receiver cannot do to a worker. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { Posted } from '../../src/activities/dependencies.js';
import type { WebhookEndpoint } from '../../src/config.js';
import { createWebhooks, endpointFor } from '../../src/extensions/webhooks.js';
import { qualifiedScope } from '../../src/records/identity.js';
import { WEBHOOK_EVENTS } from '../../src/records/turn-end.js';
import { waitFor } from '../support/wait-for.js';
import { SECRET, startReceiver, type Receiver } from '../support/webhook-receiver.js';

const NEVER = new AbortController().signal;
const NEXT = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
const BODY = JSON.stringify({ type: 'webhook.test', timestamp: '2026-11-24T12:00:00.000Z', data: { scope: 'default' } });

let receiver: Receiver;
let count = 0;

beforeEach(async () => (receiver = await startReceiver()));
afterEach(async () => receiver.stop());

const to = (more: Partial<WebhookEndpoint> = {}): WebhookEndpoint => ({
  url: receiver.url,
  secrets: [SECRET],
  events: WEBHOOK_EVENTS,
  ...more,
});
const event = (id = `evt_${++count}`): Posted => ({ id, identity: { life: 'l', agent: 'a', scope: 'default' }, body: BODY });
const made = (endpoints = [to()], ms = 30_000) => createWebhooks(endpoints, { ms })!;

test('without an address there is none', () => {
  expect(createWebhooks([])).toBeUndefined();
  expect(createWebhooks([to({ url: null })])).toBeUndefined();
});

test('the first rule that fits counts, by tenant and scope; one without an address ends it', () => {
  const rules = [
    to({ scope: 'quiet', url: null }),
    to({ tenant: 'acme', scope: 'a', url: 'http://one' }),
    to({ tenant: 'acme', url: 'http://two' }),
    to({ url: 'http://all' }),
  ];
  const urlOf = (scope: string, tenant?: string) => endpointFor(rules, { scope: qualifiedScope(tenant, scope) })?.url;
  expect([urlOf('quiet'), urlOf('a', 'acme'), urlOf('b', 'acme'), urlOf('a'), urlOf('a', 'other'), urlOf('quiet', 'other')]).toEqual([
    undefined,
    'http://one',
    'http://two',
    'http://all',
    'http://all',
    'http://all',
  ]);
});

test('receivers that know the old secret or the new one alone both accept while it changes', async () => {
  await made([to({ secrets: [NEXT, SECRET] })]).post(event(), NEVER);
  expect(receiver.refused).toEqual([]);
  const [got] = receiver.got;
  expect(() => new Webhook(NEXT).verify(got!.body, got!.headers as Record<string, string>)).not.toThrow();
  await made([to({ secrets: [NEXT] })]).post(event(), NEVER);
  expect(receiver.refused).toHaveLength(1);
});

test.each([
  [200, { kind: 'delivered', status: 200 }],
  [410, { kind: 'gone', status: 410 }],
  [
    { status: 307, headers: { location: '/elsewhere' } },
    { kind: 'failed', message: 'it answered 307, and redirects are not followed' },
  ],
  [404, { kind: 'failed', message: 'it answered 404' }],
  [
    { status: 503, headers: { 'retry-after': '7' } },
    { kind: 'failed', message: 'it answered 503', retryAfterMs: 7_000 },
  ],
  [
    { status: 503, headers: { 'retry-after': '99999999' } },
    { kind: 'failed', message: 'it answered 503', retryAfterMs: 3_600_000 },
  ],
  [
    { status: 503, headers: { 'retry-after': 'soon' } },
    { kind: 'failed', message: 'it answered 503' },
  ],
] as const)('an answer of %j is %j', async (answer, outcome) => {
  receiver.answer(answer);
  expect(await made().post(event(), NEVER)).toEqual(outcome);
});

test('an answer that does not come is waited for as long as it may take', async () => {
  receiver.answer('hang');
  expect(await made([to()], 500).post(event(), NEVER)).toEqual({ kind: 'failed', message: 'no answer within 500 ms' });
});

test('an address that nobody listens at is named by its error alone', async () => {
  await receiver.stop();
  expect(await made().post(event(), NEVER)).toEqual({ kind: 'failed', message: 'it cannot be reached (ECONNREFUSED)' });
  await receiver.restart();
});

test('an event that was taken is not posted again by the same worker, also when it is asked to', async () => {
  const webhooks = made();
  const one = event();
  receiver.answer(500, 201);
  expect(await webhooks.post(one, NEVER)).toMatchObject({ kind: 'failed' });
  for (let i = 0; i < 3; i++) expect(await webhooks.post(one, NEVER)).toEqual({ kind: 'delivered', status: 201 });
  expect(receiver.got).toHaveLength(2);
});

test('a receiver that hangs gets twenty at once, and the others are told to come again', async () => {
  receiver.answer(...Array<'hang'>(20).fill('hang'));
  const webhooks = made();
  const leave = new AbortController();
  const posting = Array.from({ length: 30 }, () => webhooks.post(event(), leave.signal));
  await waitFor(
    () => receiver.got.length,
    (got) => got === 20,
  );
  leave.abort();
  const outcomes = (await Promise.allSettled(posting)).map((one) => (one.status === 'fulfilled' ? one.value : undefined));
  expect(outcomes.filter((one) => one?.kind === 'failed' && one.retryAfterMs === 5_000)).toHaveLength(10);
  expect(receiver.got).toHaveLength(20);
  expect(await webhooks.post(event(), NEVER)).toMatchObject({ kind: 'delivered' });
});

test('an answer without end is not read', async () => {
  let sent = 0;
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200);
    const more = (): void => {
      while (!response.destroyed && response.write('x'.repeat(65_536))) sent += 65_536;
    };
    response.on('drain', more);
    more();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  expect(await made([to({ url })]).post(event(), NEVER)).toEqual({ kind: 'delivered', status: 200 });
  expect(sent).toBeLessThan(16 * 1024 * 1024);
  server.closeAllConnections();
  server.close();
});
