/** A sender that was not answered says it again with the same id: that is one message, whatever came between. */
import { callTool, gate, text } from '../../src/testing/reply.js';
import { turnOf, userEntry } from '../stores/builders.js';
import { outside, type Outside } from '../support/outside.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { replayProblems } from '../support/replays.js';
import { runsOf, workflowTaskFailures } from '../support/run-chain.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

describe.each(['files', 'redis'])('with %s', (kind) => {
  const stage = createStage();
  let world: World;
  let program: Outside;
  let redis: RedisServer | undefined;

  beforeAll(async () => {
    redis = kind === 'redis' ? await startRedis() : undefined;
    world = await startWorld({ answer: stage.answer, redisUrl: redis?.url, agent: { limits: { handOver: { events: 20 } } } });
    program = outside(world);
  });
  afterAll(async () => {
    await world.close();
    await redis?.stop();
  });
  afterEach(() => expect(world.api.problems).toEqual([]));

  async function started(): Promise<string> {
    const id = world.id();
    await program.start(id);
    return id;
  }

  test('the same id five times, as signals and as updates, at once and later, is one turn', async () => {
    const id = await started();
    const message = { id: 'm1', text: say(id, 'only once') };
    const [, first, , second] = await Promise.all([
      program.signal(id, 'message', message),
      program.update(id, 'send', message),
      program.signal(id, 'message', message),
      program.update(id, 'send', message),
    ]);
    const third = await program.update(id, 'send', message);
    expect(first).toMatchObject({ turnId: 'turn_0001', stopReason: 'end', text: 'Understood.' });
    expect([second, third]).toEqual([first, first]);
    expect(stage.requests(id)).toHaveLength(1);
    expect(await program.query(id, 'status')).toMatchObject({ turn: 1, turns: 1, queued: 0 });
  });

  test('the same id after hand-overs is the same turn, and its answer comes back whole', async () => {
    const id = await started();
    stage.play(id, { text: 'The first answer.' });
    const message = { id: 'm1', text: say(id, 'only once') };
    await program.signal(id, 'message', message);
    for (let n = 1; n <= 12; n++) {
      await sendUntilAnswered(program, id, { id: `other-${n}`, text: say(id, `other ${n}`) });
      if (n % 4 === 0) await program.signal(id, 'message', message);
    }
    expect((await runsOf(world, id)).length).toBeGreaterThan(2);
    expect(await sendUntilAnswered(program, id, message)).toMatchObject({ turnId: 'turn_0001', text: 'The first answer.' });
    const { turns } = (await program.query(id, 'status')) as { turns: number };
    expect(turns).toBe(13);
    expect(stage.requests(id)).toHaveLength(13);
    expect((await world.client.history(id)).filter(({ messageId }) => messageId === 'm1')).toHaveLength(1);
    expect(await workflowTaskFailures(world, id)).toEqual([]);
  });

  test('an id that is older than the 256 which state remembers is known to the store', async () => {
    const id = await started();
    const message = { id: 'm1', text: say(id, 'the oldest') };
    await sendUntilAnswered(program, id, message);
    // Steering messages are many ids of one turn: all of them join it after the tool.
    const hold = gate({ events: 1 });
    stage.play(id, { ...callTool('get_time'), holdAfter: hold }, text('All heard.'));
    await program.signal(id, 'message', { id: 'm2', text: say(id, 'begin') });
    await hold.reached;
    await Promise.all(
      Array.from({ length: 260 }, (_, n) => program.signal(id, 'message', { id: `s${n}`, text: `${n}`, delivery: 'steer' })),
    );
    hold.release();
    await sendUntilAnswered(program, id, { id: 'm3', text: say(id, 'later') });
    expect(stage.requests(id)).toHaveLength(4);

    expect(await sendUntilAnswered(program, id, message)).toMatchObject({ turnId: 'turn_0001', stopReason: 'end' });
    await program.signal(id, 'message', message);
    await sendUntilAnswered(program, id, { id: 'm4', text: say(id, 'last') });
    expect(await program.query(id, 'status')).toMatchObject({ turns: 4, queued: 0 });
    expect(stage.requests(id)).toHaveLength(5);
  }, 120_000);

  test('what was written under numbers that never counted is in nobody’s way: each message is answered once, and the store has it once', async () => {
    const id = await started();
    const key = await world.client.key(id);
    // As tasks leave it that Temporal did not take: two in the other order, one that never comes again, one that comes late.
    const uncounted = ['b', 'a', 'gone', 'late'].map((messageId, n) => userEntry(n + 1, say(id, `uncounted ${messageId}`), messageId));
    for (const entry of uncounted) await world.store.entries.record(key, entry);
    for (const messageId of ['a', 'b', 'c']) await program.signal(id, 'message', { id: messageId, text: say(id, messageId) });
    await sendUntilAnswered(program, id, { id: 'd', text: say(id, 'd') });
    expect(await sendUntilAnswered(program, id, { id: 'late', text: say(id, 'late') })).toMatchObject({ turnId: 'turn_0005' });

    expect(stage.requests(id)).toHaveLength(5);
    const history = await world.client.history(id);
    const counted = history
      .filter(({ messageId }) => messageId !== 'gone')
      .map((entry) => `${entry.turn} ${entry.messageId ?? entry.message.role}`);
    const expected = ['a', 'b', 'c', 'd', 'late'].flatMap((said, n) => [said, 'assistant'].map((what) => `${turnOf(n + 1)} ${what}`));
    expect(counted.sort()).toEqual(expected.sort());
    expect(await workflowTaskFailures(world, id)).toEqual([]);
    expect(await replayProblems(world)).toEqual([]);
  });
});

/** An update may meet a hand-over: then it is said again, as the README asks of every sender. */
async function sendUntilAnswered(
  program: Outside,
  id: string,
  message: { id: string; text: string },
): Promise<{ turnId: string; text: string }> {
  const isOver = (result: unknown): boolean =>
    !['continues', 'queued', undefined].includes((result as { stopReason?: string } | undefined)?.stopReason);
  return (await waitFor(() => program.update(id, 'send', message).catch(() => undefined), isOver)) as { turnId: string; text: string };
}
