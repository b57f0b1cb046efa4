/** What waits for a person is decided by commands. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { callTool, gate, text } from '../../support/provider-apis/reply.js';
import { beginPerdura, runPerdura, type Ran } from '../../support/run-perdura.js';
import { createStage, resultTexts, say } from '../../support/stage.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';

const AGENT = { approvals: [{ tool: 'read_file', policy: 'ask', why: 'files are private' }] };

const stage = createStage();
let world: World;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, agent: AGENT, files: { 'a.txt': 'content of a', 'b.txt': 'content of b' } });
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

const perdura = (...args: readonly string[]): Promise<Ran> =>
  runPerdura(world, args, { env: { PERDURA_AGENTS_DIR: join(world.dir, 'agents') } });

test('an approval is shown with its arguments, and decided with others than the model wrote', async () => {
  const id = world.id();
  stage.play(id, callTool('read_file', { path: 'a.txt' }), text('It says content of b.'));
  const sent = world.client.send(id, say(id, 'read a'), { start: {} });
  await waitFor(
    () => world.client.status(id).catch(() => undefined),
    (status) => status?.phase === 'waiting-for-person',
  );
  expect(JSON.parse((await perdura('approvals', '-o', 'json')).stdout)).toContainEqual(expect.objectContaining({ conversation: id }));
  const shown = await perdura('approvals', id);
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('"path": "a.txt"') });
  expect(shown.stdout).toContain('why: files are private');
  expect((await perdura('debug', 'inspect', id)).stdout).toContain('waiting-for-person');

  expect(await perdura('answer', id, 'yes')).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot be answered') });
  const edited = ['--input', '{"path":"b.txt"}', '--note', 'the other one'];
  expect(await perdura('approve', id, ...edited)).toMatchObject({ code: 0, stderr: expect.stringContaining('is allowed: read_file') });
  expect(await sent).toMatchObject({ text: 'It says content of b.' });
  const [result] = resultTexts(stage.requests(id).at(-1));
  expect(result).toContain('content of b');
  expect(result).toContain('the other one');
  expect(await perdura('approve', id)).toMatchObject({ code: 4, stderr: expect.stringContaining('nothing waits for a person') });
});

test('a call is allowed for good by a command, in the conversation or in the agent’s file, after a yes', async () => {
  const id = world.id();
  const read = callTool('read_file', { path: 'a.txt' });
  stage.play(id, read, text('Read.'), read, text('Read again.'));
  const sent = world.client.send(id, say(id, 'read a'), { start: {} });
  await waitFor(
    () => world.client.status(id).catch(() => undefined),
    (status) => status?.phase === 'waiting-for-person',
  );
  expect(await perdura('approve', id, '--always')).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes saves what is shown') });
  expect(await perdura('approve', id, '--always', '--input', '{}')).toMatchObject({ code: 2 });
  const done = await perdura('approve', id, '--always', 'agent', '--yes');
  expect(done).toMatchObject({ code: 0, stderr: expect.stringContaining('"path": "a.txt"') });
  expect(done.stderr).toContain('written into agents/default/agent.json');
  expect(await sent).toMatchObject({ text: 'Read.' });
  expect(JSON.parse(await readFile(join(world.dir, 'agents', 'default', 'agent.json'), 'utf8'))).toEqual({
    approvals: [{ tool: 'read_file', exactly: { path: 'a.txt' }, policy: 'allow' }, ...AGENT.approvals],
  });
  expect(await world.client.send(id, say(id, 'again'))).toMatchObject({ text: 'Read again.' });
  expect((await perdura('debug', 'inspect', id)).stdout).toContain('read_file a.txt (turn_0001/c1) without asking');
  // Another conversation of the agent is not asked either, and about another file it is.
  const other = world.id();
  stage.play(other, callTool('read_file', { path: './a.txt' }), text('Read.'), callTool('read_file', { path: 'b.txt' }), text('No.'));
  expect(await world.client.send(other, say(other, 'read a'), { start: {} })).toMatchObject({ text: 'Read.' });
  const asked = world.client.send(other, say(other, 'read b'));
  await waitFor(
    () => world.client.approvals(other),
    (list) => list.length === 1,
  );
  expect(await perdura('deny', other)).toMatchObject({ code: 0 });
  await asked;
  await writeFile(join(world.dir, 'agents', 'default', 'agent.json'), JSON.stringify(AGENT));
});

test('a question is answered by a command, and a command that waits says what it waits for', async () => {
  const id = world.id();
  await world.client.start(id);
  stage.play(id, callTool('ask_user', { question: 'Which colour?' }), text('Blue.'));
  const sent = beginPerdura(world, ['send', id, say(id, 'ask me')]);
  await waitFor(
    () => world.client.approvals(id),
    (list) => list.length === 1,
  );
  await waitFor(sent.stderr, (said) => said.includes(`perdura answer ${id} turn_0001/c1`));
  expect(await perdura('approve', id)).toMatchObject({ code: 2, stderr: expect.stringContaining('answer it') });
  expect(await perdura('answer', id, 'c1', 'blue,', 'please')).toMatchObject({ code: 0 });
  expect(await sent.ended).toMatchObject({ code: 0, stdout: 'Blue.\n' });
  expect(resultTexts(stage.requests(id).at(-1))).toEqual(['blue, please']);
});

test('a call is denied with a reason, and a budget is shown, set and taken away', async () => {
  const id = world.id();
  await world.client.start(id);
  stage.play(id, callTool('read_file', { path: 'a.txt' }), text('I may not.'));
  await world.client.message(id, say(id, 'read a'));
  await waitFor(
    () => world.client.approvals(id),
    (list) => list.length === 1,
  );
  expect(await perdura('deny', id, 'turn_0001/c1', '--note', 'not today')).toMatchObject({ code: 0 });
  await world.client.turn(id, 'turn_0001');
  expect(resultTexts(stage.requests(id).at(-1))[0]).toContain('They say: not today');

  expect((await perdura('budget', id)).stdout).toMatch(/^no limit; used: /);
  expect((await perdura('budget', id, '--max-cost', '2.50')).stdout).toMatch(/^at most \$2.50; /);
  expect((await perdura('budget', id, '--max-tokens', '5k')).stdout).toMatch(/^at most \$2.50 and 5,000 tokens; /);
  expect((await perdura('budget', id, '--none')).stdout).toMatch(/^no limit; /);
});

test('a message is queued with a receipt, and taken back', async () => {
  const id = world.id();
  await world.client.start(id);
  const held = gate();
  stage.play(id, { ...text('One.'), hold: held });
  await world.client.message(id, say(id, 'one'));
  await held.reached;
  expect(await perdura('send', id, say(id, 'two'), '--enqueue', '--id', 'mine')).toMatchObject({
    code: 0,
    stdout: 'mine\n',
    stderr: expect.stringContaining('it becomes turn_0002'),
  });
  expect(await perdura('stop', id, '--message', 'mine')).toMatchObject({ code: 0, stderr: expect.stringContaining('taken back') });
  expect(await perdura('stop', id, '--message', 'mine')).toMatchObject({ code: 1, stderr: expect.stringContaining('not withdrawn') });
  held.release();
});
