/** How a worker reaches the memory workflow of a scope: a signal, with the start where it does not run. */
import { Client, type ConnectionLike } from '@temporalio/client';
import { MEMORY_WORKFLOW_TYPE } from '../conversation/protocol/memory-contract.js';
import type { AskedConsolidation } from '../conversation/memory-workflow/memory-queue.js';
import { consolidateSignal } from '../workflows/messages.js';
import { memoryIdFor, memoryStart } from './memory-workflow.js';

export interface MemoryPlace {
  readonly connection: ConnectionLike;
  readonly namespace: string;
  readonly taskQueue: string;
}

export function createAskMemory({
  connection,
  namespace,
  taskQueue,
}: MemoryPlace): (scope: string, request: AskedConsolidation) => Promise<void> {
  const client = new Client({ connection, namespace });
  return async (scope, request) => {
    const id = await memoryIdFor(client, scope, taskQueue);
    await client.workflow.signalWithStart(MEMORY_WORKFLOW_TYPE, {
      ...memoryStart(scope, { id, taskQueue }),
      signal: consolidateSignal,
      signalArgs: [request],
    });
  };
}
