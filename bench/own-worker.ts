/** A worker beside the product's own, with agents, tools and a model of a row's choice. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Client } from '@temporalio/client';
import type { WorkerOptions } from '@temporalio/worker';
import { assemble } from '../src/assemble.js';
import { createClientWith, type PerduraClient } from '../src/client.js';
import { createModels } from '../src/models/providers.js';
import type { Model } from '../src/models/model.js';
import { createFileStore } from '../src/stores/file/index.js';
import { createWorkflowWorker } from '../src/workflow-code.js';
import { AS_ALONE } from './product.js';
import { builtinTools } from '../src/tools/builtin/index.js';
import type { Tool } from '../src/tools/tool.js';

export interface OwnWorkerNeeds {
  readonly temporal: Client;
  /** Of the product's worker: the same bundle, the same settings. */
  readonly options: WorkerOptions;
  readonly taskQueue: string;
  /** Content of each agent's agent.json. */
  readonly agents: Readonly<Record<string, object>>;
  readonly tools: readonly Tool[];
  /** Of the workspace, by path. */
  readonly files?: Readonly<Record<string, string>>;
  readonly model: Model;
}

/** On files, in a folder of its own that goes when `work` has ended. */
export async function withOwnWorker<T>(needs: OwnWorkerNeeds, work: (client: PerduraClient) => Promise<T>): Promise<T> {
  const { temporal, options, taskQueue, agents, tools, model, files = {} } = needs;
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'perdura-bench-own-')));
  const store = createFileStore({ dir: join(dir, 'memory') });
  for (const [name, config] of Object.entries(agents)) {
    await mkdir(join(dir, 'agents', name), { recursive: true });
    await writeFile(join(dir, 'agents', name, 'agent.json'), JSON.stringify(config));
  }
  const workspace = join(dir, 'workspace');
  await mkdir(workspace);
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(workspace, name)), { recursive: true });
    await writeFile(join(workspace, name), text);
  }
  const { activities, close } = assemble({
    ...{ connection: temporal.connection, namespace: 'default', taskQueue, store, workspace },
    agentsDir: join(dir, 'agents'),
    models: createModels({ custom: { anthropic: model } }),
    tools: [...builtinTools, ...tools],
    defaultModel: 'anthropic/claude-sonnet-5-5',
  });
  const worker = await createWorkflowWorker({ ...options, taskQueue, activities }, AS_ALONE);
  const running = worker.run();
  const client = createClientWith({ client: temporal, namespace: 'default', taskQueue, store: () => store });
  try {
    return await work(client);
  } finally {
    worker.shutdown();
    await running;
    await client.close();
    await close();
    await store.close();
    await rm(dir, { recursive: true, force: true });
  }
}
