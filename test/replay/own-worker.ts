/** A worker as the product builds it, with what a test or a recording wants to be different. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { NativeConnection, type WorkerOptions } from '@temporalio/worker';
import { createActivities } from '../../src/activities/index.js';
import { createAgentLoader } from '../../src/agents/load-agent.js';
import { createModels } from '../../src/models/providers.js';
import { createFileStore } from '../../src/stores/file/index.js';
import { createToolRegistry } from '../../src/tools/tool.js';
import type { Store } from '../../src/stores/store.js';
import type { Tool } from '../../src/tools/tool.js';
import { workerOptions } from '../../src/worker.js';
import { createWorkflowWorker } from '../../src/workflow-code.js';

export interface OwnWorkerOptions {
  readonly address: string;
  readonly taskQueue: string;
  /** A world's folder: agents, workspace and memory lie in it. */
  readonly dir: string;
  readonly apiUrl: string;
  readonly bundle: NonNullable<WorkerOptions['workflowBundle']>;
  readonly tools: readonly Tool[];
  /** The namespace has our search attributes. */
  readonly attributes?: boolean;
  readonly worker?: Partial<WorkerOptions>;
  /** Around the store of files. */
  readonly store?: (store: Store) => Store;
}

/** Answers with the way to stop it. */
export async function startOwnWorker(options: OwnWorkerOptions): Promise<() => Promise<void>> {
  const { address, taskQueue, dir, apiUrl, bundle, tools } = options;
  const connection = await NativeConnection.connect({ address });
  const files = createFileStore({ dir: join(dir, 'memory') });
  const store = options.store?.(files) ?? files;
  const workspace = join(dir, 'workspace');
  await mkdir(workspace, { recursive: true });
  const activities = createActivities({
    store,
    models: createModels({ anthropic: { apiKey: 'test-key', baseURL: apiUrl } }),
    agents: createAgentLoader(join(dir, 'agents')),
    tools: createToolRegistry(tools),
    workspace,
    defaultModel: 'anthropic/claude-test',
    hasSearchAttributes: () => Promise.resolve(options.attributes ?? false),
  });
  const { workflowsPath: _sources, ...made } = workerOptions({ connection, namespace: 'default', taskQueue, activities });
  const worker = await createWorkflowWorker(
    { ...made, workflowBundle: bundle, shutdownGraceTime: '1s', ...options.worker },
    { isCustom: false, isObserved: false },
  );
  const running = worker.run();
  return async () => {
    worker.shutdown();
    await running;
    await store.close();
    await connection.close();
  };
}
