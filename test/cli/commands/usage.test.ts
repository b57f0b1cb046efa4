/** `perdura admin usage`, as a person runs it: the built product, a real Temporal, a worker, a file store. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { UsageReport } from '../../../src/client.js';
import type { Spending } from '../../../src/records/spending.js';
import { callTool, text } from '../../support/provider-apis/reply.js';
import { runPerdura } from '../../support/run-perdura.js';
import { createStage, say } from '../../support/stage.js';
import { startWorld, type World } from '../../support/world.js';

const stage = createStage();
let world: World;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, files: { 'a.txt': 'content' } });
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

test('says what was spent from the store, by each name; what failed and came too late is marked, what has no price is not 0', async () => {
  expect((await runPerdura(world, ['admin', 'usage'])).stderr).toContain('nothing was spent yet');

  const id = world.id();
  stage.play(id, callTool('read_file', { path: 'a.txt' }), text('Read.'));
  await world.client.send(id, say(id, 'read it'), { start: { model: 'anthropic/claude-sonnet-5-5' } });
  const { usage } = await world.client.status(id);
  const own = await world.client.usage({ by: 'conversation' });
  expect(own.sums).toEqual([{ of: id, calls: 2, failed: 0, fenced: 0, unpriced: 0, usage }]);

  const key = { namespace: world.client.namespace, scope: 'other', conversation: 'unpriced', life: 'l1' };
  const spent: Spending = {
    at: Date.parse('2026-02-03T04:05:06Z'),
    ...{ kind: 'answer', conversation: 'unpriced', agent: 'default', scope: 'other', model: 'own/large\u001b[2J' },
    usage: { inputTokens: 1_000, cachedTokens: 0, outputTokens: 10, costUsd: null },
  };
  await world.store.effects.fence(key, ['turn_0001/m1']);
  await world.store.effects.commit(key, { id: 'turn_0001/m1', hash: 'h' }, null, [], { spent });
  await world.store.effects.spend(key, 'turn_0001/m2/a', { ...spent, failed: true });

  const table = await runPerdura(world, ['admin', 'usage']);
  expect(table.code).toBe(0);
  const [head, ...rows] = table.stdout.trimEnd().split('\n');
  expect(head?.trim().split(/ {2,}/)).toEqual(['MODEL', 'COST', 'IN', 'CACHED', 'OUT', 'CALLS', 'FAILED', 'TOO LATE']);
  expect(rows).toHaveLength(3);
  expect(rows[1]?.trim().split(/ {2,}/)).toEqual([expect.stringMatching(/^own\/large/), 'not known', '2,000', '0', '20', '2', '1', '1']);
  expect(rows[2]).toMatch(/^total +\$[\d.]+ \+ \? /);
  expect(table.stdout).not.toContain('\u001b[2J');
  expect(table.stderr).toContain('the price of 2 calls is not known');

  const byDay = JSON.parse((await runPerdura(world, ['admin', 'usage', '--by', 'day', '-o', 'json'])).stdout) as UsageReport;
  expect(byDay).toMatchObject({
    by: 'day',
    since: null,
    total: { calls: 4, failed: 1, fenced: 1, unpriced: 2, usage: { costUsd: usage.costUsd } },
  });
  expect(byDay.sums[0]).toMatchObject({ of: '2026-02-03', calls: 2, usage: { costUsd: null } });
  const since = JSON.parse((await runPerdura(world, ['admin', 'usage', '--since', '2026-02-04', '-o', 'json'])).stdout) as UsageReport;
  expect(since.total).toMatchObject({ calls: 2, unpriced: 0 });
  const byKind = JSON.parse((await runPerdura(world, ['admin', 'usage', '--by', 'kind', '-o', 'json'])).stdout) as UsageReport;
  expect(byKind.sums.map(({ of }) => of)).toEqual(['answer']);

  const refused = await runPerdura(world, ['admin', 'usage', '--since', 'yesterday']);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('"yesterday" is no date: write 2026-02-27') });
});

test('shows what is left of limits, who waits for them, and what is used of the budgets of tenants', async () => {
  const none = await runPerdura(world, ['admin', 'limits']);
  expect(none).toMatchObject({ code: 0, stderr: expect.stringContaining('no limit is known') });
  const of = 'anthropic/claude-limited#0123456789ab';
  const call = { conversation: 'c', input: 10, output: 10, set: { streams: 1 } };
  for (const [id, tenant, isBackground] of [
    ['a', 'acme', false],
    ['b', 'acme', false],
    ['c', '', true],
  ] as const)
    // prettier-ignore
    await world.store.rateLimits.take(of, { id, tenant, isBackground, ...call });
  await world.store.rateLimits.learn(of, 'a', { requests: { limit: 600, remaining: 590 } }, {});
  await world.store.tenantSpendings.add({ namespace: world.client.namespace, tenant: 'acme' }, 'a', Date.now(), {
    tokens: 850,
    nanoUsd: 0,
  });
  const file = join(world.dir, 'budgets.json');
  await writeFile(file, JSON.stringify([{ tenant: 'acme', month: { maxTokens: 1_000 } }, { day: { maxCostUsd: 5 } }]));
  const shown = await runPerdura(world, ['admin', 'limits'], { env: { PERDURA_TENANT_BUDGETS: file } });
  expect(shown.code).toBe(0);
  const cells = shown.stdout.trimEnd().split('\n').map((line) => line.trim().split(/ {2,}/)); // prettier-ignore
  const key = 'anthropic/claude-limited (key 012345)';
  expect(cells).toEqual([
    ['MODEL AND KEY', 'LIMIT', 'LEFT', 'FROM', 'WAITING'],
    [key, '600 requests / 60 s', expect.stringMatching(/^59\d|600$/), 'answers', '1 acme, 1 of none (background)'],
    [key, '1 streams', '0', 'setting', '1 acme, 1 of none (background)'],
    [''],
    ['TENANT', 'PERIOD', 'USED'],
    ['acme', new Date().toISOString().slice(0, 7), '850 of its 1000 tokens', '85 %'],
  ]);
  const json = await runPerdura(world, ['admin', 'limits', '-o', 'json']);
  expect(JSON.parse(json.stdout)).toMatchObject({ limits: [{ of, streams: 1 }], budgets: [] });
});
