/** Events of an application, whose reducers the command finds as a worker does: each run bundles its workflows, which takes seconds. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Reducers } from '../../src/conversation/context/reducers.js';
import { createScriptedModel } from '../../src/testing/index.js';
import { runPerdura, type Ran } from '../support/run-perdura.js';
import { startRecorder, type Recorder } from './recorder.js';

const SOURCES = join(__dirname, '..', '..', 'src');
const TEXT = "'ticket.opened': ({ payload }) => [{ kind: 'ADD', chunk: { type: 'TICKET', text: `Ticket ${payload.id} is open` } }]";
const reducers: Reducers = {
  'ticket.opened': ({ payload }) => [{ kind: 'ADD', chunk: { type: 'TICKET', text: `Ticket ${(payload as { id: number }).id} is open` } }],
};

const model = createScriptedModel(({ messages }) => `After ${messages.length} messages.`);
let recorder: Recorder;
let id: string;
beforeAll(async () => {
  recorder = await startRecorder(model, { reducers, agent: { model: 'fake/one' } });
  const { client } = recorder.world;
  id = recorder.world.id();
  await client.start(id, {});
  await client.send(id, 'hello');
  await client.dispatch(id, { type: 'ticket.opened', payload: { id: 7 } }, { wait: true });
  await client.send(id, 'what is open?');
});
afterAll(() => recorder.close());

/** A project whose worker runs its own entry. */
async function project(folder: string, reducer: string): Promise<void> {
  await mkdir(join(folder, 'agents', 'default'), { recursive: true });
  const files = {
    'agents/default/agent.json': '{ "model": "fake/one" }',
    'workflows.ts': `import { createConversation } from ${JSON.stringify(join(SOURCES, 'workflows', 'index'))};
export { memory, webhook } from ${JSON.stringify(join(SOURCES, 'workflows', 'index'))};
import { reducers } from './reducers.js';
export const conversation = createConversation({ reducers });`,
    'reducers.ts': `export const reducers: Record<string, (event: any) => unknown> = { ${reducer} };`,
    'perdura.config.ts': `const answer = async ({ messages }: any) => ({
  blocks: [{ kind: 'text', text: 'After ' + messages.length + ' messages.' }], stop: 'end', usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 1 },
});
export default { workflows: './workflows.ts', providers: { fake: { provider: 'fake', stream: answer } } };`,
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
}

test("the command takes them from the entry of the project's workflows, and with --build from that of the other checkout", async () => {
  const { world, recordings } = recorder;
  const whatif = (...args: readonly string[]): Promise<Ran> =>
    runPerdura(world, ['whatif', id, ...args, '-o', 'json'], {
      recordings,
      openClient: () => Promise.resolve({ ...world.client, close: () => Promise.resolve() }),
    });
  await project(world.dir, TEXT);
  const [build, looping] = [join(world.dir, 'build'), join(world.dir, 'looping')];
  await project(build, TEXT.replace('is open', 'was opened'));
  await project(looping, "'ticket.opened': () => { for (;;); }");
  const divergence = async (...args: readonly string[]): Promise<unknown> => {
    const ran = await whatif(...args);
    if (ran.code !== 0) throw new Error(ran.stderr);
    const { conversations } = JSON.parse(ran.stdout) as { conversations: { lanes: { candidate: { divergence: unknown } } }[] };
    return conversations[0]?.lanes.candidate.divergence;
  };
  expect(await divergence()).toBeNull();
  expect(await divergence('--build', 'build')).toMatchObject({ turn: 'turn_0002', played: expect.stringContaining('was opened') });
  // What never ends is stopped, and its event is parked.
  expect(await divergence('--build', 'looping')).toMatchObject({ turn: 'turn_0002', what: 'messages' });
});
