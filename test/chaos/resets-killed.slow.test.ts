/**
 * Workers, Redis and Temporal are killed at random points of resets: each session is consolidated once, and MEMORY.md has a line for
 * each. 4 resets; with PERDURA_LONG=1 100. PERDURA_SEED repeats a run's kills.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { textOf as wordsIn, type ApiRequest } from '../support/provider-apis/api-request.js';
import { text, type Reply } from '../support/provider-apis/reply.js';
import { createRandom, figure, LONG, sceneTest, seconds, until, type Scene } from '../support/scene.js';

const RESETS = LONG ? 100 : 4;
const { seed, next: random } = createRandom();

/** It keeps what is remembered, and adds a line for each note that it reads. */
function consolidator(request: ApiRequest): Reply | undefined {
  const prompt = request.messages.map(({ content }) => wordsIn(content)).join('\n');
  if (!prompt.includes('You are a memory consolidation agent')) return undefined;
  const memory = /## Current Long-term Memory\n([\s\S]*?)\n+## Conversation to Process/.exec(prompt)?.[1] ?? '';
  const notes = [...new Set(prompt.split('## Conversation to Process')[1]?.match(/note number \d+/g) ?? [])];
  const kept = memory === '(empty)' ? [] : memory.split('\n');
  return text(
    JSON.stringify({ history_entry: notes.join(', '), memory_update: [...kept, ...notes.map((note) => `- ${note}`)].join('\n') }),
  );
}

sceneTest(
  'whatever dies around a reset, each session is remembered once',
  { impatient: true, redis: true, ownTemporal: true, answer: () => text('Noted.'), aside: consolidator },
  async (scene) => {
    const id = scene.id();
    let worker = await scene.startWorker();
    let kills = 0;
    const began = Date.now();
    for (let n = 1; n <= RESETS; n++) {
      await scene.client.send(id, { id: `m${n}`, text: `note number ${n}` }, n === 1 ? { start: {} } : {});
      const reset = scene.client.reset(id);
      reset.catch(() => undefined);
      await sleep(random() * 400);
      const victim = ['worker', 'redis', 'temporal'][Math.floor(random() * 3)] ?? 'worker';
      kills += 1;
      if (victim === 'redis') {
        await scene.redis.kill();
        await scene.restartRedis();
      } else {
        if (victim === 'temporal') {
          await scene.killTemporal();
          await scene.restartTemporal();
        }
        await worker.kill();
        worker = await scene.startWorker();
      }
      expect(await reset).toMatchObject({ reply: 'Session cleared.', session: n + 1 });
    }
    const memory = scene.client.scope('default');
    const all = Array.from({ length: RESETS }, (_, n) => `note number ${n + 1}`);
    await until('every session in memory', async () => (await memory.text()).text.split('\n').length >= RESETS);
    expect((await memory.text()).text.split('\n')).toEqual(all.map((note) => `- ${note}`));
    const summaries: string[] = [];
    for await (const { kind, text: said } of await memory.history()) if (kind === 'summary') summaries.push(said.split('\n').at(-1) ?? '');
    expect(summaries.sort()).toEqual(all.sort());
    expect(scene.api.problems).toEqual([]);
    figure(
      `resets killed (seed ${seed}): ${kills} kills in ${RESETS} resets, each session remembered once, in ${seconds(Date.now() - began)}`,
    );
  },
  LONG ? 2_400_000 : 600_000,
);

sceneTest(
  'with Redis away a reset waits and says so, and what is said meanwhile is answered when it is back',
  { redis: true, answer: () => text('Noted.') },
  async (scene: Scene) => {
    const id = scene.id();
    await scene.startWorker();
    await scene.client.send(id, 'a word worth keeping', { start: { scope: 'away' } });
    await scene.redis.kill();
    const reset = scene.client.reset(id);
    reset.catch(() => undefined);
    const status = await until('a reset that waits', async () => {
      const now = await scene.client.status(id);
      return now.phase === 'resetting' && now.waitingFor !== undefined ? now : undefined;
    });
    expect(status.waitingFor).toContain('memory:away');
    const { messageId } = await scene.client.message(id, 'and one for the new session');
    await scene.restartRedis();
    expect(await reset).toMatchObject({ reply: 'Session cleared.', session: 2 });
    const history = await until('the answer', async () => {
      const now = await scene.client.history(id);
      return now.length === 4 ? now : undefined;
    });
    expect(history.find((entry) => entry.messageId === messageId)?.session).toBe(2);
  },
);
