/** Who asks for a conversation's status must not change it: what was decided first is decided first again on replay. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expectReplays } from '../support/replays.js';
import { createStage, say } from '../support/stage.js';
import { startWorld, type World } from '../support/world.js';

const TURNS = process.env['PERDURA_LONG'] === '1' ? 300 : 40;
const EVERY_MS = 20;

const stage = createStage();
let world: World;
beforeAll(async () => {
  world = await startWorld({ answer: stage.answer });
});
afterAll(() => world.close());

test(`${TURNS} turns with a question every ${EVERY_MS} ms beside them replay`, async () => {
  const id = world.id();
  await world.client.start(id);
  const ending = new AbortController();
  let asked = 0;
  const asking = (async () => {
    while (!ending.signal.aborted) {
      // One after the other: of several at once Temporal lets some wait for as long as there are tasks.
      for (const ask of [world.client.status, world.client.queue, world.client.context]) {
        await ask(id);
        asked += 1;
        await sleep(EVERY_MS);
      }
    }
  })();
  for (let turn = 0; turn < TURNS; turn++) {
    // Now and then a session ends beside a message, which may stop its turn.
    const [{ stopReason }] = await Promise.all([
      world.client.send(id, say(id, `turn ${turn}`)),
      ...(turn % 10 === 9 ? [world.client.reset(id)] : []),
    ]);
    expect(['end', 'interrupted']).toContain(stopReason);
  }
  ending.abort();
  await asking;
  expect(asked).toBeGreaterThan(TURNS / 4);
  await expectReplays(world);
});
