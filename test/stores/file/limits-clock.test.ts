/** Workers of one folder whose clocks differ: a refusal that one of them heard holds up the others for as long as it should, by their clock. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFileStore } from '../../../src/stores/file/index.js';

const DAY_MS = 86_400_000;
let dir = '';
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'perdura-limits-'))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test.each([DAY_MS, 5_000])('a clock that is %d ms ahead', async (ahead) => {
  let now = 1_790_000_000_000;
  const stores = [0, ahead].map((by) => createFileStore({ dir, clock: () => now + by }));
  const [right, wrong] = stores.map(({ rateLimits }) => rateLimits);
  const claim = (id: string) => ({ id, tenant: '', conversation: id, isBackground: false, input: 10, output: 10, set: {} });
  const of = 'anthropic/claude-test#k1';
  await wrong?.take(of, claim('a'));
  await wrong?.release(of, 'a', { refusedMs: 2_000 });
  const waits = await right?.take(of, claim('b'));
  expect(waits).toMatchObject({ status: 'wait', position: 1 });
  expect(waits?.status === 'wait' && waits.ms).toBeLessThanOrEqual(2_000);
  now += 2_001;
  expect(await right?.take(of, claim('b'))).toEqual({ status: 'granted' });
  await Promise.all(stores.map((store) => store.close()));
});
