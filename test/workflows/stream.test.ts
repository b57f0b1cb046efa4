/** `client.stream`: a message and its turn, from the beginning, through an approval, and again for a program that has begun anew. */
import { z } from 'zod';
import { defineTool } from '../../src/tools/define-tool.js';
import type { TurnEvent } from '../../src/records/feed-event.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { createStage, say } from '../support/stage.js';
import { startWorld, type World } from '../support/world.js';

const paid: string[] = [];
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ to: z.string() }),
  policy: { approval: 'ask' },
  run: ({ to }) => {
    paid.push(to);
    return `paid ${to}`;
  },
});

const stage = createStage();
let world: World;

beforeAll(async () => {
  world = await startWorld({ answer: stage.answer, tools: [pay] });
});
afterAll(() => world.close());

async function all(events: AsyncIterable<TurnEvent>): Promise<TurnEvent[]> {
  const heard: TurnEvent[] = [];
  for await (const event of events) heard.push(event);
  return heard;
}

const spoken = (events: readonly TurnEvent[]): string => events.map((event) => (event.kind === 'text' ? event.text : '')).join('');

test('where there is no conversation it begins one, and nothing of the first turn is missed', async () => {
  const id = world.id();
  stage.play(id, text('Hello there.'));
  const events = await all(world.client.stream(id, say(id, 'hi')));
  expect(events[0]).toMatchObject({ kind: 'message', turn: 'turn_0001' });
  expect(spoken(events)).toBe('Hello there.');
  expect(events.at(-1)).toMatchObject({ kind: 'turn-finished', result: { turnId: 'turn_0001', text: 'Hello there.', stopReason: 'end' } });
  stage.play(id, text('Still here.'));
  expect(spoken(await all(world.client.stream(id, { text: say(id, 'and now?') })))).toBe('Still here.');
  expect((await all(world.client.stream(id, '/new'))).at(-1)).toMatchObject({ kind: 'turn-finished', result: { stopReason: 'reset' } });
});

test('a program that has begun anew hears what its message waits for, decides, and hears the end: the tool has run once', async () => {
  const id = world.id();
  const message = { id: 'm1', text: say(id, 'pay Ada') };
  stage.play(id, callTool('pay', { to: 'Ada' }), text('Paid.'));
  for await (const event of world.client.stream(id, message)) if (event.kind === 'asked') break;
  const heard: TurnEvent[] = [];
  for await (const event of world.client.stream(id, message)) {
    heard.push(event);
    if (event.kind === 'asked') await world.client.decide(id, { callId: event.callId, decision: 'approve' });
  }
  expect(heard.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['asked', 'decided', 'tool-finished', 'turn-finished']));
  expect(heard.at(-1)).toMatchObject({ result: { text: 'Paid.', turnId: 'turn_0001' } });
  // Long after its end it is the same.
  expect((await all(world.client.stream(id, message))).at(-1)).toMatchObject({ result: { text: 'Paid.', turnId: 'turn_0001' } });
  expect(paid).toEqual(['Ada']);
  expect((await world.client.status(id)).turns).toBe(1);
});

test('one that has ended goes on, and a stream that is left leaves the turn alone', async () => {
  const id = world.id();
  stage.play(id, text('First.'));
  await all(world.client.stream(id, say(id, 'one')));
  await world.client.closeConversation(id);
  await world.client.outcome(id);
  stage.play(id, text('Second.'));
  for await (const event of world.client.stream(id, say(id, 'two'))) if (event.kind === 'message') break;
  expect(await world.client.turn(id, 'turn_0002')).toMatchObject({ text: 'Second.' });
});
