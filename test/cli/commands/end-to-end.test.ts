/** Every command, as a person runs it: from its arguments to its exit code, a real Temporal, a worker, a file store. */
import { spawn } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { callTool, gate, text } from '../../support/provider-apis/reply.js';
import { beginPerdura, PERDURA, perduraEnvironment, runPerdura, startPerdura, type Ran } from '../../support/run-perdura.js';
import { createStage, say } from '../../support/stage.js';
import { waitFor } from '../../support/wait-for.js';
import { startWorld, type World } from '../../support/world.js';
import { parsed, SUMMARY } from './ran.js';

/** Drops what a terminal would take for an instruction. */
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/;

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

/** A conversation in which a tool was used. */
async function spokenIn(): Promise<string> {
  const id = world.id();
  await world.client.start(id, { title: '週報 and\u202e more' });
  stage.play(id, callTool('read_file', { path: 'a.txt' }), text(`The file says: content.\u001b[2J`));
  await world.client.send(id, say(id, 'what does the file say?'));
  return id;
}

test('new starts a conversation, send gets its answer, and --explain says how `temporal` would show it', async () => {
  const id = world.id();
  const made = await perdura('new', '--id', id, '--title', 'A title', '--agent', 'default', '--explain');
  expect({ code: made.code, stdout: made.stdout }).toEqual({ code: 0, stdout: `${id}\n` });
  expect(made.stderr).toContain(`temporal workflow describe -w ${id} --address`);
  expect(await world.client.status(id)).toMatchObject({ title: 'A title' });
  expect(parsed(await perdura('new', '--id', id, '-o', 'json'))).toMatchObject({ id, attached: true });

  stage.play(id, text('Hello.'), text('Again.'));
  const sent = await perdura('send', id, say(id, 'hi'));
  expect({ code: sent.code, stdout: sent.stdout }).toEqual({ code: 0, stdout: 'Hello.\n' });
  const piped = await run(['send', id, '-', '-o', 'json'], {}, say(id, 'hi again'));
  expect(parsed(piped)).toMatchObject({ conversation: id, text: 'Again.', stopReason: 'end' });
});

test('send without waiting prints the id of the message, which is one message however often it is sent', async () => {
  const id = world.id();
  await world.client.start(id);
  stage.play(id, text('Once.'));
  for (let time = 0; time < 2; time++) {
    expect(await perdura('send', id, say(id, 'hi'), '--signal', '--id', 'mine')).toMatchObject({ code: 0, stdout: 'mine\n' });
  }
  expect(await perdura('send', id, say(id, 'hi'), '--id', 'mine', '--timeout', '1m')).toMatchObject({ code: 0, stdout: 'Once.\n' });
  expect(stage.requests(id)).toHaveLength(1);
});

test('send that waits too long ends with 124, and the message stays sent', async () => {
  const id = world.id();
  await world.client.start(id);
  const held = gate();
  stage.play(id, { text: 'Slow words.', hold: held });
  const ran = await perdura('send', id, say(id, 'hi'), '--timeout', '500ms');
  expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 124, stdout: '' });
  const again = /--id (\S+)`/.exec(ran.stderr)?.[1] ?? '';
  held.release();
  expect(await perdura('send', id, say(id, 'hi'), '--id', again)).toMatchObject({ code: 0, stdout: 'Slow words.\n' });
});

test('list knows titles and states, and takes a query', async () => {
  const id = await spokenIn();
  // Visibility follows a little later.
  const ask = (): Promise<Ran> => perdura('list', '-o', 'json', '-q', `WorkflowId = '${id}'`);
  const found = await waitFor(ask, ({ stdout }) => stdout.includes(id));
  expect(parsed(found)).toEqual([expect.objectContaining({ id, running: true, agent: 'default', title: '週報 and\u202e more' })]);
  const table = await perdura('list', '-q', `WorkflowId = '${id}'`, '--status', 'running', '--time-format', 'iso', '--explain');
  expect(table.stdout).toMatch(/^ID +STATUS +AGENT +TURNS +COST +STARTED +TITLE\n/);
  expect(table.stdout).toMatch(/running +default +1 +\d{4}-\d\d-\d\dT\S+ +週報 and more\n$/);
  expect(table.stderr).toContain(`temporal workflow list -q "WorkflowType = 'conversation' AND`);
  expect(parsed(await perdura('list', '-o', 'json', '--limit', '1'))).toHaveLength(1);
  const refused = await perdura('list', '-q', 'Nonsense = 1');
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/cannot list by Nonsense = 1: .*not a valid search attribute/) });
});

test('show prints what was said: for people, as data, one turn, as raw traces', async () => {
  const id = await spokenIn();
  const shown = await perdura('show', id);
  expect(shown.stdout).toContain('→ read_file {"path":"a.txt"}');
  expect(shown.stdout).toContain('The file says: content.␛[2J');
  expect(shown.stdout).not.toMatch(UNSAFE);
  expect(parsed(await perdura('show', id, '-o', 'json'))).toHaveLength(4);
  expect((await perdura('show', id, '--tools')).stdout).toMatch(/→ read_file {"path":"a.txt"}\n← success {2}content/);
  expect(parsed(await perdura('show', id, '--tools', '-o', 'json'))).toMatchObject([{ tool_name: 'read_file', status: 'SUCCESS' }]);
  const traces = (await perdura('show', id, '--raw')).stdout.trimEnd().split('\n');
  expect(traces.map((line) => (JSON.parse(line) as { trace_type: string }).trace_type)).toEqual([
    'user',
    'tool_call',
    'tool_result',
    'assistant',
  ]);
  expect(parsed(await perdura('show', id, '--turn', '1', '-o', 'json'))).toHaveLength(4);
  expect(await perdura('show', id, '--turn', '7')).toMatchObject({ code: 4, stdout: '' });
});

test('show --follow goes on until the conversation has ended', async () => {
  const id = await spokenIn();
  const following = beginPerdura(world, ['show', id, '--follow']);
  await waitFor(following.stdout, (said) => said.includes('The file says'));
  stage.play(id, text('One more.'));
  await world.client.send(id, say(id, 'go on'));
  await world.client.closeConversation(id);
  const { code, stdout } = await following.ended;
  expect(code).toBe(0);
  expect(stdout.match(/One more\./g)).toHaveLength(1);
});

test('the beginning of an id is enough when it is the only one, and which one it was is said', async () => {
  const id = await spokenIn();
  const beginning = id.slice(0, 20);
  const ran = await waitFor(
    () => perdura('debug', 'inspect', beginning, '-o', 'json'),
    ({ code }) => code === 0,
  );
  expect(ran.stderr).toContain(`${beginning} is ${id}`);
  expect(JSON.parse(ran.stdout)).toMatchObject({
    description: { id, state: 'running', pendingActivities: [] },
    status: { phase: 'idle', turns: 1 },
    turns: [{ turn: 'turn_0001', toolCalls: 1 }],
  });
  const drawn = await perdura('debug', 'inspect', id);
  expect(drawn.stdout).toMatch(/^status {4}idle · turn 1 · session 1$/m);
  expect(drawn.stdout).toMatch(/^context {3}[\d,]+ of [\d,]+ tokens, \d+ %$/m);
  expect(drawn.stdout).not.toMatch(UNSAFE);
});

test('context lists its parts, compacts now and takes it back; each says how `temporal` would do it', async () => {
  const id = world.id();
  await world.client.start(id);
  for (let n = 1; n <= 6; n++) {
    stage.play(id, text(`Answer ${n}.`));
    await world.client.send(id, say(id, `turn ${n}`));
  }
  const drawn = await perdura('debug', 'context', id, '--explain');
  expect((await perdura('debug', 'context', id)).stderr).not.toContain('temporal workflow');
  expect(drawn.stdout).toMatch(/^PART +TOKENS +SHARE\nsystem and tools +[\d,]+ +\S+ %\n/);
  expect(drawn.stdout).toContain('12 messages in epoch 1');
  expect(drawn.stderr).toContain(`temporal workflow query --name context -w ${id}`);
  expect(drawn.stdout).not.toMatch(UNSAFE);
  const index = parsed(await perdura('debug', 'context', id, '-o', 'json'));
  expect(index).toEqual(await world.client.context(id));

  stage.play(id, text(SUMMARY));
  const done = await perdura('debug', 'context', id, '--compact', '--explain');
  expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining('compacted once; the last one can be taken back') });
  expect(done.stderr).toMatch(/2 turns are memory now, summarized by/);
  expect(done.stderr).toContain(`temporal workflow update execute --name compact -w ${id}`);
  expect(parsed(await perdura('debug', 'context', id, '--undo', '-o', 'json'))).toEqual({ id, outcome: { kind: 'undone', epoch: 3 } });
  expect(parsed(await perdura('debug', 'context', id, '--undo', '-o', 'json'))).toEqual({ id, outcome: { kind: 'nothing-to-undo' } });
  expect(await perdura('debug', 'context', id, '--undo', '--compact')).toMatchObject({ code: 2 });
  await world.client.closeConversation(id);
  await world.client.outcome(id);
  expect(await perdura('debug', 'context', id, '--compact')).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('not running any more'),
  });
});

test('context --chunks lists the messages by the ids that --truncate and --compact take, and these alone go', async () => {
  const id = world.id();
  await world.client.start(id);
  for (let n = 1; n <= 4; n++) {
    stage.play(id, text(`Answer ${n}.`));
    await world.client.send(id, say(id, `turn ${n}`));
  }
  const { chunks } = parsed(await perdura('debug', 'context', id, '--chunks', '-o', 'json')) as {
    chunks: { chunk: string; words: string }[];
  };
  const ids = chunks.map(({ chunk }) => chunk);
  expect(chunks.map(({ words }) => words.replace(id, '').trim()).slice(0, 4)).toEqual(['turn 1', 'Answer 1.', 'turn 2', 'Answer 2.']);
  const drawn = await perdura('debug', 'context', id, '--chunks');
  expect(drawn.stdout).toMatch(new RegExp(`${ids[1]} +turn_0001 +assistant +\\d+ +Answer 1\\.`));
  expect(drawn.stdout).not.toMatch(UNSAFE);

  const left = await perdura('debug', 'context', id, '--truncate', '--chunks', `${ids[0]},${ids[1]}`, '--explain');
  expect(left).toMatchObject({ code: 0, stderr: expect.stringContaining('2 of the oldest messages are left out of the prompt') });
  expect(left.stderr).toContain(`--name executeTruncation -w ${id} --input '{"chunks":["${ids[0]}","${ids[1]}"]}'`);
  stage.play(id, text(SUMMARY));
  const numbers = `${ids[2]},${ids[3]}`.replaceAll('chunk_', '');
  const made = parsed(await perdura('debug', 'context', id, '--compact', '--chunks', numbers, '-o', 'json'));
  expect(made).toMatchObject({ id, outcome: { kind: 'compacted', turns: expect.any(Number) as number } });
  const { chunks: after } = parsed(await perdura('debug', 'context', id, '--chunks', '-o', 'json')) as typeof made & {
    chunks: { chunk: string }[];
  };
  for (const gone of ids.slice(0, 4)) expect(after.map(({ chunk }) => chunk)).not.toContain(gone);

  const unknown = await perdura('debug', 'context', id, '--truncate', '--chunks', 'chunk_777');
  expect(unknown).toMatchObject({
    stdout: '',
    stderr: expect.stringMatching(/chunk_777 is not in the context, which has chunk_\d+ to chunk_\d+/),
  });
  expect(unknown.code).not.toBe(0);
  expect(await perdura('debug', 'context', id, '--compact', '--chunks', 'x')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('"x" is no chunk'),
  });
  expect(await perdura('debug', 'context', id, '--chunks', '3')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--compact or --truncate'),
  });
  expect(await perdura('debug', 'context', id, '--compact', '--chunks')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('name the chunks'),
  });
});

test('memory --list shows what was remembered and where from; show --raw leaves out what is archived, until asked', async () => {
  const id = world.id();
  await world.client.start(id, { scope: `scope-${id.slice(2, 10)}` });
  for (let n = 1; n <= 6; n++) {
    stage.play(id, text(`Answer ${n}.`));
    await world.client.send(id, say(id, `turn ${n}`));
  }
  stage.play(id, text(SUMMARY));
  await world.client.compact(id);

  const listed = await perdura('memory', '--of', id, '--list');
  expect(listed.stdout).toMatch(/ep_0001 · turn_0001–turn_0002 · session 1 · .*salience 0\.7 · #counting\n {4}They counted\./);
  expect(listed.stdout).toMatch(new RegExp(`sem_0001 .* · learnt in ${id}, turn_0001–turn_0002\\n {4}The person counts from one`));
  expect(listed.stdout).not.toMatch(UNSAFE);
  const { episodes, facts, skipped } = await world.client.memory(id);
  expect(parsed(await perdura('memory', '--of', id, '--list', '-o', 'json'))).toEqual({ id, episodes, facts, skipped });
  expect(parsed(await perdura('memory', '--of', id, '--list', 'episodic', '-o', 'json'))).toEqual({ id, episodes, skipped: 0 });
  expect(parsed(await perdura('memory', '--of', id, '--list', 'semantic', '-o', 'json'))).toEqual({ id, facts, skipped: 0 });
  expect(await perdura('memory', '--list')).toMatchObject({ code: 2, stderr: expect.stringContaining('of which conversation') });

  const turnsIn = async (...more: readonly string[]): Promise<readonly string[]> => {
    const lines = (await perdura('show', id, '--raw', ...more)).stdout.trimEnd().split('\n');
    return [...new Set(lines.map((line) => (JSON.parse(line) as { turn_id: string }).turn_id))];
  };
  expect(await turnsIn()).toEqual(['turn_0003', 'turn_0004', 'turn_0005', 'turn_0006']);
  expect(await turnsIn('--archived')).toHaveLength(6);
  expect((await perdura('show', id, '--raw')).stderr).toContain('4 archived entries are not shown; --archived adds them');
});

test('memory --items lists what is in the memory channel, and prints one; what a model has put there cannot steer a terminal', async () => {
  const id = world.id();
  await world.client.start(id, { scope: id });
  expect(parsed(await perdura('memory', '--of', id, '--items', '-o', 'json'))).toEqual({ id, items: [], skipped: 0 });
  const content = 'tide \u001b]0;owned\u0007 table\nsecond line';
  stage.play(id, callTool('store_in_memory', { content, tags: 'tides,\u001b[31mred' }), text('Kept.'));
  await world.client.send(id, say(id, 'keep it'));
  const { items } = await world.client.items(id);
  const [kept] = items;
  expect(items).toMatchObject([{ type: 'custom', session: 1, content: { bytes: Buffer.byteLength(content), json: false } }]);
  const listed = await perdura('memory', '--of', id, '--items');
  expect(listed.stdout).toContain(`${kept?.id} · custom · `);
  expect(listed.stdout).not.toMatch(UNSAFE);
  expect(listed.stderr).toContain(`perdura memory --of ${id} --items ${kept?.id}`);
  const shown = await perdura('memory', '--of', id, '--items', kept?.id ?? '');
  expect(shown.stdout).toContain('second line');
  expect(shown.stdout).not.toMatch(UNSAFE);
  expect(parsed(await perdura('memory', '--of', id, '--items', kept?.id ?? '', '-o', 'json'))).toEqual({ ...kept, text: content });
  expect(await perdura('memory', '--of', id, '--items', 'mem_none')).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('has no item mem_none'),
  });
});

test('in the chat /context lists the parts and /compact compacts', async () => {
  const id = await spokenIn();
  const { code, stdout } = await run(['chat', '-r', id], {}, '/context\n/compact\n');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^PART [^]*\nsystem and tools [^]*4 messages in epoch 1\n/);
  expect(stdout).toMatch(/there is nothing to compact: the latest turns stay as they are\n$/);
});

test('watch prints a turn as it happens, and as json gives its events; both end with the conversation', async () => {
  const id = world.id();
  await world.client.start(id);
  const drawing = beginPerdura(world, ['debug', 'watch', id]);
  const telling = beginPerdura(world, ['debug', 'watch', id, '-o', 'json', '--from-start']);
  // A watcher sees what comes from now on, and may come in the middle of a turn: it is repeated until one was seen whole.
  await waitFor(
    async () => {
      stage.play(id, callTool('read_file', { path: 'a.txt' }), text('Watched.'));
      await world.client.send(id, say(id, 'look'));
      return drawing.stdout();
    },
    (seen) => /→ read_file[^]*← read_file[^]* end /.test(seen),
  );
  await world.client.closeConversation(id);
  const [drawn, told] = await Promise.all([drawing.ended, telling.ended]);
  expect([drawn.code, told.code]).toEqual([0, 0]);
  expect(drawn.stdout).toMatch(/→ read_file {2}\{"path":"a\.txt"\}/);
  expect(drawn.stdout).toMatch(/turn_0001 {2}end {2}[\d,]+ in, .* · Watched\.\n/);
  const kinds = told.stdout
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { event: { kind: string } }).event.kind);
  expect(kinds).toEqual(expect.arrayContaining(['message', 'tool-started', 'tool-finished', 'text', 'turn-finished']));
});

test('Ctrl+C ends a watch with 130 and nothing else', async () => {
  const id = await spokenIn();
  const watching = startPerdura(world, ['debug', 'watch', id, '--from-start']);
  await waitFor(watching.stdout, (seen) => seen.includes('turn_0001  end'));
  watching.kill('SIGINT');
  expect(await watching.ended).toMatchObject({ code: 130, stderr: expect.stringContaining('stopped watching; the conversation goes on') });
  expect(await world.client.status(id)).toMatchObject({ phase: 'idle' });
});

test('rename, stop and end --wait reach the conversation; what has ended takes nothing any more', async () => {
  const id = world.id();
  await world.client.start(id);
  expect(parsed(await perdura('rename', id, 'Another', '-o', 'json'))).toEqual({ id, title: 'Another' });
  expect(await world.client.status(id)).toMatchObject({ title: 'Another' });

  const held = gate();
  stage.play(id, { text: 'Many words.', hold: held });
  const sending = world.client.send(id, say(id, 'hi'));
  await held.reached;
  expect(await perdura('stop', id, '--reason', 'enough')).toMatchObject({ code: 0, stdout: '' });
  expect(await sending).toMatchObject({ stopReason: 'interrupted' });
  held.release();

  expect(parsed(await perdura('end', id, '--wait', '-o', 'json'))).toMatchObject({ id, outcome: { turns: 1 } });
  expect(await perdura('stop', id)).toMatchObject({ code: 4, stderr: expect.stringContaining('is not running any more (ended)') });
  expect((await perdura('show', id)).code).toBe(0);
});

test('end --now and --terminate end a conversation; --terminate does not do so unasked', async () => {
  const [one, other] = [world.id(), world.id()];
  await Promise.all([world.client.start(one), world.client.start(other)]);
  expect((await perdura('end', one, '--now')).code).toBe(0);
  await waitFor(
    () => world.client.describe(one),
    ({ state }) => state !== 'running',
  );
  expect(await perdura('end', other, '--terminate')).toMatchObject({ code: 2, stderr: expect.stringContaining('add --yes') });
  expect(await world.client.describe(other)).toMatchObject({ state: 'running' });
  expect(parsed(await perdura('end', other, '--terminate', '--yes', '--reason', 'test', '-o', 'json'))).toEqual({
    id: other,
    terminated: true,
  });
  expect(await world.client.describe(other)).toMatchObject({ state: 'terminated' });
});

test('export gives a document, the entries, and histories of Temporal that can be replayed', async () => {
  const id = await spokenIn();
  const document = await perdura('admin', 'export', id);
  expect(document.stdout).toMatch(/^# 週報 and more\n\n## turn_0001 · /);
  expect(document.stdout).not.toMatch(UNSAFE);
  expect(parsed(await perdura('admin', 'export', id, '--format', 'json'))).toMatchObject({ v: 1, id, entries: { length: 4 } });
  expect((await perdura('admin', 'export', id, '--format', 'jsonl')).stdout.trimEnd().split('\n')).toHaveLength(4);
  const runs = parsed(await perdura('admin', 'export', id, '--format', 'history')) as { events: { eventType: string }[] }[];
  expect(runs.map(({ events }) => events[0]?.eventType)).toEqual(['EVENT_TYPE_WORKFLOW_EXECUTION_STARTED']);
});

test('heal brings back what the store has lost, and says so', async () => {
  const id = await spokenIn();
  expect((await perdura('admin', 'heal', id)).stdout).toMatch(/history has 4 entries in 1 run; the store has them all\n$/);
  expect(await healWithEmptyStore(id)).toMatchObject({ id, known: 4, missing: 4, restored: 4, complete: true, problems: [] });
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

test('what is not there, or does not answer, has an exit code of its own', async () => {
  const cases: readonly (readonly [number, readonly string[], RegExp])[] = [
    [4, ['debug', 'inspect', 'nobody-knows'], /cannot find conversation nobody-knows: .*`perdura list`/],
    [4, ['send', 'nobody-knows', 'hi'], /cannot send to nobody-knows/],
    [3, ['list', '-n', 'nowhere'], /does not open namespace nowhere/],
    [4, ['admin', 'import', 'nowhere'], /cannot open/],
  ];
  for (const [code, args, message] of cases) {
    expect([args, await perdura(...args)]).toEqual([args, { code, stdout: '', stderr: expect.stringMatching(message) as string }]);
  }
});

test('--quiet says nothing beside the data; colours come when they are asked for and NO_COLOR is heard', async () => {
  const id = await spokenIn();
  expect((await perdura('show', id, '--quiet')).stderr).toBe('');
  expect((await perdura('debug', 'inspect', id)).stdout).not.toContain('\u001b[');
  expect((await perdura('debug', 'inspect', id, '--color', 'always')).stdout).toContain('\u001b[36m');
  expect((await run(['debug', 'inspect', id], { FORCE_COLOR: '1' })).stdout).toContain('\u001b[36m');
  expect((await run(['debug', 'inspect', id], { FORCE_COLOR: '1', NO_COLOR: '1' })).stdout).not.toContain('\u001b[');
});

test('flags stand for TEMPORAL_*, before the command or after it, and Temporal profiles work', async () => {
  const id = await spokenIn();
  const address = process.env['PERDURA_TEST_ADDRESS'] ?? '';
  const nowhere = { TEMPORAL_ADDRESS: '127.0.0.1:1' };
  expect((await run(['show', id, '--address', address], nowhere)).code).toBe(0);
  expect((await run(['--address', address, 'show', id], nowhere)).code).toBe(0);
  const file = join(world.dir, 'temporal.toml');
  await writeFile(file, `[profile.mine]\naddress = "${address}"\nnamespace = "default"\n`);
  expect((await run(['show', id, '--config-file', file, '--profile', 'mine'], { TEMPORAL_ADDRESS: '' })).code).toBe(0);
});

test('a reader that leaves is no error', async () => {
  const id = await spokenIn();
  const child = spawn('/bin/sh', ['-c', `"${process.execPath}" "${PERDURA}" export ${id} --format history | head -c 10; wait`], {
    cwd: world.dir,
    env: { ...perduraEnvironment(world), PATH: '/usr/bin:/bin' },
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (stderr += piece));
  child.stdin.end();
  await new Promise((resolve) => child.on('close', resolve));
  expect(stderr).not.toMatch(/EPIPE|at .*\.js/);
});
