/** Sub-agents and the parent: workflows of their own that are started, told and reported to. */
import { getExternalWorkflowHandle, ParentClosePolicy, startChild, type SignalDefinition } from '@temporalio/workflow';
import { LIMITS, type TurnResult } from '../conversation/protocol/contract.js';
import type { ChildStart } from '../conversation/lifecycle.js';
import type { ParentLink } from '../records/identity.js';
import type { ConversationEvent } from '../conversation/event.js';
import type { EndedTurn } from '../conversation/state/turn-state.js';
import { NO_USAGE } from '../records/usage.js';
import { beginningOf } from '../records/text.js';
import { now } from './clock.js';
import { failureOf } from './failure.js';
import { childSignal, WORKFLOW_TYPE } from './messages.js';

/** Whoever is not there any more need not be told. Resolves once the server has it. */
export function signalOther<Args extends unknown[]>(workflowId: string, signal: SignalDefinition<Args>, ...args: Args): Promise<void> {
  return getExternalWorkflowHandle(workflowId)
    .signal(signal, ...args)
    .catch(() => undefined);
}

/**
 * Resolves once it runs. Abandoned, so that it outlives this run's hand-over (a `TERMINATE` child dies with it, measured): it reports by signal. That it
 * ended without a report shows only here, while this run lasts.
 */
export async function startSubAgent({ callId, child, options }: ChildStart, dispatch: (event: ConversationEvent) => void): Promise<void> {
  const { agent = '', scope = '', title = '' } = options;
  const handle = await startChild(WORKFLOW_TYPE, {
    workflowId: child,
    args: [options],
    parentClosePolicy: ParentClosePolicy.ABANDON,
    memo: { agent, scope, title },
    staticSummary: title,
  });
  handle.result().catch((error: unknown) => {
    const { type, message } = failureOf(error);
    const report = { text: '', stopReason: 'failed', usage: NO_USAGE, error: { type, message } } as const;
    dispatch({ kind: 'child-ended', callId, report, at: now() });
  });
}

/** How the one turn of this sub-agent ended. A signal said in the task that completes the workflow is never sent (measured): it is waited for. */
export async function report(
  parent: ParentLink,
  ended: EndedTurn,
  resultOf: (ended: EndedTurn) => Promise<TurnResult | undefined>,
): Promise<void> {
  const result = await resultOf(ended);
  const text = beginningOf(result?.text ?? '(The store, which has its answer, does not answer now.)', LIMITS.reportBytes / 4);
  const { stopReason, usage, error } = ended;
  const told = { text, stopReason, usage, ...(error ? { error } : {}) };
  await signalOther(parent.conversation, childSignal, { callId: parent.callId, kind: 'ended', report: told });
}
