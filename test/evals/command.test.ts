/** `perdura eval` and `perdura dataset` as a person or CI runs them, in the process of the test; conversations to record are in memory. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { PerduraClient } from '../../src/client.js';
import { fencedBlocks, read } from '../readme/commands.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { beginPerdura, runPerdura, type Ran } from '../support/run-perdura.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

let dir: string;
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), 'perdura-evals-'))));
afterEach(() => rmSync(dir, { recursive: true }));

function write(files: Readonly<Record<string, string>>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), content);
  }
}
/** Without a server: nothing of it may need one. */
const perdura = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> =>
  runPerdura({ dir, taskQueue: 'none' }, args, { env: { TEMPORAL_ADDRESS: '127.0.0.1:1', ...env } });

const AGENTS = `agents: { default: { 'agent.json': {} } }`;
const GREEN = `export default {
  ${AGENTS},
  script: ['Hello, Ada.'],
  async run({ send, expect }) { expect(await send('hi')).text('Ada').stopReason('end'); },
};`;
const RED = GREEN.replace(`.text('Ada')`, `.text('Bob')`);
/** Models of a provider of the project: \`fake/…\` answers by its name. */
const CONFIG = `import type { Model } from 'perdura';
import { ModelFailure } from ${JSON.stringify(join(__dirname, '..', '..', 'src', 'models', 'model'))};
const fake: Model = {
  provider: 'fake',
  async stream(request, { onDelta }) {
    if (request.model === 'keyless') throw new ModelFailure('missing-key', 'set FAKE_KEY');
    const text = request.model === 'judge' ? '{"why":"polite","verdict":"pass"}' : 'I am Ada, ' + 'sk-' + 'live-0123456789abcdef';
    onDelta({ kind: 'text', text });
    return { blocks: [{ kind: 'text', text }], stop: 'end', usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 1000 } };
  },
};
export default { providers: { fake }, models: { 'fake/priced': { prices: { input: 0, output: 1000 } } } };`;

test('evals that hold end with 0 and one that does not with 1, in words, as JSON and as JUnit', async () => {
  write({ 'evals/green.eval.ts': GREEN, 'evals/deep/red.eval.ts': RED });
  const green = await perdura(['eval', 'green']);
  expect(green).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^passed {3}green {2}\d+ ms\n$/),
    stderr: expect.stringContaining('1 of 1 run passed'),
  });
  const both = await perdura(['eval', '--junit', 'report.xml']);
  expect(both.code).toBe(1);
  expect(both.stdout).toMatch(
    /failed {3}deep\/red {2}.*\n +failed: turn_0001: has "Bob" in its answer: it answered "Hello, Ada."\npassed {3}green/,
  );
  expect(both.stderr).toContain('1 of 2 runs passed');
  const report = readFileSync(join(dir, 'report.xml'), 'utf8');
  expect(report).toContain('<testsuite name="perdura eval" tests="2" failures="1"');
  expect(report).toMatch(
    /<testcase classname="evals\/deep\/red.eval.ts" name="deep\/red" [^>]*><failure message="turn_0001: has &#34;Bob&#34; in its answer/,
  );
  const json = JSON.parse((await perdura(['eval', '-o', 'json', '--runs', '3'])).stdout) as object;
  expect(json).toMatchObject({
    ...{ runs: 6, failed: 3, notRun: 0, costUsd: 0 },
    evals: [
      { file: 'evals/deep/red.eval.ts', name: 'deep/red', case: null, passed: 0, passRate: 0 },
      { file: 'evals/green.eval.ts', passed: 3, passRate: 1 },
    ],
  });
});

test('each case of a list and of a dataset is run and named; a share of runs may be enough', async () => {
  write({
    'evals/cases.eval.ts': `let times = 0;
    export default {
      ${AGENTS}, cases: [{ name: 'tea', cents: 350 }, { cents: 1 }], script: (request, item) => 'It is ' + item.cents,
      async run({ send, expect, case: item, check }) {
        expect(await send('how much?')).text(String(item.cents));
        await check('comes up', item.cents === 350 || times++ > 0);
      },
    };`,
    'evals/kept.eval.ts': `export default { ${AGENTS}, cases: { dataset: 'kept' }, async run({ play, case: item, expect }) { expect(await play(item)).text('answer'); } };`,
    'evals/datasets/kept.jsonl': `${JSON.stringify({ id: 'c/turn_0001', agent: 'default', labels: [], before: [], turn: { turn: 'turn_0001', message: 'm', answers: [{ text: 'answer' }], results: [] } })}\n`,
  });
  const ran = await perdura(['eval', '--runs', '4', '--at-once', '1', '--pass-rate', '0.75']);
  expect(ran.stdout.split('\n')).toEqual(
    expect.arrayContaining(['passed   cases › tea  4 of 4', 'failed   cases › case 2  3 of 4', 'passed   kept › c/turn_0001  4 of 4']),
  );
  expect(ran.code).toBe(0);
  expect((await perdura(['eval', 'cases', '--runs', '4', '--at-once', '1', '--pass-rate', '0.8'])).code).toBe(0);
});

test('soft claims and those that were not judged are shown, and count with --strict', async () => {
  write({
    'evals/soft.eval.ts': GREEN.replace(
      `expect(await send('hi'))`,
      `const turn = await send('hi'); expect.soft(turn).text('Bob'); await expect(turn).judge('Kind.'); expect(turn)`,
    ),
  });
  const ran = await perdura(['eval']);
  expect(ran.code).toBe(0);
  expect(ran.stdout).toMatch(
    /soft: turn_0001: has "Bob".*\n +not looked at: turn_0001: fits "Kind.": there is no judge: --judge names one/,
  );
  expect(ran.stderr).toMatch(/1 soft claim did not hold, 1 claim could not be looked at/);
  expect((await perdura(['eval', '--strict'])).code).toBe(1);
});

test('a real model of the project answers, a judge judges, a budget ends it, and secrets do not come out', async () => {
  write({
    'perdura.config.ts': CONFIG,
    'evals/one.eval.ts': `export default { ${AGENTS}, async run({ send, expect }) { const turn = await send('hi'); await expect(turn).judge('Polite.'); expect.soft(turn).text('nothing'); } };`,
  });
  const env = { SERVICE_KEY: 'sk-live-0123456789abcdef' };
  const judged = await perdura(['eval', '--model', 'fake/priced', '--judge', 'fake/judge'], env);
  expect(judged).toMatchObject({ code: 0, stdout: expect.stringContaining('it answered "I am Ada, [redacted]"') });
  expect(JSON.stringify(judged)).not.toContain('0123456789abcdef');
  // A run costs a dollar.
  const cut = await perdura(['eval', '--model', 'fake/priced', '--runs', '9', '--at-once', '1', '--budget', '2.5']);
  expect(cut.code).toBe(1);
  expect(cut.stdout).toContain('one  3 of 3');
  expect(cut.stderr).toMatch(/\$3\.0000.*\n.*6 runs did not begin: the budget of \$2.5 is spent/);
  expect(await perdura(['eval', '--model', 'fake/free', '--budget', '1'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no price of fake/free is known'),
  });
  expect(await perdura(['eval', '--model', 'fake/keyless'])).toMatchObject({ code: 3, stderr: expect.stringContaining('set FAKE_KEY') });
  expect(await perdura(['eval', '--model', 'nobody/x'])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/there is no provider "nobody"/),
  });
});

test.each<[what: string, files: Readonly<Record<string, string>>, args: readonly string[], words: RegExp]>([
  ['no eval', {}, [], /there is no eval in .*evals: write evals\/NAME\.eval\.ts, or record one/],
  ['a word that none has', { 'evals/a.eval.ts': GREEN }, ['b'], /no eval has b in its name or its file; there are: a/],
  [
    'no script',
    { 'evals/a.eval.ts': 'export default { run() {} };' },
    [],
    /evals\/a\.eval\.ts has no script, so it needs a real model: --model names one/,
  ],
  ['no export', { 'evals/a.eval.ts': 'export const x = 1;' }, [], /evals\/a\.eval\.ts has no default export/],
  ['a mistake', { 'evals/a.eval.ts': 'export default {{' }, [], /cannot load evals\/a\.eval\.ts: /],
  [
    'a slip',
    { 'evals/a.eval.ts': 'export default { run() {}, scripts: [] };' },
    [],
    /evals\/a\.eval\.ts: an eval has no option "scripts"; there are: name, agent/,
  ],
  [
    'no run',
    { 'evals/a.eval.ts': 'export default [{ script: [] , run() {} }, {}];' },
    [],
    /evals\/a\.eval\.ts, eval 2: "run" must be a function/,
  ],
  ['a stub that is none', { 'evals/a.eval.ts': 'export default { run() {}, tools: { pay: 1 } };' }, [], /tools\.pay is no stub/],
  [
    'a time that is none',
    { 'evals/a.eval.ts': `export default { run() {}, now: 'soon' };` },
    [],
    /"now" must be a time such as .*, and is "soon"/,
  ],
  [
    'a dataset that is not there',
    { 'evals/a.eval.ts': `export default { run() {}, cases: { dataset: 'x' } };` },
    [],
    /there is no dataset x/,
  ],
  [
    'a recording that is none',
    { 'evals/a.eval.ts': `export default { run() {}, recording: { recording: 'x.json' } };`, 'evals/x.json': '{}' },
    [],
    /its recording .*x\.json is no recording: /,
  ],
  ['two models', { 'evals/a.eval.ts': GREEN }, ['--live', '--model', 'a/b'], /leave one out/],
  ['a budget for nothing', { 'evals/a.eval.ts': GREEN }, ['--budget', '1'], /--budget is for real models/],
  ['a share that is none', { 'evals/a.eval.ts': GREEN }, ['--pass-rate', '2'], /write a share from 0 to 1/],
  ['a name without a recording', { 'evals/a.eval.ts': GREEN }, ['--name', 'x'], /--name and --with-memory are for --record/],
  ['a report into nowhere', { 'evals/a.eval.ts': GREEN }, ['--junit', 'none/x.xml'], /cannot write the report .*none\/x\.xml/],
])('%s is refused with code 2 and a sentence', async (_what, files, args, words) => {
  write(files);
  expect(await perdura(['eval', ...args])).toMatchObject({ code: 2, stderr: expect.stringMatching(words) });
});

test('evals of a folder that is not trusted do not run; other commands there are not held up by them', async () => {
  write({ 'evals/a.eval.ts': GREEN });
  expect(await perdura(['eval'], { PERDURA_TRUST: '' })).toMatchObject({
    code: 3,
    stderr: expect.stringMatching(/not trusted yet.*evals/),
  });
  expect((await perdura(['dataset', 'list'], { PERDURA_TRUST: '' })).code).toBe(0);
  expect((await perdura(['trust', '--yes'], { PERDURA_TRUST: '' })).code).toBe(0);
  write({ 'evals/a.eval.ts': `${GREEN}\n` });
  expect((await perdura(['eval'], { PERDURA_TRUST: '' })).code).toBe(0);
});

test('Ctrl+C ends it: what runs is stopped, and the code says so', async () => {
  write({
    'evals/long.eval.ts': `export default { ${AGENTS}, script: [() => new Promise(() => undefined)], async run({ send, conversation }) { process.env.EVAL_BEGUN = 'yes'; await new Promise((go) => setTimeout(go, 50)); } };`,
  });
  const running = beginPerdura({ dir, taskQueue: 'none' }, ['eval', '--runs', '1000', '--at-once', '1']);
  await waitFor(
    () => process.env['EVAL_BEGUN'],
    (begun) => begun === 'yes',
  );
  running.kill('SIGINT');
  expect(await running.ended).toMatchObject({ code: 130, stderr: expect.stringMatching(/stopped: \d+ runs? of 1000 had ended/) });
  delete process.env['EVAL_BEGUN'];
});

describe('of a conversation', () => {
  const stage = createStage();
  let world: World;
  beforeAll(async () => {
    world = await startWorld({
      ...{ engine: 'memory', answer: stage.answer, files: { 'a.txt': 'content, and hunter2-hunter2' } },
      agent: { approvals: [{ tool: 'read_file', policy: 'ask' }] },
    });
  });
  afterAll(() => world.close());

  const env = { SERVICE_PASSWORD: 'hunter2-hunter2' };
  const inWorld = (...args: readonly string[]): Promise<Ran> =>
    runPerdura(world, args, { env, openClient: () => Promise.resolve<PerduraClient>({ ...world.client, close: () => Promise.resolve() }) });

  /** Two turns: an approved call and a refused one, and a question. */
  async function spoken(): Promise<string> {
    const id = world.id();
    await world.client.start(id);
    stage.play(
      id,
      callTool('read_file', { path: 'a.txt' }),
      text('It has "content", they say.'),
      callTool('read_file', { path: 'b.txt' }),
      text('Then not.'),
    );
    for (const [words, decision] of [
      ['what is in it?', 'approve'],
      ['and b?', 'deny'],
    ] as const) {
      const sending = world.client.send(id, say(id, words));
      const [waiting] = await waitFor(
        () => world.client.approvals(id),
        (all) => all.length > 0,
      );
      await world.client.decide(id, { callId: waiting?.callId ?? '', decision, ...(decision === 'deny' && { note: 'it is secret' }) });
      await sending;
    }
    return id;
  }

  test('--record writes an eval that runs green at once, with decisions, without secrets; and overwrites nothing', async () => {
    const id = await spoken();
    const recorded = await inWorld('eval', '--record', id, '--name', 'kept');
    expect(recorded).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^passed {3}kept/),
      stderr: expect.stringContaining('wrote evals/kept.eval.ts and evals/kept.recording.json'),
    });
    const program = readFileSync(join(world.dir, 'evals', 'kept.eval.ts'), 'utf8');
    expect(program).toContain("expect(turn).waitsFor('read_file');\n    turn = await approve('read_file');");
    expect(program).toContain("turn = await deny('read_file', 'it is secret');");
    expect(program).toContain(`expect(turn).calledTool('read_file', {"path":"a.txt"});`);
    const all = program + readFileSync(join(world.dir, 'evals', 'kept.recording.json'), 'utf8');
    expect(all).toContain('[redacted]');
    expect(all).not.toContain('hunter2');
    expect(await inWorld('eval', '--record', id, '--name', 'kept')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/kept\.\w+\.\w+ is there already, and nothing is overwritten/),
    });
    expect(readFileSync(join(world.dir, 'evals', 'kept.eval.ts'), 'utf8')).toBe(program);
    // It can fail.
    writeFileSync(join(world.dir, 'evals', 'changed.eval.ts'), program.replaceAll('"a.txt"', '"c.txt"'));
    expect(await inWorld('eval', 'changed')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('calls read_file {"path":"c.txt"}: it called read_file {"path":"a.txt"}'),
    });
    rmSync(join(world.dir, 'evals'), { recursive: true });
  });

  test('dataset add keeps a turn with those before it, show, list and rm work on the file', async () => {
    const id = await spoken();
    const added = await inWorld('dataset', 'add', id, '--turn', '2', '--label', 'refused', '--name', 'decisions', '-o', 'json');
    expect(JSON.parse(added.stdout)).toMatchObject({
      id: `${id}/turn_0002`,
      name: 'decisions',
      cases: 1,
      isNew: true,
      before: 1,
      labels: ['refused'],
    });
    expect(await inWorld('dataset', 'add', id, '--turn', '2', '--name', 'decisions')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('is in decisions already; its labels: refused'),
    });
    expect((await inWorld('dataset', 'list')).stdout).toMatch(/DATASET +CASES +LABELS\ndecisions +1 +refused 1/);
    expect((await inWorld('dataset', 'show', 'decisions')).stdout).toContain(`${id}/turn_0002`);
    expect(readFileSync(join(world.dir, 'evals', 'datasets', 'decisions.jsonl'), 'utf8')).not.toContain('hunter2');
    writeFileSync(
      join(world.dir, 'evals', 'd.eval.ts'),
      `export default { cases: { dataset: 'decisions' }, async run({ play, case: item, expect }) { const turn = await play(item); expect(turn).text('Then not.').calledTool('read_file', { path: 'b.txt' }); } };`,
    );
    expect(await inWorld('eval', 'd.eval')).toMatchObject({ code: 0, stdout: expect.stringContaining(`d › ${id}/turn_0002`) });
    expect((await inWorld('dataset', 'rm', 'decisions', `${id}/turn_0002`)).code).toBe(0);
    expect(readFileSync(join(world.dir, 'evals', 'datasets', 'decisions.jsonl'), 'utf8')).toBe('');
    expect(await inWorld('dataset', 'add', id, '--turn', '7')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/has no turn_0007 that a dataset can take/),
    });
    expect(await inWorld('dataset', 'add', id, '--name', '../x')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('is no name of a dataset'),
    });
    expect(existsSync(join(world.dir, 'evals', 'datasets', 'cases.jsonl'))).toBe(false);
    rmSync(join(world.dir, 'evals'), { recursive: true });
  });
});

test('the evals of docs/how-to/evals.md run as they stand', async () => {
  const blocks = fencedBlocks(read('docs/how-to/evals.md')).filter(({ language }) => language === 'ts');
  expect(blocks.length).toBeGreaterThan(3);
  write({
    'agents/default/agent.json': '{}',
    'evals/datasets/plans.jsonl': `${JSON.stringify({ id: 'c/turn_0001', agent: 'default', labels: ['no-tools'], before: [], turn: { turn: 'turn_0001', message: 'm', answers: [{ text: 'answer' }], results: [] } })}\n`,
    ...Object.fromEntries(blocks.map(({ text: program }, at) => [`evals/block-${at + 1}.eval.ts`, program])),
  });
  const ran = await perdura(['eval']);
  expect(ran).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(new RegExp(`${blocks.length + 1} of ${blocks.length + 1} runs passed`)),
  });
  expect(ran.stdout).not.toContain('soft:');
});
