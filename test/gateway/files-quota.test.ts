/** What conversations keep of files has a limit for each tenant, in every protocol that takes files, whichever way they come. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createGateway } from '../../src/gateway/app.js';
import type { GatewayApp } from '../../src/gateway/context.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { echo } from '../support/echo-model.js';
import { TOKEN } from '../support/event-reader.js';
import { begunSince, listedIds } from '../support/listed-ids.js';
import { bytesOfFiles } from '../support/store-bytes.js';
import { startWorld, type World } from '../support/world.js';

const QUOTA = 200_000;
/** As base64 it takes 88,000 bytes: two of them are within the quota, and three are not. */
const picture = (name: string, bytes = 66_000): string =>
  Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.from(name.padEnd(bytes - 8, '.'))]).toString('base64');
const url = (base64: string): string => `data:image/png;base64,${base64}`;

let world: World;
let app: GatewayApp;

beforeAll(async () => {
  world = await startWorld({ answer: (request) => echo(request), keptFileBytes: QUOTA });
  app = createGateway({
    client: world.client,
    authenticate: (token) =>
      token.startsWith('of-') ? Promise.resolve({ name: token, role: 'user', tenant: token.slice(3) }) : oneToken(TOKEN)(token),
    tenantKey: 'k'.repeat(32),
    agents: () => Promise.resolve(['default']),
  });
});
afterAll(() => world.close());

async function post(path: string, body: unknown, token = TOKEN): Promise<{ readonly status: number; readonly text: string }> {
  const answer = await app.request(`http://localhost${path}`, {
    method: 'POST',
    headers: { host: 'localhost', authorization: `Bearer ${token}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, text: await answer.text() };
}

const send = (id: string, message: object, token?: string) =>
  post(`/v1/conversations/${id}/messages`, { text: 'look', start: {}, ...message }, token);
const withPicture = (base64: string) => ({ images: [{ mediaType: 'image/png', base64 }] });
const kept = (tenant = ''): Promise<number> => world.store.uploads.kept({ namespace: 'default', tenant });

test('a tenant fills its quota and no other’s; the same message again counts once, and a deletion makes room', async () => {
  const [one, two] = [`one-${randomUUID()}`, `two-${randomUUID()}`];
  const first = { id: 'm1', ...withPicture(picture('a')) };
  expect((await send(one, first, 'of-acme')).status).toBe(200);
  expect((await send(one, first, 'of-acme')).status).toBe(200);
  expect((await send(two, withPicture(picture('a')), 'of-acme')).status).toBe(200);
  expect(await kept('acme')).toBe(176_000);
  const refused = await send(one, { id: 'm2', ...withPicture(picture('b')) }, 'of-acme');
  expect(refused.text).toContain('conversations keep 176000 of at most 200000; delete some');
  expect(refused.status).toBe(413);
  // One that stays in its message counts as well.
  expect((await send(one, { id: 'm3', ...withPicture(picture('c', 24_000)) }, 'of-acme')).status).toBe(413);
  expect((await send(one, { id: 'm4', ...withPicture(picture('c', 12_000)) }, 'of-acme')).status).toBe(200);
  expect(await kept('acme')).toBe(192_000);
  expect((await send(one, { id: 'm5' }, 'of-acme')).status).toBe(200);
  expect((await send(`other-${randomUUID()}`, withPicture(picture('b')), 'of-beta')).status).toBe(200);
  expect(await kept('beta')).toBe(88_000);

  const [listed] = (await world.client.list({ query: `TaskQueue = '${world.taskQueue}'` })).filter(({ publicId }) => publicId === two);
  await world.client.terminate(listed?.id ?? '', 'the end');
  await world.client.deleteConversation(listed?.id ?? '');
  expect(await kept('acme')).toBe(104_000);
  expect((await send(one, { id: 'm6', ...withPicture(picture('b')) }, 'of-acme')).status).toBe(200);
});

test('an upload that a message names counts where it is used, and is refused there', async () => {
  const tenant = `t-${randomUUID().slice(0, 8)}`;
  const upload = async (name: string): Promise<string> => {
    const answer = await app.request('http://localhost/v1/attachments', {
      method: 'POST',
      headers: { host: 'localhost', authorization: `Bearer of-${tenant}` },
      body: Buffer.from(picture(name), 'base64'),
    });
    return ((await answer.json()) as { ref: string }).ref;
  };
  const refs = [await upload('a'), await upload('b'), await upload('c')];
  const statuses: number[] = [];
  for (const ref of refs) statuses.push((await send(`up-${ref.slice(4, 12)}`, { documents: [{ ref }] }, `of-${tenant}`)).status);
  expect(statuses).toEqual([200, 200, 413]);
  expect(await kept(tenant)).toBe(176_000);
});

test('each protocol refuses in its own shape, before anything is begun or written', async () => {
  const id = `full-${randomUUID()}`;
  for (const name of ['a', 'b']) expect((await send(id, { id: name, ...withPicture(picture(name)) })).status).toBe(200);
  const base64 = picture('new');
  const parts = [{ type: 'text', text: 'look' }];
  const said = (part: object): object[] => [{ role: 'user', content: [...parts, part] }];
  const bodies: readonly (readonly [path: string, body: unknown])[] = [
    ['/v1/conversations/fresh/messages', { text: 'look', start: {}, ...withPicture(base64) }],
    ['/v1/chat/completions', { model: 'default', messages: said({ type: 'image_url', image_url: { url: url(base64) } }) }],
    ['/v1/responses', { model: 'default', input: [{ role: 'user', content: [{ type: 'input_image', image_url: url(base64) }] }] }],
    [
      '/v1/messages',
      {
        ...{ model: 'default', max_tokens: 100 },
        messages: said({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64 } }),
      },
    ],
    [
      '/api/chat',
      {
        id: 'fresh-chat',
        messages: [{ id: 'm', role: 'user', parts: [...parts, { type: 'file', mediaType: 'image/png', url: url(base64) }] }],
      },
    ],
    [
      '/agui',
      {
        ...{ threadId: 'fresh-thread', runId: 'r', state: {}, tools: [], context: [], forwardedProps: {} },
        messages: [
          {
            ...{ id: 'm', role: 'user' },
            content: [...parts, { type: 'image', source: { type: 'data', value: base64, mimeType: 'image/png' } }],
          },
        ],
      },
    ],
    [
      '/a2a',
      {
        ...{ jsonrpc: '2.0', id: 1, method: 'SendMessage' },
        params: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'look' }, { raw: base64, mediaType: 'image/png' }] } },
      },
    ],
  ];
  const bytes = async (): Promise<number> => (await bytesOfFiles(join(world.dir, 'memory'))).length;
  const before = [await listedIds(world.client), await bytes()] as const;
  for (const [path, body] of bodies) {
    const { status, text } = await post(path, body);
    expect([path, text]).toEqual([path, expect.stringMatching(/cannot keep 88000 more bytes of files: .*176000 of at most 200000/)]);
    expect([path, status]).toEqual([path, path === '/a2a' ? 200 : 413]);
    expect(text.length).toBeLessThan(1_000);
  }
  expect([await bytes(), await begunSince(world.client, before[0])]).toEqual([before[1], []]);
  expect(await kept()).toBe(176_000);
});
