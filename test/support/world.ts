/**
 * Everything a conversation needs, all of it real: a store, a worker in this process, the SDK against our scripted API; and Temporal, or in
 * its place the engine of `src/testing`, which runs the same loop, handlers and activities in memory.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client, type ConnectionLike } from '@temporalio/client';
import type { ActivityDependencies } from '../../src/activities/dependencies.js';
import { assemble, type Assembly } from '../../src/assemble.js';
import { openConnection } from '../../src/client/temporal/connection.js';
import { createClientWith, type PerduraClient, type Replay } from '../../src/client.js';
import type { Reducers } from '../../src/conversation/context/reducers.js';
import type { ConversationEvent } from '../../src/conversation/event.js';
import type { ConversationState } from '../../src/conversation/state.js';
import type { CompactionPlugins } from '../../src/memory/channel/compaction-plugin.js';
import type { Processors } from '../../src/memory/processors.js';
import { modelsAnsweredBy } from '../../src/models/known-models.js';
import type { Model, ModelHook } from '../../src/models/model.js';
import { createWebhooks, type WebhookOptions } from '../../src/extensions/webhooks.js';
import type { WebhookEndpoint } from '../../src/config.js';
import type { Embedder } from '../../src/models/embedder.js';
import { createModels } from '../../src/models/providers.js';
import { createKnownSecrets } from '../../src/platform/known-secrets.js';
import { createFileStore } from '../../src/stores/file/index.js';
import { createRedisStore } from '../../src/stores/redis/index.js';
import type { WorkerBuild } from '../../src/client/temporal/deployments.js';
import type { ArchivePlace, Store } from '../../src/stores/store.js';
import { engineOfThisFile, type EngineName } from './engine.js';
import { startMessagesApi, type MessagesApi, type MessagesApiOptions } from './provider-apis/messages-api.js';
import { builtinTools } from '../../src/tools/builtin/index.js';
import type { Tool } from '../../src/tools/tool.js';
import type { Secrets } from '../../src/config/settings.js';
import { advance } from '../../src/testing/engine/clock.js';
import { startMemoryTemporal, type MemoryTemporal } from '../../src/testing/engine/connection.js';

/** Of a conversation, by its workflow id. */
export type Observe = (conversation: string, event: ConversationEvent) => void;

export interface WorldOptions extends MessagesApiOptions {
  /** Default: see `engineOfThisFile`. What a test needs of Temporal itself stands in test/temporal/. */
  readonly engine?: EngineName;
  /** In memory: whether this wait for time is not skipped, by its words. A person and a client are waited for in any case. */
  readonly holds?: (why: string) => boolean;
  /** Told what happens to conversations, once. */
  readonly observe?: Observe;
  /** Of events of the application. In memory; on Temporal they are in `workflows`. */
  readonly reducers?: Reducers;
  /** Told of the state that each run begins with. In memory. */
  readonly opened?: (conversation: string, state: ConversationState) => void;
  /** Answers in place of the scripted API. */
  readonly model?: Model;
  /** Redis at this address; files in a temp dir without it. */
  readonly redisUrl?: string;
  /** What is old goes there. */
  readonly archive?: ArchivePlace;
  /** A refusal of one conversation's call holds up no other: each is tried with a weather of its kind. */
  readonly withoutLimits?: true;
  readonly address?: string;
  readonly tools?: readonly Tool[];
  /** Content of agents/default/agent.json. */
  readonly agent?: object;
  /** Content of agents/default/mcp.json. */
  readonly mcp?: object;
  /** What the file tools find. */
  readonly files?: Readonly<Record<string, string>>;
  readonly idleMs?: number;
  readonly totalMs?: number;
  /** The worker has no API key. */
  readonly withoutKey?: boolean;
  readonly worker?: boolean;
  /** Where a server of Ollama is, for models named `ollama/…`. */
  readonly ollama?: string;
  /** Where a server that speaks as OpenAI does is, for models named `openai/…`. */
  readonly openai?: string;
  readonly circuits?: ActivityDependencies['circuits'];
  /** Searches go by meaning too. */
  readonly embedder?: Embedder;
  readonly processors?: Processors;
  /** Bytes of files that the conversations of a tenant may keep. */
  readonly keptFileBytes?: number;
  /** Values that the worker knows as secrets. */
  readonly secrets?: readonly string[];
  /** Temporal's page has first words of what is said. */
  readonly showsWords?: boolean;
  readonly hooks?: readonly ModelHook[];
  readonly compactionPlugins?: CompactionPlugins;
  /** Where events go, and how long a receiver has. */
  readonly webhooks?: { readonly endpoints: readonly WebhookEndpoint[] } & WebhookOptions;
  /** On Temporal: a bundle of one's own, in place of ours. */
  readonly workflows?: { readonly code: string };
  /** Signs what runs hand over. */
  readonly installation?: Secrets;
  /** How people sign in at MCP servers. */
  readonly signIn?: Assembly['signIn'];
}

export interface WorkerCode {
  readonly workflows?: { readonly code: string };
  readonly build?: WorkerBuild;
}

export interface World {
  readonly dir: string;
  readonly api: MessagesApi;
  readonly client: PerduraClient;
  readonly temporal: Client;
  readonly store: Store;
  readonly taskQueue: string;
  /** A conversation id that nobody used. */
  readonly id: () => string;
  /** Makes an agent of that name, with this for its agent.json. */
  writeAgent(name: string, config: object): Promise<void>;
  /** On Temporal: with other workflows than the world's, and of a build. */
  startWorker(code?: WorkerCode): Promise<() => Promise<void>>;
  readonly engine: EngineName;
  /** The time of its conversations: in memory that of the engine. */
  now(): number;
  /** In memory: lets time pass, and whatever is due by then happen. Temporal's passes by itself. */
  advance(ms: number): Promise<void>;
  close(): Promise<void>;
}

export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const address = options.address ?? process.env['PERDURA_TEST_ADDRESS'];
  const dir = await mkdtemp(join(tmpdir(), 'perdura-world-'));
  const workspace = join(dir, 'workspace');
  await mkdir(join(dir, 'agents', 'default'), { recursive: true });
  await mkdir(workspace);
  await writeFile(join(dir, 'agents', 'default', 'agent.json'), JSON.stringify(options.agent ?? {}));
  if (options.mcp !== undefined) await writeFile(join(dir, 'agents', 'default', 'mcp.json'), JSON.stringify(options.mcp));
  for (const [name, text] of Object.entries(options.files ?? {})) {
    await mkdir(dirname(join(workspace, name)), { recursive: true });
    await writeFile(join(workspace, name), text);
  }

  const api = await startMessagesApi(options);
  const engineName = options.engine ?? engineOfThisFile();
  const memory = engineName === 'memory' ? startMemory(options) : undefined;
  const clock = memory?.clock.now;
  const makeStore = (): Store =>
    options.redisUrl === undefined
      ? createFileStore({ dir: join(dir, 'memory'), clock, archive: options.archive })
      : createRedisStore({ url: options.redisUrl, clock, archive: options.archive });
  const connection: ConnectionLike = memory?.connection ?? (await openConnection({ address }));
  const temporal = new Client({ connection });
  const taskQueue = `test-${randomUUID()}`;
  // The worker's native part is loaded where there is a worker.
  const replay: Replay = async (id, histories) => {
    const { replay: again } = await import('./temporal-worker.js');
    return again(options.installation, id, histories);
  };
  const embedder = () => Promise.resolve(options.embedder);
  const { keptFileBytes } = options;
  const client = createClientWith({
    ...{ client: temporal, namespace: 'default', taskQueue, store: makeStore, replay, embedder },
    ...(keptFileBytes !== undefined && { keptFileBytes }),
  });

  const world = makeStore();
  let workers = 0;
  /** The first has the world's store, which tests may look into; each other one its own, as processes have. */
  const startWorker = async (code: WorkerCode = {}): Promise<() => Promise<void>> => {
    const made = workers++ === 0 ? world : makeStore();
    const store = options.withoutLimits ? { ...made, rateLimits: NO_LIMITS } : made;
    const connected = memory ? undefined : await (await import('./temporal-worker.js')).connect(address);
    const now = memory?.clock.now;
    const { activities, runIn, close } = assemble(
      {
        ...{ connection: connected ?? connection, namespace: 'default', taskQueue, store, workspace, extensions: options },
        ...{ agentsDir: join(dir, 'agents'), tools: options.tools ?? builtinTools, embedder: options.embedder, variables: process.env },
        models: options.model
          ? modelsAnsweredBy(options.model)
          : createModels({
              anthropic: { ...(options.withoutKey ? {} : { apiKey: 'test-key' }), baseURL: api.url },
              ...(options.openai !== undefined && { openai: { apiKey: 'test-key', baseURL: `${options.openai}/v1` } }),
              ...(options.ollama !== undefined && { ollama: { host: options.ollama } }),
            }),
        defaultModel: 'anthropic/claude-test',
        ...(options.secrets && { secrets: createKnownSecrets(options.secrets) }),
        ...(options.signIn && { signIn: options.signIn }),
      },
      {
        ...(now && { now }),
        ...(options.circuits && { circuits: options.circuits }),
        showsWords: options.showsWords,
        webhooks: createWebhooks(options.webhooks?.endpoints ?? [], { ...(now && { now }), ...options.webhooks }),
        modelTimeouts: { idleMs: options.idleMs, totalMs: options.totalMs },
      },
    );
    const leave = memory?.serve(activities);
    const end =
      connected &&
      (await (await import('./temporal-worker.js')).runWorker(connected, taskQueue, { activities, runIn }, { ...options, ...code }));
    return async () => {
      leave?.();
      await end?.();
      await close();
      await connected?.close();
      if (store !== world) await store.close();
    };
  };
  let stopWorker = options.worker === false ? undefined : await startWorker();

  return {
    dir,
    api,
    client,
    temporal,
    store: world,
    taskQueue,
    id: () => `c-${randomUUID()}`,
    async writeAgent(name, config) {
      await mkdir(join(dir, 'agents', name), { recursive: true });
      await writeFile(join(dir, 'agents', name, 'agent.json'), JSON.stringify(config));
    },
    startWorker,
    engine: engineName,
    now: memory?.clock.now ?? Date.now,
    async advance(ms) {
      if (memory) await advance(memory.clock, ms);
    },
    async close() {
      if (memory) await endAll(memory);
      else await forgetMemories(temporal, taskQueue);
      await stopWorker?.();
      stopWorker = undefined;
      await client.close();
      await connection.close();
      await world.close();
      await api.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Nobody but the test ends these, or they come again and again. */
const FOR_SOMEBODY = /^(waiting for (a person|the client|a look after|the store)|a consolidation that failed)/;

function startMemory({ holds, observe, opened, reducers }: WorldOptions): MemoryTemporal {
  const skips = (why: string): boolean => !FOR_SOMEBODY.test(why) && holds?.(why) !== true;
  return startMemoryTemporal({
    ...{ namespace: 'default', now: new Date(), skips, ...(reducers && { reducers }) },
    observe: ({ workflowId }) => ({ opened: (state) => opened?.(workflowId, state), event: (event) => observe?.(workflowId, event) }),
  });
}

async function endAll({ executions, terminate, clock }: MemoryTemporal): Promise<void> {
  for (const execution of executions()) terminate(execution, 'the world ends');
  // What hears no stop is left behind, as by a worker whose grace is over.
  await Promise.race([clock.quiet(), new Promise((resolve) => setTimeout(resolve, 1_000).unref())]);
}

/** The memory of a scope lives on the queue where it began: the next world's conversations would wait for it in vain. */
export async function forgetMemories(temporal: Client, taskQueue: string): Promise<void> {
  const query = `WorkflowType = 'memory' AND ExecutionStatus = 'Running' AND TaskQueue = '${taskQueue}'`;
  for await (const { workflowId } of temporal.workflow.list({ query })) {
    await temporal.workflow
      .getHandle(workflowId)
      .terminate('the world ends')
      .catch(() => undefined);
  }
}

const NO_LIMITS: Store['rateLimits'] = {
  take: () => Promise.resolve({ status: 'free' }),
  learn: () => Promise.resolve(),
  release: () => Promise.resolve(),
  list: () => Promise.resolve([]),
};
