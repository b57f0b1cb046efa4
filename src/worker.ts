/// <reference path="../types/ms.d.ts" preserve="true" />
/**
 * `import … from 'perdura/worker'`: a worker in your program. Here it is put together: settings -> store, models, tools, agents ->
 * activities -> Temporal worker; and closed in reverse order.
 *
 * @packageDocumentation
 */
import { mkdir, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import type { NativeConnection, Worker, WorkerOptions } from '@temporalio/worker';
import type { Activities } from './activities/index.js';
import { agentsFolder, type AgentTrust } from './agents/load-agent.js';
import { assemble, type Assembled } from './assemble.js';
import { agentsMark, findOthers, describeTakenQueue, toIdentity, type WorkerPlace } from './client/temporal/worker-place.js';
import {
  commandEnvironment,
  ConfigError,
  loadConfig,
  loadVariables,
  needsStandIn,
  providerSettings,
  secretsInConnection,
  secretsInEndpoint,
  secretsInFolder,
  secretsOf,
  secretVariables,
  temporalConnection,
  tenantBudgets,
  webhookEndpoints,
  workerBuild,
  type Config,
} from './config.js';
import { toTraces } from './memory/traces.js';
import { createCircuits, writeCircuits } from './models/circuit-breaker.js';
import type { Model } from './models/model.js';
import { modelsAnsweredBy } from './models/known-models.js';
import { createEmbedder, createModels } from './models/providers.js';
import { createWebhooks } from './extensions/webhooks.js';
import {
  createObservation,
  createObservationFor,
  installTelemetry,
  runtimeLog,
  secretsOfProcess,
  type Observation,
} from './telemetry/observability.js';
import {
  checkMayWork,
  connectNative,
  createCircuitReport,
  eventLoopGauge,
  serveHealth,
  watchEventLoop,
  watchForHangs,
  whatRuns,
} from './telemetry/worker-health.js';
import { encryptOn } from './client/temporal/encryption.js';
import { scheduleRetention } from './client/erasure/retention.js';
import { scheduleGc } from './client/gc.js';
import { createAttributeCheck } from './client/temporal/connection.js';
import { watchRouting, type RoutingWatch, type WorkerBuild } from './client/temporal/deployments.js';
import type { LeaseThreadData } from './recovery/lease-thread.js';
import { startRecovery } from './recovery/recovery.js';
import { openStore } from './stores/open.js';
import type { Store } from './stores/store.js';
import { createOfflineModel, OFFLINE_MODEL } from './models/offline.js';
import { sayTurn } from './telemetry/log.js';
import { createWorkflowWorker, workflowCode, workflowCodeOf, type Code } from './workflow-code.js';
import { startThread } from './platform/processes.js';
import { builtinToolsWith, type BuiltinSettings } from './tools/builtin/index.js';
import { findToolQueue } from './tools/tool.js';
import { checkExtensions, type Extensions } from './extensions/user-config.js';
import { packageVersion } from './platform/optional-package.js';
import { bundleOptions } from './extensions/custom-workflows.js';
import { errorMessage } from './platform/errors.js';

export type { Observed, Observer, Extensions } from './extensions/user-config.js';
export type { Compactor, CompactorAnswer, CompactorInput } from './memory/compaction/compactor.js';
export type { AgentTrust } from './agents/load-agent.js';
export type { Notification, StateChange, StateSummary, TurnNews } from './conversation/views/observation.js';

/**
 * An expression with nested repetition, as `(a+)+$`, takes exponential time for some texts, and nothing can stop it. After 50,000 steps back V8
 * goes on with an engine that takes linear time, unless the expression refers back or looks around.
 */
setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
/**
 * A turn goes once through a thousand functions, most of which V8 compiles after hundreds of turns, and leaves behind what is dead by the next
 * collection. With the baseline compiler and the whole space for new objects (16 MB) at once it takes 7 % less time and CPU (measured).
 */
setFlagsFromString('--always-sparkplug');
setFlagsFromString('--semi-space-growth-factor=16');

/** What a SIGTERM leaves running activities to finish by themselves; after it they move to another worker. */
const SHUTDOWN_GRACE = '10s';
/** It loads Temporal's client when a worker stands still. */
const HANG_THREAD_MB = 128;
const LEASE_THREAD_MB = 64;
/** A request of `/readyz` at Temporal. */
const HEALTH_MS = 2_000;

/** What `createWorker` is given: extensions, and how it runs. */
export interface CreateWorkerOptions extends Extensions {
  /** Default: the environment and `.env`, by `loadConfig`. */
  readonly config?: Config;
  /** Told once the worker polls. */
  readonly onReady?: () => void;
  /** Runs the calls of these tools alone, which have a task queue (`policy.taskQueue`), and no conversations. */
  readonly only?: ToolsOnly;
  /** Decides before grants of an agent's files are used, and before its MCP servers are started; without it, all of them are. */
  readonly trust?: AgentTrust;
}

/** What a worker runs that is for some tools alone, such as on a machine with a GPU. */
export interface ToolsOnly {
  /** All tools of one task queue, by their names. */
  readonly tools: readonly string[];
  /** How many calls at once; default: as many as Temporal lets a worker run. */
  readonly atOnce?: number;
}

/** A worker of this process: it runs the conversations of its task queue. */
export interface PerduraWorker {
  /** Takes work until `shutdown`, SIGTERM or SIGINT; then running turns finish or move within a grace. Once. */
  run(): Promise<void>;
  /** Says stop and does not wait; `run` resolves when all is closed. */
  shutdown(): void;
}

/** A worker with custom tools, providers and observers. Throws `ConfigError`, which names the field. */
export function createWorker(options: CreateWorkerOptions = {}): PerduraWorker {
  return createWorkerWith(options, {});
}

interface WorkerSurroundings {
  /** Answers in place of every model that an agent or a setting names. */
  readonly answering?: Model;
  /** Whether its process is there for it alone. */
  readonly isAlone?: boolean;
  /** Called where no connection comes up for a while: what it rejects with ends the start. */
  readonly whyNot?: () => Promise<void>;
}

/** @internal For `perdura/testing` and `perdura worker`. */
export function createWorkerWith(options: CreateWorkerOptions, surroundings: WorkerSurroundings): PerduraWorker {
  const { config = loadConfig(), onReady, trust, only, ...given } = options;
  const extensions = checkExtensions(given, 'createWorker');
  const stop = new AbortController();
  let hasRun = false;
  return {
    async run() {
      if (hasRun) throw new Error('this worker has been run: make another with createWorker');
      hasRun = true;
      await runUntil(stop.signal, config, extensions, { onReady, trust, only, ...surroundings });
    },
    shutdown: () => stop.abort(),
  };
}

/** Runs until SIGTERM or SIGINT. */
export async function runWorker(config: Config, options: Omit<CreateWorkerOptions, 'config'> = {}): Promise<void> {
  await createWorker({ ...options, config }).run();
}

async function runUntil(
  stop: AbortSignal,
  config: Config,
  extensions: Extensions,
  {
    onReady,
    trust,
    only,
    answering,
    isAlone = false,
    whyNot,
  }: Pick<CreateWorkerOptions, 'onReady' | 'trust' | 'only'> & WorkerSurroundings,
): Promise<void> {
  const build = workerBuild(config);
  const toolQueue = only && findToolQueue(extensions.tools ?? [], only.tools, config.taskQueue);
  const { connectionOptions, namespace } = await temporalConnection(config);
  const { logLevel, metricsAddress } = config;
  const variables = loadVariables(config.cwd);
  const secrets = [...secretsOf(config), ...secretVariables(variables), ...secretsInConnection(connectionOptions)];
  installTelemetry({ logLevel, metricsAddress, secrets });
  const endpoints = webhookEndpoints(config);
  secretsOfProcess().add(endpoints.flatMap(secretsInEndpoint));
  const learning = learnAgain(() => secretsOfProcess().add(secretsInFolder(config.cwd)));
  const { hash, collects = true, ...code } = await workflowCodeOf(toolQueue === undefined ? extensions : {}, config);
  const loop = watchEventLoop({
    thresholdMs: config.blockedMs,
    warn: (message, fields) => runtimeLog().warn(message, fields),
    gauge: eventLoopGauge(),
  });
  const observed = await createObservationFor(config, extensions.observers);
  const connection = encryptOn(await connectNative(connectionOptions, whyNot), config.encryptionRoots());
  const hangs = await watchForHangs({ connectionOptions, namespace, endMs: config.blockedEndMs, isAlone }, async (workerData) => {
    const thread = await startThread(require.resolve('./telemetry/hang-thread'), HANG_THREAD_MB, { workerData });
    return thread.once('error', (error) => runtimeLog().warn('nothing sees any more if this worker stands still', { error }));
  });
  const store = openStore(config, {
    log: (line) => runtimeLog().warn(line),
    traceLines: (entry, { conversation }) => toTraces(entry, conversation).map((trace) => JSON.stringify(trace)),
  });
  // Only logged: a store that is away now may be back before the first message.
  void store.check().then(
    (warnings) => warnings.forEach((warning) => runtimeLog().warn(warning)),
    (error: unknown) => runtimeLog().warn(errorMessage(error)),
  );
  const agentsDir = agentsFolder(config, extensions.agentsDir);
  const { taskQueue, redisUrl, memoryDir } = config;
  const place = await placeOf(store, agentsDir);
  const recovery = await startRecovery(
    { connection, namespace, taskQueue, redisUrl, memoryDir, identity: toIdentity(place), log: runtimeLog },
    async (workerData: LeaseThreadData) => {
      const thread = await startThread(require.resolve('./recovery/lease-thread'), LEASE_THREAD_MB, { workerData });
      return thread.once('error', (error) => runtimeLog().warn('if this worker ends, its work waits until Temporal notices', { error }));
    },
  );
  const routing =
    build && watchRouting(connection.workflowService, { namespace, taskQueue, build, warn: (line) => runtimeLog().warn(line) });
  const observation = {
    ...observed,
    activityInterceptors: [...observed.activityInterceptors, whatRuns(loop), hangs.activities, recovery.activities],
  };
  const { tracing } = observation;
  const models =
    answering === undefined
      ? createModels({
          ...providerSettings(config),
          custom: { offline: createOfflineModel(), ...extensions.providers },
          declared: extensions.models,
          silence: extensions.silence,
        })
      : modelsAnsweredBy(answering, extensions.models);
  const reportCircuits = createCircuitReport(runtimeLog());
  let assembled: Assembled | undefined;
  let worker: Worker | undefined;
  let health: { close(): void } | undefined;
  try {
    const queue = { namespace, taskQueue: { name: toolQueue ?? taskQueue }, taskQueueType: 1 };
    health = await serveHealth({
      address: config.healthAddress,
      checks: {
        worker: () => (worker?.getState() === 'RUNNING' ? Promise.resolve() : Promise.reject(new Error('it does not poll'))),
        temporal: () => connection.withDeadline(Date.now() + HEALTH_MS, () => connection.workflowService.describeTaskQueue(queue)),
        store: () => store.id(),
      },
    });
    await mkdir(config.workspace, { recursive: true });
    assembled = assemble(
      {
        ...{ connection, namespace, store, agentsDir, variables, trust },
        taskQueue,
        models: recovery.guard(tracing?.traced(models) ?? models),
        tools: [...builtinToolsWith(toolSettings(config, agentsDir)), ...(extensions.tools ?? [])],
        workspace: await realpath(config.workspace),
        defaultModel: needsStandIn(config) ? OFFLINE_MODEL : config.model,
        extensions,
        cwd: config.cwd,
        embedder: createEmbedder(extensions.embedder, providerSettings(config)),
        searchCacheBytes: config.searchCacheBytes,
        retention: config.retention,
        archiveAfter: config.archiveAfter,
        secrets: secretsOfProcess(),
        signIn: { secrets: config.secrets?.all, publicUrl: config.publicUrl, fetchAllow: config.fetchAllow },
        log: (line) => runtimeLog().warn(line),
      },
      {
        showsWords: config.uiText === 'on',
        defaultExecutionMode: config.defaultExecutionMode,
        hasSearchAttributes: createAttributeCheck(connection, namespace),
        circuits: createCircuits({
          changed(open, of) {
            reportCircuits(open, of);
            writeCircuits(config.cwd, open);
          },
        }),
        webhooks: createWebhooks(endpoints),
        tenantBudgetRules: tenantBudgets(config),
        confirmLease: recovery.confirmLease,
        ...(tracing && { toolCalled: tracing.toolCalled }),
      },
    );
    const { activities } = assembled;
    if (stop.aborted) return;
    await checkMayWork(connection, namespace);
    if (place !== undefined) await refuseOtherPlaces(connection, { namespace, taskQueue, place, toolQueue });
    const options = workerOptions({
      ...{ connection, namespace, taskQueue, activities, place, observation, code: { ...code, hash } },
      ...(build && routing && { versioning: { build, decide: routing.decide } }),
    });
    const made = await createWorkflowWorker(toolQueue === undefined ? options : forToolsAlone(options, { taskQueue: toolQueue, ...only }), {
      isCustom: hash !== undefined,
      isObserved: observation.isObserved,
    });
    worker = made;
    assembled.runIn(made);
    if (config.retention !== undefined && toolQueue === undefined)
      await scheduleRetention({ connection, namespace, taskQueue }).catch((error: unknown) =>
        runtimeLog().warn(`nothing is deleted by PERDURA_RETENTION yet: ${errorMessage(error)}`),
      );
    // Nothing waits for it: a conversation that ends by itself ends a day later.
    if (collects && toolQueue === undefined)
      void scheduleGc({ connection, namespace, taskQueue }).catch((error: unknown) =>
        runtimeLog().warn(`nothing is closed or archived by itself yet: ${errorMessage(error)}`),
      );
    const running = made.run();
    // A SIGTERM may have come first.
    const end = (): void => (made.getState() === 'RUNNING' ? made.shutdown() : undefined);
    stop.addEventListener('abort', end, { once: true });
    try {
      if (stop.aborted) end();
      else onReady?.();
    } catch (error) {
      end();
      await running;
      throw error;
    }
    await running;
  } finally {
    health?.close();
    loop.close();
    clearInterval(learning);
    routing?.close();
    await hangs.close();
    await recovery.close();
    writeCircuits(config.cwd, []);
    await observation.close();
    await assembled?.close();
    await store.close();
    await connection.close();
  }
}

/** Milliseconds. A gateway of the same folder may make its token after this worker has begun. */
const LEARNS_EVERY_MS = 5_000;

function learnAgain(learn: () => void): NodeJS.Timeout {
  learn();
  return setInterval(learn, LEARNS_EVERY_MS).unref();
}

/** Undefined where the store does not answer: it may be back before the first message, and a worker that waits for it is of use. */
async function placeOf(store: Store, agentsDir: string): Promise<WorkerPlace | undefined> {
  const agents = agentsMark(await realpath(agentsDir).catch(() => agentsDir));
  return store.id().then(
    (id) => ({ store: id, agents }),
    () => undefined,
  );
}

/** Half of the turns would not find the messages of the other half. Throws `ConfigError`. */
async function refuseOtherPlaces(
  connection: NativeConnection,
  where: { readonly namespace: string; readonly taskQueue: string; readonly place: WorkerPlace; readonly toolQueue: string | undefined },
): Promise<void> {
  const [other] = await findOthers(connection, where);
  if (other === undefined) return;
  if (where.toolQueue === undefined) throw new ConfigError(describeTakenQueue(where.taskQueue, other));
  throw new ConfigError(
    `the conversations of task queue ${where.taskQueue} have another ${other.differs === 'store' ? 'store' : 'agents folder'} (${other.words}) than ` +
      'this worker of their tools, which would not find their calls: give it the same REDIS_URL or PERDURA_MEMORY_DIR, and PERDURA_AGENTS_DIR',
  );
}

/** No workflow, and of the activities the one that runs a tool. Leases stay those of the conversations' queue: any worker takes over from any. */
function forToolsAlone(options: WorkerOptions, { taskQueue, atOnce }: { readonly taskQueue: string } & Partial<ToolsOnly>): WorkerOptions {
  const { workflowBundle: _built, workflowsPath: _sources, bundlerOptions: _bundler, sinks: _sinks, activities, ...rest } = options;
  const { 'run-tool': runTool } = activities as Activities;
  return {
    ...rest,
    taskQueue,
    activities: { 'run-tool': runTool } satisfies Pick<Activities, 'run-tool'>,
    ...(atOnce !== undefined && { maxConcurrentActivityTaskExecutions: atOnce }),
  };
}

/** @internal What the built-in tools of a worker go by. */
export function toolSettings({ fetchAllow, memoryDir, cwd, encryption }: Config, agentsDir: string): BuiltinSettings {
  const keyFile = encryption?.from === 'file' ? [resolve(cwd, encryption.path)] : [];
  const hiddenPlaces = [memoryDir, join(cwd, '.perdura'), join(cwd, '.env'), ...keyFile];
  return {
    ...{ fetchAllow, hiddenPlaces, commandEnvironment: commandEnvironment(), secrets: secretsOfProcess() },
    protectedPlaces: [agentsDir, ...hiddenPlaces],
  };
}

/**
 * For code with reducers of the application: as long as Temporal gives a workflow task. What takes longer than the SDK's 5 s, ten thousand
 * messages that came while no worker was there, is cut off by it, and Node 20 does not survive that ("async hook stack has become
 * corrupted"). The SDK takes the option and does not declare it.
 */
const WORKFLOW_TASK_TIME = { isolateExecutionTimeout: '10s' } as object;

/** @internal Everything about a worker that correctness or the numbers depend on; tests and the bench build theirs with it too. */
export function workerOptions(parts: {
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly activities: Activities;
  /** What its identity says of it; it stands in most events of every history. */
  readonly place?: WorkerPlace;
  readonly observation?: Observation;
  /** Default: ours, without reducers. */
  readonly code?: Code;
  /** Its build, and what says when runs move to another. */
  readonly versioning?: { readonly build: WorkerBuild } & Pick<RoutingWatch, 'decide'>;
}): WorkerOptions {
  const { place, observation = createObservation([]), code = { ...workflowCode(), hash: undefined }, versioning, ...where } = parts;
  const { hash, ...workflows } = code;
  const { workflowInterceptorModules, preloadModules } = bundleOptions();
  return {
    ...where,
    ...workflows,
    identity: toIdentity(place),
    sinks: observation.sinks,
    interceptors: {
      activity: [sayTurn, ...observation.activityInterceptors],
      // A bundle has it already.
      ...(workflows.workflowsPath !== undefined && { workflowModules: workflowInterceptorModules }),
    },
    ...(workflows.workflowsPath !== undefined && { bundlerOptions: { preloadModules } }),
    // It stands in every workflow task of every history; the SDK's default is a hash of the bundle, three times as long.
    ...(versioning === undefined && { buildId: `perdura@${packageVersion()}${hash === undefined ? '' : `+${hash}`}` }),
    ...(versioning && {
      workerDeploymentOptions: { version: versioning.build, useWorkerVersioning: true, defaultVersioningBehavior: 'PINNED' },
      patchActivationCallback: versioning.decide,
    }),
    shutdownGraceTime: SHUTDOWN_GRACE,
    // Cancellation is heard with a heartbeat's answer: at the default of up to 30 s a stop would take that long.
    maxHeartbeatThrottleInterval: '1s',
    // A dead worker's conversations wait this long for it before they move, where none of it was announced; the default is five times that.
    stickyQueueScheduleToStartTimeout: '2s',
    ...WORKFLOW_TASK_TIME,
  };
}
