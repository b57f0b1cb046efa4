/**
 * What activities work with, put together once: a connection, a store and settings become models' budgets, agents, tools, searches and the
 * ways to workflows. The product's worker, the engine in memory and tests begin with it, and say what theirs has in another place.
 */
import type { ConnectionLike } from '@temporalio/client';
import type { ActivityDependencies } from './activities/dependencies.js';
import { createActivities, type Activities } from './activities/index.js';
import { createAgentLoader, type AgentTrust } from './agents/load-agent.js';
import { createPublicIdOf, createStatusOf } from './client/describe.js';
import { createRetain } from './client/erasure/retention.js';
import { createCollect } from './client/gc.js';
import { createAskMemory } from './client/memory.js';
import { createIsWaiting, createStartDelivery } from './client/webhook-deliveries.js';
import { sharedServers, type Extensions } from './extensions/user-config.js';
import { heal } from './heal/heal.js';
import { createRememberedBy } from './heal/restore-memory.js';
import { createCompactorRegistry } from './memory/compaction/compactor.js';
import { openRecall } from './memory/recall/open-recall.js';
import type { Embedder } from './models/embedder.js';
import type { KnownSecrets } from './platform/known-secrets.js';
import { packageVersion } from './platform/optional-package.js';
import type { Retention } from './records/time-in-words.js';
import { createServerTools } from './tools/mcp/server-tools.js';
import { createSignIns, type SignInOptions } from './tools/mcp/sign-in/sign-ins.js';
import { createToolRegistry } from './tools/tool.js';
import type { Tool } from './tools/tool.js';

export interface Assembly extends Pick<ActivityDependencies, 'store' | 'models' | 'workspace' | 'defaultModel'> {
  readonly connection: ConnectionLike;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly agentsDir: string;
  readonly tools: readonly Tool[];
  readonly extensions?: Pick<Extensions, 'processors' | 'hooks' | 'compactors' | 'compactionPlugins' | 'mcpServers'>;
  /** From which paths in settings of MCP servers begin. */
  readonly cwd?: string;
  readonly embedder?: Embedder | undefined;
  readonly searchCacheBytes?: number;
  /** Of MCP servers. */
  readonly variables?: Readonly<Record<string, string | undefined>>;
  readonly secrets?: KnownSecrets;
  /** How people sign in at MCP servers; absent: not at all. */
  readonly signIn?: Omit<SignInOptions, 'store'>;
  readonly trust?: AgentTrust | undefined;
  /** After how many days conversations are deleted; absent: never. */
  readonly retention?: Retention | undefined;
  /** After how many days of rest a conversation is archived, where the store has an archive. */
  readonly archiveAfter?: number;
  readonly log?: (line: string) => void;
}

export interface Assembled {
  readonly activities: Activities;
  /** Says which worker runs them: they hear that it ends. */
  readonly runIn: (worker: RunningWorker) => void;
  close(): Promise<void>;
}

const DEFAULT_ARCHIVE_DAYS = 30;

/** As Temporal's worker has it. */
type RunningWorker = { readonly getState: () => string };

/** `overrides`: dependencies that this caller has in place of these, or beside them. */
export function assemble(assembly: Assembly, overrides: Partial<ActivityDependencies> = {}): Assembled {
  const { connection, namespace, taskQueue, store, agentsDir, extensions = {}, secrets, trust, log = () => undefined } = assembly;
  const { models, workspace, defaultModel, cwd = agentsDir, searchCacheBytes: cacheBytes, embedder, variables = {} } = assembly;
  const { workflowService: service } = connection;
  const place = { connection, namespace, taskQueue };
  const tools = createToolRegistry(assembly.tools);
  const agents = createAgentLoader(agentsDir, overrides.now, sharedServers(extensions, cwd), trust?.mayUse);
  const rememberedBy = createRememberedBy(service, place);
  const whyNotStart = trust?.whyNotStart;
  const signIns = assembly.signIn && createSignIns({ ...assembly.signIn, store: store.signIns });
  const serverTools = createServerTools({ pins: store.pins, variables, secrets, version: packageVersion(), log, whyNotStart, signIns });
  const { recall, embedding } = openRecall({ store, embedder, log, ...(cacheBytes !== undefined && { cacheBytes }) });
  let worker: RunningWorker | undefined;
  const activities = createActivities({
    isEnding: () => worker !== undefined && !['INITIALIZED', 'RUNNING'].includes(worker.getState()),
    ...{ store, models, workspace, defaultModel, agents, tools, serverTools, recall, rememberedBy },
    ...(embedding && { embedding }),
    ...(secrets && { secrets }),
    processors: extensions.processors,
    hooks: extensions.hooks,
    compactors: createCompactorRegistry(extensions.compactors),
    compactionPlugins: extensions.compactionPlugins,
    workflowStatus: createStatusOf(connection, namespace),
    readPublicId: createPublicIdOf(connection, namespace),
    askMemory: createAskMemory(place),
    startDelivery: createStartDelivery(place),
    isWaiting: createIsWaiting(place),
    ...(assembly.retention && { retain: createRetain({ ...place, store }, assembly.retention) }),
    collect: createCollect({ ...place, store }, { agents, archiveAfter: assembly.archiveAfter ?? DEFAULT_ARCHIVE_DAYS }),
    heal: (key, run) => heal({ service, store, processors: extensions.processors?.input, rememberedBy }, key, run),
    ...overrides,
  });
  return {
    activities,
    runIn: (running) => void (worker = running),
    async close() {
      await serverTools.close();
      await embedding?.close();
    },
  };
}
