/** With `PERDURA_ENCRYPTION` what people, models and tools say stands nowhere: neither in Temporal's database nor in the store. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { httpError } from '../support/provider-apis/faults.js';
import type { Reply } from '../support/provider-apis/reply.js';
import { answerTo, echo, saidIn } from '../support/echo-model.js';
import { startPerdura, type Ran } from '../support/run-perdura.js';
import { sceneTest, type Scene } from '../support/scene.js';
import { bytesOfFiles, bytesOfRedis } from '../support/store-bytes.js';
import { temporalProgram } from '../support/temporal-server.js';
import { startWorkerProcess } from '../support/worker-process.js';
import { waitFor } from '../support/wait-for.js';

const CANARY = 'Kanarienvogel-9c1f';
/** As bytes could show it: as it is, in base64 at any place of three, in hex. */
const FORMS = [
  CANARY,
  ...[0, 1, 2].map((shift) =>
    Buffer.from('x'.repeat(shift) + CANARY)
      .toString('base64')
      .slice(shift === 0 ? 0 : 4, 20),
  ),
  Buffer.from(CANARY).toString('hex'),
];
const KEYS = randomBytes(32).toString('hex');
const ENCRYPTED = { PERDURA_ENCRYPTION: 'file:keys' };

/** Of attempts that are made again Temporal keeps why the last one failed. */
let isOverloaded = false;

function answer(request: ApiRequest): Reply {
  const said = saidIn(request).at(-1) ?? '';
  if (said.includes('refuse me')) return httpError(400, { message: `the request has ${CANARY} in it` });
  if (said.includes('overload') && (isOverloaded = !isOverloaded)) return httpError(529, { message: `${CANARY} is too much` });
  return echo(request, (text) => {
    if (text.includes('note it')) return [{ name: 'note', input: { item: `${CANARY} noted` } }];
    if (text.includes('write it'))
      return [
        { name: 'write_file', input: { path: 'notes.txt', content: CANARY } },
        { name: 'read_file', input: { path: 'notes.txt' } },
      ];
    if (text.includes('fail it')) return [{ name: 'read_file', input: { path: `${CANARY}.txt` } }];
    return [];
  });
}

async function talk(scene: Scene): Promise<string> {
  scene.letToolsEnd();
  await scene.startWorker();
  const { client } = scene;
  const id = scene.id();
  const start = { title: `About ${CANARY}` };
  for (const text of ['hello', 'note it', 'write it', 'fail it', 'overload']) {
    const said = `${CANARY}: ${text}`;
    expect(await client.send(id, said, { start })).toMatchObject({ text: answerTo(said), stopReason: 'end' });
  }
  expect(await client.send(id, `${CANARY}: refuse me`)).toMatchObject({ stopReason: 'failed' });
  // Longer than what travels in history.
  const long = `${CANARY} ${'and so on '.repeat(4_000)}`;
  expect(await client.send(id, long)).toMatchObject({ stopReason: 'end' });
  await client.interrupt(id, CANARY);
  await client.reset(id);
  await waitFor(
    () => client.send(id, `${CANARY} again`),
    ({ stopReason }) => stopReason === 'end',
  );
  return id;
}

async function bytesOfTemporal({ dir }: Scene): Promise<string> {
  const files = (await readdir(dir)).filter((name) => name.startsWith('temporal.db'));
  return (await Promise.all(files.map((name) => readFile(join(dir, name), 'latin1')))).join('\n');
}

const bytesOfStore = (scene: Scene, redis: boolean): Promise<string> =>
  redis ? bytesOfRedis(scene.redis.url) : bytesOfFiles(join(scene.dir, 'memory'));

for (const redis of [false, true]) {
  const kind = redis ? 'Redis' : 'files';
  sceneTest(
    `Temporal and ${kind} have no word of a conversation, its client all`,
    { ownTemporal: true, redis, ledger: true, answer, env: ENCRYPTED, root: { keys: `${KEYS}\n` } },
    async (scene) => {
      const id = await talk(scene);
      expect(JSON.stringify(await scene.client.history(id)).split(CANARY).length).toBeGreaterThan(10);
      expect((await scene.client.describe(id)).title).toBe(`About ${CANARY}`);
      await scene.killTemporal();
      const [temporal, store] = [await bytesOfTemporal(scene), await bytesOfStore(scene, redis)];
      for (const bytes of [temporal, store]) {
        expect(bytes.length).toBeGreaterThan(50_000);
        for (const form of FORMS) expect(around(bytes, form)).toEqual([]);
      }
    },
    240_000,
  );
}

sceneTest(
  'the same search finds them where nothing is encrypted',
  { ownTemporal: true, ledger: true, answer },
  async (scene) => {
    await talk(scene);
    await scene.killTemporal();
    for (const bytes of [await bytesOfTemporal(scene), await bytesOfStore(scene, false)]) {
      expect(bytes.split(CANARY).length).toBeGreaterThan(20);
    }
  },
  240_000,
);

sceneTest(
  'a client that encrypts nothing is heard, and a conversation that began plain goes on encrypted',
  { ownTemporal: true, answer, env: {}, root: { keys: `${KEYS}\n` } },
  async (scene) => {
    const id = scene.id();
    const plain = await scene.startWorker();
    await scene.client.send(id, 'in plain words', { start: {} });
    await plain.stop();
    await scene.startWorker({ env: ENCRYPTED });
    await scene.temporal.workflow.getHandle(id).signal('message', { id: 'm2', text: 'from outside' });
    await waitFor(
      () => scene.api.hits.length,
      (hits) => hits >= 2,
    );
    expect(saidIn(scene.api.hits.at(-1)?.body as ApiRequest)).toEqual(['in plain words', 'from outside']);
  },
  240_000,
);

const commandsIn =
  (scene: Scene) =>
  (env: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Ran> =>
    startPerdura(scene, args, { env: { TEMPORAL_ADDRESS: scene.address, PATH: process.env['PATH'] ?? '', ...env } }).ended;

sceneTest(
  'Temporal’s program shows the words through the codec server, and none without it',
  { ownTemporal: true, answer, env: ENCRYPTED, root: { keys: `${KEYS}\n` } },
  async (scene) => {
    await scene.startWorker();
    const id = scene.id();
    await scene.client.send(id, `${CANARY}: hello`, { start: {} });
    const server = startWorkerProcess({
      cwd: scene.dir,
      env: ENCRYPTED,
      command: { args: ['admin', 'codec-server', '--port', '0'], readyOn: 'until Ctrl+C' },
    });
    scene.onClose(() => server.kill());
    await server.ready;
    const [, url = ''] = /decrypting at (\S+)/.exec(server.log()) ?? [];
    const show = async (...more: readonly string[]): Promise<string> => {
      const args = ['workflow', 'show', '-w', id, '--address', scene.address, '-o', 'json', ...more];
      return (await promisify(execFile)(temporalProgram(), args, { maxBuffer: 64 * 1024 * 1024 })).stdout;
    };
    const plain = JSON.stringify(toWords(JSON.parse(await show('--codec-endpoint', url))));
    expect(plain.split(CANARY).length).toBeGreaterThan(3);
    const sealed = JSON.stringify(toWords(JSON.parse(await show())));
    expect(around(sealed, CANARY)).toEqual([]);
    server.term();
    expect(await server.ended).toEqual({ code: 0, signal: null });
  },
  240_000,
);

sceneTest(
  'what a store has in plain is encrypted by a command, and MEMORY.md is edited by another',
  { ownTemporal: true, answer, root: { keys: `${KEYS}\n`, 'edit.sh': 'echo "- by hand" >> "$1"\n' } },
  async (scene) => {
    const id = scene.id();
    const perdura = commandsIn(scene);
    const memory = join(scene.dir, 'memory');
    const before = await scene.startWorker();
    await scene.client.send(id, `${CANARY}: hello`, { start: {} });
    await before.stop();
    expect(await bytesOfFiles(memory)).toContain(CANARY);

    expect(await perdura({}, 'admin', 'rekey')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('set PERDURA_ENCRYPTION') as unknown,
    });
    const first = JSON.parse((await perdura(ENCRYPTED, 'admin', 'rekey', '-o', 'json')).stdout) as { readonly values: number };
    expect(first.values).toBeGreaterThan(2);
    expect(around(await bytesOfFiles(memory), CANARY)).toEqual([]);
    expect((await perdura(ENCRYPTED, 'admin', 'rekey')).stdout).toContain('nothing was left to do');

    await scene.startWorker({ env: ENCRYPTED });
    expect((await perdura(ENCRYPTED, 'show', id)).stdout).toContain(`${CANARY}: hello`);
    const without = await perdura({}, 'show', id);
    expect(without.code).not.toBe(0);
    expect(without.stderr).toContain('PERDURA_ENCRYPTION');
    expect(await perdura({ ...ENCRYPTED, EDITOR: 'sh edit.sh' }, 'memory', 'edit', 'default')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('written, as version') as unknown,
    });
    expect((await perdura(ENCRYPTED, 'memory', 'default')).stdout).toContain('- by hand');
    expect(await bytesOfFiles(memory)).not.toContain('by hand');
    expect((await perdura({ ...ENCRYPTED, EDITOR: 'true' }, 'memory', 'edit', 'default')).stdout).toContain('nothing was changed');
  },
  240_000,
);

/** Of Temporal's JSON: payloads that it could not read itself are base64. */
function toWords(value: unknown): unknown {
  if (typeof value === 'string' && /^[\w+/]{8,}={0,2}$/.test(value)) return [value, Buffer.from(value, 'base64').toString('utf8')];
  if (Array.isArray(value)) return value.map(toWords);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, toWords(one)]));
}

/** Where a text stands, with what is around it: a red test says what was not encrypted. */
function around(bytes: string, form: string): string[] {
  const found: string[] = [];
  for (let at = bytes.indexOf(form); at >= 0 && found.length < 5; at = bytes.indexOf(form, at + form.length)) {
    found.push(bytes.slice(Math.max(0, at - 120), at + 60).replace(/[^\x20-\x7e]+/g, '·'));
  }
  return found;
}
