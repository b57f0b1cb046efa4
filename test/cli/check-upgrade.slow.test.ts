/** `perdura check-upgrade` and `perdura upgrade` on a real server, with workers that have no builds; and everything that can be wrong about them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundleReducers, createRollout, twoBuilds, type Builds } from '../support/builds.js';
import { text } from '../support/provider-apis/reply.js';
import { runPerdura, startPerdura } from '../support/run-perdura.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

let world: World;
let builds: Builds;
let id: string;
/** Without what it says while a person waits. */
const run = async (args: string, env: Record<string, string> = {}) => {
  const ran = await runPerdura(world, args.split(' '), { env });
  return { ...ran, stderr: ran.stderr.replace(/^.* …\n/gm, '') };
};

beforeAll(async () => {
  world = await startWorld({ engine: 'temporal', answer: () => text('Yes.') });
  builds = await twoBuilds();
  for (const name of ['v1', 'v2'] as const) writeFileSync(join(world.dir, `${name}.js`), builds[name].code);
  writeFileSync(join(world.dir, 'broken.js'), 'throw new Error("not today")');
  writeFileSync(join(world.dir, 'other.js'), 'globalThis.__TEMPORAL__ = { importWorkflows: () => ({ conversation() {} }) }');
  id = world.id();
  await world.client.start(id);
  await world.client.send(id, 'hello');
  await waitFor(
    () => run('check-upgrade --bundle v1.js -o json'),
    ({ stdout }) => stdout.includes(id),
  );
});
afterAll(() => world.close());

test('code that goes on with all of them ends with 0; code that does not names each, with the reason, and ends with 1', async () => {
  const good = await run('check-upgrade --bundle v1.js --junit good.xml -o json');
  expect(good).toMatchObject({ code: 0, stderr: '' });
  const report = JSON.parse(good.stdout) as object;
  expect(report).toMatchObject({ code: 'v1.js', open: 1, isSample: false, turns: 1, counts: { replays: 1, breaks: 0 } });
  expect(report).toMatchObject({ runs: [{ id, type: 'conversation', build: null, isPinned: false, outcome: 'replays' }] });
  expect(readFileSync(join(world.dir, 'good.xml'), 'utf8')).toContain(`<testcase classname="conversation" name="${id}"`);

  const bad = await run('check-upgrade --bundle v2.js --junit bad.xml');
  expect(bad.code).toBe(1);
  expect(bad.stdout).toMatch(new RegExp(`^${id}  would break: .*[Nn]ondeterminism`));
  expect(bad.stdout + bad.stderr).toContain('1 of 1 open run would not go on with this code');
  expect(readFileSync(join(world.dir, 'bad.xml'), 'utf8')).toContain('failures="1"');
});

test('parts have each run once', async () => {
  const counts = await Promise.all([1, 2, 3].map((part) => run(`check-upgrade --bundle v1.js --shard ${part}/3 -o json`)));
  const seen = counts.map(({ stdout }) => (JSON.parse(stdout) as { runs: unknown[] }).runs.length);
  expect(seen.sort()).toEqual([0, 0, 1]);
});

test('of many runs several processes have a part each: one report, with every run once', async () => {
  const [many, spoken] = [220, 12];
  const other = await startWorld({ engine: 'temporal', answer: () => text('Yes.') });
  try {
    const ids = Array.from({ length: many }, () => other.id()).sort();
    for (const some of chunksOf(ids, 20)) await Promise.all(some.map((one) => other.client.start(one)));
    await Promise.all(ids.slice(0, spoken).map((one) => other.client.send(one, 'hello')));
    await waitFor(
      () => other.client.list({ limit: 1_000 }),
      (listed) => listed.filter(({ id: one }) => ids.includes(one)).length === many,
    );
    writeFileSync(join(other.dir, 'v2.js'), builds.v2.code);
    const seen = join(other.dir, 'processes');
    const note = join(other.dir, 'note.cjs');
    const write = `require('node:fs').appendFileSync(${JSON.stringify(seen)}, process.argv.slice(2).join(' ') + '\\n')`;
    writeFileSync(note, `if (require('node:worker_threads').isMainThread) ${write};`);
    const args = ['check-upgrade', '--bundle', 'v2.js', '--jobs', '2', '--junit', 'many.xml', '-o', 'json'];
    const ran = await startPerdura(other, args, { env: { NODE_OPTIONS: `--require ${note}` } }).ended;
    expect(ran.code).toBe(1);
    const report = JSON.parse(ran.stdout) as { counts: object; open: number; runs: { id: string; outcome: string }[] };
    expect(report).toMatchObject({ open: many, counts: { replays: many - spoken, breaks: spoken, unread: 0 } });
    expect(report.runs.map((run) => run.id).sort()).toEqual(ids);
    expect(new Set(report.runs.flatMap((run) => (run.outcome === 'breaks' ? [run.id] : [])))).toEqual(new Set(ids.slice(0, spoken)));
    expect(readFileSync(join(other.dir, 'many.xml'), 'utf8')).toContain(`tests="${many}" failures="${spoken}"`);
    const processes = readFileSync(seen, 'utf8').trim().split('\n');
    expect(processes).toEqual([args.join(' '), expect.stringContaining('check-upgrade --shard 2/2 ')]);
  } finally {
    await other.close();
  }
});

test("one's own reducers are part of the code that is checked: the same go on, one that takes other steps would break", async () => {
  const dir = mkdtempSync(join(tmpdir(), 'perdura-reducers-'));
  const noting = (text: string) => ({ noted: `() => [{ kind: 'ADD', chunk: { type: 'NOTICE', text: '${text}' } }]` });
  const other = await startWorld({ engine: 'temporal', answer: () => text('Yes.'), workflows: await bundleReducers(dir, noting('noted')) });
  const check = () => runPerdura({ dir, taskQueue: other.taskQueue }, ['check-upgrade', '-o', 'json']);
  try {
    writeFileSync(join(dir, 'perdura.config.cjs'), "module.exports = { workflows: './workflows.js' };");
    const one = other.id();
    await other.client.send(one, 'hello', { start: {} });
    expect((await other.client.dispatch(one, { type: 'noted' }, { wait: true })).result).toMatchObject({ kind: 'reduced' });
    await other.client.send(one, 'and now?');
    await waitFor(check, ({ stdout }) => stdout.includes(one));
    expect(await check()).toMatchObject({ code: 0, stdout: expect.stringMatching(/"turns": ?2/) });
    await bundleReducers(dir, { noted: '() => []' });
    const broken = await check();
    expect(broken).toMatchObject({ code: 1 });
    expect(JSON.parse(broken.stdout)).toMatchObject({
      runs: [{ id: one, outcome: 'breaks', why: expect.stringMatching(/[Nn]ondeterminism/) }],
    });
  } finally {
    await other.close();
    rmSync(dir, { recursive: true, force: true });
  }
});

function chunksOf<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, n) => all.slice(n * size, (n + 1) * size));
}

test.each([
  [
    'a bundle that is not there',
    'check-upgrade --bundle none.js',
    {},
    2,
    /^cannot check by .*none\.js: it cannot be read \(.*ENOENT.*name the dist\/workflow-bundle\.js/,
  ],
  ['one that throws', 'check-upgrade --bundle broken.js', {}, 2, /broken\.js: it cannot be loaded as a workflow: not today/],
  ['one of something else', 'check-upgrade --bundle other.js', {}, 2, /other\.js: it does not export memory, webhook; name/],
  ['a query that is none', 'check-upgrade --bundle v1.js -q x=', {}, 2, /^cannot check by x=: .*`perdura list --help` has an example/],
  [
    'a report that cannot be written',
    'check-upgrade --bundle v1.js --junit no/such/folder.xml',
    {},
    2,
    /^cannot write the report .*folder\.xml: .*name a file in a folder that is there/,
  ],
  [
    'a namespace that is not there',
    'check-upgrade --bundle v1.js',
    { TEMPORAL_NAMESPACE: 'none' },
    3,
    /does not open namespace none: it does not exist; create it/,
  ],
  [
    'a server that is not there',
    'check-upgrade --bundle v1.js',
    { TEMPORAL_ADDRESS: '127.0.0.1:9' },
    3,
    /^cannot reach Temporal at 127\.0\.0\.1:9: .*check TEMPORAL_ADDRESS/m,
  ],
  ['workers without builds', 'upgrade', {}, 1, /have no builds: set TEMPORAL_DEPLOYMENT_NAME and TEMPORAL_WORKER_BUILD_ID/],
  [
    'a deployment that is not there',
    'upgrade --deployment none',
    {},
    4,
    /^cannot look up deployment none: Temporal knows no such deployment or build here; a worker/,
  ],
  [
    'a build that is not there',
    'upgrade current v9 --deployment none',
    {},
    4,
    /^cannot make build v9 of none the current one: Temporal knows no such/,
  ],
  ['a share that is none', 'upgrade ramp v9 101 --deployment none', {}, 2, /^"101" is no share: write 0 to 100/],
  ['who is parked without waking', 'upgrade --parked', {}, 2, /^--parked says which conversations --wake moves: add --wake/],
] as const)('%s: a sentence, and the code for it', async (_what, args, env, code, sentence) => {
  const { code: ended, stderr, stdout } = await run(args, env);
  expect([ended, stdout]).toEqual([code, '']);
  expect(stderr).toMatch(sentence);
});

test('builds by their commands: which is current, a share, the way back, who is woken, and what lists show', async () => {
  const other = await startWorld({ engine: 'temporal', answer: () => text('Yes.'), worker: false });
  const { build } = createRollout(other);
  const { deploymentName } = build('');
  const ends = [
    await other.startWorker({ workflows: builds.v1, build: build('v1') }),
    await other.startWorker({ workflows: builds.v2, build: build('v2') }),
  ];
  const told = (args: string) => runPerdura(other, args.split(' '), { env: { TEMPORAL_DEPLOYMENT_NAME: deploymentName } });
  const standing = async () => JSON.parse((await told('upgrade -o json')).stdout) as Record<string, unknown>;
  const builtOn = (v1: number, v2: number) => ({
    builds: expect.arrayContaining([
      expect.objectContaining({ build: 'v1', workers: 1, conversations: v1 }),
      expect.objectContaining({ build: 'v2', workers: 1, conversations: v2 }),
    ]),
  });
  try {
    await waitFor(
      () => told('upgrade current v1'),
      ({ code }) => code === 0,
    );
    const talk = other.id();
    await other.client.start(talk);
    expect(await other.client.send(talk, 'hello')).toMatchObject({ stopReason: 'end' });
    // Visibility and pollers of a build are known a moment later.
    await waitFor(
      standing,
      (now) => /"conversations":1/.test(JSON.stringify(now)) && JSON.stringify(now).match(/"workers":1/g)?.length === 2,
    );
    expect(await standing()).toMatchObject({ deployment: deploymentName, current: 'v1', ramping: null, ...builtOn(1, 0) });

    expect(await told('upgrade ramp v2 12.5')).toMatchObject({ code: 0, stdout: '12.5 % of the conversations go to v2\n' });
    expect((await told('upgrade')).stdout).toMatch(/^v2 +ramping 12\.5 % +1 +0$/m);
    expect(await told('upgrade ramp v2 0')).toMatchObject({ code: 0, stdout: 'v2 gets no more conversations by a ramp\n' });
    expect(await standing()).toMatchObject({ current: 'v1', ramping: null });

    for (const [to, on] of [
      ['v2', builtOn(0, 1)],
      ['v1', builtOn(1, 0)],
    ] as const) {
      expect(await told(`upgrade current ${to}`)).toMatchObject({ code: 0, stdout: expect.stringContaining(`begin on ${to}`) });
      expect(await told('upgrade --wake')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^told 1 conversation or memory/) });
      await waitFor(standing, (now) => JSON.stringify(now).includes(`"build":"${to}","status":"current","workers":1,"conversations":1`));
      expect(await standing()).toMatchObject(on);
      expect(await told('upgrade --wake')).toMatchObject({ stdout: `nothing is on another build than ${to}\n` });
    }
    expect(JSON.parse((await told(`list -q TaskQueue='${other.taskQueue}' -o json`)).stdout)).toMatchObject([{ id: talk, build: 'v1' }]);
  } finally {
    for (const end of ends) await end();
    await other.close();
  }
});
