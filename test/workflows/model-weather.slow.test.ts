/** Bad days of the API that pass: the turn waits, says so where it takes long, and is answered once. */
import {
  badGateway,
  drip,
  errorEvent,
  fin,
  halfClose,
  htmlInsteadOfSse,
  httpError,
  malformedJson,
  overloaded,
  rateLimited,
  reset,
  silence,
  unknownEvent,
} from '../support/provider-apis/faults.js';
import { callTool, text, type Reply } from '../support/provider-apis/reply.js';
import { startMessagesApi } from '../support/provider-apis/messages-api.js';
import { workflowTaskFailures } from '../support/run-chain.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const stage = createStage();
let world: World;

beforeAll(async () => {
  // Shown while they last; in memory the test lets their time pass.
  const holds = (why: string): boolean => /^waiting for .*(rate-limit|overloaded)$/.test(why);
  world = await startWorld({
    withoutLimits: true,
    answer: stage.answer,
    idleMs: 30_000,
    holds,
  });
  await world.writeAgent('impatient', { limits: { modelTimeoutMs: 30_000 } });
});
afterAll(() => world.close());

async function started(weather: readonly Reply[], agent = 'default'): Promise<string> {
  const id = world.id();
  stage.play(id, ...weather, text('The sun is back.'));
  await world.client.start(id, { agent });
  return id;
}

/** Answered once, by one hit more than there were faults, and nothing of the failed tries is kept. */
async function expectOneAnswer(id: string, sent: Promise<unknown>, faults: number): Promise<void> {
  expect(await sent).toMatchObject({ turnId: 'turn_0001', text: 'The sun is back.', stopReason: 'end', toolCalls: 0 });
  expect(stage.requests(id)).toHaveLength(faults + 1);
  expect((await world.client.history(id)).map(({ message }) => message.role)).toEqual(['user', 'assistant']);
  expect(await world.client.send(id, say(id, 'and now?'))).toMatchObject({ turnId: 'turn_0002', text: 'Understood.' });
  expect(await world.client.status(id)).toMatchObject({ phase: 'idle', turns: 2 });
  expect(await workflowTaskFailures(world, id)).toEqual([]);
}

/** First those that wait for the limit of silence: a few run at once, and these together. */
const PASSING: readonly [what: string, weather: Reply][] = [
  ['a stream that falls silent', silence()],
  ['an API that never says a word', silence('before-headers')],
  ['500', httpError(500)],
  ['502 with a web page', badGateway()],
  ['504', httpError(504)],
  ['an error in the middle of the stream', errorEvent(4)],
  ['a stream that ends before its first block does', halfClose('before-block-stop')],
  ['a stream that ends before its stop reason', halfClose('before-message-delta')],
  ['a stream that ends before its last event', halfClose('before-message-stop')],
  ['a tool call in a stream that ends before its last event', halfClose('before-message-stop', callTool('get_time'))],
  ['a connection that is closed in the middle', fin('in-event')],
  ['a connection that is reset', reset(4)],
  ['an event that is no JSON', malformedJson()],
  ['a web page instead of a stream', htmlInsteadOfSse()],
];

test.concurrent('pings for ever are no answer: the limit of the whole call ends them, and it is tried again', async () => {
  const id = await started([drip('ping', 100)], 'impatient');
  await expectOneAnswer(id, world.client.send(id, say(id, 'hi')), 1);
});

test.concurrent.each(PASSING)('%s is tried again and answered once', async (_what, weather) => {
  const id = await started([weather]);
  await expectOneAnswer(id, world.client.send(id, say(id, 'hi')), 1);
});

test.concurrent('an event of a kind that nobody knows does no harm', async () => {
  const id = await started([unknownEvent(3, text('The sun is back.'))]);
  expect(await world.client.send(id, say(id, 'hi'))).toMatchObject({ text: 'The sun is back.' });
  expect(stage.requests(id)).toHaveLength(1);
});

test.concurrent('a retry-after of a second is waited for', async () => {
  const id = await started([rateLimited({ retryAfter: 1 })]);
  const from = world.now();
  await expectOneAnswer(id, world.client.send(id, say(id, 'hi')), 1);
  expect(world.now() - from).toBeGreaterThanOrEqual(1_000);
});

test.concurrent('a retry-after with a date is waited for', async () => {
  const id = await started([rateLimited({ retryAfter: new Date(Math.ceil(Date.now() / 1_000 + 2) * 1_000) })]);
  const from = world.now();
  await expectOneAnswer(id, world.client.send(id, say(id, 'hi')), 1);
  // A date has whole seconds, and it takes a moment to be said.
  expect(world.now() - from).toBeGreaterThanOrEqual(1_000);
});

test.concurrent('a retry-after that is long is shown with its reason and its end, and then the turn goes on', async () => {
  const id = await started([rateLimited({ retryAfter: 7 })]);
  const from = world.now();
  const sent = world.client.send(id, say(id, 'hi'));
  const { waitingFor } = await waitFor(
    () => world.client.status(id),
    ({ phase }) => phase === 'waiting-to-retry',
  );
  expect(waitingFor).toMatch(/^rate-limit: .*429.*; trying again at \d{4}-\d\d-\d\dT.*Z$/);
  await world.advance(7_000);
  await expectOneAnswer(id, sent, 1);
  expect(world.now() - from).toBeGreaterThanOrEqual(7_000);
});

test.concurrent('six times overloaded, and the seventh try is the answer', async () => {
  const id = await started(Array.from({ length: 6 }, () => overloaded()));
  const sent = world.client.send(id, say(id, 'hi'));
  const { waitingFor } = await waitFor(
    () => world.client.status(id),
    ({ phase }) => phase === 'waiting-to-retry',
  );
  expect(waitingFor).toMatch(/^overloaded: .*529/);
  await world.advance(60_000);
  await expectOneAnswer(id, sent, 6);
});

test('in all of this weather, no request was one that the API refuses', () => {
  expect(world.api.problems).toEqual([]);
});

test('an API that refuses connections is waited for, and answers when it is back', async () => {
  const away = await startWorld({ holds: (why) => /^waiting for .*connection$/.test(why) });
  await away.api.close();
  try {
    const id = away.id();
    await away.client.start(id);
    const sent = away.client.send(id, 'hi');
    const { waitingFor } = await waitFor(
      () => away.client.status(id),
      ({ phase }) => phase === 'waiting-to-retry',
    );
    expect(waitingFor).toMatch(/^connection: .*ECONNREFUSED/);
    const back = await startMessagesApi({ port: away.api.port, script: [{ reply: text('I am back.') }] });
    await away.advance(60_000);
    expect(await sent).toMatchObject({ text: 'I am back.', stopReason: 'end' });
    expect(back.hits).toHaveLength(1);
    back.assertDone();
    await back.close();
  } finally {
    await away.close();
  }
});
