/** Evals of conversations on a real Temporal, by the built program: recorded, run, watched; and datasets, by command and over HTTP. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startGateway } from '../../src/cli/gateway/serve.js';
import { createOutput } from '../../src/cli/terminal/output.js';
import { loadConfig, temporalConnection } from '../../src/config.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { perduraEnvironment, startPerdura, type Ran } from '../support/run-perdura.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const stage = createStage();
let world: World;
let id: string;
const env = { SERVICE_PASSWORD: 'hunter2-hunter2' };

beforeAll(async () => {
  world = await startWorld({ engine: 'temporal', answer: stage.answer, files: { 'a.txt': 'content and hunter2-hunter2' } });
  id = world.id();
  await world.client.start(id);
  stage.play(
    id,
    callTool('read_file', { path: 'a.txt' }),
    text('It has content.'),
    callTool('run_command', { command: 'ls' }),
    text('Not run, then.'),
  );
  await world.client.send(id, say(id, 'what is in it?'));
  const sending = world.client.send(id, say(id, 'list it'));
  const [waiting] = await waitFor(
    () => world.client.approvals(id),
    (all) => all.length > 0,
  );
  await world.client.decide(id, { callId: waiting?.callId ?? '', decision: 'deny', note: 'no' });
  await sending;
});
afterAll(() => world.close());

const perdura = (...args: readonly string[]): Promise<Ran> => startPerdura(world, args, { env }).ended;
const file = (...names: readonly string[]): string => join(world.dir, 'evals', ...names);

test('a conversation is recorded as an eval that runs green by itself, and fails where it is changed', async () => {
  const recorded = await perdura('eval', '--record', id, '--name', 'real');
  expect(recorded).toMatchObject({ code: 0, stdout: expect.stringMatching(/^passed {3}real/) });
  const program = readFileSync(file('real.eval.ts'), 'utf8');
  expect(program + readFileSync(file('real.recording.json'), 'utf8')).not.toContain('hunter2');
  // Without a server: nothing but the files is used.
  const alone = startPerdura(world, ['eval', 'real', '-o', 'json'], { env: { TEMPORAL_ADDRESS: '127.0.0.1:1' } });
  const { code, stdout } = await alone.ended;
  expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ runs: 1, failed: 0, soft: 0 })]);
  writeFileSync(file('real.eval.ts'), program.replace("'It has content.'", "'It has nothing.'").replaceAll('expect.soft(', 'expect('));
  expect(await perdura('eval', 'real')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('has "It has nothing." in its answer: it answered "It has content."'),
  });
  writeFileSync(file('real.eval.ts'), program);
});

test('--watch runs again on a change, and Ctrl+C ends it and its child', async () => {
  const watching = startPerdura(world, ['eval', 'real', '--watch'], { env });
  const rounds = (): number => watching.stdout().split('passed   real').length - 1;
  await waitFor(rounds, (count) => count === 1);
  await waitFor(watching.stderr, (words) => words.includes('waiting for a change'));
  writeFileSync(file('real.eval.ts'), `${readFileSync(file('real.eval.ts'), 'utf8')}// changed\n`);
  await waitFor(rounds, (count) => count === 2);
  watching.kill('SIGINT');
  expect(await watching.ended).toMatchObject({ code: 130, stderr: expect.stringContaining('evals/real.eval.ts has changed') });
});

test('a turn becomes a case by command, and over HTTP where a person’s project is served', async () => {
  expect(await perdura('dataset', 'add', id, '--turn', '1', '--label', 'reads', '--name', 'real')).toMatchObject({
    code: 0,
    stdout: `${id}/turn_0001\n`,
  });
  const config = loadConfig({ ...perduraEnvironment(world), ...env }, world.dir);
  const output = createOutput(process.stdout, process.stderr, () => undefined);
  const session = { client: world.client, config, temporal: await temporalConnection(config), output };
  const wanted = {
    host: '127.0.0.1',
    port: 0,
    allowHost: [],
    allowOrigin: [],
    trustedProxy: [],
    requestsPerMinute: 1_000,
    openPerToken: 100,
    maxAttachment: 1,
  };
  const post = async (url: string, turn: string, body: object): Promise<{ status: number; answer: unknown }> => {
    const token = readFileSync(join(world.dir, '.perdura', 'token'), 'utf8').trim();
    const response = await fetch(`${url}/v1/conversations/${id}/turns/${turn}/dataset`, {
      ...{ method: 'POST', body: JSON.stringify(body) },
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    });
    return { status: response.status, answer: await response.json() };
  };
  const project = await startGateway(session, { ...wanted, writesDatasets: true });
  try {
    const add = (body: object): ReturnType<typeof post> => post(project.url, 'turn_0002', body);
    expect(await add({ name: 'real', label: 'refused' })).toEqual({
      status: 201,
      answer: { id: `${id}/turn_0002`, name: 'real', cases: 2, isNew: true, labels: ['refused'] },
    });
    expect(await add({ name: 'real' })).toMatchObject({ status: 201, answer: { cases: 2, isNew: false, labels: ['refused'] } });
    expect(await post(project.url, 'turn_0009', {})).toMatchObject({
      status: 400,
      answer: { detail: expect.stringContaining('has no turn_0009') },
    });
    expect(await add({ name: '../x' })).toMatchObject({ status: 400 });
  } finally {
    await project.close();
  }
  const server = await startGateway(session, wanted);
  try {
    expect(await post(server.url, 'turn_0001', {})).toMatchObject({
      status: 409,
      answer: { detail: expect.stringContaining('run `perdura dataset add') },
    });
  } finally {
    await server.close();
    output.letGo();
  }
  const lines = readFileSync(file('datasets', 'real.jsonl'), 'utf8');
  expect(lines.trim().split('\n')).toHaveLength(2);
  expect(lines).not.toContain('hunter2');
  writeFileSync(
    file('cases.eval.ts'),
    `import { dataset, defineEval } from 'perdura/evals';
    export default defineEval({ cases: dataset('real'), async run({ play, case: item, expect }) { expect(await play(item)).stopReason('end'); } });`,
  );
  expect(await perdura('eval', 'cases.eval')).toMatchObject({ code: 0, stderr: expect.stringContaining('2 of 2 runs passed') });
  rmSync(file('cases.eval.ts'));
});
