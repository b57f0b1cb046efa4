/** A chat of the built product in a pseudo terminal. */
import { PERDURA, perduraEnvironment } from '../../support/run-perdura.js';
import { echo } from '../../support/echo-model.js';
import { openTerminal } from '../../support/terminal.js';
import { startWorld, type World } from '../../support/world.js';

let world: World;

beforeAll(async () => {
  world = await startWorld({ answer: (request) => echo(request) });
});
afterAll(() => world.close());

test('a person talks, looks, and leaves; -c goes on where they left', async () => {
  const env = { ...perduraEnvironment(world), PATH: process.env['PATH'], TERM: 'xterm' };
  const open = (more: string) => openTerminal(`"${process.execPath}" "${PERDURA}" chat ${more}`, { cwd: world.dir, env });
  const first = open('--mode auto');
  await first.shows('/help lists what else there is');
  first.type('hello **you**');
  await first.shows('You said: hello you');
  first.type('/help');
  await first.shows('/compact');
  expect(await first.end()).toBe(0);
  expect(first.screen()).toContain('go on with this conversation: perdura chat -c');

  const again = open('-c');
  await again.shows('› hello **you**');
  await again.shows('You said: hello you');
  again.type('once more');
  await again.shows('You said: once more');
  expect(await again.end()).toBe(0);
});
