/** `perdura fork`, `rewind`, `resume` and `delete` as a person runs them: a real Temporal, a file store. */
import { join } from 'node:path';
import { begunSince, listedIds } from '../../support/listed-ids.js';
import { text } from '../../support/provider-apis/reply.js';
import { runPerdura, type Ran } from '../../support/run-perdura.js';
import { createStage, say } from '../../support/stage.js';
import { startWorld, type World } from '../../support/world.js';

const stage = createStage({ by: 'last' });
let world: World;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer });
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

const perdura = (...args: readonly string[]): Promise<Ran> => runPerdura(world, args);

async function talk(turns: number): Promise<string> {
  const id = world.id();
  await world.client.start(id);
  for (let turn = 1; turn <= turns; turn++) {
    stage.play(id, text(`answer ${turn}`));
    await world.client.send(id, say(id, `message ${turn}`));
  }
  return id;
}

test('a fork prints its id, says what it begins with, and its whole text is shown', async () => {
  const id = await talk(3);
  const fork = world.id();
  const forked = await perdura('fork', id, '--at', '2', '--id', fork, '--title', 'second thoughts');
  expect(forked).toMatchObject({ code: 0, stdout: expect.stringContaining(`${fork}\n`) as unknown });
  expect(`${forked.stdout}${forked.stderr}`).toContain(`begins with 2 turns of ${id}, up to turn_0002`);
  const { stdout } = await perdura('show', fork);
  expect(stdout).toContain('answer 2');
  expect(stdout).not.toContain('answer 3');
  const json = await perdura('fork', id, '--at', 'turn_0001', '-o', 'json');
  expect(JSON.parse(json.stdout)).toMatchObject({ conversation: id, turn: 'turn_0001', turns: 1, inContext: 1 });
});

test('a rewind says what was cut and where it is, and show prints it', async () => {
  const id = await talk(3);
  const { code, stdout, stderr } = await perdura('rewind', id, '--to', '1');
  expect(code).toBe(0);
  expect(`${stdout}${stderr}`).toMatch(/stands at the end of turn_0001 again: 2 turns are cut/);
  const shown = await perdura('show', id);
  expect(shown.stdout).not.toContain('answer 2');
  expect(shown.stderr).toContain('turn_0002 to turn_0003 was cut after turn_0001: --branch 1 shows it');
  expect((await perdura('show', id, '--branch', '1')).stdout).toContain('answer 3');
  expect(await perdura('show', id, '--branch', '7')).toMatchObject({ code: 4, stderr: expect.stringContaining('no branch 7') as unknown });
  expect(await perdura('rewind', id, '--to', '9')).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('has no turn_0009') as unknown,
  });
});

test('retry prints another answer and edit one to other words, and both say where the old turns are', async () => {
  const id = await talk(2);
  stage.play(id, text('answer anew'), text('answer to other words'));
  const again = await perdura('retry', id);
  expect(again).toMatchObject({ code: 0, stdout: 'answer anew\n' });
  expect(again.stderr).toContain(`the old turn is kept: \`perdura show ${id} --branch 1\``);
  expect((await perdura('show', id, '--branch', '1')).stdout).toContain('answer 2');
  const edited = await perdura('edit', id, say(id, 'other words'), '--turn', '1', '-o', 'json');
  expect(JSON.parse(edited.stdout)).toMatchObject({
    conversation: id,
    turnId: 'turn_0004',
    text: 'answer to other words',
    cut: 2,
    branch: 2,
  });
  expect((await perdura('show', id)).stdout).not.toContain('answer anew');
  expect(await perdura('edit', id, 'x', '--turn', '2')).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('turn_0002 is not in it') as unknown,
  });
  expect(await perdura('edit', id, ' ')).toMatchObject({ code: 2, stderr: expect.stringContaining('the message is empty') as unknown });
});

test('model says which answers and who has chosen it, and changes it', async () => {
  const id = await talk(1);
  const own = await perdura('model', id);
  expect(own).toMatchObject({ code: 0, stdout: expect.stringMatching(/^anthropic\/\S+, the model of agent default\n$/) as unknown });
  expect(await perdura('model', id, 'anthropic/claude-other')).toMatchObject({
    code: 0,
    stdout: 'anthropic/claude-other, chosen for this conversation\n',
  });
  expect(JSON.parse((await perdura('model', id, '-o', 'json')).stdout)).toEqual({
    id,
    model: 'anthropic/claude-other',
    chosenModel: 'anthropic/claude-other',
  });
  expect((await perdura('model', id, 'default')).stdout).toContain('the model of agent default: its name is known with the next answer');
  expect(await perdura('model', id, 'claude')).toMatchObject({ code: 2, stderr: expect.stringContaining('provider/model') as unknown });
});

test('-p closes its conversation without consolidating, --keep leaves it open, and -c goes on with either', async () => {
  const [one, kept] = [world.id(), world.id()];
  const conversationOf = ({ stdout }: Ran): string => (JSON.parse(stdout) as { conversation: string }).conversation;
  stage.play(one, text('answer 1'), text('answer 2'));
  const id = conversationOf(await perdura('-p', say(one, 'hello'), '--output-format', 'json'));
  expect(await world.client.outcome(id)).toMatchObject({ turns: 1 });
  const again = await perdura('-c', '-p', say(one, 'and?'), '--output-format', 'json');
  expect(JSON.parse(again.stdout)).toMatchObject({ conversation: id, turnId: 'turn_0002', text: 'answer 2' });
  expect(again.stderr).toContain(`${id} had ended; it goes on after turn_0001`);
  expect(await world.client.outcome(id)).toMatchObject({ turns: 1 });
  const open = conversationOf(await perdura('-p', say(kept, 'hello'), '--keep', '--output-format', 'json'));
  expect(await world.client.describe(open)).toMatchObject({ state: 'running' });
  // One that was open stays so.
  await perdura('-c', '-p', say(kept, 'and?'));
  expect(await world.client.describe(open)).toMatchObject({ state: 'running' });
  expect((await world.client.status(open)).turns).toBe(2);
});

test('-p without a message starts no conversation', async () => {
  const before = await listedIds(world.client);
  expect(await perdura('-p', '')).toMatchObject({ code: 2, stderr: expect.stringContaining('-p needs a message') as unknown });
  expect(await begunSince(world.client, before)).toEqual([]);
});

test('one that runs is neither resumed nor deleted, and the error says what to do; one that ended is both', async () => {
  const id = await talk(1);
  expect(await perdura('resume', id)).toMatchObject({ code: 2, stderr: expect.stringContaining('is running: talk to it with') as unknown });
  expect(await perdura('delete', id, '--yes')).toMatchObject({ code: 2, stderr: expect.stringContaining('perdura end') as unknown });
  await world.client.terminate(id);
  const resumed = await perdura('resume', id);
  expect(resumed).toMatchObject({ code: 0 });
  expect(`${resumed.stdout}${resumed.stderr}`).toContain('goes on after turn_0001 with its 1 turn');
  await world.client.terminate(id);
  expect(await perdura('delete', id)).toMatchObject({ code: 2, stderr: expect.stringContaining('add --yes') as unknown });
  const deleted = await perdura('delete', id, '--yes');
  expect(deleted).toMatchObject({ code: 0 });
  expect(`${deleted.stdout}${deleted.stderr}`).toMatch(/is deleted: 2 lives from the store, 2 runs from Temporal/);
  expect(deleted.stderr).toContain('MEMORY.md, HISTORY and the facts of its scope stay');
});

test('an agent that there is not is refused before anything starts in its name, and nothing that ended begins again', async () => {
  const [id, other, folder] = [await talk(1), world.id(), join(world.dir, 'exported')];
  await world.client.terminate(id);
  const ended = await world.client.describe(id);
  expect(await perdura('admin', 'export', id, '--format', 'seed', '--out', folder)).toMatchObject({ code: 0 });
  // Its agents are this folder's: no worker of another place takes work there.
  const env = { PERDURA_TASK_QUEUE: `alone-${other}` };
  for (const args of [
    ['new', '--id', other],
    ['fork', id, '--at', '1', '--id', other],
    ['resume', id],
    ['admin', 'import', folder, '--id', other],
  ]) {
    const refused = await runPerdura(world, [...args, '--agent', 'nobody'], { env });
    expect({ args, ...refused }).toMatchObject({
      code: 4,
      stdout: '',
      stderr: expect.stringContaining('there is no agent nobody') as unknown,
    });
  }
  await expect(world.client.describe(other)).rejects.toMatchObject({ kind: 'not-found' });
  expect(await world.client.describe(id)).toEqual(ended);
});

test('what neither Temporal nor the store has is said', async () => {
  for (const args of [
    ['fork', 'c-none', '--at', '1'],
    ['resume', 'c-none'],
    ['delete', 'c-none', '--yes'],
  ]) {
    expect(await perdura(...args)).toMatchObject({ code: 4, stderr: expect.stringContaining('neither Temporal nor the store') as unknown });
  }
});
