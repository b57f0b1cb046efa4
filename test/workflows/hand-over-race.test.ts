/** Many senders at once, runs that hand over every few turns, and ids that come twice: each message is answered once, in its sender's order. */
import { randomInt } from 'node:crypto';
import { engineOfThisFile } from '../support/engine.js';
import { lastUserText, type ApiRequest } from '../support/provider-apis/api-request.js';
import { text, type Reply } from '../support/provider-apis/reply.js';
import { runsOf, workflowTaskFailures } from '../support/run-chain.js';
import { startWorld, type World } from '../support/world.js';

const SENDERS = 5;
/** In memory what counts is the order in which it goes; what Temporal makes of so many runs shows there. */
const SENDS = process.env['PERDURA_LONG'] === '1' ? 1_000 : engineOfThisFile() === 'memory' ? 60 : 300;

let world: World;
beforeAll(async () => {
  world = await startWorld({ answer: echo, keepHits: false, agent: { limits: { handOver: { events: 20 } } } });
});
afterAll(() => world.close());

/** How often the model was asked about each message. */
const asked = new Map<string, number>();

function echo(request: ApiRequest): Reply {
  const words = lastUserText(request);
  asked.set(words, (asked.get(words) ?? 0) + 1);
  return text(`re: ${words}`);
}

test(`${SENDS} sends of ${SENDERS} senders race hand-overs: each is answered once by its id, and in order`, async () => {
  const id = world.id();
  await world.client.start(id);
  const sender = async (name: number): Promise<{ messageId: string; words: string; turn: number; answer: string }[]> => {
    const sent: { messageId: string; words: string; turn: number; answer: string }[] = [];
    for (let n = 1; n <= SENDS / SENDERS; n++) {
      const words = `message ${n} of sender ${name}`;
      const message = { id: `s${name}-${n}`, text: words };
      // One in twenty is sent twice, half of these at once and half as a signal before.
      const chance = randomInt(40);
      if (chance === 0) await world.client.message(id, message);
      const [result] = await Promise.all([world.client.send(id, message), ...(chance === 1 ? [world.client.send(id, message)] : [])]);
      sent.push({ messageId: message.id, words, turn: Number(result.turnId?.slice('turn_'.length)), answer: result.text });
    }
    return sent;
  };
  const all = await Promise.all(Array.from({ length: SENDERS }, (_, name) => sender(name)));

  for (const sent of all) {
    expect(sent.map(({ answer }) => answer)).toEqual(sent.map(({ words }) => `re: ${words}`));
    expect(sent.map(({ turn }) => turn)).toEqual(sent.map(({ turn }) => turn).sort((a, b) => a - b));
  }
  expect([...asked.values()].filter((times) => times !== 1)).toEqual([]);
  expect(asked.size).toBe(SENDS);
  const said = (await world.client.history(id)).flatMap(({ messageId }) => (messageId === undefined ? [] : [messageId]));
  expect([said.length, new Set(said).size]).toEqual([SENDS, SENDS]);
  // Temporal lets runs begin a second apart, and runs this short pile that up. An update wakes one that waits; a query does not.
  expect(await world.client.turn(id, `turn_${String(SENDS).padStart(4, '0')}`)).toMatchObject({ stopReason: 'end' });
  expect(await world.client.status(id)).toMatchObject({ phase: 'idle', turns: SENDS, turn: SENDS, queued: 0 });
  expect((await runsOf(world, id)).length).toBeGreaterThan(SENDS / 25);
  expect(await workflowTaskFailures(world, id)).toEqual([]);
  expect(world.api.problems).toEqual([]);
});
