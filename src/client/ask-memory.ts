/** How a worker reaches the memory workflow of a scope: a signal, with the start where it does not run. */
import { Client, type ConnectionLike } from '@temporalio/client';
import { MEMORY_WORKFLOW_TYPE, memoryWorkflowId } from '../conversation/memory-contract.js';
import type { AskedConsolidation } from '../conversation/memory-queue.js';
import { consolidateSignal } from '../workflows/messages.js';

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
    await client.workflow.signalWithStart(MEMORY_WORKFLOW_TYPE, {
      ...memoryStart(scope, taskQueue),
      signal: consolidateSignal,
      signalArgs: [request],
    });
  };
}

/** What the workflow `memory:<scope>` is started with, whoever starts it. */
export function memoryStart(scope: string, taskQueue: string) {
  return {
    workflowId: memoryWorkflowId(scope),
    taskQueue,
    args: [{ scope }] as [{ scope: string }],
    memo: { scope },
    staticSummary: `long-term memory of ${scope}`,
    staticDetails: `The only writer of MEMORY.md and of what is remembered of \`${scope}\`. What it does now stands under Current Details.`,
  };
}
