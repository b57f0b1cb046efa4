/** One Temporal server for all suites; each world has a task queue of its own. No `.js` below: jest loads this file without its module mapper. */
import { startTemporal, type TemporalServer } from './temporal-server';

declare global {
  var perduraTestTemporal: TemporalServer | undefined;
}

export default async function setup(): Promise<void> {
  globalThis.perduraTestTemporal = await startTemporal();
  process.env['PERDURA_TEST_ADDRESS'] = globalThis.perduraTestTemporal.address;
}
