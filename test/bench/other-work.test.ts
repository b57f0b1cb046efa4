import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { watchOtherWork } from '../../bench/other-work.js';
import { dieWithUs } from '../support/reaper.js';

/** Says its pid once it has had a good deal of a processor, and goes on. */
const busy = (title: string): string =>
  `process.title = '${title}'; while (process.cpuUsage().user < 3e5); console.log(process.pid); setInterval(() => { for (const until = Date.now() + 90; Date.now() < until;); }, 100)`;

/** Its parent is gone, so it is nobody's child. */
const orphan = (script: string): string =>
  `require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(script)}], { detached: true, stdio: 'inherit' }).unref()`;

/** Answers with the way to end it. */
async function untilBusy({ stdout }: ChildProcess): Promise<() => void> {
  if (!stdout) throw new Error('it has no output');
  const [said] = (await once(stdout, 'data')) as [Buffer];
  const pid = Number(said);
  const spare = dieWithUs(pid);
  return () => {
    process.kill(pid, 'SIGKILL');
    spare();
  };
}

(process.platform === 'linux' ? test : test.skip)('what others take is seen and named; what our own processes take is not', async () => {
  const take = watchOtherWork();
  const begun = [busy('perdura-ours'), orphan(busy('perdura-other'))].map((script) =>
    spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] }),
  );
  const ends = await Promise.all(begun.map(untilBusy));
  const taken = take();
  for (const end of ends) end();
  expect(taken?.names).toContain('perdura-other');
  expect(taken?.names).not.toContain('perdura-ours');
  expect(taken?.cores).toBeGreaterThan(0);
});
