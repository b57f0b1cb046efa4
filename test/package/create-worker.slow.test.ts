import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '../../src/client.js';
import { loadConfig } from '../../src/config.js';
import { eventName } from '../../src/conversation/views/observation.js';
import type { Model } from '../../src/models/model.js';
import { createWorker, type Observer } from '../../src/worker.js';
import { waitFor } from '../support/wait-for.js';

let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-create-'));
  await mkdir(join(dir, 'people', 'default'), { recursive: true });
  await writeFile(join(dir, 'people', 'default', 'agent.json'), '{}');
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const settings = () =>
  loadConfig(
    {
      TEMPORAL_ADDRESS: process.env['PERDURA_TEST_ADDRESS'],
      PERDURA_TASK_QUEUE: `own-${randomUUID()}`,
      PERDURA_MODEL: 'parrot/grey',
      PERDURA_LOG_LEVEL: 'error',
    },
    dir,
  );

/** A model of one's own: it needs no key and no network. */
const parrot: Model = {
  provider: 'parrot',
  stream({ model, messages }, { onDelta }) {
    const last = messages.at(-1);
    const said = last?.role === 'user' && typeof last.text === 'string' ? last.text : '?';
    onDelta({ kind: 'text', text: said });
    const usage = { inputTokens: 1, cachedTokens: 0, outputTokens: 1 };
    return Promise.resolve({ blocks: [{ kind: 'text', text: `${model} says ${said}` }], stop: 'end', usage });
  },
};

test('a provider of one’s own answers, and observers that throw, hang or change what they get do no harm', async () => {
  const config = settings();
  const seen: string[] = [];
  const observers: Observer[] = [
    () => {
      throw new Error('an observer with a fault');
    },
    () => new Promise(() => undefined),
    () => Promise.reject(new Error('a late fault')),
    (event) => void Object.assign(event, { kind: 'spoilt' }),
    (event, { conversation }) => void seen.push(`${conversation} ${eventName(event)}`),
  ];
  let ready = (): void => undefined;
  const isReady = new Promise<void>((resolve) => (ready = resolve));
  const models = { 'parrot/*': { prices: { input: 1, output: 3 } } };
  const worker = createWorker({ config, providers: { parrot }, models, observers, agentsDir: 'people', onReady: ready });
  const running = worker.run();
  await Promise.race([isReady, running]);
  const perdura = await createClient(config);
  const id = `own-${randomUUID()}`;
  const result = await perdura.send(id, 'hello', { start: {} });
  expect(result).toMatchObject({ text: 'grey says hello', stopReason: 'end', usage: { costUsd: 4e-6 } });
  expect((await perdura.status(id)).usage.costUsd).toBe(4e-6);
  await waitFor(
    () => seen,
    () => seen.includes(`${id} model-step-completed`),
  );
  expect(seen.filter((line) => line.includes('spoilt'))).toEqual([]);
  expect(seen[0]).toBe(`${id} message-received`);

  // One that knows the worker's agents starts nothing for another.
  const near = await createClient({ ...config, agentsDir: join(dir, 'people') });
  const ghost = `own-${randomUUID()}`;
  const unknown = { kind: 'not-found', message: expect.stringMatching(/cannot start .*ghost/) };
  await expect(near.start(ghost, { agent: 'ghost' })).rejects.toMatchObject(unknown);
  await expect(near.send(ghost, 'hello', { start: { agent: 'ghost' } })).rejects.toMatchObject(unknown);
  const unsaid = { ...unknown, message: expect.stringContaining('ghost') };
  await expect(near.begin(ghost, ghost, { agent: 'ghost' })).rejects.toMatchObject(unknown);
  await expect(near.fork(id, { at: result.turnId ?? '', id: ghost, agent: 'ghost' })).rejects.toMatchObject(unsaid);
  await expect(near.describe(ghost)).rejects.toMatchObject({ kind: 'not-found' });
  expect(await near.start(id, { agent: 'ghost' })).toEqual({ id, attached: true });
  // What has ended is not gone on with by one that there is not, and stays as it was.
  await near.terminate(id);
  const ended = await near.describe(id);
  await expect(near.resume(id, { agent: 'ghost' })).rejects.toMatchObject(unsaid);
  expect(await near.describe(id)).toEqual(ended);
  await near.close();

  worker.shutdown();
  worker.shutdown();
  await running;
  await expect(worker.run()).rejects.toThrow('make another with createWorker');
  await perdura.close();
});

test('a worker that is told to stop before it runs takes no work', async () => {
  const worker = createWorker({ config: settings(), providers: { parrot }, onReady: () => expect('ready').toBe('never') });
  worker.shutdown();
  await worker.run();
});

test('options that are wrong are refused at once, by name', () => {
  const refused = (options: object) => () => createWorker({ config: settings(), ...options });
  expect(refused({ reducers: [] })).toThrow('createWorker: "reducers" run inside the workflow: hand them to createConversation');
  expect(refused({ tools: [{}] })).toThrow('createWorker: tools[0] is no tool: make it with defineTool');
});
