/** What a schedule starts (`perdura memory schedule`): it asks the scope's one writer to take care of its memory. */
import { getExternalWorkflowHandle, log } from '@temporalio/workflow';
import { memoryWorkflowId, type CareRequest, type MemoryStart } from '../conversation/memory-contract.js';
import { careSignal } from './messages.js';

export async function memoryCare({ scope, agent }: MemoryStart & CareRequest): Promise<void> {
  try {
    await getExternalWorkflowHandle(memoryWorkflowId(scope)).signal(careSignal, agent === undefined ? {} : { agent });
  } catch {
    // Nothing was ever consolidated there: nothing to take care of.
    log.info('there is no memory to take care of', { scope });
  }
}
