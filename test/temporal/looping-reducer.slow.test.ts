/** Reducers that do not return, in a worker that has other conversations too. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClientWith } from '../../src/client.js';
import { bundleReducers } from '../support/builds.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const BACKTRACKS = "() => [{ kind: 'ADD', chunk: { type: 'NOTICE', text: String(/(a+)+$/.test('a'.repeat(50) + '!')) } }]";

const stage = createStage();
let dir: string;
let world: World;
let workflows: { readonly code: string };
let stopWorker: () => Promise<void>;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'perdura-loops-'));
  workflows = await bundleReducers(dir, {
    loops: '() => { for (;;) {} }',
    recurses: '() => { const twice = (n) => (n === 0 ? 0 : twice(n - 1) + twice(n - 1)); twice(60); }',
    catches: '() => { for (;;) try { while (true); } catch {} }',
    'slow-steps': "() => { for (;;) JSON.parse('[' + '0,'.repeat(300000) + '0]'); }",
  });
  world = await startWorld({ engine: 'temporal', answer: stage.answer, workflows, worker: false });
  stopWorker = await world.startWorker();
});
afterAll(async () => {
  await stopWorker();
  await world.close();
  rmSync(dir, { recursive: true, force: true });
});

async function open(): Promise<string> {
  const id = world.id();
  await world.client.send(id, say(id, 'hello'), { start: {} });
  return id;
}

/** An update would wait for the reducer too. */
function signal(id: string, type: string): Promise<void> {
  return world.temporal.workflow.getHandle(id).signal('event', { id: 'e-1', type });
}

test.each([
  ['loops', /stopped after 10,000,000 loops and calls/],
  ['recurses', /stopped after/],
  ['catches', /stopped after 10,000,000 loops and calls/],
  ['slow-steps', /stopped after 2000 ms/],
])('a reducer that %s leaves its conversation waiting, in words, and the worker answers others', async (type, words) => {
  const id = await open();
  await signal(id, type);
  const [failure] = await waitFor(
    () => workflowTaskFailures(world, id),
    (failures) => failures.length > 0,
  );
  expect(failure).toMatch(words);
  expect(failure).toContain(`the reducer of ${type}`);
  const other = await open();
  expect(await workflowTaskFailures(world, other)).toEqual([]);
});

test('who dispatches to it hears why it cannot go on, and so does who sends it a message', async () => {
  const id = await open();
  const impatient = createClientWith({
    ...{ client: world.temporal, namespace: 'default', taskQueue: world.taskQueue, workerPatienceMs: 3_000 },
    store: () => ({ ...world.store, close: () => Promise.resolve() }),
  });
  const words = /cannot go on, its workflow task fails again and again: the reducer of loops was stopped after .*dispatch it again/;
  await expect(impatient.dispatch(id, { type: 'loops' })).rejects.toThrow(words);
  await expect(impatient.send(id, say(id, 'are you there?'))).rejects.toThrow(/the reducer of loops was stopped/);
});

test('once a worker has a reducer that returns, the waiting event is reduced', async () => {
  const id = await open();
  await signal(id, 'loops');
  await waitFor(
    () => workflowTaskFailures(world, id),
    (failures) => failures.length > 0,
  );
  await stopWorker();
  Object.assign(workflows, await bundleReducers(dir, { loops: "() => [{ kind: 'ADD', chunk: { type: 'NOTICE', text: 'mended' } }]" }));
  stopWorker = await world.startWorker();
  const { appEvents } = await waitFor(
    () => world.client.status(id),
    ({ appEvents: events }) => events?.chunks === 1,
  );
  expect(appEvents).toMatchObject({ parkedCount: 0 });
});

test('an expression that goes back again and again takes linear time', async () => {
  await stopWorker();
  Object.assign(workflows, await bundleReducers(dir, { backtracks: BACKTRACKS }));
  stopWorker = await world.startWorker();
  const id = await open();
  expect((await world.client.dispatch(id, { type: 'backtracks' }, { wait: true })).result).toMatchObject({ kind: 'reduced' });
});
