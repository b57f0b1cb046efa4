/**
 * Activities as workflows see them: timeouts and retries as one table. A retry here is the only retry layer; what should
 * be seen or be stoppable while it waits comes back as a failure and waits in the conversation's state instead.
 */
import { ActivityCancellationType, proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import type { AskMemoryInput } from '../conversation/memory-effects.js';
import type { CallModelInput, RecallInput } from '../conversation/effects.js';
import type { CompactInput, TruncateInput } from '../conversation/compaction-effects.js';
import type { NotifyInput, ToolPlan } from '../conversation/tool-effects.js';
import type { OpenOriginInput, RewindInput } from '../conversation/lineage-effects.js';
import type { ToolRun } from '../conversation/next-step.js';
import { CONSOLIDATING_RULES } from '../conversation/rules.js';

/** A worker that is silent for this long is taken for dead. Activities beat twice a second. */
const HEARTBEAT = '10s';

/** Short, idempotent, no network beyond the store: no queue hop, and the input does not enter history. */
const local = proxyLocalActivities<Activities>({
  startToCloseTimeout: '1s',
  localRetryThreshold: '1s',
  retry: { maximumAttempts: 1 },
});

const model = proxyActivities<Activities>({
  startToCloseTimeout: '11m',
  heartbeatTimeout: HEARTBEAT,
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '5s', maximumAttempts: 4 },
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
});

const ordinary = proxyActivities<Activities>({
  startToCloseTimeout: '2m',
  heartbeatTimeout: HEARTBEAT,
  retry: { maximumAttempts: 3 },
  summary: 'rebuild from history what the store has lost',
});

/** Long enough for a slow model to read a long conversation, and its repair. */
const memory = proxyActivities<Activities>({
  startToCloseTimeout: '5m',
  heartbeatTimeout: HEARTBEAT,
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '5s', maximumAttempts: 3 },
});

/** Short, and beside the conversation. What is asked of the memory workflow goes through the client: workflow code cannot start what it signals. */
const asking = proxyActivities<Activities>({
  startToCloseTimeout: '10s',
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumAttempts: 3 },
});

/** A conversation cannot be without its beginning: while the store is away it is tried again and again. */
const opening = proxyActivities<Activities>({
  startToCloseTimeout: '2m',
  heartbeatTimeout: HEARTBEAT,
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '30s' },
});

/** Someone waits for it. */
const rewinding = proxyActivities<Activities>({
  startToCloseTimeout: '2m',
  heartbeatTimeout: HEARTBEAT,
  retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '5s', maximumAttempts: 4 },
});

export const heal = ordinary.heal;
export const uncompact = local.uncompact;
export const putAway = local['put-away'];

const TOOL_END_MS = 15_000;

export const record = local.record;
export const persist = local.persist;
/** Asked by handlers, beside whatever the loop does: local only by the rules before 2 (N5 in next-step.ts). */
export function recall(input: RecallInput, rules: number): ReturnType<Activities['recall']> {
  return rules < CONSOLIDATING_RULES ? local.recall(input) : asking.recall.executeWithOptions({ summary: 'read an answer again' }, [input]);
}
export const runLocalTool = local['run-tool'];

export function callModel(input: CallModelInput, summary: string): ReturnType<Activities['call-model']> {
  return model['call-model'].executeWithOptions({ summary }, [input]);
}

export function compact(input: CompactInput, summary: string): ReturnType<Activities['compact']> {
  return memory.compact.executeWithOptions({ summary }, [input]);
}

export function truncate(input: TruncateInput, summary: string): ReturnType<Activities['truncate']> {
  return asking.truncate.executeWithOptions({ summary }, [input]);
}

/** Temporal's own word for how it stands. */
export function lookAfter(child: string): ReturnType<Activities['look-after']> {
  return asking['look-after'].executeWithOptions({ summary: `is ${child} still there?` }, [{ child }]);
}

export function notify(input: NotifyInput, summary: string): ReturnType<Activities['notify']> {
  return asking.notify.executeWithOptions({ summary }, [input]);
}

export function askMemory(input: AskMemoryInput, summary: string): ReturnType<Activities['ask-memory']> {
  return asking['ask-memory'].executeWithOptions({ summary }, [input]);
}

/** One more than the tool itself is given, so that a worker's death does not cost it one. */
function attemptsOf({ repeatable, verifiable, attempts = 1 }: ToolPlan): number {
  return repeatable || verifiable ? 3 + attempts : 1;
}

export function openOrigin(input: OpenOriginInput, summary: string): ReturnType<Activities['open-origin']> {
  return opening['open-origin'].executeWithOptions({ summary }, [input]);
}

export function rewind(input: RewindInput, summary: string): ReturnType<Activities['rewind']> {
  return rewinding.rewind.executeWithOptions({ summary }, [input]);
}

export function runTool({ input, summary }: ToolRun): ReturnType<Activities['run-tool']> {
  const tools = proxyActivities<Activities>({
    startToCloseTimeout: input.plan.timeoutMs + TOOL_END_MS,
    heartbeatTimeout: HEARTBEAT,
    // What must not run twice gets one attempt; its loss is told to the model as "outcome unknown".
    retry: { initialInterval: '1s', maximumInterval: '5s', maximumAttempts: attemptsOf(input.plan) },
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  });
  return tools['run-tool'].executeWithOptions({ summary }, [input]);
}
