/** An embedder beside a conversation: what it makes is found, counts to the conversation's budget, and is in nobody's way. */
import { createEmbedder } from '../../src/models/providers.js';
import type { Embedder } from '../../src/models/embedder.js';
import { startEmbeddingsApi, type EmbeddingsApi } from '../support/provider-apis/embeddings-api.js';
import { callTool, text } from '../support/provider-apis/reply.js';
import { createStage, resultTexts, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const MEANS: Readonly<Record<string, string>> = { dentist: 'teeth', was: 'teeth', who: 'teeth', my: 'teeth', doctor: 'teeth' };
const MILLION = 1_000_000;
const NAME = 'ollama/nomic-embed-text';

let world: World;
let api: EmbeddingsApi;
let isAway = false;
const stage = createStage();

beforeAll(async () => {
  api = await startEmbeddingsApi({
    means: (word) => MEANS[word] ?? word,
    answer: () => (isAway ? '<html>' : undefined),
  });
  const ollama = createEmbedder(NAME, { ollama: { host: api.url } }) as Embedder;
  const embedder: Embedder = {
    ...ollama,
    price: 1,
    // A million for each text: tokens that can be told from those of the model.
    embed: async (texts, options) => ({ ...(await ollama.embed(texts, options)), tokens: MILLION * texts.length }),
  };
  world = await startWorld({ answer: stage.answer, embedder });
});
beforeEach(() => {
  isAway = false;
});
afterAll(async () => {
  await world.close();
  await api.close();
});

const vectorsOf = async (id: string) => {
  const [key] = await world.store.lives.list({ namespace: 'default', conversation: id });
  return key ? (await world.store.vectors.read(key, NAME)).length : 0;
};
const until = (id: string, count: number) =>
  waitFor(
    () => vectorsOf(id),
    (found) => found === count,
  );

/** Each line waits for the vectors of the one before, where there are any. */
async function told(scope: string, options: object = {}): Promise<string> {
  const id = world.id();
  await world.client.start(id, { scope, ...options });
  const lines = ['The doctor for teeth is called Brandt.', 'We sail to Norway in June.', 'The boat is painted green.'];
  for (const [i, line] of lines.entries()) {
    stage.play(id, text(`Noted, ${'abc'.charAt(i)}.`));
    await world.client.send(id, say(id, line));
    if (!isAway) await until(id, 2 * (i + 1));
  }
  return id;
}

test('by an agent and by a person what means the same is found; without words in common', async () => {
  const scope = `embedding-${Date.now()}`;
  await told(scope);
  const other = world.id();
  await world.client.start(other, { scope });
  stage.play(other, callTool('search_memory', { question: 'Who was my dentist?' }), text('I see.'));
  await world.client.send(other, say(other, 'Look it up.'));
  const [answer = ''] = resultTexts(stage.requests(other)[1]);
  expect(answer.split('\n')[1]).toContain('The doctor for teeth is called Brandt.');
  const [hit] = await world.client.scope(scope).search('Who was my dentist?');
  expect(hit?.text).toContain('Brandt');
});

test('what vectors cost is in the usage of the conversation and in that of all; at its budget no more are made', async () => {
  const scope = `embedding-${Date.now()}`;
  const id = await told(scope, { budget: { maxTokens: 6 * MILLION } });
  // Four texts of the steps before the last; those of the last are reported by the next.
  const millions = async () => Math.floor((await world.client.status(id)).usage.inputTokens / MILLION);
  expect(await millions()).toBe(4);
  stage.play(id, text('Noted, d.'));
  await world.client.send(id, say(id, 'Parcels arrive before noon.'));
  expect(await millions()).toBe(6);
  await until(id, 8);
  const sent = api.requests.length;
  const ended = await world.client.send(id, 'This is too much.');
  expect(ended).toMatchObject({ stopReason: 'budget' });
  expect([await vectorsOf(id), api.requests.length]).toEqual([8, sent]);
  const { sums } = await world.client.usage({ by: 'kind' });
  const embedded = sums.find(({ of }) => of === 'embedding');
  // Eight at least: other tests' are there too.
  expect(embedded?.usage.costUsd).toBeGreaterThanOrEqual(8);
});

test('an embedder that is away holds up no turn, and a search says that words alone were looked for', async () => {
  const scope = `embedding-${Date.now()}`;
  isAway = true;
  const id = await told(scope);
  expect(await vectorsOf(id)).toBe(0);
  stage.play(id, callTool('search_memory', { question: 'How is the boat painted?' }), text('Green.'));
  await world.client.send(id, say(id, 'Look up the boat.'));
  const answer = resultTexts(stage.requests(id).at(-1)).at(-1) ?? '';
  expect(answer).toContain('The boat is painted green.');
  expect(answer).toContain('[found by words alone: the embedder did not answer]');
});
