/** What closes by itself, and what goes to the archive and is read from there, without anyone noticing. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgentLoader } from '../../src/agents/load-agent.js';
import type { ErasureAccess } from '../../src/client/erasure/find.js';
import { collectGarbage, findOverdue, type GcOptions } from '../../src/client/gc.js';
import { createFolderArchive } from '../../src/stores/archive/place.js';
import type { ArchivePlace } from '../../src/stores/store.js';
import { textOf } from '../support/provider-apis/api-request.js';
import { callTool, gate, text } from '../support/provider-apis/reply.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

const DAY_MS = 86_400_000;

describe.each(['files', 'redis'] as const)('with %s', (kind) => {
  const stage = createStage();
  let world: World;
  let redis: RedisServer | undefined;
  let dir: string;
  let archive: ArchivePlace;

  beforeAll(async () => {
    redis = kind === 'redis' ? await startRedis() : undefined;
    dir = await mkdtemp(join(tmpdir(), 'perdura-gc-'));
    archive = createFolderArchive(join(dir, 'archive'));
    const files = { 'big.txt': 'a line of a big file\n'.repeat(2_000) };
    world = await startWorld({ answer: stage.answer, redisUrl: redis?.url, archive, agent: { idle: '30d' }, files });
  });
  afterAll(async () => {
    await world.close();
    await redis?.stop();
    await rm(dir, { recursive: true, force: true });
  });

  const access = (): ErasureAccess => {
    const { temporal: client, taskQueue, store } = world;
    return { client, namespace: 'default', taskQueue, store };
  };
  /** As if so many days had passed. */
  const options = (days: number, over: Partial<GcOptions> = {}): GcOptions => ({
    agents: createAgentLoader(join(world.dir, 'agents')),
    archiveAfter: 30,
    now: () => world.now() + days * DAY_MS,
    ...over,
  });
  const begin = async (start: { idle?: string; scope?: string } = {}): Promise<string> => {
    const id = world.id();
    await world.client.send(id, say(id, 'good morning'), { start: { scope: 'ada', ...start } });
    await waitFor(
      () => world.client.list({ limit: 500 }),
      (listed) => listed.some((one) => one.id === id && one.state === 'running'),
    );
    return id;
  };
  const overdueOf = async (days: number): Promise<string[]> => (await findOverdue(access(), options(days))).map(({ id }) => id);
  const names = async (): Promise<string[]> => {
    const found: string[] = [];
    for await (const { name } of archive.list('')) found.push(name);
    return found;
  };

  test('a start says it before its agent does, the last message counts, and what is at work stays open', async () => {
    const [byAgent, byStart, longer] = [await begin(), await begin({ idle: '2d' }), await begin({ idle: '90d' })];
    expect(await overdueOf(1)).not.toContain(byStart);
    expect(await overdueOf(3)).toContain(byStart);
    expect(await overdueOf(3)).not.toContain(byAgent);
    expect(new Set(await overdueOf(31))).toEqual(new Set([byAgent, byStart]));
    expect(await overdueOf(91)).toContain(longer);

    const busy = world.id();
    const held = gate();
    stage.play(busy, { ...text('I am thinking.'), hold: held });
    const answer = world.client.send(busy, say(busy, 'good morning'), { start: { scope: 'ada', idle: '1d' } });
    await held.reached;
    const kept: string[] = [];
    await waitFor(
      async () => {
        await collectGarbage(access(), options(4, { onKept: ({ id }, why) => kept.push(`${id === busy ? 'busy' : id}: ${why}`) }));
        return [await world.client.describe(byStart), kept] as const;
      },
      ([{ state }]) => state !== 'running' && kept.length > 0,
    );
    expect(new Set(kept)).toEqual(new Set(['busy: it runs, and is thinking']));
    expect(await world.client.describe(byStart)).toMatchObject({ state: 'ended' });
    // It was closed as a person closes: what it has is not cut off.
    expect(await world.client.outcome(byStart)).toMatchObject({ turns: 1 });
    expect(await world.client.describe(byAgent)).toMatchObject({ state: 'running' });
    held.release();
    expect(await answer).toMatchObject({ text: 'I am thinking.' });
  });

  test('a conversation that was archived goes on as if nothing had been, and is deleted with its archive', async () => {
    const id = world.id();
    stage.play(id, callTool('read_file', { path: 'big.txt' }), text('It is long.'));
    await world.client.send(id, say(id, 'read big.txt'), { start: { scope: 'ada', idle: '90d' } });
    const history = await world.client.history(id);
    const before = await world.client.whereabouts(id);
    expect(before).toMatchObject({ store: { messages: 4 }, archive: null });
    expect(before.store.longTexts).toBeGreaterThan(0);

    await collectGarbage(access(), options(40));
    const after = await world.client.whereabouts(id);
    expect(after).toMatchObject({ store: { messages: 0, longTexts: 0 }, archive: { messages: 4, longTexts: before.store.longTexts } });
    expect(await world.client.history(id)).toEqual(history);

    stage.play(id, text('Still long.'));
    expect(await world.client.send(id, say(id, 'and now?'))).toMatchObject({ text: 'Still long.' });
    const [second, third] = [stage.requests(id)[1], stage.requests(id)[2]];
    // The model is shown what it was shown before, word for word; long results are cited from now on in any case.
    expect(textOf(third?.messages[0]?.content ?? '')).toBe(textOf(second?.messages[0]?.content ?? ''));
    expect(JSON.stringify(third?.messages)).toContain('It is long.');
    expect(JSON.stringify(third?.messages)).not.toContain('is no longer in the store');
    expect(await world.client.history(id)).toHaveLength(history.length + 2);
    expect(world.api.problems).toEqual([]);

    expect((await names()).some((name) => name.includes(id))).toBe(true);
    await world.client.closeConversation(id, { memory: false });
    await world.client.outcome(id);
    await world.client.deleteConversation(id);
    expect((await names()).filter((name) => name.includes(id))).toEqual([]);
  });
});
