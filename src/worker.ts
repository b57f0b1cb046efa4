/**
 * Composition root of the worker: settings -> store, models, tools, agents -> activities -> Temporal worker. Closed in
 * reverse order.
 */
import { existsSync } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { NativeConnection, Worker, type InjectedSinks, type WorkerOptions } from '@temporalio/worker';
import { createActivities, type Activities, type ActivityDependencies } from './activities/index.js';
import { createAgentLoader } from './agents/load-agent.js';
import { temporalConnection, type Config } from './config.js';
import { heal } from './heal/heal.js';
import type { WorkflowCode } from './heal/replay-runs.js';
import { createModels } from './models/choose.js';
import { installLog } from './observability.js';
import { createAttributeCheck } from './registered-attributes.js';
import { openStore } from './stores/open.js';
import type { Store } from './stores/store.js';
import { startOfflineModel } from './testing/offline-model.js';
import { builtinTools } from './tools/builtin/index.js';
import { createToolRegistry } from './tools/registry.js';
import type { ConversationSinks } from './workflows/observe.js';

const OFFLINE_MODEL = 'offline/scripted';

/** What a SIGTERM leaves running activities to finish by themselves; after it they move to another worker. */
const SHUTDOWN_GRACE = '10s';

export interface RunOptions {
  /** Told once the worker polls. */
  readonly onReady?: () => void;
}

/** Runs until SIGTERM or SIGINT, then lets running turns finish or move within a grace. */
export async function runWorker(config: Config, { onReady }: RunOptions = {}): Promise<void> {
  installLog(config.logLevel);
  const { connectionOptions, namespace } = await temporalConnection(config);
  const connection = await NativeConnection.connect(connectionOptions);
  const store = openStore(config);
  const offline = config.anthropicApiKey === undefined && config.anthropicBaseUrl === undefined ? await startOfflineModel() : undefined;
  try {
    const activities = await activitiesOf(config, store, {
      offlineUrl: offline?.url,
      hasSearchAttributes: createAttributeCheck(connection, namespace),
      heal: (key) => heal({ service: connection.workflowService, code: workflowCode(), store }, key),
    });
    const worker = await Worker.create(workerOptions({ connection, namespace, taskQueue: config.taskQueue, activities }));
    const running = worker.run();
    onReady?.();
    await running;
  } finally {
    await offline?.close();
    await store.close();
    await connection.close();
  }
}

async function activitiesOf(
  config: Config,
  store: Store,
  { offlineUrl, ...more }: Pick<ActivityDependencies, 'heal' | 'hasSearchAttributes'> & { readonly offlineUrl: string | undefined },
): Promise<Activities> {
  await mkdir(config.workspace, { recursive: true });
  return createActivities({
    store,
    models: createModels({ anthropic: { apiKey: config.anthropicApiKey, baseURL: config.anthropicBaseUrl }, offlineUrl }),
    agents: createAgentLoader(config.agentsDir),
    tools: createToolRegistry(builtinTools),
    workspace: await realpath(config.workspace),
    // Who names a model gets that one or the reason why not; who names none, and has no key, gets the stand-in.
    defaultModel: offlineUrl === undefined ? config.model : OFFLINE_MODEL,
    ...more,
  });
}

/** Everything about a worker that correctness or the numbers depend on; tests and the bench build theirs with it too. */
export function workerOptions(own: {
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly activities: Activities;
}): WorkerOptions {
  return {
    ...own,
    activities: own.activities,
    ...workflowCode(),
    sinks: noObservers,
    shutdownGraceTime: SHUTDOWN_GRACE,
    // Cancellation is heard with a heartbeat's answer: at the default of up to 30 s a stop would take that long.
    maxHeartbeatThrottleInterval: '1s',
    // A dead worker's conversations wait this long for it before they move; the default is twice that.
    stickyQueueScheduleToStartTimeout: '5s',
  };
}

/** Conversations tell what happens to them (workflows/observe.ts); without observers nobody listens. */
const nobody = { fn: () => undefined, callDuringReplay: false };
const noObservers: InjectedSinks<ConversationSinks> = { conversation: { opened: nobody, event: nobody } };

/** The bundle that the build made, or the sources when there was none; to run it and to replay it. */
export function workflowCode(): WorkflowCode {
  const codePath = join(__dirname, 'workflow-bundle.js');
  const code = existsSync(codePath) ? { workflowBundle: { codePath } } : { workflowsPath: require.resolve('./workflows/index') };
  return { ...code, dataConverter: { payloadConverterPath: require.resolve('./workflows/payload-converter') } };
}
