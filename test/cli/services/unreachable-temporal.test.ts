/** Why Temporal does not let a command in, in one sentence with what to do: over TLS, and by its namespace. All of it: the slow file. */
import { runPerdura } from '../../support/run-perdura.js';
import { startUnreachable, type Unreachable } from '../../support/unreachable-temporal.js';

let unreachable: Unreachable;
beforeAll(async () => void (unreachable = await startUnreachable()));
afterAll(() => unreachable.close());

const list = (env: Readonly<Record<string, string>>) => runPerdura({ dir: unreachable.dir, taskQueue: 'none' }, ['list'], { env });

test('what stands between a command and Temporal is named, with exit code 3', async () => {
  const quick = unreachable.cases.filter(({ takesLong }) => takesLong !== true);
  expect(quick).toHaveLength(7);
  await Promise.all(
    quick.map(async ({ what, settings, message }) => {
      const { code, stderr } = await list(settings);
      expect([what, code, stderr]).toEqual([what, 3, expect.stringMatching(message)]);
    }),
  );
});

test('with the right name, authority and certificate a command gets in', async () => {
  expect(await list(unreachable.good)).toMatchObject({ code: 0, stderr: expect.not.stringContaining('cannot') });
});
