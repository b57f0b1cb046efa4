/** Pictures that lie in the store: by the client, over HTTP and from the terminal, to the model. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createGateway } from '../../src/gateway/app.js';
import { oneToken } from '../../src/gateway/access/entrance.js';
import { detectFileType } from '../../src/records/file-type.js';
import { echo } from '../support/echo-model.js';
import { blocksOf, type ApiRequest } from '../support/provider-apis/api-request.js';
import { runPerdura } from '../support/run-perdura.js';
import { startWorld, type World } from '../support/world.js';

const TOKEN = 'a-token-that-only-tests-have';
const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');
const PDF = Buffer.from('%PDF-1.7 a small one');
const headers = { host: 'localhost', authorization: `Bearer ${TOKEN}` };
let world: World;
let seen: ApiRequest[] = [];

beforeAll(async () => {
  world = await startWorld({
    answer(request) {
      seen.push(request);
      return echo(request);
    },
  });
});
afterAll(() => world.close());
beforeEach(() => (seen = []));

const picturesIn = (request: ApiRequest | undefined): string[] =>
  (request?.messages ?? []).flatMap(({ content }) =>
    blocksOf(content).flatMap((block) => (block.type === 'image' ? [JSON.stringify(block)] : [])),
  );

test('what is attached over HTTP reaches the model, in this turn, in the next one and in a fork', async () => {
  const app = createGateway({ client: world.client, authenticate: oneToken(TOKEN) });
  const id = world.id();
  await world.client.start(id);
  const attached = await app.request(`http://localhost/v1/conversations/${id}/attachments`, { method: 'POST', headers, body: PNG });
  expect(attached.status).toBe(201);
  const picture = (await attached.json()) as { mediaType: string; ref: string };
  expect(picture).toEqual({ mediaType: 'image/png', ref: expect.stringMatching(/^sha256:/) });
  const sent = await app.request(`http://localhost/v1/conversations/${id}/messages`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ text: 'what is this?', images: [picture] }),
  });
  expect(await sent.json()).toMatchObject({ stopReason: 'end' });
  expect(picturesIn(seen.at(-1))).toEqual([expect.stringContaining(PNG.toString('base64'))]);
  await world.client.send(id, 'and now?');
  expect(picturesIn(seen.at(-1))).toHaveLength(1);
  const fork = await world.client.fork(id, { at: 'turn_0001' });
  await world.client.send(fork.id, 'and here?');
  expect(picturesIn(seen.at(-1))).toEqual([expect.stringContaining(PNG.toString('base64'))]);
});

test('perdura send --attach sends a file, and says of one that is none what it must be', async () => {
  const id = world.id();
  await world.client.start(id);
  await writeFile(join(world.dir, 'dot.png'), PNG);
  expect(await runPerdura(world, ['send', id, 'look', '--attach', 'dot.png'])).toMatchObject({ code: 0, stdout: 'You said: look\n' });
  expect(picturesIn(seen.at(-1))).toHaveLength(1);
  await writeFile(join(world.dir, 'paper.pdf'), PDF);
  await writeFile(join(world.dir, 'notes.md'), '# Notes\n\nOslo.');
  expect(await runPerdura(world, ['send', id, 'read', '--attach', 'paper.pdf', 'notes.md'])).toMatchObject({ code: 0 });
  expect(blocksOf(seen.at(-1)?.messages.at(-1)?.content ?? [])).toMatchObject([
    { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: PDF.toString('base64') } },
    { type: 'text', text: 'read\n\n[Attached file "notes.md"]\n# Notes\n\nOslo.' },
  ]);
  await writeFile(join(world.dir, 'not.png'), Buffer.from('ID3\x03\x00'));
  const refused = await runPerdura(world, ['send', id, 'look', '--attach', 'not.png']);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('no PNG, JPEG, GIF or WebP picture')]);
  const missing = await runPerdura(world, ['send', id, 'look', '--attach', 'nowhere.png']);
  expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining('cannot attach nowhere.png')]);
});

test('of more than 10 MiB, and of a conversation that there is not, nothing is kept', async () => {
  const app = createGateway({ client: world.client, authenticate: oneToken(TOKEN) });
  const post = (id: string, body: Buffer): Promise<Response> =>
    Promise.resolve(app.request(`http://localhost/v1/conversations/${id}/attachments`, { method: 'POST', headers, body }));
  expect((await post(world.id(), Buffer.concat([PNG, Buffer.alloc(10 * 1024 * 1024)]))).status).toBe(413);
  expect((await post(world.id(), PNG)).status).toBe(404);
});

test.each([
  ['image/jpeg', 'ffd8ffe0'],
  ['image/gif', '474946383961'],
  ['image/webp', '52494646000000005745425056503820'],
  ['application/pdf', '255044462d312e37'],
  ['text/plain', '3c737667'],
  ['text/plain', 'c3a9'],
  [undefined, 'c3'],
  [undefined, '4944330300'],
  [undefined, '0000001866747970'],
  [undefined, ''],
])('%s is told by its bytes', (type, hex) => {
  expect(detectFileType(Buffer.from(hex, 'hex'))).toBe(type);
});
