/** One whole conversation as people have it: Temporal, a worker, and each of the stores. */
import { callTool, text } from '../support/provider-apis/reply.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { expectReplays } from '../support/replays.js';
import { DESCRIPTIONS } from '../../src/workflows/messages.js';
import { startWorld, type World } from '../support/world.js';

const conversationNames = [DESCRIPTIONS.signal, DESCRIPTIONS.update, DESCRIPTIONS.query].flatMap((all) =>
  Object.entries<string>(all).filter(([name]) => !['consolidate', 'forget', 'deleted', 'accept', 'care'].includes(name)),
);

describe.each(['files', 'redis'] as const)('with %s', (kind) => {
  let redis: RedisServer | undefined;
  let world: World;
  afterEach(async () => {
    await world.close();
    await redis?.stop();
  });

  test('a tool, a hand-over and a new session: it goes on where it was, and every run replays', async () => {
    redis = kind === 'redis' ? await startRedis() : undefined;
    world = await startWorld({
      engine: 'temporal',
      redisUrl: redis?.url,
      files: { 'README.md': 'the content' },
      agent: { limits: { handOver: { updates: 2 } } },
      script: [
        { reply: callTool('read_file', { path: 'README.md' }) },
        { reply: text('It says: the content.') },
        { reply: text('The same.') },
        { reply: text('Hello again.') },
      ],
    });
    const { client } = world;
    const id = world.id();
    expect(await client.send(id, 'read it', { start: {} })).toMatchObject({ text: 'It says: the content.', toolCalls: 1 });
    expect(await client.send(id, 'and now?')).toMatchObject({ text: 'The same.' });
    await client.reset(id);
    expect(await client.send(id, 'hi')).toMatchObject({ turnId: 'turn_0003', text: 'Hello again.' });
    expect(JSON.stringify(world.api.hits[2]?.body?.messages)).toContain('the content');
    expect(world.api.hits[3]?.body?.messages).toHaveLength(1);
    const { runId, life } = await client.describe(id);
    expect(runId).not.toBe(life);
    expect((await client.history(id)).map(({ message }) => message.role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
      'assistant',
      'user',
      'assistant',
    ]);
    // What Temporal's page shows beside the names.
    const shown = JSON.stringify(await world.temporal.workflow.getHandle(id).query('__temporal_workflow_metadata'));
    for (const [name, description] of conversationNames) expect(shown).toContain(`"name":"${name}","description":"${description}"`);
    world.api.assertDone();
    await expectReplays(world);
  });
});
