/**
 * Trees of lives, in any order of what can be done to them: said, stored, delegated, reset, rewound, forked, resumed, deleted. The
 * activities' own functions work on both stores; beside them a model that fits on a page says what must be readable, where, and what must
 * be gone. `PERDURA_LONG=1` tries many more.
 *
 * A turn knows the turn before it, and the stretch that it belongs to: a reset begins a stretch. Where a conversation stands, its line is
 * the turns up to its last one; its model sees those of the line that are of the last one's stretch, and so does the memory channel.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asyncLocalStorage, type Context } from '@temporalio/activity';
import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import fc from 'fast-check';
import { agentConfigSchema } from '../../src/agents/agent-config.js';
import type { ConversationDependencies } from '../../src/activities/dependencies.js';
import { openOrigin } from '../../src/activities/lineage/open-origin.js';
import { rewind } from '../../src/activities/lineage/past.js';
import { evict } from '../../src/activities/memory/evict.js';
import { keepResult } from '../../src/activities/tools/run-tool.js';
import { sharedPlace } from '../../src/activities/tools/tool-context.js';
import { deleteConversation } from '../../src/client/deletion.js';
import { ClientError } from '../../src/client/errors.js';
import { sharedWith } from '../../src/conversation/turn/delegation.js';
import { readCurrent } from '../../src/memory/past-life.js';
import { openMemory, withOthers } from '../../src/memory/channel/open-memory.js';
import { turnId, type ParentLink } from '../../src/records/identity.js';
import type { AgentMemory } from '../../src/records/memory/agent-memory.js';
import { isFromPerson, shownText, type Entry } from '../../src/records/message.js';
import { listSlots, type SlotRange } from '../../src/records/slots.js';
import { createModels } from '../../src/models/providers.js';
import { createFileStore } from '../../src/stores/file/index.js';
import { createRedisStore } from '../../src/stores/redis/index.js';
import type { ConversationKey, Store } from '../../src/stores/store.js';
import { createToolRegistry } from '../../src/tools/tool.js';
import { startRedis } from '../support/redis-server.js';
import { bytesOfFiles, bytesOfRedis } from '../support/store-bytes.js';

jest.setTimeout(30 * 60_000);

const RUNS = process.env['PERDURA_LONG'] === '1' ? 400 : 25;
const INLINE = 64;

interface Turn {
  /** The life in which it was said, and where its entries are. */
  readonly owner: string;
  readonly number: number;
  readonly before: Turn | null;
  readonly stretch: object;
  readonly text: string;
  /** Ids of what it and its sub-agents have stored. */
  readonly items: string[];
}

interface Life {
  readonly key: ConversationKey;
  readonly parent?: ParentLink;
  /** What can be forked from and rewound to. */
  readonly turns: Turn[];
  /** Whose entries it reads. */
  readonly sources: ReadonlySet<string>;
  head: Turn | null;
  stretch: object;
  isRunning: boolean;
  /** As the workflow has them. */
  session: number;
  slot: number;
  move: number;
  branches: number;
  compactions: number;
  context: readonly SlotRange[];
}

type Action =
  | { readonly kind: 'say'; readonly which: number; readonly stores: boolean }
  | { readonly kind: 'delegate'; readonly which: number; readonly depth: number }
  | { readonly kind: 'reset' | 'close' | 'resume' | 'delete'; readonly which: number }
  | { readonly kind: 'rewind'; readonly which: number; readonly turn: number; readonly before: boolean }
  | { readonly kind: 'fork'; readonly which: number; readonly turn: number };

const which = fc.nat(20);
const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('say' as const), which, stores: fc.boolean() }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('delegate' as const), which, depth: fc.integer({ min: 1, max: 2 }) }) },
    {
      weight: 5,
      arbitrary: fc.record({ kind: fc.constantFrom('reset' as const, 'close' as const, 'resume' as const, 'delete' as const), which }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('rewind' as const), which, turn: fc.nat(20), before: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('fork' as const), which, turn: fc.nat(20) }) },
  ),
  { maxLength: 25 },
);

/** What activities ask of the one that runs: a place to log to. */
const QUIET = { log: { info: () => undefined, warn: () => undefined }, info: { workflowNamespace: 'default' } } as unknown as Context;

/** Temporal as it is after the retention: it knows nothing any more, so the store is the record. */
const EMPTY_TEMPORAL = {
  workflow: {
    async *list() {},
    getHandle: () => ({ describe: () => Promise.reject(new WorkflowNotFoundError('gone', 'x', undefined)) }),
  },
  workflowService: { describeNamespace: () => Promise.resolve({}) },
} as unknown as Client;

class Forest {
  readonly lives: Life[] = [];
  readonly gone: string[] = [];
  private n = 0;
  private clock = Date.parse('2026-11-24T10:00:00Z');

  constructor(
    readonly store: Store,
    readonly name: string,
    readonly bytes: () => Promise<string>,
  ) {}

  /** Latest lives alone: an earlier one goes on in the next. */
  private pick(index: number, isWanted: (life: Life) => boolean): Life | undefined {
    const found = this.lives.filter((life) => life.parent === undefined && isWanted(life));
    return found[index % Math.max(1, found.length)];
  }

  private fresh(conversation: string, given: Partial<Life> = {}): Life {
    const life = `life-${(this.n += 1)}`;
    const key = { namespace: 'default', scope: this.name, conversation, life };
    const open = { turns: [], head: null, stretch: {}, isRunning: true, sources: new Set<string>() };
    const counters = { session: 1, slot: 0, move: 0, branches: 0, compactions: 0, context: [] };
    const made: Life = { key, ...open, ...counters, ...given };
    this.lives.push(made);
    return made;
  }

  private dependenciesOf({ key }: Life): ConversationDependencies {
    const agents = () => Promise.resolve({ config: agentConfigSchema.parse({}) });
    const identity = { life: key.life, agent: 'default', scope: key.scope };
    const defaultModel = 'anthropic/claude-sonnet-5-5';
    const given = { store: this.store, agents, models: createModels({}), tools: createToolRegistry([]), defaultModel, key, identity };
    return given as unknown as ConversationDependencies;
  }

  private now(): number {
    return (this.clock += 1_000) / 1000;
  }

  async do(action: Action): Promise<void> {
    switch (action.kind) {
      case 'say': {
        const life = this.pick(action.which, ({ isRunning }) => isRunning) ?? this.fresh(`${this.name}-c${(this.n += 1)}`);
        await this.turn(life, action.stores ? (turn) => this.storeItem(life, turn, []) : undefined);
        return;
      }
      case 'delegate': {
        const life = this.pick(action.which, ({ isRunning }) => isRunning);
        if (life) await this.turn(life, (turn) => this.delegate(life, turn, action.depth, [turn]));
        return;
      }
      case 'reset': {
        const life = this.pick(action.which, ({ isRunning, head, stretch }) => isRunning && head?.stretch === stretch);
        if (life) await this.end(life, () => Object.assign(life, { stretch: {}, session: life.session + 1, context: [] }));
        return;
      }
      case 'close': {
        const life = this.pick(action.which, ({ isRunning, head }) => isRunning && head !== null);
        if (life) await this.end(life, () => (life.isRunning = false));
        return;
      }
      case 'resume': {
        const life = this.pick(action.which, ({ isRunning, head }) => !isRunning && head !== null);
        if (life?.head) await this.goOn(life, life.head, 'resume');
        return;
      }
      case 'fork': {
        const life = this.pick(action.which, ({ turns }) => turns.length > 0);
        const turn = life?.turns[action.turn % life.turns.length];
        if (life && turn) await this.goOn(life, turn, 'fork');
        return;
      }
      case 'rewind': {
        const life = this.pick(action.which, ({ isRunning, turns }) => isRunning && turns.length > 0);
        const turn = life?.turns[action.turn % life.turns.length];
        if (life && turn) await this.rewind(life, turn, action.before);
        return;
      }
      case 'delete': {
        const life = this.pick(action.which, ({ isRunning }) => !isRunning);
        if (life) await this.delete(life);
        return;
      }
    }
  }

  private entry(life: Life, turn: Turn, seq: number, message: Entry['message']): Entry {
    return { v: 1, slot: (life.slot += 1), session: life.session, turn: turnId(turn.number), seq, ts: this.now(), message };
  }

  /** A question, what `work` does in between under a call of its own, and an answer. */
  private async turn(life: Life, work?: (turn: Turn) => Promise<void>): Promise<Turn> {
    const { store } = this;
    const number = Math.max(0, ...life.turns.map((one) => one.number)) + 1;
    const turn: Turn = {
      owner: nameOf(life),
      number,
      before: life.head,
      stretch: life.stretch,
      text: `said-${this.name}-${(this.n += 1)}.`,
      items: [],
    };
    const first = life.slot + 1;
    await store.entries.record(life.key, [{ ...this.entry(life, turn, 1, { role: 'user', text: turn.text }), messageId: turn.text }]);
    if (work) {
      const callId = `${turnId(number)}/c1`;
      const asks = {
        role: 'assistant',
        blocks: [{ kind: 'tool-call', callId, name: 'look', input: {} }],
        model: 'a/b',
        stop: 'tool-calls',
      } as const;
      const asked = this.entry(life, turn, 2, asks);
      await store.entries.append(life.key, [asked]);
      await work(turn);
      const result = { role: 'tool', callId, name: 'look', outcome: 'ok', text: 'done' } as const;
      await store.entries.append(life.key, [this.entry(life, turn, 3, result)]);
    }
    const said = { role: 'assistant', blocks: [{ kind: 'text', text: `answer to ${turn.text}` }], model: 'a/b', stop: 'end' } as const;
    await store.entries.append(life.key, [this.entry(life, turn, 4, said)]);
    life.turns.push(turn);
    life.head = turn;
    life.context = [...life.context, [first, life.slot]];
    return turn;
  }

  /** A long result, kept as an activity keeps it. Its slot is that of the call's result, which comes next. `above`: turns that have it too. */
  private async storeItem(life: Life, turn: Turn, above: readonly Turn[]): Promise<void> {
    const callId = `${turnId(turn.number)}/c1`;
    const text = `found-${this.name}-${(this.n += 1)}. `.repeat(20);
    const input = { session: life.session, slot: life.slot + 1, name: 'look', callId, ...(life.parent && { parent: life.parent }) };
    const answered = { text, outcome: 'ok', argument: {}, ts: this.now(), calls: 1 } as const;
    const kept = await keepResult(this.dependenciesOf(life), input as Parameters<typeof keepResult>[1], answered, INLINE);
    if (!kept.record) throw new Error('nothing was kept');
    await this.store.items.put(life.key, [kept.record]);
    for (const one of [turn, ...above]) one.items.push(kept.record.id);
  }

  /** In a sub-agent that shares the memory of its tree, and there in another one. */
  private async delegate(life: Life, turn: Turn, depth: number, above: readonly Turn[]): Promise<void> {
    const state = {
      session: life.session,
      now: this.clock,
      conversation: life.key.conversation,
      identity: this.dependenciesOf(life).identity,
      ...(life.parent && { parent: life.parent }),
    };
    const memory = sharedWith(state, { slot: life.slot + 1 }, 'shared');
    const { conversation, life: name } = life.key;
    const parent: ParentLink = {
      conversation,
      life: name,
      callId: `${turnId(turn.number)}/c1`,
      depth: (life.parent?.depth ?? 0) + 1,
      memory,
    };
    const child = this.fresh(`${conversation}:${turnId(turn.number)}:1`, { parent, isRunning: false });
    const own = await this.turn(child, (made) =>
      depth > 1 ? this.delegate(child, made, depth - 1, [made, ...above]) : this.storeItem(child, made, above),
    );
    // While it works it finds what its own sub-agents have stored, and what the whole tree has.
    const found = (await this.memoryOf(child).query({ limit: 50 })).map(({ id }) => id);
    expect(found).toEqual(expect.arrayContaining(own.items));
  }

  /** `then`: what becomes of it once its session is archived. */
  private async end(life: Life, then: () => unknown): Promise<void> {
    const what = { kind: 'session-end', archive: life.context, unfinished: [], task: null } as const;
    const { identity } = this.dependenciesOf(life);
    await evict(this.dependenciesOf(life), { identity, session: life.session, move: (life.move += 1), what });
    then();
  }

  private async goOn(from: Life, turn: Turn, kind: 'fork' | 'resume'): Promise<void> {
    const { conversation, life } = from.key;
    const line = lineOf(turn);
    const made = this.fresh(kind === 'resume' ? conversation : `${this.name}-c${(this.n += 1)}`, {
      turns: [...line],
      head: turn,
      stretch: turn.stretch,
      sources: new Set(line.map(({ owner }) => owner)),
    });
    const origin = { kind, conversation, life, ...(kind === 'fork' && { turn: turnId(turn.number) }) };
    const dependencies = this.dependenciesOf(made);
    const { slot, session, compactions, context, turns } = await openOrigin(dependencies, { identity: dependencies.identity, origin });
    expect(turns).toBe(line.length);
    Object.assign(made, { slot, session, compactions, context });
    if (kind === 'resume') this.lives.splice(this.lives.indexOf(from), 1, { ...from, parent: NEVER });
  }

  private async rewind(life: Life, turn: Turn, before: boolean): Promise<void> {
    const { session, slot, compactions } = life;
    const { identity } = this.dependenciesOf(life);
    const requestId = `r${(this.n += 1)}`;
    const counters = { move: (life.move += 1), branch: life.branches + 1, slot, session, compactions };
    const input = { identity, requestId, ...counters, to: turnId(turn.number), ...(before && { before }), waiting: [], at: this.now() };
    const done = await rewind(this.dependenciesOf(life), input);
    const head = before ? turn.before : turn;
    // Without its first turn a stretch has nothing, and what is said next begins one.
    const stretch = head?.stretch === turn.stretch ? turn.stretch : {};
    Object.assign(life, { head, stretch, session: done.session, context: done.context, compactions: done.compactions });
    life.branches += done.cut ? 1 : 0;
  }

  private async delete(life: Life): Promise<void> {
    const { conversation, namespace } = life.key;
    const tree = this.lives.filter(({ key }) => key.conversation === conversation || key.conversation.startsWith(`${conversation}:`));
    const own = new Set(tree.map(nameOf));
    const others = this.lives.filter((one) => !tree.includes(one));
    const isForked = others.some(({ sources }) => [...sources].some((name) => own.has(name)));
    const describe = () => Promise.reject(new ClientError('not-found', 'gone'));
    const access = { client: EMPTY_TEMPORAL, namespace, taskQueue: 'q', store: () => Promise.resolve(this.store), describe };
    const deleting = deleteConversation(access, conversation);
    if (isForked) return void (await expect(deleting).rejects.toThrow(/read(s)? its turns where they lie/));
    await deleting;
    await deleteConversation(access, conversation);
    for (const one of tree) this.lives.splice(this.lives.indexOf(one), 1);
    const kept = new Set(this.lives.flatMap(({ turns }) => turns));
    for (const { turns } of tree) for (const turn of turns) if (!kept.has(turn)) this.gone.push(turn.text);
    // No way back.
    const again = this.fresh(`${this.name}-c${(this.n += 1)}`);
    const origin = { kind: 'resume', conversation, life: life.key.life } as const;
    const { identity } = this.dependenciesOf(again);
    await expect(openOrigin(this.dependenciesOf(again), { identity, origin })).rejects.toThrow(/was deleted on/);
    this.lives.splice(this.lives.indexOf(again), 1);
  }

  /** Everything that the model says, of every life that there is. */
  async check(): Promise<void> {
    for (const life of this.lives.filter(({ parent }) => parent !== NEVER)) {
      const { store } = this;
      const { key, head, stretch } = life;
      const line = head ? lineOf(head) : [];
      const seen = line.filter((turn) => turn.stretch === stretch);
      const where = { conversation: key.conversation, life: key.life };
      expect({ ...where, line: textsIn(await readCurrent(store, key)) }).toEqual({ ...where, line: line.map(({ text }) => text) });
      if (life.isRunning) {
        const prompt = (await store.entries.read(key, listSlots(life.context))).flatMap((entry) => entry ?? []);
        expect({ ...where, prompt: textsIn(prompt) }).toEqual({ ...where, prompt: seen.map(({ text }) => text) });
      }
      if (life.parent !== undefined) continue;
      const known = seen.flatMap(({ items }) => items);
      const memory = this.memoryOf(life);
      const found = (await memory.query({ limit: 50 })).map(({ id }) => id);
      expect({ ...where, items: found.sort() }).toEqual({ ...where, items: [...known].sort().slice(0, 50) });
      for (const id of this.everyItem()) {
        const item = await memory.retrieve(id);
        expect({ ...where, id, isThere: item !== null }).toEqual({ ...where, id, isThere: known.includes(id) });
      }
    }
    const bytes = this.gone.length === 0 ? '' : await this.bytes();
    expect(this.gone.filter((text) => bytes.includes(text))).toEqual([]);
  }

  private everyItem(): ReadonlySet<string> {
    return new Set(this.lives.flatMap(({ turns }) => turns.flatMap(({ items }) => items)));
  }

  private memoryOf({ key, session, parent }: Life): AgentMemory {
    const { store } = this;
    const opened = (place: ConversationKey & { session: number }): AgentMemory =>
      openMemory({ store, place, nextId: () => 'mem_0', now: () => new Date(this.clock) });
    const own = opened({ ...key, session });
    const place = parent && sharedPlace(key, parent);
    return place ? withOthers(own, { shared: opened(place), snapshots: [] }) : own;
  }
}

/** Of a life that goes on in another one: it is there, and nobody speaks in it. */
const NEVER: ParentLink = { conversation: '', life: '', callId: '', depth: 0 };

function nameOf({ key }: Pick<Life, 'key'>): string {
  return `${key.conversation}/${key.life}`;
}

function lineOf(turn: Turn): Turn[] {
  return [...(turn.before ? lineOf(turn.before) : []), turn];
}

function textsIn(entries: readonly Entry[]): string[] {
  return entries.flatMap(({ message }) => (isFromPerson(message) ? [shownText(message.text)] : []));
}

describe.each(['files', 'redis'] as const)('with %s', (kind) => {
  let store: Store;
  let bytes: () => Promise<string>;
  let end: () => Promise<unknown>;

  beforeAll(async () => {
    if (kind === 'redis') {
      const server = await startRedis();
      store = createRedisStore({ url: server.url });
      bytes = () => bytesOfRedis(server.url);
      end = () => server.stop();
    } else {
      const dir = await mkdtemp(join(tmpdir(), 'perdura-trees-'));
      store = createFileStore({ dir });
      bytes = () => bytesOfFiles(dir);
      end = () => rm(dir, { recursive: true });
    }
  });
  afterAll(async () => {
    await store.close();
    await end();
  });

  let forests = 0;
  test('whatever is done to a tree of lives, each reads its own line, its stretch and its items, and what is deleted is nowhere', async () => {
    await asyncLocalStorage.run(QUIET, () =>
      fc.assert(
        fc.asyncProperty(actions, async (done) => {
          const forest = new Forest(store, `f${(forests += 1)}`, bytes);
          await forest.do({ kind: 'say', which: 0, stores: true });
          for (const action of done) {
            await forest.do(action);
            await forest.check();
          }
        }),
        { numRuns: RUNS },
      ),
    );
  });

  test('back into a session that a rewind before another one had left, it sees no item of an earlier one', async () => {
    await asyncLocalStorage.run(QUIET, async () => {
      const forest = new Forest(store, `f${(forests += 1)}`, bytes);
      for (let n = 0; n < 3; n++) {
        await forest.do({ kind: 'say', which: 0, stores: true });
        await forest.do({ kind: 'reset', which: 0 });
      }
      await forest.do({ kind: 'say', which: 0, stores: true });
      await forest.do({ kind: 'rewind', which: 0, turn: 1, before: true });
      await forest.do({ kind: 'rewind', which: 0, turn: 3, before: false });
      await forest.check();
    });
  });

  test('resumed more often than a life can name its sources, it still has every turn and every item', async () => {
    await asyncLocalStorage.run(QUIET, async () => {
      const forest = new Forest(store, `f${(forests += 1)}`, bytes);
      for (let n = 0; n < 20; n++) {
        await forest.do({ kind: 'say', which: 0, stores: true });
        await forest.do({ kind: 'close', which: 0 });
        await forest.do({ kind: 'resume', which: 0 });
      }
      await forest.check();
    });
  });
});
