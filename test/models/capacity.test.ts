/** What so many turns a day take: the numbers of the docs are those of the command, and the estimate moves as it should. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { capacityConstants } from '../../bench/capacity.js';
import { computeCapacity, readCapacity, USUAL_LOAD, type Capacity, type Load } from '../../src/models/capacity.js';
import { fencedBlocks } from '../readme/commands.js';
import { runPerdura } from '../support/run-perdura.js';

const NOWHERE = { dir: join(__dirname, '..', '..'), taskQueue: 'none' };
const perdura = (...args: string[]) => runPerdura(NOWHERE, ['admin', 'capacity', ...args], { env: { TEMPORAL_ADDRESS: '127.0.0.1:1' } });
const usual: Load = { ...USUAL_LOAD, turnsPerDay: 1_000_000 };
const constants: Capacity = {
  date: '2026-11-29',
  cpuMs: { turn: 20, ordinaryTool: 10, quickTool: 5 },
  historyBytes: { turn: 3_000, ordinaryTool: 3_500, quickTool: 2_500 },
  redisBytes: { turn: 2_000, ordinaryTool: 1_500, quickTool: 1_500 },
  actions: { turn: 2.1, ordinaryTool: 2, quickTool: 1 },
};
const of = (more: Partial<Load>) => computeCapacity({ ...usual, ...more }, constants);

test('the page shows 1,000, 100,000 and 10,000,000 turns a day as the command computes them', async () => {
  const page = readFileSync(join(NOWHERE.dir, 'docs', 'operations', 'capacity.md'), 'utf8');
  const blocks = fencedBlocks(page).map(({ language, text }) => [language, text.trim()]);
  for (const turns of [1_000, 100_000, 10_000_000]) {
    const at = blocks.findIndex(([, text]) => text === `perdura admin capacity --turns-per-day ${turns}`);
    const { code, stdout } = await perdura('--turns-per-day', String(turns));
    expect([code, stdout.trim()]).toEqual([0, blocks[at + 1]?.[1]]);
  }
});

test('the package has what the bench has measured, whole', () => {
  const { date, ...rest } = readCapacity();
  expect(date).toMatch(/^\d{4}-\d\d-\d\d$/);
  expect(Object.keys(rest).sort()).toEqual(['actions', 'cpuMs', 'historyBytes', 'redisBytes']);
  for (const one of Object.values(rest))
    for (const name of ['turn', 'ordinaryTool', 'quickTool'] as const) expect(one[name]).toBeGreaterThan(0);
  // An update, a model step, and search attributes with every tenth turn; a model step more, and the tool where it does not ride.
  expect(rest.actions.turn).toBeCloseTo(2.1, 1);
  expect([rest.actions.ordinaryTool, rest.actions.quickTool]).toEqual([expect.closeTo(2, 1), expect.closeTo(1, 1)]);
});

test('a million turns, by hand', () => {
  const report = of({});
  // 11.57/s, 46.3 at the peak; 40 ms of CPU, and 26 s of calls a turn.
  expect(report.turnsPerSecond.peak).toBeCloseTo(46.3, 1);
  expect(report.workers).toEqual({ count: 18, cores: expect.closeTo(1.852, 2), calls: expect.closeTo(1_203.7, 0), boundBy: 'calls' });
  expect(report.historyBytes.perTurn).toBe(3_000 + 7_000 + 500 + 3_000 + 4_000);
  expect(report.redisBytes.kept).toBe(90 * 1_000_000 * (2_000 + 3_000 + 2_000 + 4_000));
  expect(report.actions).toMatchObject({ perTurn: expect.closeTo(32.1, 5), heartbeats: 26, perDay: expect.closeTo(32_100_000, 0) });
});

test('more of anything takes more of what it needs, and of nothing else', () => {
  const [one, two] = [of({}), of({ turnsPerDay: 2_000_000 })];
  expect(two.redisBytes.kept).toBe(2 * one.redisBytes.kept);
  expect(two.actions.perTurn).toBe(one.actions.perTurn);
  const quick = of({ quickTools: 2 });
  expect(quick.actions.perTurn).toBeLessThan(one.actions.perTurn);
  expect(quick.modelUsd).toEqual(one.modelUsd);
  const files = of({ attachments: 0.5, attachmentBytes: 1_000_000 });
  expect(files.redisBytes.perDay - one.redisBytes.perDay).toBe(0.5 * 1_000_000 * 1_000_000);
  expect(files.historyBytes).toEqual(one.historyBytes);
  // With instant models CPU is what bounds, and few turns still have two workers.
  expect(of({ modelSeconds: 0, toolSeconds: 0 }).workers).toMatchObject({ boundBy: 'cpu', count: 3 });
  expect(of({ turnsPerDay: 1_000 }).workers).toMatchObject({ boundBy: 'two', count: 2 });
});

test('a model without a known price costs what is not known, never nothing', async () => {
  const model = 'mine/model';
  expect(of({ model }).modelUsd).toEqual({ perTurn: null, perDay: null });
  const { stdout, stderr } = await perdura('--model', model);
  expect(stdout).toMatch(/^model +not known/m);
  expect(stderr).toContain('the price of mine/model is not known');
});

test.each<[args: string[], words: string]>([
  [['--turns-per-day', '0'], 'write a whole number from 1'],
  [['--turns-per-day', 'many'], 'write a whole number from 1'],
  [['--tools', '-1'], 'write a number from 0'],
  [['--tools', '1', '--quick-tools', '2'], '--quick-tools 2 are more than --tools 1'],
  [['--cached-tokens', '9000'], '--cached-tokens 9000 are more than --input-tokens 8000'],
  [['--model', 'sonnet'], 'provider/model'],
])('%j is refused in a sentence', async (args, words) => {
  expect(await perdura(...args)).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(words) as string });
});

test('-o json has the numbers', async () => {
  const { code, stdout } = await perdura('--turns-per-day', '5000', '-o', 'json');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ load: { turnsPerDay: 5_000, attachmentBytes: 500_000 }, workers: { count: 2 } });
});

test('the bench keeps what it has measured, and no half of it', () => {
  const row = (name: string, product: number) => ({ row: name, product, unit: '', toHold: '', holds: true });
  const history = ['actions', 'bytes in Redis'].flatMap((what) => [
    row(`history: ${what} per text turn`, 2),
    row(`history: ${what} per further round, ordinary tool`, 3),
    row(`history: ${what} per further round, quick tool`, 4),
  ]);
  const rows = [
    ...[row('text-turn, redis: CPU of client and worker', 20.12345), row('ordinary-tool, redis: CPU of client and worker', 31)],
    row('quick-tool, redis: CPU of client and worker', 27),
    ...[row('history: bytes per text turn, less bodies', 3_013), ...history],
    row('history: bytes per further round, ordinary tool, less the result', 3_464),
    row('history: bytes per further round, quick tool, less the result', 2_703),
  ];
  expect(capacityConstants(rows, '2026-11-29T10:00:00.000Z')).toEqual({
    date: '2026-11-29',
    cpuMs: { turn: 20.12, ordinaryTool: 10.88, quickTool: 6.88 },
    historyBytes: { turn: 3_013, ordinaryTool: 3_464, quickTool: 2_703 },
    redisBytes: { turn: 2, ordinaryTool: 3, quickTool: 4 },
    actions: { turn: 2, ordinaryTool: 3, quickTool: 4 },
  });
  expect(() => capacityConstants(rows.slice(1), '')).toThrow('needs the row "text-turn, redis: CPU of client and worker"');
});
