/**
 * People talk while each process of a cluster is killed, one of two and then both, and its database, beside workers, gateway and Redis:
 * `npm run storm -- --cluster`, as people run it.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { figure } from '../support/scene.js';
import { NO_CLUSTER, SERVICES } from '../support/temporal-cluster.js';
import type { StormReport } from '../storm/report.js';
import { runStormScript } from '../storm/run-script.js';

const SEED = '20261129';

const services = SERVICES.filter((name) => name !== 'database');
const KILLS = [
  ...services.flatMap((service) => [`one of two ${service} processes`, `both ${service} processes`]),
  'the database of the cluster',
].map((what) => `kill -9 of ${what}`);

if (NO_CLUSTER) test.skip(NO_CLUSTER, () => undefined);
else
  test('a storm that kills each process of a cluster: nothing is lost, nothing doubled', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'perdura-cluster-storm-'));
    // The user of PostgreSQL passes through it.
    chmodSync(folder, 0o711);
    try {
      const args = ['--cluster', '--minutes', '3', '--seed', SEED, '--at-once', '8', '-o', 'json'];
      const { code, stdout, stderr } = await runStormScript(folder, ...args);
      if (code !== 0 && code !== 1) throw new Error(stderr);
      const report = JSON.parse(stdout) as StormReport;
      const { violations, kills, messages, answers, histories, faults, turnSeconds } = report;
      figure(
        `storm on a cluster (seed ${SEED}): ${kills} kills, ${messages} messages, ${answers} answers, ${histories} histories; ` +
          `a turn ${turnSeconds.p50} s (p50), ${turnSeconds.max} s at most`,
      );
      expect(violations).toEqual([]);
      expect(code).toBe(0);
      // A storm in which these did not happen proves nothing.
      expect(KILLS.filter((what) => faults[what] === undefined)).toEqual([]);
      expect(answers).toBeGreaterThan(0);
    } finally {
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    }
  }, 1_800_000);
