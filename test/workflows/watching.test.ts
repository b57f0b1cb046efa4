/** Whoever watches sees the turn as it happens: every word once, also when a call is tried again. */
import type { FeedEvent } from '../../src/conversation/protocol/contract.js';
import { errorEvent } from '../support/provider-apis/faults.js';
import { callTool, gate, text } from '../support/provider-apis/reply.js';
import { createStage, say } from '../support/stage.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { startWorld, type World } from '../support/world.js';
import type { WatchEvent } from '../../src/client.js';

describe.each(['files', 'redis'])('with %s', (kind) => {
  const stage = createStage();
  let world: World;
  let redis: RedisServer | undefined;

  beforeAll(async () => {
    redis = kind === 'redis' ? await startRedis() : undefined;
    world = await startWorld({ answer: stage.answer, redisUrl: redis?.url, files: { 'a.txt': 'content' } });
  });
  afterAll(async () => {
    await world.close();
    await redis?.stop();
  });
  afterEach(() => expect(world.api.problems).toEqual([]));

  async function started(): Promise<string> {
    const id = world.id();
    await world.client.start(id);
    return id;
  }

  /** All events up to the end of that turn. */
  async function watchTurn(id: string, turn: string, after = '0'): Promise<WatchEvent[]> {
    const stop = new AbortController();
    const seen: WatchEvent[] = [];
    for await (const one of world.client.watch(id, { after, signal: stop.signal })) {
      seen.push(one);
      if (one.event.kind === 'turn-finished' && one.event.turn === turn) stop.abort();
    }
    return seen;
  }

  /** As a screen would: a `reset` forgets what was drawn of its call. */
  function drawn(events: readonly FeedEvent[]): string {
    const calls = new Map<string, string>();
    for (const event of events) {
      if (event.kind === 'reset') calls.set(event.call, '');
      if (event.kind === 'text') calls.set(event.call, (calls.get(event.call) ?? '') + event.text);
    }
    return [...calls.values()].join('');
  }

  test('the deltas of a turn are its text, and its end arrives with the result', async () => {
    const id = await started();
    const words = 'A long answer, which comes in many small pieces: äöü 😀 and so on.';
    stage.play(id, { text: words, chunks: { size: 3, delayMs: 1 } });
    const watching = watchTurn(id, 'turn_0001');
    const result = await world.client.send(id, say(id, 'hi'));
    const events = (await watching).map(({ event }) => event);
    expect(result.text).toBe(words);
    expect(drawn(events)).toBe(words);
    expect(events[0]).toMatchObject({ kind: 'message', turn: 'turn_0001', preview: say(id, 'hi') });
    expect(events.at(-1)).toEqual({ kind: 'turn-finished', turn: 'turn_0001', result });
    expect(new Set(events.flatMap((event) => (event.kind === 'text' ? [event.attempt] : []))).size).toBe(1);
  });

  test('an attempt that is tried again begins with a reset, and no word is doubled', async () => {
    const id = await started();
    stage.play(id, errorEvent(6, 'overloaded_error', text('Half of an answer that is never to be finished.')), text('The whole answer.'));
    const watching = watchTurn(id, 'turn_0001');
    await world.client.send(id, say(id, 'hi'));
    const events = (await watching).map(({ event }) => event);
    const kinds = events.map(({ kind: name }) => name).filter((name) => name === 'text' || name === 'reset');
    expect(kinds.lastIndexOf('reset')).toBeGreaterThan(kinds.indexOf('text'));
    expect(drawn(events)).toBe('The whole answer.');
    const attempts = events.flatMap((event) => (event.kind === 'text' ? [event.attempt] : []));
    const [reset] = events.filter((event) => event.kind === 'reset');
    expect([new Set(attempts).size, reset?.attempt]).toEqual([2, attempts.at(-1)]);
  });

  test('tools are seen to start and to finish, between the words of the calls', async () => {
    const id = await started();
    stage.play(id, { text: 'I look.', ...callTool('read_file', { path: 'a.txt' }) }, text('Seen.'));
    const watching = watchTurn(id, 'turn_0001');
    await world.client.send(id, say(id, 'look'));
    const kinds = (await watching).map(({ event }) => event.kind).filter((name, at, all) => name !== all[at - 1]);
    expect(kinds).toEqual(['message', 'text', 'tool-started', 'tool-finished', 'text', 'turn-finished']);
  });

  test('a watcher that comes back with its cursor misses nothing and sees nothing twice; two watchers see the same', async () => {
    const id = await started();
    const hold = gate({ chars: 20 });
    stage.play(id, { text: 'These words come slowly, one piece after the other.', holdAfter: hold });
    const both = [watchTurn(id, 'turn_0001'), watchTurn(id, 'turn_0001')];
    const sent = world.client.send(id, say(id, 'hi'));
    await hold.reached;
    const early: WatchEvent[] = [];
    for await (const one of world.client.watch(id, { after: '0' })) {
      early.push(one);
      if (one.event.kind === 'text') break;
    }
    hold.release();
    await sent;
    const late = await watchTurn(id, 'turn_0001', early.at(-1)?.cursor);
    const [one, two] = await Promise.all(both);
    expect([...early, ...late]).toEqual(one);
    expect(two).toEqual(one);
  });

  test.each([
    ['interrupted', true],
    ['failed', false],
  ])('the end of a turn that was %s arrives, too', async (stopReason, interrupts) => {
    const id = interrupts ? await started() : world.id();
    if (!interrupts) await world.client.start(id, { agent: 'ghost' });
    const hold = gate();
    stage.play(id, { text: 'Never said.', hold });
    const watching = watchTurn(id, 'turn_0001');
    const sent = world.client.send(id, say(id, 'hi'));
    if (interrupts) await hold.reached.then(() => world.client.interrupt(id));
    const { text: _text, ...result } = await sent;
    expect((await watching).at(-1)?.event).toMatchObject({ kind: 'turn-finished', result: { ...result, stopReason } });
  });
});
