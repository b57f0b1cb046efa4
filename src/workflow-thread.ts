/**
 * A separate program, run as a thread beside a worker and never imported: the SDK's thread for workflows, with two differences.
 *
 * It does not note where each promise was made: that is for the query `__stack_trace`, takes 0.7 ms of CPU a turn (profiled), and of a loop that
 * waits says nothing (call-stacks.ts). And it says with each completion whether its workflow has called a sink: the worker asks only then.
 */
import { BaseVMWorkflow, globalHandlers } from '@temporalio/worker/lib/workflow/vm-shared.js';

Object.assign(globalHandlers, { setPromiseHook: () => undefined });

const { activate } = BaseVMWorkflow.prototype;
BaseVMWorkflow.prototype.activate = async function (
  this: BaseVMWorkflow & { readonly activator: { readonly sinkCalls: unknown[] } },
  ...given
) {
  const completion = await activate.apply(this, given);
  return Object.assign(completion, { hasSinkCalls: this.activator.sinkCalls.length > 0 });
};
require('@temporalio/worker/lib/workflow/workflow-worker-thread.js');
