/** A failover that takes a store back in time: the next turn notices what is gone, and has it back from Temporal's history. */
import { setTimeout as delay } from 'node:timers/promises';
import { callTools, text } from '../support/provider-apis/reply.js';
import { startRedisCluster, type ClusterNode, type RedisClusterServers } from '../support/redis-cluster.js';
import { startWorld, type World } from '../support/world.js';

let cluster: RedisClusterServers;
let world: World;
beforeAll(async () => {
  cluster = await startRedisCluster();
  world = await startWorld({ redisUrl: cluster.url, files: { 'README.md': 'the content of the file' } });
});
afterAll(async () => {
  await world?.close();
  await cluster.stop();
});

async function ownerOfConversation(id: string): Promise<ClusterNode> {
  for (const master of await cluster.masters())
    if ((await cluster.ask<string[]>(master, 'KEYS', `*:${id}}:*:entries`)).length > 0) return master;
  throw new Error(`no node has ${id}`);
}

test('turns whose traces a promoted replica never had are rebuilt before the model is asked again', async () => {
  const { client, api } = world;
  const id = world.id();
  api.play({ reply: text('first answer') });
  await client.send(id, 'first', { start: {} });
  const master = await ownerOfConversation(id);
  const replica = await cluster.replicaOf(master);
  const offset = async (node: ClusterNode, name: string): Promise<number> =>
    Number(new RegExp(`${name}:(\\d+)`).exec(await cluster.ask<string>(node, 'INFO', 'replication'))?.[1]);
  for (const wanted = await offset(master, 'master_repl_offset'); (await offset(replica, 'slave_repl_offset')) < wanted;) await delay(5);

  // What is written from now on is with the master alone.
  process.kill(replica.server.pid, 'SIGSTOP');
  await cluster.ask(master, 'CLIENT', 'KILL', 'TYPE', 'replica');
  try {
    api.play(
      { reply: callTools({ name: 'read_file', input: { path: 'README.md' } }, { name: 'get_time', input: {} }) },
      { reply: text('second answer') },
      { reply: text('third answer') },
    );
    await client.send(id, 'second, with tools');
    await client.send(id, 'third');
    const before = await client.history(id);
    await cluster.kill(master);
    process.kill(replica.server.pid, 'SIGCONT');
    await cluster.takeOver(replica);
    expect((await client.history(id)).length).toBeLessThan(before.length);

    api.play({ reply: text('fourth answer') });
    expect(await client.send(id, 'fourth')).toMatchObject({ text: 'fourth answer', stopReason: 'end' });
    expect((await client.history(id)).slice(0, before.length)).toEqual(before);
    const shown = JSON.stringify(api.hits.at(-1)?.body?.messages);
    for (const words of ['second, with tools', 'the content of the file', 'third answer']) expect(shown).toContain(words);
    expect(api.problems).toEqual([]);
  } finally {
    process.kill(replica.server.pid, 'SIGCONT');
  }
}, 120_000);
