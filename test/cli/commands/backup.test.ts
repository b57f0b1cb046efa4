/** The drill: a store is lost, comes back from its backup, and the rest of it from history, message by message. And bad input, in words. */
import { appendFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { callTool, text } from '../../support/provider-apis/reply.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { runPerdura, type Ran } from '../../support/run-perdura.js';
import { createStage, say } from '../../support/stage.js';
import { startWorld, type World } from '../../support/world.js';

let server: RedisServer;
let dir: string;
let world: World | undefined;
const stage = createStage();

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-drill-'));
});
afterEach(async () => {
  await world?.close();
  world = undefined;
  await rm(dir, { recursive: true, force: true });
});

const run = (args: readonly string[], env: Record<string, string> = {}): Promise<Ran> =>
  runPerdura({ dir, taskQueue: 'none' }, args, { env: { PERDURA_TRUST: '1', ...env } });

test('lost, restored, healed, compared', async () => {
  const env = { REDIS_URL: server.url };
  const redis = new Redis(server.url);
  await redis.flushall();
  const files = { 'big.txt': 'a line of a big file\n'.repeat(2_000) };
  world = await startWorld({ answer: stage.answer, redisUrl: server.url, files });
  const { client } = world;
  const ids = [world.id(), world.id(), world.id()];
  const told = new Map<string, string[]>();
  const talk = async (id: string, words: string, start?: { scope: string; tenant?: string }): Promise<void> => {
    const { text: answer } = await client.send(id, say(id, words), start ? { start } : {});
    told.set(id, [...(told.get(id) ?? []), answer]);
  };
  for (const [i, id] of ids.entries()) {
    stage.play(id, callTool('read_file', { path: 'big.txt' }), text(`It is long, ${id}.`));
    await talk(id, 'read big.txt', i === 2 ? { scope: 'ada', tenant: 'acme' } : { scope: 'ada' });
  }
  const folder = join(dir, 'backup');
  const backedUp = await run(['admin', 'backup', folder, '-o', 'json'], env);
  expect(backedUp).toMatchObject({ code: 0, stderr: '' });
  const { size } = await stat(join(folder, '000001.parts'));
  expect(JSON.parse(backedUp.stdout)).toMatchObject({ conversations: 3, kind: 'redis', skipped: 0, files: 1, bytes: size });

  // The day goes on after the backup.
  for (const id of ids) {
    stage.play(id, text(`And on, ${id}.`));
    await talk(id, 'what else?');
  }
  const before = new Map(await Promise.all(ids.map(async (id) => [id, await client.history(id)] as const)));
  await redis.flushall();
  await redis.quit();

  const restored = await run(['admin', 'restore', folder, '-o', 'json'], env);
  expect(restored).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(restored.stdout)).toMatchObject({ conversations: 3, entries: 12, different: 0, damaged: [] });
  for (const id of ids) {
    const whole = before.get(id) ?? [];
    expect(await client.history(id)).toEqual(whole.slice(0, 4));
    stage.play(id, text(`Here again, ${id}.`));
    await talk(id, 'are you there?');
    const after = await client.history(id);
    expect(after.slice(0, whole.length)).toEqual(whole);
    expect(after.slice(whole.length)).toHaveLength(2);
    const answers = after.flatMap(({ message }) => (message.role === 'assistant' ? message.blocks : []));
    expect(answers.flatMap((block) => (block.kind === 'text' ? [block.text] : []))).toEqual(told.get(id));
  }
  expect(world.api.problems).toEqual([]);
  // Once more changes nothing.
  const content = await client.history(ids[0] ?? '');
  expect((await run(['admin', 'restore', folder], env)).code).toBe(0);
  expect(await client.history(ids[0] ?? '')).toEqual(content);
});

describe('bad input', () => {
  const backUp = async (folder: string): Promise<void> => {
    world = await startWorld({ answer: stage.answer });
    const id = world.id();
    await world.client.send(id, say(id, 'good morning'), { start: {} });
    const ran = await runPerdura(world, ['admin', 'backup', folder], { env: { PERDURA_TRUST: '1' } });
    expect(ran).toMatchObject({ code: 0 });
  };

  test('a damaged file is named with what is in it, and the rest comes back only by a flag', async () => {
    const folder = join(dir, 'backup');
    await backUp(folder);
    const [name = ''] = (await readdir(folder)).filter((one) => one.endsWith('.parts'));
    await appendFile(join(folder, name), 'x');
    const refused = await run(['admin', 'restore', folder]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/000001\.parts has \d+ bytes, and was written with \d+; in it: .*c-/);
    expect(refused.stderr).toContain('nothing was restored');
    expect(refused.stderr).toContain('--skip-damaged');
    const skipped = await run(['admin', 'restore', folder, '--skip-damaged']);
    expect(skipped.code).toBe(1);
    expect(skipped.stderr).toContain('not restored: 1 of 1 file are damaged');
  });

  test('no backup, one that was cut short, one of another namespace, and one of a newer version', async () => {
    const folder = join(dir, 'backup');
    expect(await run(['admin', 'restore', folder])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining(`there is no backup in ${folder}`) as string,
    });
    await backUp(folder);
    const path = join(folder, 'backup.json');
    const head = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
    const again = await run(['admin', 'backup', folder], { PERDURA_MEMORY_DIR: join(world?.dir ?? '', 'memory') });
    expect(again.stderr).toMatch(/has a backup that was finished at .*: name another folder/);
    const other = await run(['admin', 'restore', folder], { TEMPORAL_NAMESPACE: 'another' });
    expect(other.stderr).toContain('is of the namespace default, and TEMPORAL_NAMESPACE names another');
    await writeFile(path, JSON.stringify({ ...head, finished: undefined, sha256: undefined }));
    expect((await run(['admin', 'restore', folder])).stderr).toMatch(/was cut short: .* finishes it, --unfinished restores what there is/);
    expect(await run(['admin', 'restore', folder, '--unfinished'])).toMatchObject({ code: 0 });
    await writeFile(path, JSON.stringify({ ...head, v: 9 }));
    expect((await run(['admin', 'restore', folder])).stderr).toContain('was written by a newer perdura (format 9, known is 1)');
  });

  test('a store that is not there: nothing is written, and the sentence names it', async () => {
    const folder = join(dir, 'backup');
    await backUp(folder);
    const ran = await run(['admin', 'restore', folder], { REDIS_URL: 'redis://127.0.0.1:1' });
    expect(ran).toMatchObject({ code: 3, stdout: '' });
    expect(ran.stderr).toMatch(/cannot reach the store: redis at redis:\/\/127\.0\.0\.1:1/);
  });
});
