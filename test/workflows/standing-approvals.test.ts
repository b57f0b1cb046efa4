/** A call that a person has allowed for good, with real commands: what runs without asking from then on, and what does not. */
import { mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { callTool, text, type Reply } from '../support/provider-apis/reply.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, resultTexts, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

/** Led elsewhere between the plan of its second call and the run. */
let looks = 0;
const shifty = defineTool({
  name: 'shifty',
  description: 'Means another place from the third look on.',
  input: z.object({ at: z.string() }),
  policy: { approval: 'ask' },
  examine: () => ({ real: { at: ++looks > 2 ? 'private/a' : 'notes/a' } }),
  run: () => 'it ran',
});

const stage = createStage({ by: 'last' });
let world: World;
const workspace = (): string => join(world.dir, 'workspace');

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, tools: [...builtinTools, shifty] });
  await world.writeAgent('short', { limits: { handOver: { events: 20 } } });
  for (const name of ['a', 'b']) await mkdir(join(workspace(), name));
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

const echo = (...args: string[]): { command: string; args: string[] } => ({ command: 'echo', args });

/** One turn whose one call this is: allowed for good where `always`, denied where it waits all the same. Answers whether it waited, and its result. */
async function turn(id: string, input: object, always = false, tool = 'run_command'): Promise<readonly [waited: boolean, result: string]> {
  const lines: Reply[] = [callTool(tool, input as never), text('Done.')];
  stage.play(id, ...lines);
  let isOver = false;
  const sent = world.client.send(id, say(id, 'go')).finally(() => (isOver = true));
  const [one] = await waitFor(
    () => world.client.approvals(id).catch(() => []),
    (list) => list.length > 0 || isOver,
  );
  if (one)
    await world.client.decide(id, { callId: one.callId, hash: one.hash, decision: always ? 'approve' : 'deny', ...(always && { always }) });
  expect(await sent).toMatchObject({ text: 'Done.' });
  return [one !== undefined, resultTexts(stage.requests(id).at(-1))[0] ?? ''];
}

test('it runs without asking, through hand-overs, and nothing that differs does, until the session ends', async () => {
  const id = world.id();
  await world.client.start(id, { agent: 'short' });
  expect(await turn(id, echo('hi', '*'), true)).toEqual([true, expect.stringContaining('hi *')]);
  expect(await world.client.status(id)).toMatchObject({ allowedCalls: [{ tool: 'run_command', target: 'echo', callId: 'turn_0001/c1' }] });
  expect(await turn(id, echo('hi', '*'))).toEqual([false, expect.stringContaining('hi *')]);
  expect(await turn(id, { ...echo('hi', '*'), cwd: './' })).toEqual([false, expect.stringContaining('hi *')]);
  for (const other of [
    echo('hi', 'x'),
    echo('hi'),
    { ...echo('hi', '*'), cwd: 'a' },
    { ...echo('hi', '*'), stdin: 'x' },
    { ...echo('hi', '*'), command: '/bin/echo' },
    { ...echo('hi', '*'), command: './echo' },
  ]) {
    expect(await turn(id, other)).toEqual([true, expect.stringContaining('did not allow')]);
  }
  expect(await turn(id, echo('hi', '*'))).toEqual([false, expect.stringContaining('hi *')]);
  const { run } = await world.temporal.workflow
    .getHandle(id)
    .describe()
    .then(({ runId }) => ({ run: runId }));
  expect(run).not.toBe((await world.client.status(id)).life);
  await world.client.reset(id);
  expect(await turn(id, echo('hi', '*'))).toEqual([true, expect.stringContaining('did not allow')]);
  expect(await workflowTaskFailures(world, id)).toEqual([]);
});

test('a folder that is another one by now is asked about, and a fork asks again', async () => {
  const id = world.id();
  await world.client.start(id);
  const link = join(workspace(), 'work');
  await symlink('a', link);
  const call = { command: 'pwd', args: [], cwd: 'work' };
  expect(await turn(id, call, true)).toEqual([true, expect.stringContaining('/a')]);
  expect(await turn(id, call)).toEqual([false, expect.stringContaining('/a')]);
  const fork = world.id();
  await world.client.fork(id, { at: 'turn_0002', id: fork });
  expect((await turn(fork, call))[0]).toBe(true);
  await rm(link);
  await symlink('b', link);
  expect((await turn(id, call))[0]).toBe(true);
});

test('a call that came to mean something else after it was planned does not run', async () => {
  const id = world.id();
  await world.client.start(id);
  expect(await turn(id, { at: 'a' }, true, 'shifty')).toEqual([true, expect.stringContaining('it ran')]);
  expect(await turn(id, { at: 'a' }, false, 'shifty')).toEqual([false, expect.stringContaining('mean something else now')]);
  expect((await turn(id, { at: 'a' }, false, 'shifty'))[0]).toBe(true);
});
