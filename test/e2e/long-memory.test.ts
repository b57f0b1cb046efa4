/** One conversation from its start to its end that is longer than its model can see, over hand-overs. */
import { runsOf } from '../support/run-chain.js';
import { startWorld, type World } from '../support/world.js';
import { AGENT, createAnswer, talkAtLength } from './long-talk.js';

let world: World;
beforeAll(async () => {
  world = await startWorld({ agent: { ...AGENT, limits: { handOver: { events: 120 } } }, answer: createAnswer() });
});
afterAll(() => world.close());

test('of 24 turns no prompt is over the budget, what was said early is known late, and the end is the end', async () => {
  const { id } = await talkAtLength(world, 24);
  expect((await runsOf(world, id)).length).toBeGreaterThan(1);
  const history = await world.client.history(id);
  expect(history.filter(({ message }) => message.role === 'user')).toHaveLength(24);
  expect(await world.client.reset(id)).toMatchObject({ reply: 'Session cleared.', session: 2 });
});
