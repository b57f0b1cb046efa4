import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, type NativeConnection, type WorkerOptions } from '@temporalio/worker';
import { createActivities } from '../src/activities/index.js';
import { createKnownSecrets } from '../src/platform/known-secrets.js';
import { createAgentLoader } from '../src/agents/load-agent.js';
import { createClientWith, type PerduraClient } from '../src/client.js';
import { createAnthropicModel } from '../src/models/anthropic/client.js';
import { createModels } from '../src/models/providers.js';
import { encryptingConverter } from '../src/client/temporal/encryption.js';
import { createAttributeCheck } from '../src/client/temporal/connection.js';
import { openStore } from '../src/stores/open.js';
import type { Store } from '../src/stores/store.js';
import { createToolRegistry } from '../src/tools/tool.js';
import { workerOptions } from '../src/worker.js';
import { createWorkflowWorker } from '../src/workflow-code.js';
import { bundleOptions } from '../src/extensions/custom-workflows.js';
import { ANSWER } from './bodies.js';
import { instantModel } from './instant-model.js';
import { checkAnswer, type Talk } from './talk.js';
import { folderBytes, redisBytes } from './stored-bytes.js';
import { ordinary, quick } from './tools.js';

/** Without reducers of an application, observers or telemetry. */
export const AS_ALONE = { isCustom: false, isObserved: false };
/** As long as a real one: it stands in most events. */
const PLACE = { store: 'aaaaaa', agents: '0000' };

export type StoreKind = 'redis' | 'file';

export interface Product {
  readonly client: PerduraClient;
  readonly options: WorkerOptions;
  /** Where its store is. */
  readonly place: { readonly redisUrl?: string; readonly memoryDir: string };
  /** The store that its worker uses, opened once more. */
  readonly openStore: () => Store;
  readonly storedBytes: () => Promise<number>;
  /** `patient` may call tools ten thousand times in a turn; `afar` has its model behind HTTP, in another process. */
  start(agent?: 'default' | 'patient' | 'afar'): Promise<Talk>;
  close(): Promise<void>;
}

export interface ProductNeeds {
  readonly dir: string;
  readonly temporal: Client;
  readonly connection: NativeConnection;
  readonly modelUrl: string;
  /** Its length counts: it stands in three events of a turn. */
  readonly taskQueue: string;
  /** Files without it. */
  readonly redisUrl?: string;
  /** Keys that encrypt what store and Temporal keep; none: plain. */
  readonly roots?: readonly Uint8Array[];
}

/** Everything as `runWorker` and `createClient` put it together, but for the model and the tools. */
export async function startProduct({
  dir,
  temporal: plain,
  connection,
  modelUrl,
  taskQueue,
  redisUrl,
  roots = [],
}: ProductNeeds): Promise<Product> {
  const agentsDir = join(dir, 'agents');
  const workspace = join(dir, 'workspace');
  await mkdir(workspace, { recursive: true });
  await writeAgent(agentsDir, 'default', {});
  await writeAgent(agentsDir, 'patient', { limits: { maxToolRounds: 10_000 } });
  await writeAgent(agentsDir, 'afar', { model: 'afar/claude-sonnet-5-5' });

  const settings = { redisUrl, memoryDir: join(dir, 'memory'), encryptionRoots: () => roots };
  const encrypting = encryptingConverter(roots);
  const temporal = encrypting ? new Client({ connection: plain.connection, dataConverter: encrypting }) : plain;
  const store = openStore(settings);
  const activities = createActivities({
    store,
    models: createModels({ custom: { anthropic: instantModel, afar: createAnthropicModel({ apiKey: 'bench', baseURL: modelUrl }) } }),
    agents: createAgentLoader(agentsDir),
    tools: createToolRegistry([quick, ordinary]),
    workspace,
    defaultModel: 'anthropic/claude-sonnet-5-5',
    // As a worker without settings.
    showsWords: true,
    secrets: createKnownSecrets(),
    hasSearchAttributes: createAttributeCheck(connection, 'default'),
  });
  const code = await bundleWorkflowCode({
    ...bundleOptions(),
    logger: new DefaultLogger('ERROR'),
  });
  const { workflowsPath: _, ...own } = workerOptions({ connection, namespace: 'default', taskQueue, activities, place: PLACE });
  const options: WorkerOptions = { ...own, workflowBundle: code, dataConverter: { ...own.dataConverter, ...encrypting } };
  const worker = await createWorkflowWorker(options, AS_ALONE);
  const running = worker.run();
  const client = createClientWith({ client: temporal, namespace: 'default', taskQueue, store: () => openStore(settings) });

  return {
    client,
    options,
    place: settings,
    openStore: () => openStore(settings),
    storedBytes: () => (redisUrl === undefined ? folderBytes(settings.memoryDir) : redisBytes(redisUrl)),
    async start(agent = 'default') {
      const { id } = await client.start(undefined, { agent });
      return { id, say: async (text) => checkAnswer((await client.send(id, text)).text, ANSWER) };
    },
    async close() {
      worker.shutdown();
      await running;
      await client.close();
      await store.close();
    },
  };
}

async function writeAgent(agentsDir: string, id: string, config: object): Promise<void> {
  await mkdir(join(agentsDir, id), { recursive: true });
  // What a turn costs, and no consolidation beside it.
  const memory = { memoryWindow: 10_000 };
  await writeFile(join(agentsDir, id, 'agent.json'), JSON.stringify({ memory, ...config }));
}
