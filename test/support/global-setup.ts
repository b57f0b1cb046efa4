/** One Temporal server for all suites; each world has a task queue of its own. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dieWithUs } from './reaper.js';
import { startTemporal, type TemporalServer } from './temporal-server.js';

declare global {
  var perduraTestTemporal: TemporalServer | undefined;
}

/** The long forms look for what is not known yet; otherwise green and red are to be the code's doing, and not chance's. */
const SEED = '20261124';

export default async function setup(): Promise<void> {
  if (process.env['PERDURA_LONG'] !== '1') process.env['PERDURA_SEED'] ??= SEED;
  globalThis.perduraTestTemporal = await startTemporal({ impatient: true });
  dieWithUs(globalThis.perduraTestTemporal.pid);
  process.env['PERDURA_TEST_ADDRESS'] = globalThis.perduraTestTemporal.address;
  // For what is made once per run, such as the workflow bundle.
  process.env['PERDURA_TEST_DIR'] = await mkdtemp(join(tmpdir(), 'perdura-test-run-'));
}
