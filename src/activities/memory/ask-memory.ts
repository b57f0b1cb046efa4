/** The `ask-memory` step: tells the workflow `memory:<scope>` what to consolidate, and starts it where it does not run. */
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { AskMemoryInput } from '../../conversation/activity-io/memory-effects.js';
import type { AskedConsolidation } from '../../conversation/memory-workflow/memory-queue.js';
import { consolidationId } from '../../memory/consolidation/consolidation-id.js';
import { keyOf } from '../key.js';

/** Sent twice it is one request: it has an id. */
export type AskMemory = (scope: string, request: AskedConsolidation) => Promise<void>;

export async function askMemory(ask: AskMemory | undefined, { identity, request }: AskMemoryInput): Promise<void> {
  if (!ask) throw ApplicationFailure.nonRetryable('this worker was made without a way to the memory workflow', 'internal');
  const { conversation, life, scope } = keyOf(identity);
  const id = consolidationId({ conversation, life }, request.requestId);
  await ask(scope, { ...request, id, conversation, life, taskQueue: Context.current().info.taskQueue });
}
