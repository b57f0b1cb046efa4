import { watchEventLoop } from '../../src/telemetry/worker-health.js';
import { waitFor } from '../support/wait-for.js';

test('a block of the event loop is reported, with what ran longest meanwhile', async () => {
  const said: { readonly blockedMs: number; readonly running: readonly string[] }[] = [];
  const gauged: number[] = [];
  const watch = watchEventLoop({ thresholdMs: 500, warn: (_message, fields) => said.push(fields), gauge: (ms) => gauged.push(ms) });
  // What ended before it is none of its causes.
  watch.during('earlier')();
  await new Promise((resolve) => setTimeout(resolve, 200));
  const end = watch.during('run-tool of chat');
  // clock: this blocks the event loop, and nothing else
  for (const until = performance.now() + 900; performance.now() < until;);
  end();
  await waitFor(
    () => said.filter(({ running }) => running.length > 0),
    (found) => found.length > 0,
  );
  watch.close();
  const report = said.find(({ running }) => running.length > 0);
  expect(report?.blockedMs).toBeGreaterThanOrEqual(500);
  expect(report?.running).toEqual([expect.stringMatching(/^run-tool of chat \(\d+ ms\)$/)]);
  expect(gauged).toContain(report?.blockedMs);
});
