/**
 * Signals and updates of a reserved name reach the handlers under another one. The SDK throws at `__temporal_…` where a workflow has a
 * default handler: that fails the workflow task, and each later one, so a single such signal would end a conversation for good.
 */
import { workflowInfo, type WorkflowInterceptors } from '@temporalio/workflow';

const RESERVED = '__temporal_';
/** Others may register names that the SDK's packages reserve. */
const OURS: readonly string[] = ['conversation', 'memory'];

export function interceptors(): WorkflowInterceptors {
  const { workflowType } = workflowInfo();
  if (!OURS.includes(workflowType)) return {};
  return {
    internals: [
      {
        activate(input, next) {
          for (const { signalWorkflow, doUpdate } of input.activation.jobs ?? []) {
            if (signalWorkflow?.signalName) signalWorkflow.signalName = permitted(signalWorkflow.signalName);
            if (doUpdate?.name) doUpdate.name = permitted(doUpdate.name);
          }
          return next(input);
        },
      },
    ],
  };
}

function permitted(name: string): string {
  return name.startsWith(RESERVED) ? `reserved ${name}` : name;
}
