/** Events of tenants: to the address of the tenant's own rule, in the names that the tenant knows, sub-agents too. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { WebhookEndpoint } from '../../../src/config.js';
import type { GatewayApp } from '../../../src/gateway/context.js';
import { WEBHOOK_EVENTS } from '../../../src/records/turn-end.js';
import { delegate } from '../../../src/tools/builtin/conversation-tools.js';
import { defineTool } from '../../../src/tools/define-tool.js';
import { saidIn, latestResults } from '../../support/echo-model.js';
import { callTool, text } from '../../support/provider-apis/reply.js';
import { ask, tenantGateway } from '../../support/tenants.js';
import { waitFor } from '../../support/wait-for.js';
import { SECRET, startReceiver, type Receiver } from '../../support/webhook-receiver.js';
import { startWorld, type World } from '../../support/world.js';

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ euros: z.number() }),
  policy: { approval: 'ask' },
  run: ({ euros }) => `paid ${euros}`,
});

const [PLAN, TRIP] = [`plan-${randomUUID()}`, `trip-${randomUUID()}`] as const;

let world: World;
let app: GatewayApp;
let acmes: Receiver;
let all: Receiver;

beforeAll(async () => {
  [acmes, all] = [await startReceiver(), await startReceiver()];
  const to = (url: string | null, of: Partial<WebhookEndpoint> = {}): WebhookEndpoint => ({
    url,
    secrets: [SECRET],
    events: WEBHOOK_EVENTS,
    ...of,
  });
  world = await startWorld({
    tools: [pay, delegate],
    // A scope that no tenant's is, whatever tenants call theirs.
    webhooks: { endpoints: [to(null, { scope: 'default' }), to(acmes.url, { tenant: 'acme' }), to(all.url)], ms: 1_000 },
    answer: (request) => {
      const said = saidIn(request).at(-1) ?? '';
      if (latestResults(request).length > 0) return text('It is done.');
      if (said.includes('delegate')) return callTool('delegate', { task: 'pay 20', title: 'pay' });
      return said.includes('pay 20') ? callTool('pay', { euros: 20 }) : text(`You said: ${said}`);
    },
  });
  app = tenantGateway(world);
});
afterAll(async () => {
  await world.close();
  await Promise.all([acmes.stop(), all.stop()]);
});

test('each tenant’s events name what it knows, and go where its rule says', async () => {
  await Promise.all(
    ['acme', 'globex', '/admin'].map((token) =>
      ask(app, token, 'POST', `/v1/conversations/${PLAN}/messages`, { body: { text: `hello from ${token}`, start: {} } }),
    ),
  );
  const [own, others] = [await posted(acmes, 1), await posted(all, 1)];
  expect(own).toMatchObject([
    { type: 'turn.finished', data: { conversation: PLAN, tenant: 'acme', scope: 'default', text: 'You said: hello from acme' } },
  ]);
  expect(others).toMatchObject([
    { type: 'turn.finished', data: { conversation: PLAN, tenant: 'globex', scope: 'default', text: 'You said: hello from globex' } },
  ]);
});

test('what a sub-agent asks names its parent as the tenant does, and is answered through the tenant’s gateway', async () => {
  const sending = ask(app, 'acme', 'POST', `/v1/conversations/${TRIP}/messages`, { body: { text: 'delegate it', start: {} } });
  const [asked] = (await posted(acmes, 2)).slice(-1);
  expect(asked).toMatchObject({
    type: 'approval.waiting',
    data: {
      ...{ conversation: `${TRIP}:turn_0001:1`, parent: { conversation: TRIP }, tenant: 'acme', scope: 'default', tool: 'pay' },
      command: expect.stringMatching(new RegExp(`^perdura approve acme/${TRIP}:turn_0001:1 turn_\\d+/c1$`)),
    },
  });
  const { conversation, callId, hash } = (asked as { data: { conversation: string; callId: string; hash: string } }).data;
  const decide = (token: string) =>
    ask(app, token, 'POST', `/v1/conversations/${TRIP}/decide`, { body: { conversation, callId, hash, decision: 'approve' } });
  expect((await decide('globex')).status).toBe(404);
  expect((await decide('acme')).status).toBeLessThan(300);
  expect((await sending).json).toMatchObject({ text: 'It is done.' });
  await posted(acmes, 3);
});

/** Bodies, none of which has an id of Temporal's. */
async function posted({ got, refused }: Receiver, count: number): Promise<object[]> {
  await waitFor(
    async () => got.length,
    (length) => length >= count,
  );
  expect(refused).toEqual([]);
  for (const { body } of got) expect(body).not.toMatch(/t-[0-9a-f]{12}-|acme\.|globex\./);
  return got.map(({ event }) => event);
}
