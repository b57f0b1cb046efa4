/** A conversation and a provider's limits: it waits in line, is answered once, and one that stands before a refusal waits with the others. */
import type { Status } from '../../src/conversation/protocol/contract.js';
import { toAccount } from '../../src/models/guarded-call.js';
import { rateLimited } from '../support/provider-apis/faults.js';
import { text } from '../support/provider-apis/reply.js';
import { createStage, say } from '../support/stage.js';
import { startWorld, type World } from '../support/world.js';
import { waitFor } from '../support/wait-for.js';

const stage = createStage();
let world: World;

beforeAll(async () => {
  world = await startWorld({
    answer: stage.answer,
    // The test lets their time pass.
    holds: (why) => /rate-limit/.test(why),
  });
});
afterAll(() => world.close());
afterEach(() => expect(world.api.problems).toEqual([]));

const waitingOf = async (id: string): Promise<Status['waiting']> => (await world.client.status(id)).waiting;
const isRetry = (waiting: Status['waiting']): boolean => waiting?.kind === 'retry';
const limitsOf = async (model: string) => (await world.store.rateLimits.list()).find(({ of }) => of.startsWith(`${model}#`));

test('a call without room waits until there is some, and is made once', async () => {
  const model = 'anthropic/claude-waits';
  const account = toAccount('test-key').account ?? '';
  const [of, held] = [`${model}#${account}`, 'of another worker'];
  const streams = { set: { streams: 1 }, tenant: '', conversation: held, isBackground: false, input: 1, output: 1 };
  expect(await world.store.rateLimits.take(of, { id: held, ...streams })).toEqual({ status: 'granted' });
  const other = world.id();
  stage.play(other, text('Here.'));
  await world.client.start(other, { model });
  const sent = world.client.send(other, say(other, 'hello'));
  let isOver = false;
  void sent.finally(() => (isOver = true));
  await waitFor(() => waitingOf(other), isRetry);
  expect(stage.requests(other)).toEqual([]);
  await world.store.rateLimits.release(of, held, {});
  await waitFor(
    () => world.advance(500),
    () => isOver,
  );
  expect(await sent).toMatchObject({ text: 'Here.', stopReason: 'end' });
  expect(stage.requests(other)).toHaveLength(1);
  expect(await limitsOf(model)).toMatchObject({ limits: [{ kind: 'streams', limit: 1, source: 'setting' }], streams: 0, waiting: [] });
});

test('after a refusal no other conversation runs into it: each waits its time, and says where it stands', async () => {
  const model = 'anthropic/claude-refuses';
  const ids = Array.from({ length: 4 }, () => world.id());
  const [first = '', ...others] = ids;
  for (const id of ids) stage.play(id, ...(id === first ? [rateLimited({ retryAfter: 60 })] : []), text(`Of ${id}`));
  await Promise.all(ids.map((id) => world.client.start(id, { model })));
  const send = (id: string) => world.client.send(id, say(id, 'hi'));
  const sent = [send(first)];
  await waitFor(() => waitingOf(first), isRetry);
  sent.push(...others.map(send));
  for (const id of others) {
    await waitFor(() => waitingOf(id), isRetry);
    expect(await waitingOf(id)).toMatchObject({
      reason: 'rate-limit',
      message: expect.stringMatching(/^\d(st|nd|rd) in line for anthropic/),
    });
  }
  let isOver = false;
  const all = Promise.all(sent).finally(() => (isOver = true));
  await waitFor(
    () => world.advance(1_000),
    () => isOver,
  );
  expect((await all).map(({ text: words }) => words)).toEqual(ids.map((id) => `Of ${id}`));
  expect(ids.map((id) => stage.requests(id).length)).toEqual([2, 1, 1, 1]);
});
