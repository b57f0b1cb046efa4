/** What a schedule starts (`perdura memory schedule`): it asks the scope's one writer to take care of its memory. */
import { getExternalWorkflowHandle, log } from '@temporalio/workflow';
import type { CareRequest, MemoryStart } from '../conversation/protocol/memory-contract.js';
import { careSignal } from './messages.js';

/** `memory` is the workflow id of that writer. */
export async function memoryCare({ scope, memory, agent }: MemoryStart & CareRequest & { readonly memory: string }): Promise<void> {
  try {
    await getExternalWorkflowHandle(memory).signal(careSignal, agent === undefined ? {} : { agent });
  } catch {
    // Nothing was ever consolidated there: nothing to take care of.
    log.info('there is no memory to take care of', { scope });
  }
}
