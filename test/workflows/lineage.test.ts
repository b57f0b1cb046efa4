/** Conversations that begin with the turns of others, that go on after their end, and that rewind. */
import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { z } from 'zod';
import type { Entry } from '../../src/records/message.js';
import { conversationDir } from '../../src/stores/file/paths.js';
import { lifeKey } from '../../src/stores/redis/keys.js';
import type { ConversationKey } from '../../src/stores/store.js';
import { callTool, gate, text } from '../support/provider-apis/reply.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { testReplays } from '../support/replays.js';
import { createStage, say } from '../support/stage.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

describe.each(['files', 'redis'] as const)('with %s', (kind) => {
  const stage = createStage({ by: 'last' });
  let world: World;
  let redis: RedisServer | undefined;
  let rung = 0;
  const bell = defineTool({
    name: 'ring',
    description: 'Rings a bell that everybody hears.',
    input: z.object({}),
    run: () => ({ ok: true, content: `rung ${(rung += 1)} times` }),
  });

  beforeAll(async () => {
    redis = kind === 'redis' ? await startRedis() : undefined;
    world = await startWorld({ answer: stage.answer, redisUrl: redis?.url, tools: [bell] });
  });
  afterAll(async () => {
    await world.close();
    await redis?.stop();
  });
  afterEach(() => expect(world.api.problems).toEqual([]));

  /** Turn 2 rings the bell; each answer has the number of its turn. */
  async function talk(turns: number, agent?: string): Promise<string> {
    const id = world.id();
    await world.client.start(id, { title: 'harbour', ...(agent === undefined ? {} : { agent }) });
    for (let turn = 1; turn <= turns; turn++) await turnOf(id, turn);
    return id;
  }

  async function turnOf(id: string, turn: number): Promise<void> {
    if (turn === 2) stage.play(id, callTool('ring'));
    stage.play(id, text(`answer ${turn}`));
    await world.client.send(id, say(id, `message ${turn}`));
  }

  /** Under an id that the stage knows. */
  const forked = (id: string, at: string, more: { title?: string } = {}) => world.client.fork(id, { at, id: world.id(), ...more });

  /** As a store that was brought back from before its first turn: it knows the life. */
  async function loseTurns(key: ConversationKey): Promise<void> {
    if (redis) {
      const link = new Redis(redis.url);
      await link.del(lifeKey(key, 'entries'));
      return void (await link.quit());
    }
    const folder = conversationDir(join(world.dir, 'memory'), key);
    await rm(folder, { recursive: true });
    await mkdir(folder);
  }

  /** What the model was last shown, as one text. */
  const shown = (id: string): string => JSON.stringify(stage.requests(id).at(-1)?.messages);

  const saidIn = (entries: readonly Entry[]): string[] =>
    entries.flatMap(({ message }) =>
      message.role === 'assistant' ? message.blocks.flatMap((b) => (b.kind === 'text' ? [String(b.text)] : [])) : [],
    );

  test('a fork has the turns up to its own, runs no tool again, and both go on without each other', async () => {
    const id = await talk(5);
    const before = rung;
    const begun = await forked(id, 'turn_0003', { title: 'another way' });
    expect(begun).toMatchObject({ conversation: id, turn: 'turn_0003', turns: 3, inContext: 3 });
    expect(begun.id).not.toBe(id);
    const whole = await world.client.history(id);
    const prefix = whole.filter(({ turn }) => turn <= 'turn_0003');
    expect(await world.client.history(begun.id)).toEqual(prefix);

    stage.play(begun.id, text('another answer 4'));
    expect(await world.client.send(begun.id, say(begun.id, 'message 4 of the fork'))).toMatchObject({
      turnId: 'turn_0004',
      text: 'another answer 4',
    });
    expect(shown(begun.id)).toContain('message 3');
    expect(shown(begun.id)).toContain('rung');
    expect(shown(begun.id)).not.toContain('message 5');
    stage.play(id, text('answer 6'));
    expect(await world.client.send(id, say(id, 'message 6'))).toMatchObject({ turnId: 'turn_0006' });
    expect(shown(id)).toContain('message 5');
    expect(shown(id)).not.toContain('of the fork');
    expect(rung).toBe(before);
    expect(saidIn(await world.client.history(begun.id))).toEqual(['answer 1', 'answer 2', 'answer 3', 'another answer 4']);
    expect(saidIn(await world.client.history(id))).toEqual(['answer 1', 'answer 2', 'answer 3', 'answer 4', 'answer 5', 'answer 6']);
    const slots = (await world.client.history(begun.id)).map(({ slot }) => slot);
    expect(new Set(slots).size).toBe(slots.length);
    expect(await world.client.status(begun.id)).toMatchObject({ origin: { kind: 'fork', conversation: id, turn: 'turn_0003' } });
    expect(await world.client.describe(begun.id)).toMatchObject({ title: 'another way' });
    const { memo } = await world.temporal.workflow.getHandle(begun.id).describe();
    expect(memo).toMatchObject({ parent: id, parentTurn: 'turn_0003' });
  });

  test('a fork of a fork reads both, and its turns are numbered on', async () => {
    const id = await talk(3);
    const first = await forked(id, 'turn_0002');
    await turnOf(first.id, 3);
    const second = await forked(first.id, 'turn_0003');
    stage.play(second.id, text('third way'));
    await world.client.send(second.id, say(second.id, 'and now?'));
    expect(saidIn(await world.client.history(second.id))).toEqual(['answer 1', 'answer 2', 'answer 3', 'third way']);
    const of = await world.client.key(second.id);
    const beginning = await world.store.lives.beginning(of);
    expect(beginning?.shared.map(({ conversation }) => conversation)).toEqual([first.id, id]);
  });

  test('what is said while a fork is being opened waits, and is numbered after its turns', async () => {
    const id = await talk(2);
    const { life } = await world.client.key(id);
    const fork = world.id();
    stage.play(fork, text('first'), text('second'));
    const start = { origin: { kind: 'fork', conversation: id, life, turn: 'turn_0002' } } as const;
    const sent = world.client.send(fork, say(fork, 'at once'), { start });
    const [one, two] = await Promise.all([sent, sent.then(() => world.client.send(fork, say(fork, 'then')))]);
    expect([one.turnId, two.turnId]).toEqual(['turn_0003', 'turn_0004']);
    expect(saidIn(await world.client.history(fork))).toEqual(['answer 1', 'answer 2', 'first', 'second']);
  });

  test('what waits for a conversation that cannot begin gets the reason, and is not sent to a next run that never comes', async () => {
    const id = await talk(1);
    const { life } = await world.client.describe(id);
    const begin = async (): Promise<string> => {
      const workflowId = world.id();
      const origin = { kind: 'resume', conversation: id, life, turn: 'turn_0077' };
      await world.temporal.workflow.start('conversation', { workflowId, taskQueue: world.taskQueue, args: [{ origin }] });
      return workflowId;
    };
    await expect(world.client.send(await begin(), 'hello')).rejects.toThrow(/has no turn_0077/);
    await expect(world.client.send(await begin(), '/new')).rejects.toThrow(/has no turn_0077/);
    await expect(world.client.reset(await begin())).rejects.toThrow(/has no turn_0077/);
    await expect(world.client.compact(await begin())).rejects.toThrow(/has no turn_0077/);
    await expect(world.client.rewind(await begin(), 'turn_0001')).rejects.toThrow(/has no turn_0077/);
  });

  test('a turn that there is not is refused in words, and so is one that runs', async () => {
    const id = await talk(2);
    await expect(world.client.fork(id, { at: 'turn_0009' })).rejects.toThrow(/has no turn_0009: its turns are turn_0001 to turn_0002/);
    const never = world.id();
    await expect(world.client.fork(id, { at: 'turn_0009', id: never })).rejects.toMatchObject({ kind: 'not-found' });
    // Nothing was started for it.
    await expect(world.client.describe(never)).rejects.toMatchObject({ kind: 'not-found' });
    await expect(world.client.fork(id, { at: '9' })).rejects.toThrow('"9" is not a turn');
    await expect(world.client.fork(`never-${randomUUID()}`, { at: 'turn_0001' })).rejects.toMatchObject({ kind: 'not-found' });
    const hold = gate();
    stage.play(id, { ...text('slow'), hold });
    const running = world.client.send(id, say(id, 'message 3'));
    await hold.reached;
    await expect(forked(id, 'turn_0003')).rejects.toThrow(/this turn is still running/);
    hold.release();
    await running;
    expect(await forked(id, 'turn_0003')).toMatchObject({ turns: 3 });
  });

  test('of a conversation that was closed and one that was terminated a fork is as of one that runs', async () => {
    const closed = await talk(3);
    await world.client.closeConversation(closed);
    await world.client.outcome(closed);
    const one = await forked(closed, 'turn_0002');
    expect(saidIn(await world.client.history(one.id))).toEqual(['answer 1', 'answer 2']);
    const killed = await talk(3);
    await world.client.terminate(killed);
    const two = await forked(killed, 'turn_0003');
    stage.play(two.id, text('goes on'));
    await world.client.send(two.id, say(two.id, 'on'));
    expect(saidIn(await world.client.history(two.id))).toEqual(['answer 1', 'answer 2', 'answer 3', 'goes on']);
    expect(shown(two.id)).toContain('message 1');
  });

  test('a conversation that ended is resumed under its id with all that it knew; one that runs is not', async () => {
    const id = await talk(2);
    await expect(world.client.resume(id)).rejects.toThrow(/is running: talk to it with/);
    const { life } = await world.client.key(id);
    await world.client.terminate(id);
    const begun = await world.client.resume(id);
    expect(begun).toMatchObject({ id, turn: 'turn_0002', turns: 2 });
    expect((await world.client.key(id)).life).not.toBe(life);
    stage.play(id, text('answer 3'));
    expect(await world.client.send(id, say(id, 'message 3'))).toMatchObject({ turnId: 'turn_0003', text: 'answer 3' });
    expect(shown(id)).toContain('message 1');
    // What the first life had not got to is remembered by the second.
    expect((await world.client.status(id)).window.messages).toBe(6);
    // The session began when its first message came, whichever life has it now.
    const [first] = await world.client.history(id);
    expect((await world.client.status(id)).window.since).toBe(Math.floor((first?.ts ?? 0) * 1000));
    await world.client.closeConversation(id);
    await world.client.outcome(id);
    expect(await world.client.resume(id)).toMatchObject({ turn: 'turn_0003', turns: 3 });
    expect(saidIn(await world.client.history(id))).toEqual(['answer 1', 'answer 2', 'answer 3']);
    expect((await world.client.status(id)).window.messages).toBe(0);
  });

  test('rewound, a conversation goes on from an earlier turn, and what was cut is a branch that can be forked', async () => {
    const id = await talk(4);
    const before = await world.client.status(id);
    expect(await world.client.rewind(id, 'turn_0002')).toEqual({ to: 'turn_0002', cut: 2, branch: 1, session: 1, epoch: 2 });
    expect(saidIn(await world.client.history(id))).toEqual(['answer 1', 'answer 2']);
    stage.play(id, text('answer 5'));
    expect(await world.client.send(id, say(id, 'message 5'))).toMatchObject({ turnId: 'turn_0005' });
    expect(shown(id)).toContain('message 2');
    expect(shown(id)).not.toContain('message 3');
    expect(saidIn(await world.client.history(id))).toEqual(['answer 1', 'answer 2', 'answer 5']);
    expect(saidIn(await world.client.history(id, { branch: 1 }))).toEqual(['answer 3', 'answer 4']);
    expect(await world.client.branches(id)).toMatchObject([{ branch: 1, after: 'turn_0002', turns: ['turn_0003', 'turn_0004'] }]);
    const { usage } = await world.client.status(id);
    expect(usage.inputTokens).toBeGreaterThan(before.usage.inputTokens);

    const old = await forked(id, 'turn_0004');
    expect(saidIn(await world.client.history(old.id))).toEqual(['answer 1', 'answer 2', 'answer 3', 'answer 4']);
    const fresh = await forked(id, 'turn_0005');
    expect(saidIn(await world.client.history(fresh.id))).toEqual(['answer 1', 'answer 2', 'answer 5']);
    expect(await world.client.rewind(id, 'turn_0001')).toMatchObject({ cut: 2, branch: 2 });
    expect(saidIn(await world.client.history(id))).toEqual(['answer 1']);
    // Back into a branch.
    expect(await world.client.rewind(id, 'turn_0003')).toMatchObject({ branch: 3 });
    expect(saidIn(await world.client.history(id))).toEqual(['answer 1', 'answer 2', 'answer 3']);
    await expect(world.client.rewind(id, 'turn_0077')).rejects.toThrow(/has no turn_0077/);
  });

  test('answered anew, the last turn has another answer and the old one is a branch, also the first of all and the first of a session', async () => {
    const id = world.id();
    stage.play(id, text('answer 1'), text('another 1'), text('a third 1'));
    const image = { mediaType: 'image/png', base64: 'aGVsbG8=' };
    const output = { type: 'object' };
    await world.client.send(id, { text: say(id, 'message 1'), images: [image] }, { start: { title: 'harbour' } });
    expect(await world.client.retry(id)).toMatchObject({ turnId: 'turn_0002', text: 'another 1', stopReason: 'end', cut: 1, branch: 1 });
    expect(shown(id)).not.toContain('answer 1');
    expect(shown(id)).toContain('aGVsbG8=');
    expect(await world.client.retry(id)).toMatchObject({ turnId: 'turn_0003', text: 'a third 1', branch: 2 });
    expect(saidIn(await world.client.history(id))).toEqual(['a third 1']);
    expect(saidIn(await world.client.history(id, { branch: 1 }))).toEqual(['answer 1']);
    expect(saidIn(await world.client.history(id, { branch: 2 }))).toEqual(['another 1']);

    await world.client.reset(id);
    stage.play(id, text('{"n":4}'), text('{"n":5}'), text('last'));
    expect(await world.client.send(id, { text: say(id, 'as data'), output })).toMatchObject({ payload: { n: 4 } });
    expect(await world.client.retry(id)).toMatchObject({ turnId: 'turn_0005', payload: { n: 5 } });
    expect(await world.client.status(id)).toMatchObject({ session: 2 });
    expect(shown(id).match(/answer with JSON alone/g)).toHaveLength(1);
    await world.client.send(id, say(id, 'and?'));
    expect(shown(id)).toContain('as data');
    expect(shown(id)).not.toContain('message 1');
    expect(saidIn(await world.client.history(id))).toEqual(['a third 1', '{"n":5}', 'last']);
  });

  test('edited, a turn and all after it make way for other words; a turn that is not there changes nothing', async () => {
    const id = await talk(3);
    stage.play(id, text('edited'));
    expect(await world.client.edit(id, say(id, 'message 2 in other words'), { turn: 'turn_0002' })).toMatchObject({
      turnId: 'turn_0004',
      text: 'edited',
      cut: 2,
      branch: 1,
    });
    expect(shown(id)).toContain('message 1');
    expect(shown(id)).toContain('in other words');
    expect(shown(id)).not.toContain('message 3');
    expect(saidIn(await world.client.history(id))).toEqual(['answer 1', 'edited']);
    await expect(world.client.edit(id, 'x', { turn: 'turn_0002' })).rejects.toThrow(/turn_0002 is not in it as it stands now/);
    await expect(world.client.edit(id, ' ')).rejects.toMatchObject({ kind: 'invalid' });
    await expect(world.client.edit(id, '/new')).rejects.toMatchObject({ kind: 'invalid' });
    const none = world.temporal.workflow.getHandle(id).executeUpdate('rewind', { args: [{ before: 'turn_0077', message: 'never said' }] });
    await expect(none).rejects.toMatchObject({ cause: { message: expect.stringMatching(/has no turn_0077/) as unknown } });
    expect(await world.client.queue(id)).toEqual([]);
    expect(saidIn(await world.client.history(id))).toEqual(['answer 1', 'edited']);
  });

  test('a rewind that is asked for twice by its id says its message once, also where the message has no id of its own', async () => {
    const id = await talk(2);
    stage.play(id, text('in its place'), text('said twice'));
    const rewind = () =>
      world.temporal.workflow
        .getHandle(id)
        .executeUpdate('rewind', { args: [{ id: 'once', before: 'turn_0002', message: say(id, 'message 2 in other words') }] });
    const first = await rewind();
    expect(first).toMatchObject({ turnId: 'turn_0003' });
    expect(await rewind()).toEqual(first);
    await waitFor(
      () => world.client.status(id),
      ({ phase, queued, turns }) => phase === 'idle' && queued === 0 && turns >= 3,
    );
    expect(saidIn(await world.client.history(id))).toEqual(['answer 1', 'in its place']);
  });

  test('answered anew while it runs, the turn is stopped and its message is said again', async () => {
    const id = await talk(1);
    const hold = gate();
    stage.play(id, { ...text('never finished'), hold }, text('the second try'));
    const stopped = world.client.send(id, say(id, 'too long'));
    await hold.reached;
    const again = world.client.retry(id);
    expect(await stopped).toMatchObject({ stopReason: 'interrupted' });
    hold.release();
    expect(await again).toMatchObject({ text: 'the second try', turnId: 'turn_0003', branch: 1 });
    expect(saidIn(await world.client.history(id))).toEqual(['answer 1', 'the second try']);
  });

  test('a rewind stops the running turn, and messages that wait are answered after it', async () => {
    const id = await talk(2);
    const hold = gate();
    stage.play(id, { ...text('never finished'), hold }, text('for the one that waited'));
    const stopped = world.client.send(id, say(id, 'too long'));
    await hold.reached;
    const waited = world.client.send(id, say(id, 'waits'));
    await waitFor(
      () => world.client.status(id),
      ({ queued }) => queued === 1,
    );
    expect(await world.client.rewind(id, 'turn_0001')).toMatchObject({ to: 'turn_0001', branch: 1 });
    hold.release();
    expect(await stopped).toMatchObject({ stopReason: 'interrupted' });
    expect(await waited).toMatchObject({ text: 'for the one that waited', turnId: 'turn_0004' });
    expect(shown(id)).toContain('message 1');
    expect(shown(id)).not.toContain('too long');
    expect(saidIn(await world.client.history(id))).toEqual(['answer 1', 'for the one that waited']);
  });

  test('back past a reset the turns of the session that had ended are in the context again', async () => {
    const id = await talk(2);
    await world.client.reset(id);
    await turnOf(id, 3);
    expect(await world.client.rewind(id, 'turn_0002')).toMatchObject({ cut: 1, session: 3 });
    stage.play(id, text('answer 4'));
    await world.client.send(id, say(id, 'message 4'));
    expect(shown(id)).toContain('message 1');
    expect(shown(id)).not.toContain('message 3');
    const fork = await forked(id, 'turn_0004');
    stage.play(fork.id, text('x'));
    await world.client.send(fork.id, say(fork.id, 'y'));
    expect(shown(fork.id)).toContain('message 1');
    expect(shown(fork.id)).not.toContain('message 3');
  });

  test('one that runs is not deleted, nor one that a fork reads; else all of it goes, once and again', async () => {
    const id = await talk(2);
    await expect(world.client.deleteConversation(id)).rejects.toThrow(/it is running; end it with `perdura end/);
    const fork = await forked(id, 'turn_0001');
    await world.client.terminate(id);
    await expect(world.client.deleteConversation(id)).rejects.toThrow(new RegExp(`a fork reads its turns where they lie: ${fork.id}`));
    await world.client.terminate(fork.id);
    const key = await world.client.key(id);
    expect(await world.client.deleteConversation(fork.id)).toMatchObject({ lives: 1 });
    expect((await world.store.entries.page(key, 0, 10)).entries).not.toEqual([]);
    expect(await world.client.deleteConversation(id)).toMatchObject({ lives: 1, runs: 1 });
    expect((await world.store.entries.page(key, 0, 10)).entries).toEqual([]);
    await waitFor(
      () => world.client.describe(id).catch((error: { kind: string }) => error.kind),
      (found) => found === 'not-found',
    );
    expect(await world.client.deleteConversation(id)).toMatchObject({ lives: 0, runs: 0 });
    await expect(world.client.deleteConversation(world.id())).rejects.toMatchObject({ kind: 'not-found' });
  });

  test('a store that has lost everything is healed before a fork begins, and a fork after it has begun', async () => {
    if (!redis) return;
    const id = await talk(3);
    await world.client.rewind(id, 'turn_0001');
    await turnOf(id, 5);
    const own = new Redis(redis.url);
    await own.flushall();
    const begun = await forked(id, 'turn_0004');
    expect(saidIn(await world.client.history(begun.id))).toEqual(['answer 1', 'answer 5']);
    expect(saidIn(await world.client.history(id))).toEqual(['answer 1', 'answer 5']);
    expect(saidIn(await world.client.history(id, { branch: 1 }))).toEqual(['answer 2', 'answer 3']);
    await own.flushall();
    stage.play(begun.id, text('still here'));
    await world.client.send(begun.id, say(begun.id, 'are you?'));
    expect(shown(begun.id)).toContain('message 1');
    expect(saidIn(await world.client.history(begun.id))).toEqual(['answer 1', 'answer 5', 'still here']);
    await own.quit();
  });

  test('a summary stands for its turns in a fork from after it, and neither in one from before it nor after a rewind', async () => {
    const id = await talk(7);
    expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', turns: 3 });
    await turnOf(id, 8);
    const late = await forked(id, 'turn_0008');
    expect(late).toMatchObject({ turns: 8, inContext: 5 });
    stage.play(late.id, text('late'));
    await world.client.send(late.id, say(late.id, 'and?'));
    expect(shown(late.id)).toContain('[MEMORY:EPISODIC]');
    expect(shown(late.id)).toContain('message 4');
    expect((await world.client.history(late.id)).map(({ turn }) => turn)).toContain('turn_0001');

    const early = await forked(id, 'turn_0007');
    expect(early).toMatchObject({ turns: 7, inContext: 7 });
    await world.client.rewind(id, 'turn_0006');
    stage.play(id, text('again'));
    await world.client.send(id, say(id, 'and?'));
    expect(shown(id)).toContain('message 1');
    expect(shown(id)).not.toContain('[MEMORY:EPISODIC]');
    // The next one begins anew, and what was made of the branch is not in it.
    expect(await world.client.compact(id)).toMatchObject({ kind: 'compacted', turns: 3 });
    expect((await world.client.memory(id)).episodes).toHaveLength(2);
    stage.play(id, text('once more'));
    await world.client.send(id, say(id, 'and?'));
    expect(shown(id)).not.toContain('2) ');
  });

  test('what is to be forgotten is in no fork, from before or after', async () => {
    const id = world.id();
    const scope = `scope-${id}`;
    await world.client.start(id, { scope });
    const fact = { ts: 1, fact: 'The code word of the harbour is heron.', tags: [], confidence: 0.9, salience: 0.9 };
    await world.store.facts.add({ namespace: 'default', scope }, 'b1', [fact], { conversation: id, turn_ids: [] });
    await turnOf(id, 1);
    const before = await forked(id, 'turn_0001');
    await world.client.send(before.id, say(before.id, 'hello'));
    expect(shown(before.id)).toContain('heron');
    await world.client.scope(scope).forget('The code word of the harbour is heron.');
    await world.client.send(before.id, say(before.id, 'hello again'));
    expect(shown(before.id)).not.toContain('heron');
    const after = await forked(id, 'turn_0001');
    await world.client.send(after.id, say(after.id, 'hello'));
    expect(shown(after.id)).not.toContain('heron');
  });

  test('where nothing was said, or nothing is left, nothing is started: the sentence says what to do', async () => {
    const [id, other] = [world.id(), world.id()];
    await world.client.start(id);
    const empty = { kind: 'not-found', message: expect.stringContaining('nothing was said in it; `perdura new` starts another') };
    await expect(world.client.fork(id, { at: 'turn_0001', id: other })).rejects.toMatchObject(empty);
    await world.client.closeConversation(id, { memory: false });
    await world.client.outcome(id);
    const { runId } = await world.client.describe(id);
    await expect(world.client.resume(id)).rejects.toMatchObject(empty);
    expect(await world.client.describe(id)).toMatchObject({ state: 'ended', runId });
    await expect(world.client.describe(other)).rejects.toMatchObject({ kind: 'not-found' });

    const cut = await talk(2);
    await world.temporal.workflow.getHandle(cut).executeUpdate('rewind', { args: [{ before: 'turn_0001' }] });
    await world.client.closeConversation(cut, { memory: false });
    await world.client.outcome(cut);
    await expect(world.client.resume(cut)).rejects.toMatchObject({
      kind: 'not-found',
      message: expect.stringContaining('a rewind has cut all of its turns, turn_0001 to turn_0002'),
    });
    expect(await world.client.fork(cut, { at: 'turn_0001', id: other })).toMatchObject({ turn: 'turn_0001' });
  });

  test('where the latest life alone counts, an earlier one under the same id is not gone on from', async () => {
    const id = world.id();
    await world.client.start(id, { scope: 'boss' });
    await turnOf(id, 1);
    await world.client.terminate(id);
    await world.client.start(id);
    await world.client.terminate(id);
    const only = { latestLifeOnly: true } as const;
    const nothing = { kind: 'not-found', message: expect.stringMatching(/nothing was said in it|the store has no turn of it/) };
    await expect(world.client.resume(id, only)).rejects.toMatchObject(nothing);
    await expect(world.client.fork(id, { at: 'turn_0001', id: world.id(), ...only })).rejects.toMatchObject(nothing);
  });

  test('what Temporal has forgotten the store has not: it can be forked, and resumed', async () => {
    const id = await talk(2);
    await world.client.terminate(id);
    const { runId } = await world.client.describe(id);
    const workflowExecution = { workflowId: id, runId };
    await world.temporal.workflowService.deleteWorkflowExecution({ namespace: 'default', workflowExecution });
    await waitFor(
      () => world.client.describe(id).catch((error: { kind: string }) => error.kind),
      (found) => found === 'not-found',
    );
    const fork = await forked(id, 'turn_0001');
    expect(saidIn(await world.client.history(fork.id))).toEqual(['answer 1']);
    expect(await world.client.resume(id)).toMatchObject({ id, turn: 'turn_0002', turns: 2 });
    expect(saidIn(await world.client.history(id))).toEqual(['answer 1', 'answer 2']);
  });

  test('where the store has no turn of it and Temporal has forgotten it, it says so, says what may help, and starts nothing', async () => {
    const [id, other] = [await talk(1), world.id()];
    const key = await world.client.key(id);
    await world.client.terminate(id);
    const workflowExecution = { workflowId: id, runId: (await world.client.describe(id)).runId };
    await world.temporal.workflowService.deleteWorkflowExecution({ namespace: 'default', workflowExecution });
    const gone = (): Promise<unknown> => world.client.describe(id).catch((error: { kind: string }) => error.kind);
    await waitFor(gone, (found) => found === 'not-found');
    // An old copy of the store knows the life, and none of its turns.
    await loseTurns(key);
    const lost = expect.stringMatching(/the store has no turn of it, and Temporal no longer has its history.*`perdura admin import`/);
    await expect(world.client.resume(id)).rejects.toMatchObject({ kind: 'not-found', message: lost });
    await expect(world.client.fork(id, { at: 'turn_0001', id: other })).rejects.toMatchObject({ kind: 'not-found', message: lost });
    expect([await gone(), await world.client.describe(other).catch((error: { kind: string }) => error.kind)]).toEqual([
      'not-found',
      'not-found',
    ]);
  });

  testReplays(() => world);
});
