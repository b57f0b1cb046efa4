/** What is said of a wait outside of any protocol, to `PERDURA_NOTIFY_URL`, names a tenant's conversation as the tenant does. */
import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import type { Notice } from '../../../src/activities/dependencies.js';
import { delegate } from '../../../src/tools/builtin/conversation-tools.js';
import { defineTool } from '../../../src/tools/define-tool.js';
import { latestResults, saidIn } from '../../support/echo-model.js';
import { callTool, text } from '../../support/provider-apis/reply.js';
import { ask, tenantGateway } from '../../support/tenants.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';

const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ euros: z.number() }),
  policy: { approval: 'ask' },
  run: ({ euros }) => `paid ${euros}`,
});

const PLAN = `plan-${randomUUID()}`;

let world: World;
let server: Server;
const bodies: string[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (piece: string) => (body += piece));
    request.on('end', () => {
      bodies.push(body);
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  world = await startWorld({
    tools: [pay, delegate],
    notify: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` },
    answer: (request) => {
      const said = saidIn(request).at(-1) ?? '';
      if (latestResults(request).length > 0) return text('It is done.');
      return said.includes('delegate') ? callTool('delegate', { task: 'pay 20', title: 'pay' }) : callTool('pay', { euros: 20 });
    },
  });
});
afterAll(async () => {
  await world.close();
  server.closeAllConnections();
  server.close();
});

test('two tenants that use one id are each told of under it, sub-agents too, and who has none as before', async () => {
  const app = tenantGateway(world);
  const send = (token: string, words: string) =>
    ask(app, token, 'POST', `/v1/conversations/${PLAN}/messages?mode=enqueue`, { body: { text: words, start: {} } });
  await Promise.all([send('acme', 'pay'), send('globex', 'delegate'), send('/admin', 'pay')]);
  const notices = await waitFor(
    async () => bodies.flatMap((body) => (JSON.parse(body) as { notices: Notice[] }).notices),
    (all) => all.length >= 3,
  );
  const shown = notices.map(({ conversation, tenant, callId, command }) => [tenant, conversation, command.replace(callId, 'CALL')]);
  expect(shown.sort()).toEqual(
    [
      ['acme', PLAN, `perdura approve acme/${PLAN} CALL`],
      ['globex', `${PLAN}:turn_0001:1`, `perdura approve globex/${PLAN}:turn_0001:1 CALL`],
      [undefined, PLAN, `perdura approve ${PLAN} CALL`],
    ].sort(),
  );
  for (const body of bodies) expect(body).not.toMatch(/t-[0-9a-f]{12}-/);
});
