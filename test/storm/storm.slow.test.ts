/** The storm that anyone can run, for a minute: `npm run storm` as people run it, in processes of its own. On a cluster: test/cluster. */
import { readdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { figure, LONG } from '../support/scene.js';
import type { StormReport } from './report.js';
import { runStormScript as storm } from './run-script.js';

const SEED = '20261128';
let folder = '';
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'perdura-storms-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test.each([
  ['redis, workers of two builds', ['--store', 'redis', '--builds']],
  // With PERDURA_LONG=1 all of it is played again: a kill at a moment that was never tried may lead to what is not played as it was yet.
  ['files', ['--store', 'files', ...(LONG ? ['--again'] : [])]],
  ['a cluster of Redis', ['--redis-cluster', '--minutes', '0.6', '--every-ms', '6000']],
])(
  'a storm of a minute: everything that must hold holds, and nothing is left behind (%s)',
  async (store, options) => {
    const args = ['--minutes', '1', '--seed', SEED, ...options, '--at-once', '8', '-o', 'json'];
    const { code, stdout, stderr } = await storm(folder, ...args);
    if (code !== 0 && code !== 1) throw new Error(stderr);
    const report = JSON.parse(stdout) as StormReport;
    const { violations, kills, messages, answers, checked, census, turnSeconds, playedAgain } = report;
    figure(
      `storm on ${store} (seed ${SEED}): ${kills} kills, ${messages} messages, ${answers} answers, ${report.histories} histories, ` +
        `${checked.queueOperations} + ${checked.effectOperations} operations; a turn ${turnSeconds.p50} s (p50), ${turnSeconds.max} s at most`,
    );
    expect(violations).toEqual([]);
    expect({ code, left: readdirSync(folder).filter((name) => name.startsWith('perdura')) }).toEqual({ code: 0, left: [] });
    // A storm in which these did not happen proves nothing.
    const happened = { kills, messages, answers, queue: checked.queueOperations, effects: checked.effects, updates: census.updates };
    const again = options.includes('--again') ? { playedAgain: playedAgain.turns } : {};
    for (const [name, count] of Object.entries({ ...happened, ...again, handOvers: census.handOvers }))
      expect({ [name]: count }).not.toEqual({ [name]: 0 });
  },
  1_800_000,
);

test('what it cannot be told is said, with its help', async () => {
  const { code, stderr } = await storm(folder, '--minutes', 'many');
  expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringMatching(/--minutes takes a number[^]*--seed N/) });
  expect(await storm(folder, '--help')).toMatchObject({ code: 0, stdout: expect.stringContaining('npm run storm -- [options]') });
});
