/// <reference path="../types/ms.d.ts" preserve="true" />
/**
 * `import … from 'perdura/worker'`: a worker in your program. Here it is put together: settings -> store, models, tools, agents ->
 * activities -> Temporal worker; and closed in reverse order.
 *
 * @packageDocumentation
 */
import { existsSync } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker';
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
  webhookEndpoints,
  type Config,
  type TemporalConnection,
} from './config.js';
import type { WorkflowCode } from './heal/replay-here.js';
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
import { createCircuitReport, watchEventLoop, watchForHangs, whatRuns, eventLoopGauge } from './telemetry/worker-health.js';
import { bundleCustomWorkflows } from './extensions/custom-workflows.js';
import { encryptingConverter, encryptOn } from './client/temporal/encryption.js';
import { scheduleRetention } from './client/erasure/retention.js';
import { createAttributeCheck } from './client/temporal/connection.js';
import { orUndefinedAfter } from './platform/promises.js';
import type { LeaseThreadData } from './recovery/lease-thread.js';
import { startRecovery } from './recovery/recovery.js';
import { openStore } from './stores/open.js';
import type { Store } from './stores/store.js';
import { createOfflineModel, OFFLINE_MODEL } from './models/offline.js';
import { sayTurn } from './telemetry/log.js';
import { startThread } from './platform/processes.js';
import { builtinToolsWith, type BuiltinSettings } from './tools/builtin/index.js';
import { checkExtensions, type Extensions } from './extensions/user-config.js';
import { packageVersion } from './platform/optional-package.js';
import { createStateCodec } from './extensions/state-codec.js';
import { bundleOptions } from './extensions/custom-workflows.js';
import { errorFields, errorMessage } from './platform/errors.js';

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
 * A turn goes once through a thousand functions, most of which wait for hundreds of turns until V8 thinks them worth a compiler. By the baseline
 * compiler a turn takes about 4 % less time and CPU in its first hundreds (measured).
 */
setFlagsFromString('--always-sparkplug');

/** What a SIGTERM leaves running activities to finish by themselves; after it they move to another worker. */
const SHUTDOWN_GRACE = '10s';
/** It loads Temporal's client when a worker stands still. */
const HANG_THREAD_MB = 128;
const LEASE_THREAD_MB = 64;

/** What `createWorker` is given: extensions, and how it runs. */
export interface CreateWorkerOptions extends Extensions {
  /** Default: the environment and `.env`, by `loadConfig`. */
  readonly config?: Config;
  /** Told once the worker polls. */
  readonly onReady?: () => void;
  /** Decides before grants of an agent's files are used, and before its MCP servers are started; without it, all of them are. */
  readonly trust?: AgentTrust;
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
  const { config = loadConfig(), onReady, trust, ...given } = options;
  const extensions = checkExtensions(given, 'createWorker');
  const stop = new AbortController();
  let hasRun = false;
  return {
    async run() {
      if (hasRun) throw new Error('this worker has been run: make another with createWorker');
      hasRun = true;
      await runUntil(stop.signal, config, extensions, { onReady, trust, ...surroundings });
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
  { onReady, trust, answering, isAlone = false, whyNot }: Pick<CreateWorkerOptions, 'onReady' | 'trust'> & WorkerSurroundings,
): Promise<void> {
  const { connectionOptions, namespace } = await temporalConnection(config);
  const { logLevel, metricsAddress } = config;
  const variables = loadVariables(config.cwd);
  const secrets = [...secretsOf(config), ...secretVariables(variables), ...secretsInConnection(connectionOptions)];
  installTelemetry({ logLevel, metricsAddress, secrets });
  const endpoints = webhookEndpoints(config);
  secretsOfProcess().add(endpoints.flatMap(secretsInEndpoint));
  const learning = learnAgain(() => secretsOfProcess().add(secretsInFolder(config.cwd)));
  const { hash, ...code } = await workflowCodeOf(extensions, config);
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
  try {
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
        confirmLease: recovery.confirmLease,
        ...(tracing && { toolCalled: tracing.toolCalled }),
      },
    );
    const { activities } = assembled;
    if (stop.aborted) return;
    await checkMayWork(connection, namespace);
    if (place !== undefined) await refuseOtherPlaces(connection, { namespace, taskQueue, place });
    const worker = await Worker.create(
      workerOptions({ connection, namespace, taskQueue, activities, place, observation, code: { ...code, hash } }),
    );
    assembled.runIn(worker);
    if (config.retention !== undefined)
      await scheduleRetention({ connection, namespace, taskQueue }).catch((error: unknown) =>
        runtimeLog().warn(`nothing is deleted by PERDURA_RETENTION yet: ${errorMessage(error)}`),
      );
    const running = worker.run();
    // A SIGTERM may have come first.
    const end = (): void => (worker.getState() === 'RUNNING' ? worker.shutdown() : undefined);
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
    loop.close();
    clearInterval(learning);
    await hangs.close();
    await recovery.close();
    writeCircuits(config.cwd, []);
    await observation.close();
    await assembled?.close();
    await store.close();
    await connection.close();
  }
}

/** The core tries for half a minute, and does not say then what was in the way. */
const SUSPICIOUS_MS = 1_000;

async function connectNative(
  options: TemporalConnection['connectionOptions'],
  whyNot: WorkerSurroundings['whyNot'],
): Promise<NativeConnection> {
  const connecting = NativeConnection.connect(options);
  if (whyNot === undefined) return connecting;
  const early = await orUndefinedAfter(SUSPICIOUS_MS, connecting);
  if (early !== undefined) return early;
  try {
    return await Promise.race([connecting, whyNot().then(() => connecting)]);
  } catch (error) {
    void connecting.then((late) => late.close()).catch(() => undefined);
    throw error;
  }
}

const CHECK_MS = 5_000;
/** PERMISSION_DENIED and UNAUTHENTICATED of gRPC. */
const REFUSED = new Set<unknown>([7, 16]);

/**
 * A key that may only read lets a worker connect, and its core would then poll for ever without a word. A heartbeat of no activity is
 * refused in any case: in other words where this client may write. Throws what Temporal answers where it may not.
 */
async function checkMayWork(connection: NativeConnection, namespace: string): Promise<void> {
  const beat = () => connection.workflowService.recordActivityTaskHeartbeat({ namespace });
  await connection.withDeadline(Date.now() + CHECK_MS, beat).catch((error: unknown) => {
    if (REFUSED.has(errorFields(error).code)) throw error;
  });
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
  where: { readonly namespace: string; readonly taskQueue: string; readonly place: WorkerPlace },
): Promise<void> {
  const [other] = await findOthers(connection, where);
  if (other !== undefined) throw new ConfigError(describeTakenQueue(where.taskQueue, other));
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
 * As long as Temporal gives a workflow task. What takes longer than the SDK's 5 s, ten thousand messages that came while no worker
 * was there, is cut off by it, and Node 20 does not survive that ("async hook stack has become corrupted"). The SDK takes the option
 * and does not declare it.
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
}): WorkerOptions {
  const { place, observation = createObservation([]), code = { ...workflowCode(), hash: undefined }, ...where } = parts;
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
    buildId: `perdura@${packageVersion()}${hash === undefined ? '' : `+${hash}`}`,
    shutdownGraceTime: SHUTDOWN_GRACE,
    // Cancellation is heard with a heartbeat's answer: at the default of up to 30 s a stop would take that long.
    maxHeartbeatThrottleInterval: '1s',
    // A dead worker's conversations wait this long for it before they move, where none of it was announced; the default is five times that.
    stickyQueueScheduleToStartTimeout: '2s',
    ...WORKFLOW_TASK_TIME,
  };
}

/** @internal The bundle that the build made, or the sources when there was none; to run it and to replay it. */
export function workflowCode(): WorkflowCode {
  const codePath = join(__dirname, 'workflow-bundle.js');
  const code = existsSync(codePath) ? { workflowBundle: { codePath } } : { workflowsPath: require.resolve('./workflows/index') };
  return { ...code, dataConverter: { payloadConverterPath: require.resolve('./workflows/payload-converter') } };
}

/** @internal */
export interface Code extends WorkflowCode {
  /** Of custom workflows. */
  readonly hash?: string;
}

/** @internal The same with the user's reducers: a replay of a history needs the code that made it. Throws `ConfigError`. */
export async function workflowCodeOf(
  { workflows }: Pick<Extensions, 'workflows'>,
  { cwd, secrets, encryptionRoots, retention }: Pick<Config, 'cwd' | 'secrets' | 'encryptionRoots' | 'retention'>,
): Promise<Code> {
  const { workflowBundle, workflowsPath, dataConverter: plain } = workflowCode();
  const { payloadCodecs: encryption = [], ...encrypting } = encryptingConverter(encryptionRoots()) ?? {};
  // Signed first: what is checked is what the workflow made.
  const payloadCodecs = [...(secrets === undefined ? [] : [createStateCodec(secrets)]), ...encryption];
  const dataConverter = { ...plain, ...encrypting, ...(payloadCodecs.length > 0 && { payloadCodecs }) };
  if (workflows === undefined) return { ...(workflowBundle ? { workflowBundle } : { workflowsPath }), dataConverter };
  const log = { warn: (message: string) => runtimeLog().warn(message) };
  const { code, hash } = await bundleCustomWorkflows(workflows, { cwd, log, ...(retention && { needs: ['retention'] }) });
  return { workflowBundle: { code }, dataConverter, hash };
}
