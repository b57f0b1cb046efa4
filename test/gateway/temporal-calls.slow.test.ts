/** What one request takes of Temporal: each call is a round trip that its client waits for. */
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { echo } from '../support/echo-model.js';
import { startWorld, type World } from '../support/world.js';

const TOKEN = 'a-token-that-only-tests-have';
let world: World;
let app: GatewayApp;
const calls: string[] = [];

beforeAll(async () => {
  world = await startWorld({ answer: (request) => echo(request) });
  app = createGateway({ client: world.client, authenticate: oneToken(TOKEN) });
  const service = world.temporal.connection.workflowService as unknown as Record<string, (...args: unknown[]) => unknown>;
  for (const verb of ['describe', 'start', 'signal', 'signalWithStart', 'update', 'query']) {
    const method = verb === 'query' ? 'queryWorkflow' : `${verb}WorkflowExecution`;
    const real = service[method];
    if (!real) throw new Error(`Temporal has no ${method}`);
    service[method] = (...args: unknown[]): unknown => {
      calls.push(verb);
      return real.apply(service, args);
    };
  }
});
afterAll(() => world.close());

async function callsOf(id: string, body: object, accept = 'application/json'): Promise<string[]> {
  calls.length = 0;
  const response = await app.request(`http://localhost/v1/conversations/${id}/messages`, {
    method: 'POST',
    headers: { host: 'localhost', authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', accept },
    body: JSON.stringify(body),
  });
  expect(await response.text()).toContain('You said: ');
  return [...calls];
}

test.each([
  ['waited for', 'application/json', ['describe']],
  // A stream asks where its turn stands whenever the feed is silent: how often is for the machine to say.
  ['streamed', 'text/event-stream', []],
])(
  'a message that is %s: Temporal is asked where it stands once, takes it once, and is waited for once',
  async (_how, accept, describes) => {
    const id = world.id();
    const counted = async (body: object): Promise<string[]> =>
      (await callsOf(id, body, accept)).filter((call) => call !== 'describe' || describes.length > 0).sort();
    expect(await counted({ text: 'one', start: {} })).toEqual([...describes, 'start', 'update', 'update']);
    expect(await counted({ text: 'two', start: {} })).toEqual([...describes, 'update', 'update']);
    expect(await counted({ text: 'three' })).toEqual([...describes, 'update', 'update']);
  },
);
