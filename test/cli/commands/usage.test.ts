/** `perdura admin usage`, as a person runs it: the built product, a real Temporal, a worker, a file store. */
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
