/** `perdura gc` as a person runs it, and as the schedule that workers make does: forty days later, by the clock of whoever collects. */
import { join } from 'node:path';
import { answerTo, echo } from '../../support/echo-model.js';
import { startPerdura } from '../../support/run-perdura.js';
import { sceneTest, until, type Scene, type SceneOptions } from '../../support/scene.js';

const FORTY_DAYS_LATER = { CLOCK_OFF_MS: String(40 * 86_400_000) };
const CLOCK = join(__dirname, '..', '..', 'support', 'clock-off.cjs');

const ARCHIVING: SceneOptions = { env: { PERDURA_ARCHIVE: 'archive' }, answer: (request) => echo(request) };

sceneTest(
  'what is idle is closed and what is old is archived, by hand and by the schedule, and goes on from there',
  ARCHIVING,
  async (scene) => {
    const { client, temporal, taskQueue } = scene;
    const worker = await scene.startWorker();
    const [due, later] = [await begin(scene, '30d'), await begin(scene, '90d')];
    const run = async (...args: readonly string[]) => {
      const env = { ...scene.env, ...FORTY_DAYS_LATER, NODE_OPTIONS: `--require ${CLOCK}` };
      const ran = await startPerdura(scene, args, { env }).ended;
      expect(ran).toMatchObject({ code: 0 });
      return ran;
    };

    const looked = JSON.parse((await run('gc', '--dry-run', '-o', 'json')).stdout) as { overdue: { id: string; days: number }[] };
    expect(looked.overdue.map(({ id, days }) => [id, days])).toEqual([[due, 30]]);
    expect(await client.describe(due)).toMatchObject({ state: 'running' });
    expect((await client.whereabouts(due)).archive).toBeNull();

    const { stdout, stderr } = await run('gc');
    expect(stdout).toMatch(/^1 conversation closed; 2 conversations archived: 4 messages, /);
    expect(stderr).toContain(`(closed ${due})`);
    expect(await client.describe(due)).toMatchObject({ state: 'ended' });
    expect(await client.describe(later)).toMatchObject({ state: 'running' });
    expect((await run('show', later, '--where')).stdout).toMatch(/^store +0 messages .*\narchive +2 messages /);
    expect((await run('gc')).stdout).toMatch(/^0 conversations closed; 0 conversations archived/);
    expect(await client.send(later, 'and now?')).toMatchObject({ text: answerTo('and now?'), stopReason: 'end' });
    expect(await client.history(later)).toHaveLength(4);

    // The worker that collects finds the schedule that the first one has made.
    const old = await begin(scene, '30d');
    await worker.stop();
    await scene.startWorker({ preload: CLOCK, env: FORTY_DAYS_LATER });
    const schedule = temporal.schedule.getHandle(`gc-${taskQueue}`);
    const { spec, state } = await until('the schedule', () => schedule.describe().catch(() => undefined));
    expect({ every: spec.intervals?.map(({ every }) => every), paused: state.paused }).toEqual({ every: [86_400_000], paused: false });
    await schedule.trigger();
    const action = await until('the run of the schedule', async () => (await schedule.describe()).info.recentActions.at(-1)?.action);
    expect(await temporal.workflow.getHandle(action.workflow.workflowId).result()).toMatchObject({ closed: 1, archived: 1, entries: 2 });
    expect(await client.describe(old)).toMatchObject({ state: 'ended' });
    expect(await client.describe(later)).toMatchObject({ state: 'running' });
    expect(await client.whereabouts(old)).toMatchObject({ store: { messages: 0 }, archive: { messages: 2 } });
    expect(await client.history(old)).toHaveLength(2);
    await schedule.delete();
  },
);

/** With one turn. Once it is in the list, by which those that are due are found. */
async function begin({ client, id: newId }: Scene, idle: string): Promise<string> {
  const id = newId();
  expect(await client.send(id, 'hello', { start: { idle } })).toMatchObject({ text: answerTo('hello'), stopReason: 'end' });
  await until('it in the list', async () => (await client.list({ limit: 500 })).some((one) => one.id === id));
  return id;
}
