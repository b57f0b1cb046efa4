/** Which workflow keeps a scope's memory, and with what it is started. */
import { WorkflowNotFoundError, Client, type ConnectionLike } from '@temporalio/client';
import { memoryWorkflowId, MEMORY_WORKFLOW_TYPE } from '../conversation/protocol/memory-contract.js';
import type { AskedConsolidation } from '../conversation/protocol/memory-contract.js';
import { consolidateSignal } from '../workflows/messages.js';

/**
 * `memory:<scope>`; where that lives on another task queue, one for ours beside it: that queue may have no worker any more, and a reset
 * would wait for it in vain. Writers of one store do not overwrite each other: MEMORY.md is compared before it is set.
 */
export async function memoryIdFor(client: Client, scope: string, taskQueue: string): Promise<string> {
  return (await findMemory(client, scope, taskQueue)).id;
}

/** `isRunning`: of the one that was found; one that has ended answers nothing. */
export async function findMemory(
  client: Client,
  scope: string,
  taskQueue: string,
): Promise<{ readonly id: string; readonly isRunning: boolean }> {
  const id = memoryWorkflowId(scope);
  try {
    const found = await client.workflow.getHandle(id).describe();
    const isRunning = found.status.name === 'RUNNING';
    return isRunning && found.taskQueue !== taskQueue ? { id: `${id}:${taskQueue}`, isRunning } : { id, isRunning };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { id, isRunning: false };
    throw error;
  }
}

export function memoryStart(scope: string, { id, taskQueue }: { readonly id: string; readonly taskQueue: string }) {
  return {
    workflowId: id,
    taskQueue,
    args: [{ scope }] as [{ scope: string }],
    memo: { scope },
    staticSummary: `long-term memory of ${scope}`,
    staticDetails: `The only writer of MEMORY.md and of what is remembered of \`${scope}\`. What it does now stands under Current Details.`,
  };
}

/** How a worker reaches the memory workflow of a scope: a signal, with the start where it does not run. */

interface MemoryPlace {
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
