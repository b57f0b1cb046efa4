/** What may be lost beside entries, and when: bodies, memories, facts, in the middle of a tool round. */
import { Redis } from 'ioredis';
import { callTool, gate, text, type Reply } from '../support/provider-apis/reply.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { consolidationReply } from '../support/provider-apis/consolidation-reply.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { startWorld, type World } from '../support/world.js';

let server: RedisServer;
let redis: Redis;
let world: World;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});
afterEach(() => world.close());

const files = { 'README.md': 'the content of the file' };

test('what was only a reference is named in its place, in words for the model', async () => {
  // With a memory channel its citation would stand there, and say it when it is asked for.
  const agent = { memory: { enabled: false } };
  world = await startWorld({ redisUrl: server.url, agent, files: { 'big.txt': 'line of a big file\n'.repeat(1_000) } });
  const id = world.id();
  world.api.play({ reply: callTool('read_file', { path: 'big.txt' }) }, { reply: text('read') });
  await world.client.send(id, 'read big.txt', { start: {} });
  await redis.flushall();
  world.api.play({ reply: text('ok') });
  await world.client.send(id, 'and now?');
  const shown = JSON.stringify(world.api.hits.at(-1)?.body?.messages);
  expect(shown).toContain('is no longer in the store');
  expect(shown).toContain('line of a big file');
  expect(world.api.problems).toEqual([]);
});

test('a flush in the middle of a tool round is healed before the tool reads its arguments', async () => {
  world = await startWorld({ redisUrl: server.url, files });
  const id = world.id();
  const hold = gate();
  world.api.play({ reply: { ...callTool('read_file', { path: 'README.md' }), hold } }, { reply: text('done') });
  const answer = world.client.send(id, 'read it', { start: {} });
  await hold.reached;
  await redis.flushall();
  hold.release();
  expect(await answer).toMatchObject({ text: 'done', toolCalls: 1 });
  expect(world.api.problems).toEqual([]);
});

const small = {
  maxTokens: 500,
  tools: ['get_time', 'list_files', 'read_file', 'search_files', 'search_history', 'set_task'],
  memory: { enabled: false },
  context: { maxTokens: 6_000, safetyMargin: 500 },
};

/** Turns of which the older become memory, by a summarizer that says which batch it was. */
async function remembering(id: string, turns: number, scope: string): Promise<void> {
  for (let n = 0; n < turns; n++) {
    world.api.play({ reply: text(`answer ${n} `.repeat(20)) });
    await world.client.send(id, `question ${n}`, { start: { scope } });
  }
}

function playSummary(fact: string): void {
  const semantic = [{ fact, tags: [], confidence: 1, salience: 0.5 }];
  world.api.play({ reply: text(JSON.stringify({ episodic: { summary: `They knew: ${fact}`, tags: [], salience: 0.5 }, semantic })) });
}

async function lastPrompt(id: string, words: string): Promise<string> {
  world.api.play({ reply: text('yes') });
  await world.client.send(id, words);
  return JSON.stringify(world.api.hits.at(-1)?.body?.messages);
}

test('what older turns have become is rebuilt before the next prompt is made, and so is a body that alone was lost', async () => {
  world = await startWorld({ redisUrl: server.url, agent: small });
  const id = world.id();
  await remembering(id, 6, 'orchard');
  playSummary('plums are ripe');
  expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', method: 'model' });
  const before = await world.client.memory(id);
  const archived = await world.client.archived(id);

  await redis.flushall();
  const prompt = await lastPrompt(id, 'still there?');
  expect(prompt).toContain('They knew: plums are ripe');
  expect(prompt).toContain('[MEMORY:SEMANTIC]');
  expect(await world.client.memory(id)).toEqual(before);
  expect(await world.client.archived(id)).toEqual(archived);

  const bodies = (await redis.keys(`*${id}*`)).find((key) => key.endsWith(':bodies'));
  await redis.del(bodies!);
  expect(await lastPrompt(id, 'and now?')).toContain('They knew: plums are ripe');
  expect(world.api.problems).toEqual([]);
});

test('a compaction that was taken back does not come back, and takes nobody else’s facts along', async () => {
  world = await startWorld({ redisUrl: server.url, agent: small });
  const [gone, kept] = [world.id(), world.id()];
  for (const [id, fact] of [
    [gone, 'plums are ripe'],
    [kept, 'pears are not'],
  ] as const) {
    await remembering(id, 6, 'garden');
    playSummary(fact);
    expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted' });
  }
  // Healed in another order, the scope's facts have other numbers than before.
  await redis.flushall();
  await lastPrompt(kept, 'still there?');
  await lastPrompt(gone, 'and you?');
  expect(await world.client.undoCompaction(gone)).toMatchObject({ kind: 'undone' });
  expect((await world.client.memory(kept)).facts.map(({ fact }) => fact)).toEqual(['pears are not']);

  await redis.flushall();
  const prompt = await lastPrompt(gone, 'what do you know?');
  expect(prompt).not.toContain('plums are ripe');
  expect(prompt).toContain('question 0');
  expect((await world.client.memory(gone)).episodes).toEqual([]);
});

test('a fact that was forgotten does not come back with what is healed', async () => {
  world = await startWorld({ redisUrl: server.url, agent: small });
  const id = world.id();
  const scope = `forgotten-${process.pid}`;
  await remembering(id, 6, scope);
  playSummary('The safe opens with qz9173.');
  await world.client.compact(id);
  expect(await world.client.scope(scope).forget('The safe opens with qz9173.')).toMatchObject({ facts: ['sem_0001'] });
  await redis.flushall();
  world.api.play({ reply: text('ok') });
  await world.client.send(id, 'go on');
  expect(await world.client.scope(scope).facts()).toEqual([]);
  expect((await world.client.memory(id)).episodes).toHaveLength(1);
});

test('a memory that was flushed comes back from the history of its one writer, forgotten things excepted', async () => {
  let says: string | undefined;
  const aside = (request: ApiRequest): Reply | undefined =>
    says === undefined || consolidationReply(request) === undefined
      ? consolidationReply(request)
      : text(JSON.stringify({ history_entry: `[2026-11-21 10:00] ${says}`, memory_update: says }));
  world = await startWorld({ redisUrl: server.url, aside, answer: () => text('ok') });
  const id = world.id();
  const scope = `flushed-${process.pid}`;
  await world.client.send(id, 'I keep bees, and my safe opens with qz9173', { start: { scope } });
  says = '- Keeps bees.\n- The safe opens with qz9173.';
  await world.client.reset(id);
  await world.client.scope(scope).forget('The safe opens with qz9173.');
  await world.client.send(id, 'I moved to Bergen');
  says = '- Keeps bees.\n- Moved to Bergen.';
  await world.client.reset(id);
  await world.client.send(id, 'one more');
  const { text: before } = await world.client.scope(scope).text();
  await redis.flushall();
  await world.client.send(id, 'what do you know?');
  expect(JSON.stringify(world.api.hits.at(-1)?.body?.system)).toContain('> - Keeps bees.\\n> - Moved to Bergen.');
  expect(await world.client.scope(scope).text()).toMatchObject({ text: before });
  const history = [];
  for await (const entry of await world.client.scope(scope).history()) history.push(entry.text);
  expect(history).toHaveLength(2);
  expect(JSON.stringify(history)).not.toContain('qz9173');
});
