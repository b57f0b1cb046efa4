/** A whole conversation carried from files into Redis and back, and one that is larger than a message of gRPC. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { callTool, text } from '../../support/provider-apis/reply.js';
import { startRedis } from '../../support/redis-server.js';
import { runPerdura, type Ran } from '../../support/run-perdura.js';
import { createStage, say } from '../../support/stage.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';
import { parsed, SUMMARY } from './ran.js';

const stage = createStage();
let world: World;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, files: { 'a.txt': 'content', 'long.txt': 'long content '.repeat(600) } });
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

/** To its end, with settings or stdin that others do not have. */
function run(args: readonly string[], env: Readonly<Record<string, string>> = {}, input = ''): Promise<Ran> {
  return runPerdura(world, args, { env, input });
}

function perdura(...args: readonly string[]): Promise<Ran> {
  return runPerdura(world, args);
}

test('export --format seed and import: from files into Redis and back, the same files each time', async () => {
  const id = world.id();
  await world.client.start(id, { scope: id });
  stage.play(id, callTool('read_file', { path: 'long.txt' }), text('Read.'));
  for (let n = 1; n <= 6; n++) await world.client.send(id, say(id, n === 2 ? `long ${'x'.repeat(20_000)}` : `turn ${n}`));
  stage.play(id, text(SUMMARY));
  await world.client.compact(id);
  const key = await world.client.key(id);
  const [known] = (await world.store.facts.list(key)).facts;
  const changed = { ts: 1738100000, fact: 'The person counts from two.', tags: [], confidence: 1, salience: 0.5 };
  const replaced = [{ fact: known?.fact ?? '', by: changed.fact, ts: 1738100000 }];
  await world.store.facts.add(key, 'changed', [changed], { conversation: id, turn_ids: [] }, replaced);
  const redis = await startRedis();
  const elsewhere = await startWorld({ answer: stage.answer, redisUrl: redis.url });
  try {
    const [inRedis, inFiles] = [{ REDIS_URL: redis.url, PERDURA_TASK_QUEUE: elsewhere.taskQueue }, {}];
    const moved = world.id();
    const back = world.id();
    const exported = await perdura('admin', 'export', id, '--format', 'seed', '--out', 'one', '-o', 'json');
    expect(parsed(exported)).toMatchObject({ id, dir: join(world.dir, 'one'), entries: 14, episodes: 1, facts: 2 });
    expect(parsed(await run(['admin', 'import', 'one', '--id', moved, '-o', 'json'], inRedis))).toMatchObject({ id: moved, leftOut: 0 });
    expect(await run(['admin', 'export', moved, '--format', 'seed', '--out', 'two'], inRedis)).toMatchObject({ code: 0 });
    expect(await run(['admin', 'import', 'two', '--id', back], inFiles)).toMatchObject({ code: 0, stdout: `${back}\n` });
    expect((await run(['admin', 'export', back, '--format', 'seed'], inFiles)).code).toBe(0);
    const filesOf = async (dir: string, name: string): Promise<string[]> => {
      const files = ['raw_traces', 'raw_traces_archive', 'episodic', 'semantic'].map((file) => `${file}.jsonl`);
      const texts = await Promise.all([...files, 'perdura.json'].map((file) => readFile(join(world.dir, dir, file), 'utf8')));
      // The new one has a name and a scope of its own; where facts were learnt stays.
      return [
        ...texts.slice(0, 4),
        (texts[4] ?? '').replace(`"conversation":"${name}","scope":"${name}"`, '"conversation":"ID","scope":"ID"'),
      ];
    };
    const first = await filesOf('one', id);
    expect(await filesOf('two', moved)).toEqual(first);
    expect(await filesOf(back, back)).toEqual(first);
    expect(first.map((file) => file.split('\n').length > 1)).toEqual([true, true, true, true, true]);

    const raw = async (of: string, env: Readonly<Record<string, string>>): Promise<object[]> =>
      (await run(['show', of, '--raw', '--archived'], env)).stdout
        .trimEnd()
        .split('\n')
        .map((line) => ({ ...(JSON.parse(line) as object), conversation_id: '' }));
    expect(await raw(moved, inRedis)).toEqual(await raw(id, inFiles));
    const listed = await run(['memory', '--of', moved, '--list', '-o', 'json'], inRedis);
    const { episodes, facts } = await world.client.memory(id);
    // An epoch is one of its own conversation.
    expect(parsed(listed)).toMatchObject({
      episodes: episodes.map(({ epoch: _, ...episode }) => episode),
      facts: facts.map(({ batch: _, ...fact }) => fact),
    });
    expect(await run(['admin', 'import', 'one', '--id', moved], inRedis)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('is running'),
    });

    // It goes on from there as if all had been said here (so the stage takes it for the first one): word for word what was, and the summary for the two turns that it is of.
    stage.play(id, text('New here.'));
    const { turnId } = await world.client.send(back, say(back, 'hello'));
    expect(turnId).toBe('turn_0007');
    expect((await perdura('show', back)).stdout).toMatch(/turn_0001[^]*turn 6[^]*turn_0007[^]*New here\.\n$/);
    const seen = stage.requests(id).at(-1)?.messages ?? [];
    expect(JSON.stringify(seen)).toContain('They counted.');
    expect(JSON.stringify(seen)).not.toContain('long content');
    expect(seen.filter(({ role }) => role === 'user').map(({ content }) => JSON.stringify(content))).toEqual(
      expect.arrayContaining([3, 4, 5, 6].map((n) => expect.stringContaining(`turn ${n}`))),
    );
    expect((await perdura('admin', 'export', back, '--format', 'seed', '--out', 'three')).code).toBe(0);
    expect((await readFile(join(world.dir, 'three', 'raw_traces.jsonl'), 'utf8')).trimEnd().split('\n').at(-1)).toMatch(
      /^\{"id":"rt_016","ts":[\d.]+,"turn_id":"turn_0007",.*New here\./,
    );

    const forked = world.id();
    expect(await perdura('fork', back, '--at', 'turn_0004', '--id', forked)).toMatchObject({ code: 0 });
    expect(await perdura('rewind', back, '--to', 'turn_0003')).toMatchObject({ code: 0 });
    for (const [name, last] of [
      [forked, 4],
      [back, 3],
    ] as const) {
      stage.play(id, text('Another way.'));
      await world.client.send(name, say(name, 'and now?'));
      const context = JSON.stringify(stage.requests(id).at(-1)?.messages);
      expect(context).toContain(`turn ${last}`);
      expect(context).not.toContain(`turn ${last + 1}`);
    }
  } finally {
    await elsewhere.close();
    await redis.stop();
  }
});

test('heal reads a history that no message of gRPC could carry by default', async () => {
  const id = world.id();
  const long = 'x'.repeat(900_000);
  // Nothing is to be left out of a prompt here.
  const advanced = { softThreshold: 3_000_000, hardThreshold: 3_100_000, truncationThreshold: 3_200_000 };
  await world.writeAgent('wide', { context: { maxTokens: 4_000_000, advanced } });
  await world.client.start(id, { agent: 'wide' });
  await Promise.all(Array.from({ length: 6 }, (_, n) => world.client.message(id, say(id, `${n} ${long}`))));
  await waitFor(
    () => world.client.status(id),
    ({ turns }) => turns === 6,
  );
  const exported = await perdura('admin', 'export', id, '--format', 'history');
  expect({ code: exported.code, isLarge: exported.stdout.length > 6 * 1024 * 1024 }).toEqual({ code: 0, isLarge: true });
  expect(await healWithEmptyStore(id)).toMatchObject({ lostBodies: [], complete: true, problems: [] });
});

/** The same conversation beside a store that has nothing. */
async function healWithEmptyStore(id: string): Promise<unknown> {
  const empty = join(world.dir, 'empty');
  await rm(empty, { recursive: true, force: true });
  const healed = await run(['admin', 'heal', id, '-o', 'json'], { PERDURA_MEMORY_DIR: empty });
  const shown = await run(['show', id, '-o', 'json'], { PERDURA_MEMORY_DIR: empty });
  const answer = parsed(healed) as { known: number };
  expect(parsed(shown)).toHaveLength(answer.known);
  return answer;
}
