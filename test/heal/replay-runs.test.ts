import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { replayRuns } from '../../src/heal/replay-runs.js';
import { text } from '../../src/testing/reply.js';
import { startWorld, workflowBundle, type World } from '../support/world.js';

let world: World;
afterEach(() => world.close());

async function codeOf() {
  return {
    workflowBundle: await workflowBundle(),
    dataConverter: { payloadConverterPath: require.resolve('../../src/workflows/payload-converter') },
  };
}

test('a run that no worker has begun is no problem, and nothing waits for it', async () => {
  world = await startWorld({ worker: false });
  const id = world.id();
  await world.client.start(id);
  const { histories, complete } = await world.client.runs(id);
  expect(histories).toHaveLength(1);
  expect(complete).toBe(true);
  expect(await replayRuns(await codeOf(), id, histories)).toEqual({ runs: [undefined], problems: [] });
});

describe('in processes of their own', () => {
  let dir: string;
  let program: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'perdura-replay-'));
    program = join(dir, 'program.cjs');
    const parts = [require.resolve('../stores/register-swc.cjs'), require.resolve('../../src/heal/replay-process')];
    await writeFile(program, parts.map((part) => `require(${JSON.stringify(part)});`).join('\n'));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  async function conversation() {
    world = await startWorld({ answer: () => text('Understood.'), agent: { limits: { handOver: { events: 20 } } } });
    const id = world.id();
    for (let n = 1; n <= 6; n++) await world.client.send(id, `message ${n}`, { start: {} });
    return { id, histories: (await world.client.runs(id)).histories };
  }

  test('runs are told as they are in this one, in their order, and one that cannot be replayed is told too', async () => {
    const { id, histories } = await conversation();
    expect(histories.length).toBeGreaterThan(2);
    const broken = histories.map((history, n) =>
      n === 1 ? { events: history.events?.filter((event) => !event.activityTaskScheduledEventAttributes) } : history,
    );
    const here = await replayRuns(await codeOf(), id, broken, { program: undefined });
    const there = await replayRuns(await codeOf(), id, broken, { program, worthAProcess: 1 });
    expect(there.runs).toEqual(here.runs);
    expect(there.runs.filter((run) => run !== undefined).length).toBeGreaterThan(1);
    expect(there.problems).toHaveLength(here.problems.length);
    expect(there.problems.length).toBeGreaterThan(0);
  }, 60_000);

  test('one that ends before it has answered is said, with its last words', async () => {
    const { id, histories } = await conversation();
    const dies = join(dir, 'dies.cjs');
    await writeFile(dies, "process.once('message', () => { throw new Error('no memory left'); });");
    await expect(replayRuns(await codeOf(), id, histories, { program: dies, worthAProcess: 1 })).rejects.toThrow(
      new RegExp(`cannot replay the history of ${id}: the process that did it ended with 1 [^]*no memory left[^]*; try again`),
    );
  });

  test('a program that is not there is said', async () => {
    const { id, histories } = await conversation();
    const nowhere = join(dir, 'nowhere.cjs');
    await expect(replayRuns(await codeOf(), id, histories, { program: nowhere, worthAProcess: 1 })).rejects.toThrow('nowhere.cjs');
  });
});
