/**
 * The property of healing (issue 14, row 4): whatever a conversation has lived through, its store after healing is its store before.
 * Excepted is what model-step.md names: live events, the ledger, numbers of facts, pins, edits by hand, and bodies that only a reference
 * names. `PERDURA_LONG=1` tries many more lives; a failure says the seed and what was done, and `PERDURA_SEED` does it again.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { listSlots } from '../../src/records/slots.js';
import { heal } from '../../src/heal/heal.js';
import { createRememberedBy } from '../../src/heal/restore-memory.js';
import { createFileStore } from '../../src/stores/file/index.js';
import { createRedisStore } from '../../src/stores/redis/index.js';
import { listBodyRefs } from '../../src/memory/bodies.js';
import type { ConversationKey, Store } from '../../src/stores/store.js';
import type { ApiRequest } from '../support/provider-apis/api-request.js';
import { callTools, gate, text, type Gate, type Reply } from '../support/provider-apis/reply.js';
import { builtinTools } from '../../src/tools/builtin/index.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { waitFor } from '../support/wait-for.js';
import { startWorld, type World } from '../support/world.js';

jest.setTimeout(20 * 60_000);

const LIVES = process.env['PERDURA_LONG'] === '1' ? 25 : 2;
const ACTIONS = 16;
const SEED = Number(process.env['PERDURA_SEED'] ?? 0) || Math.floor(Math.random() * 1e9);

/** Small, fast, and the same again for the same seed. */
function createChance(seed: number) {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return { below: (n: number) => Math.floor(next() * n), pick: <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)]! };
}

const long = (what: string): string => `${what} by the harbour, `.repeat(1_500);

const tools = [
  ...builtinTools,
  defineTool({
    name: 'quickly',
    description: 'Quick.',
    input: z.object({}),
    policy: { repeatable: true, quick: true },
    run: () => 'at once',
  }),
  defineTool({ name: 'slowly', description: 'Takes a while.', input: z.object({}), run: () => sleep(30, 'after a while') }),
  defineTool({ name: 'at_length', description: 'Says much.', input: z.object({}), policy: { repeatable: true }, run: () => long('plums') }),
  defineTool({
    name: 'never',
    description: 'Ends when it is stopped.',
    input: z.object({}),
    run: (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve('stopped'), { once: true })),
  }),
  defineTool({
    name: 'breaks',
    description: 'Throws.',
    input: z.object({}),
    policy: { repeatable: true, quick: true },
    run: () => {
      throw new Error('broken');
    },
  }),
  defineTool({ name: 'pay', description: 'Pays.', input: z.object({}), policy: { approval: 'ask' }, run: () => 'paid' }),
  defineTool({
    name: 'change',
    description: 'Changes what tools share.',
    input: z.object({}),
    policy: { repeatable: true },
    run: (_, { context }) => ({ ok: true, content: 'changed', context: { count: Number(context['count'] ?? 0) + 1, user: null } }),
  }),
];

const TOOLS = ['quickly', 'quickly', 'slowly', 'at_length', 'breaks', 'change', 'store_in_memory', 'unknown'];

/** What the model does stands in what it was told last: `#tools a b`, `#long`, `#hold`. */
let held: Gate | undefined;
let answered = 0;
function answer(request: ApiRequest): Reply {
  answered += 1;
  if (JSON.stringify(request.system ?? '').includes('You condense a part of a conversation')) {
    const semantic = [{ fact: `fact ${answered}`, tags: ['t'], confidence: 1, salience: 0.5 }];
    return text(JSON.stringify({ episodic: { summary: `summary ${answered}`, tags: [], salience: 0.5 }, semantic }));
  }
  const last = JSON.stringify(request.messages.at(-1)?.content);
  const command = last.includes('"tool_result"') ? undefined : [...last.matchAll(/#(tools|long|hold)([ \w]*)/g)].at(-1);
  if (command?.[1] === 'long') return text(long(`answer ${answered}`));
  if (command?.[1] === 'hold' && held) return { text: ['a whole block', 'and the rest of it'], hold: held };
  if (command?.[1] !== 'tools') return text(`answer ${answered}`);
  const named = command[2]!.trim().split(' ');
  const input = (name: string): object => (name === 'store_in_memory' ? { content: `remember ${answered}`, type: 'custom' } : {});
  return callTools(...named.map((name) => ({ name, input: input(name) })));
}

const agent = {
  maxTokens: 8_000,
  limits: { handOver: { events: 60 } },
  context: { maxTokens: 120_000 },
  memory: { memoryWindow: 10, keepCount: 4, consolidationTimeout: 5_000 },
};

describe.each(['files', 'redis'] as const)('with %s', (kind) => {
  let world: World;
  let server: RedisServer | undefined;

  beforeAll(async () => {
    server = kind === 'redis' ? await startRedis() : undefined;
    world = await startWorld({ answer, tools, agent, redisUrl: server?.url });
  });
  afterAll(async () => {
    await world.close();
    await server?.stop();
  });

  const openStore = (): Store => (server ? createRedisStore({ url: server.url }) : createFileStore({ dir: join(world.dir, 'memory') }));

  async function loseAll(): Promise<void> {
    if (!server) return rm(join(world.dir, 'memory'), { recursive: true, force: true });
    const redis = new Redis(server.url);
    await redis.flushall();
    redis.disconnect();
  }

  /** Quiet, and nothing on its way to the store. */
  async function settled(id: string): Promise<void> {
    await waitFor(
      async () => ({ status: await world.client.status(id), description: await world.client.describe(id) }),
      ({ status, description }) =>
        status.phase === 'idle' && status.queued === 0 && status.window.consolidating === 0 && description.pendingActivities.length === 0,
    );
  }

  async function live(seed: number): Promise<{ readonly ids: readonly string[]; readonly done: string[] }> {
    const chance = createChance(seed);
    const { client } = world;
    const scope = `s${seed}-${kind}`;
    const ids = [world.id()];
    const done: string[] = [];
    const messages = new Map<string, string>();
    let n = 0;
    await client.start(ids[0], { scope, context: { user: 'u1' } });

    const say = async (id: string, words: string, more: object = {}): Promise<unknown> => {
      const message = { id: `m${(n += 1)}`, text: `message ${n} ${words}`, ...more };
      messages.set(message.id, message.text);
      return client.send(id, message);
    };
    const whileHeld = async (id: string, act: () => Promise<unknown>): Promise<void> => {
      const hold = (held = gate());
      const sent = say(id, '#hold');
      await Promise.race([hold.reached, sent]);
      await act();
      hold.release();
      await sent;
      held = undefined;
    };
    const approved = async (id: string, verdict: 'approve' | 'deny'): Promise<void> => {
      const sent = say(id, '#tools pay quickly');
      const [waiting] = await waitFor(
        () => client.approvals(id),
        (all) => all.length > 0,
      );
      await client.decide(id, { callId: waiting!.callId, decision: verdict, note: 'so be it' });
      await sent;
    };

    const actions: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
      plain: (id) => say(id, 'hello'),
      longMessage: (id) => say(id, long('question')),
      longAnswer: (id) => say(id, '#long'),
      picture: (id) => say(id, 'look', { images: [{ mediaType: 'image/png', base64: Buffer.alloc(18_000, 7).toString('base64') }] }),
      values: (id) => say(id, '#tools change change', { context: { user: `u${n}`, count: n } }),
      tools: (id) => say(id, `#tools ${Array.from({ length: 1 + chance.below(4) }, () => chance.pick(TOOLS)).join(' ')}`),
      approve: (id) => approved(id, 'approve'),
      deny: (id) => approved(id, 'deny'),
      interruptModel: (id) => whileHeld(id, () => client.interrupt(id)),
      interruptTool: async (id) => {
        const sent = say(id, '#tools never slowly quickly');
        await waitFor(
          () => client.status(id),
          ({ phase }) => phase === 'running-tools' || phase === 'idle',
        );
        await client.interrupt(id);
        await sent;
      },
      steer: (id) =>
        whileHeld(id, async () => {
          await client.message(id, { text: 'by the way', delivery: 'steer' });
          await client.message(id, { text: 'and later', delivery: 'queue' });
        }),
      interruptByMessage: (id) => whileHeld(id, () => client.message(id, { text: 'no: this', delivery: 'interrupt' })),
      again: async (id) => {
        const [messageId, words] = [...messages][chance.below(messages.size)] ?? ['m1', 'once more'];
        return client.send(id, { id: messageId, text: words });
      },
      bySignal: async (id) => {
        for (let i = 0; i < 3; i++) await client.message(id, `by signal ${i}`);
      },
      reset: (id) => client.reset(id),
      compact: (id) => client.compact(id),
      compactAndUndo: async (id) => {
        await client.compact(id);
        return client.undoCompaction(id);
      },
      undo: (id) => client.undoCompaction(id),
      rewind: async (id) => client.rewind(id, `turn_${String(1 + chance.below(Math.max(1, await turnsOf(id)))).padStart(4, '0')}`),
      fork: async (id) => {
        const at = `turn_${String(1 + chance.below(Math.max(1, await turnsOf(id)))).padStart(4, '0')}`;
        const made = await client.fork(id, { id: world.id(), at, scope });
        ids.push(made.id);
      },
    };
    const turnsOf = async (id: string): Promise<number> => Number((await client.history(id)).at(-1)?.turn.slice(5) ?? 1);
    const names = [...Object.keys(actions), 'plain', 'plain', 'tools', 'compact', 'compactAndUndo', 'rewind', 'fork'];

    // Enough turns that some can become memory.
    for (let i = 0; i < 6; i++) await actions[chance.pick(['plain', 'tools', 'longMessage'])]!(ids[0]!);
    for (let i = 0; i < ACTIONS; i++) {
      const name = chance.pick(names);
      const id = chance.pick(ids);
      // Some are refused, as rightly as not: nothing to undo, no such turn.
      const how = await actions[name]!(id).then(
        () => 'done',
        (error: unknown) => String(error).slice(0, 120),
      );
      done.push(`${ids.indexOf(id)}.${name}: ${how}`);
      await settled(id);
    }
    for (const id of ids) await settled(id);
    return { ids, done };
  }

  interface Seen {
    readonly [what: string]: unknown;
    readonly references: readonly string[];
  }

  async function look(store: Store, key: ConversationKey): Promise<Seen> {
    const { entries, last } = await store.entries.page(key, 0, 100_000);
    const { items } = await store.items.list(key);
    const { episodes } = await store.episodes.list(key);
    const { facts } = await store.facts.list(key);
    return {
      last,
      entries: Object.fromEntries(entries.map((entry) => [entry.slot, entry])),
      archived: listSlots(await store.entries.archived(key)).sort((a, b) => a - b),
      // Of one whose text travelled as a reference the size is that of the text, without JSON's quotes; of one that the agent stored itself
      // the time is that of the result.
      items: items.map(({ ts: _, size: _size, ...item }) => item).sort((a, b) => (a.id < b.id ? -1 : 1)),
      episodes,
      facts: facts.map(({ id: _, ts: _ts, ...fact }) => fact).sort((a, b) => (a.fact < b.fact ? -1 : 1)),
      beginning: await store.lives.beginning(key),
      cuts: await store.lives.cuts(key),
      // What may be lost: texts that were made elsewhere than in the workflow, and travelled by reference.
      references: [...new Set(entries.filter(({ message }) => message.role !== 'user').flatMap(listBodyRefs))].sort(),
    };
  }

  test.each(Array.from({ length: LIVES }, (_, i) => SEED + i))(
    'the store after healing is the store before (PERDURA_SEED=%i)',
    async (seed) => {
      const { ids, done } = await live(seed);
      const keys = await Promise.all(ids.map((id) => world.client.key(id)));
      const before = openStore();
      const seen = await Promise.all(keys.map((key) => look(before, key)));
      await before.close();

      await loseAll();
      const store = openStore();
      try {
        const service = world.temporal.workflowService;
        const rememberedBy = createRememberedBy(service, { namespace: 'default', taskQueue: world.taskQueue });
        const healed = [];
        for (const key of keys) healed.push(await heal({ service, store, rememberedBy }, key));
        for (const [i, { lostBodies }] of healed.entries()) expect(seen[i]!.references).toEqual(expect.arrayContaining([...lostBodies]));
        for (const one of healed) expect({ seed, done, ...one }).toMatchObject({ complete: true, problems: [], restored: one.missing });
        for (const [i, key] of keys.entries()) expect({ seed, done, ...(await look(store, key)) }).toEqual({ seed, done, ...seen[i] });

        // A second time there is nothing to do, and nothing changes.
        for (const [i, key] of keys.entries()) {
          expect(await heal({ service, store, rememberedBy }, key)).toMatchObject({ missing: 0, problems: [] });
          expect({ seed, done, ...(await look(store, key)) }).toEqual({ seed, done, ...seen[i] });
        }
      } finally {
        await store.close();
      }
    },
  );
});
