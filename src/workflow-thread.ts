/**
 * A separate program, run as a thread beside a worker and never imported: the SDK's thread for workflows, without its notes of where each
 * promise was made. They are for the query `__stack_trace`, cost a tenth of a turn, and of a loop that waits say nothing (call-stacks.ts).
 */
import { globalHandlers } from '@temporalio/worker/lib/workflow/vm-shared.js';

Object.assign(globalHandlers, { setPromiseHook: () => undefined });
require('@temporalio/worker/lib/workflow/workflow-worker-thread.js');
