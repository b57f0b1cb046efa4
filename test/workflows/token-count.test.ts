/** How full the context is, in a script of which a model makes other tokens than of Latin letters. */
import { tokenCounterBy } from '../../src/models/token-counter.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { text } from '../support/provider-apis/reply.js';
import { startWorld, type World } from '../support/world.js';

const SENTENCE = 'すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。';

let world: World;
let count: (text: string) => number;
/** What this provider makes of a request, and what it was sent last. */
const tokensOf = ({ system, tools, messages }: ApiRequest): number =>
  [JSON.stringify(system), JSON.stringify(tools), ...messages.map(({ content }) => JSON.stringify(content))].reduce(
    (sum, part) => sum + count(part),
    0,
  );
let last = 0;
/** Set while an answer is held back. */
let held: { readonly until: Promise<void>; readonly onReached: () => void } | undefined;

beforeAll(async () => {
  ({ count } = await tokenCounterBy('cl100k_base'));
  world = await startWorld({
    agent: { tools: ['get_time', 'search_history'], memory: { enabled: false }, context: { maxTokens: 60_000 } },
    answer: (request) => {
      last = tokensOf(request);
      const reply = { ...text(SENTENCE), usage: { input_tokens: last, output_tokens: count(SENTENCE) } };
      return held ? { ...reply, holdAfter: { events: 1, ...held } } : reply;
    },
  });
});
afterAll(() => world.close());

test('after two calls, what is not counted yet is estimated within 15 %', async () => {
  const id = world.id();
  await world.client.start(id);
  await world.client.send(id, SENTENCE.repeat(6));
  await world.client.send(id, SENTENCE.repeat(20));
  const before = (await world.client.context(id)).total;
  let release = (): void => undefined;
  const reached = new Promise<void>((resolve) => {
    held = { until: new Promise<void>((go) => (release = go)), onReached: resolve };
  });
  const sent = world.client.send(id, SENTENCE.repeat(80));
  await reached;
  const { total, tokenRatio = 1 } = await world.client.context(id);
  release();
  await sent;
  const [estimated, real] = [total - before, count(SENTENCE.repeat(80))];
  expect(Math.abs(estimated - real) / real).toBeLessThanOrEqual(0.15);
  expect(Math.abs(total - last) / last).toBeLessThanOrEqual(0.15);
  expect(tokenRatio).not.toBe(1);
  // Four characters a token would have said a quarter of it.
  expect(estimated).toBeGreaterThan(SENTENCE.length * 20 * 3);
});
