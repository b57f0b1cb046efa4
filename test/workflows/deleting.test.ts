/** What is left of a deleted conversation: nothing in the store's bytes, nothing in Temporal, and no way back. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { createClientWith, type PerduraClient } from '../../src/client.js';
import { heal } from '../../src/heal/heal.js';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { overloaded } from '../support/provider-apis/faults.js';
import { textOf } from '../support/provider-apis/api-request.js';
import { callTool, callTools, text, type Reply } from '../support/provider-apis/reply.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { testReplays } from '../support/replays.js';
import { createStage, say } from '../support/stage.js';
import { bytesOfFiles, bytesOfRedis } from '../support/store-bytes.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

/** Payloads as the text that they hold. */
function textOfHistory(history: object): string {
  return JSON.stringify(history, (name, value: unknown) =>
    name === 'data' && typeof value === 'string' ? Buffer.from(value, 'base64').toString() : value,
  );
}

describe.each(['files', 'redis'] as const)('with %s', (kind) => {
  /** In everything that is said in a test, and in no other text. */
  let canary = '';
  const stage = createStage({ by: 'last' });
  let world: World;
  let redis: RedisServer | undefined;
  let consolidator: () => Reply = () => text(JSON.stringify({ history_entry: '[2026-11-24 10:00] They talked.', memory_update: '' }));
  let letEnd: () => void = () => undefined;
  let isAtWork = false;

  const tools = [
    ...builtinTools,
    defineTool({
      name: 'read_much',
      description: 'Reads much.',
      input: z.object({}),
      policy: { repeatable: true },
      run: () => `${canary} in a long text. `.repeat(1_000),
    }),
    defineTool({
      name: 'work',
      description: 'Works on, whatever happens.',
      input: z.object({}),
      run: () => new Promise<string>((resolve) => ((isAtWork = true), (letEnd = () => resolve(`${canary} at last`)))),
    }),
  ];

  beforeAll(async () => {
    redis = kind === 'redis' ? await startRedis() : undefined;
    world = await startWorld({
      answer: stage.answer,
      tools,
      redisUrl: redis?.url,
      agent: { context: { maxTokens: 120_000 }, memory: { consolidationTimeout: 2_000 } },
      aside: (request) =>
        request.messages.some(({ content }) => textOf(content).includes('You are a memory consolidation agent'))
          ? consolidator()
          : undefined,
    });
  });
  afterAll(async () => {
    await world.close();
    await redis?.stop();
  });
  beforeEach(() => (canary = `heliotrope-${randomUUID()}`));
  afterEach(() => expect(world.api.problems).toEqual([]));

  const bytes = (): Promise<string> => (redis ? bytesOfRedis(redis.url) : bytesOfFiles(join(world.dir, 'memory')));
  /** Which lines of the store have it. */
  const whereabouts = async (): Promise<string[]> =>
    (await bytes()).split('\n').flatMap((line) => (line.includes(canary) ? [line.slice(0, 300)] : []));
  const ended = async (id: string): Promise<void> => {
    await world.client.closeConversation(id);
    await world.client.outcome(id);
  };

  /** Every event of every run that the server still has of these, as text. */
  async function historiesOf(ids: readonly string[]): Promise<string> {
    const query = `WorkflowType = 'conversation' AND (${ids.map((id) => `WorkflowId = '${id}' OR WorkflowId STARTS_WITH '${id}:'`).join(' OR ')})`;
    const texts: string[] = [];
    for await (const { workflowId, runId } of world.temporal.workflow.list({ query })) {
      const history = await world.temporal.workflow
        .getHandle(workflowId, runId)
        .fetchHistory()
        .catch(() => undefined);
      if (history) texts.push(textOfHistory(history));
    }
    return texts.join('\n');
  }

  async function expectGone(...ids: readonly string[]): Promise<void> {
    // The server deletes in the background; by then a worker that was at work has written what it had, in vain.
    await waitFor(
      () => historiesOf(ids),
      (found) => found === '',
    );
    // Files have a late write for the moment until its writer looks for the tombstone.
    await waitFor(whereabouts, (found) => found.length === 0);
  }

  /** A tree: its sub-agents found much, stored something, and had sub-agents of their own. */
  async function aTree(scope: string): Promise<string> {
    const [id, child, grandchild] = [world.id(), world.id(), world.id()];
    const task = (key: string) => ({ name: 'delegate', input: { task: say(key, `look for ${canary}`), title: 'look' } });
    stage.play(id, callTool('delegate', task(child).input), text(`There is ${canary}.`));
    stage.play(
      child,
      callTools(task(grandchild), { name: 'store_in_memory', input: { content: `${canary}, noted` } }),
      text(`It is ${canary}.`),
    );
    stage.play(grandchild, callTool('read_much'), text(`${canary} everywhere.`));
    await world.client.send(id, say(id, `what is ${canary}? ${'And so on. '.repeat(3_000)}`), { start: { scope, title: 'harbour' } });
    return id;
  }

  test('all lives of a conversation and of its sub-agents are gone from the store’s bytes and from Temporal, and nothing brings them back', async () => {
    const scope = `scope-tree-${kind}`;
    const id = await aTree(scope);
    await ended(id);
    await world.client.resume(id);
    stage.play(id, callTool('read_much'), text(`Still ${canary}.`));
    await world.client.send(id, say(id, `more of ${canary}`));
    await ended(id);
    const { life, runId } = await world.client.describe(id);
    const key = await world.client.key(id);
    expect(await bytes()).toContain(canary);
    expect(await historiesOf([id])).toContain(canary);

    expect(await world.client.deleteConversation(id)).toMatchObject({ lives: 4, runs: 4, subAgents: 2, scopes: [scope], retentionDays: 1 });
    // At once, while Temporal still has its history: the way back was open.
    await expect(world.client.resume(id)).rejects.toThrow(new RegExp(`cannot go on from ${id}: ${id} was deleted on 20`));
    await expect(world.client.fork(id, { at: 'turn_0001', id: world.id() })).rejects.toMatchObject({ kind: 'not-found' });
    const service = world.temporal.workflowService;
    await expect(heal({ service, store: world.store, rememberedBy: () => Promise.resolve([]) }, key, runId)).rejects.toThrow(
      /was deleted on/,
    );
    // By somebody who starts it without our client.
    const start = { origin: { kind: 'fork', conversation: id, life, run: runId, turn: 'turn_0001' } } as const;
    const direct = world.id();
    await world.temporal.workflow.start('conversation', { workflowId: direct, taskQueue: world.taskQueue, args: [start] });
    await expect(world.client.outcome(direct)).rejects.toThrow();
    await expectGone(id);
    await expect(world.client.resume(id)).rejects.toThrow(/was deleted on/);
    expect(await world.client.deleteConversation(id)).toMatchObject({ lives: 0, runs: 0 });

    // Its name is free for another life, which is an ordinary one.
    stage.play(id, text('Good morning.'), text('And good night.'));
    await world.client.send(id, say(id, 'good morning'), { start: { scope } });
    expect(JSON.stringify(stage.requests(id).at(-1)?.messages)).not.toContain(canary);
    await ended(id);
    await world.client.resume(id);
    await world.client.send(id, say(id, 'good night'));
    expect((await world.client.history(id)).map(({ turn }) => turn)).toEqual(['turn_0001', 'turn_0001', 'turn_0002', 'turn_0002']);
    await world.client.terminate(id);
  });

  test('cut short anywhere, the same call again does the rest', async () => {
    const id = await aTree(`scope-cut-${kind}`);
    await world.client.terminate(id);
    /** Fails at the so-manieth life that is removed, or run that is deleted. */
    const dying = (at: { readonly life?: number; readonly run?: number }): PerduraClient => {
      let [removed, deleted] = [0, 0];
      const { store, temporal } = world;
      const lives = {
        ...store.lives,
        delete: (key: Parameters<typeof store.lives.delete>[0]) =>
          ++removed === at.life ? Promise.reject(new Error('killed')) : store.lives.delete(key),
      };
      const workflowService = new Proxy(temporal.workflowService, {
        get: (service, name) =>
          name === 'deleteWorkflowExecution' && ++deleted === at.run
            ? () => Promise.reject(new Error('killed'))
            : (service as unknown as Record<string | symbol, unknown>)[name],
      });
      const client = new Proxy(temporal, {
        get: (own, name) => (name === 'workflowService' ? workflowService : (own as unknown as Record<string | symbol, unknown>)[name]),
      });
      return createClientWith({
        client,
        namespace: 'default',
        taskQueue: world.taskQueue,
        store: () => ({ ...store, lives, close: () => Promise.resolve() }),
      });
    };
    await expect(dying({ life: 2 }).deleteConversation(id)).rejects.toThrow('killed');
    await expect(world.client.resume(id)).rejects.toThrow(/was deleted on/);
    await expect(dying({ run: 2 }).deleteConversation(id)).rejects.toThrow(/delete it again/);
    await world.client.deleteConversation(id);
    await expectGone(id);
  });

  test('what HISTORY has of it word for word goes too; what a model has made of it stays', async () => {
    const [scope, kept] = [`scope-raw-${kind}`, world.id()];
    const id = world.id();
    consolidator = () => text('no JSON at all');
    for (const [one, words] of [
      [id, `all about ${canary}`],
      [kept, 'about the tide'],
    ] as const) {
      await world.client.send(one, say(one, words), { start: { scope } });
      await ended(one);
    }
    const history = async (): Promise<string> => {
      const texts: string[] = [];
      for await (const entry of world.store.documents.history({ namespace: 'default', scope })) texts.push(`${entry.kind}: ${entry.text}`);
      return texts.join('\n');
    };
    expect(await history()).toContain(canary);
    await world.client.deleteConversation(id);
    await expectGone(id);
    expect(await history()).toContain('[deleted]');
    expect(await history()).toContain('about the tide');
  });

  test('what it had asked of long-term memory is dropped, with a word in its status', async () => {
    const [scope, id] = [`scope-owed-${kind}`, world.id()];
    consolidator = overloaded;
    await world.client.send(id, say(id, `remember ${canary}`), { start: { scope } });
    await ended(id);
    const memory = world.client.scope(scope);
    await waitFor(
      () => memory.status(),
      (status) => status?.queued.length === 1,
    );
    await world.client.deleteConversation(id);
    const status = await waitFor(
      () => memory.status(),
      (now) => now?.queued.length === 0 && now.phase === 'idle',
    );
    expect(status?.last.at(-1)?.what).toBe(`${id}: 2 messages (close), dropped: the conversation was deleted`);
    await expectGone(id);
  });

  test('a worker that is still at work leaves nothing behind', async () => {
    const id = world.id();
    isAtWork = false;
    stage.play(id, callTool('work'));
    await world.client.start(id, { scope: `scope-late-${kind}` });
    await world.client.message(id, say(id, `begin with ${canary}`));
    await waitFor(
      () => Promise.resolve(isAtWork),
      (is) => is,
    );
    await world.client.terminate(id);
    await world.client.deleteConversation(id);
    letEnd();
    await expectGone(id);
  });

  test('a running sub-agent of one that was terminated goes with it', async () => {
    const [id, child] = [world.id(), world.id()];
    isAtWork = false;
    stage.play(id, callTool('delegate', { task: say(child, `work on ${canary}`), title: 'work' }));
    stage.play(child, callTool('work'));
    await world.client.start(id, { scope: `scope-orphan-${kind}` });
    await world.client.message(id, say(id, `begin with ${canary}`));
    await waitFor(
      () => Promise.resolve(isAtWork),
      (is) => is,
    );
    await world.client.terminate(id);
    expect(await world.client.deleteConversation(id)).toMatchObject({ lives: 2, subAgents: 1 });
    letEnd();
    await expectGone(id);
  });

  testReplays(() => world);
});
