/** The drill of a bad week as people run it, with few people: `npm run storm -- --bad-week`. */
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { figure } from '../support/scene.js';
import { NO_CLUSTER } from '../support/temporal-cluster.js';
import { runStormScript } from '../storm/run-script.js';
import { renderWeek, type WeekReport } from './bad-week/compare.js';

if (NO_CLUSTER) test.skip(NO_CLUSTER, () => undefined);
else
  test('a bad week: deployed, rolled back, a history node and the store lost, restored, healed: what people were told is what there is', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'perdura-bad-weeks-'));
    // The user of PostgreSQL passes through it.
    chmodSync(folder, 0o711);
    try {
      const { code, stdout, stderr } = await runStormScript(folder, '--bad-week', '--minutes', '1', '--at-once', '4', '-o', 'json');
      if (code !== 0 && code !== 1) throw new Error(stderr);
      const report = JSON.parse(stdout) as WeekReport;
      figure(renderWeek(report));
      expect(report.compared.flatMap(({ what, wrong }) => wrong.map((one) => `${what}: ${one}`))).toEqual([]);
      expect({ code, left: readdirSync(folder).filter((name) => name.startsWith('perdura')) }).toEqual({ code: 0, left: [] });
      // A week in which no one talked proves nothing.
      for (const { name, turnMs } of report.days) expect([name, turnMs.length]).not.toEqual([name, 0]);
    } finally {
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    }
  }, 1_800_000);
