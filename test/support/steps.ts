/** The steps of a conversation as its history has them: which activities, what people read of them, what they brought. */
import { defaultDataConverter, type Payload } from '@temporalio/common';
import type { temporal } from '@temporalio/proto';
import type { ModelStepInput, ModelStepResult, RunToolInput, ToolFinished } from '../../src/conversation/turn/model-step-effects.js';
import type { StoreStepInput, StoreStepResult } from '../../src/conversation/outbox/writes.js';
import { runsOf } from './run-chain.js';
import type { World } from './world.js';

type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

interface Done<Name extends string, Input, Output> {
  readonly name: Name;
  readonly summary: string;
  readonly input: Input;
  /** Undefined while it runs, and of one that failed. */
  readonly output: Output | undefined;
  /** The attempt that was the last. */
  readonly attempt: number;
}

export type DoneStep =
  | Done<'model-step', ModelStepInput, ModelStepResult>
  | Done<'store-step', StoreStepInput, StoreStepResult>
  | Done<'run-tool', RunToolInput, ToolFinished>
  | Done<'compact' | 'truncate' | 'evict' | 'ask-memory' | 'heal', unknown, unknown>;

/** All activities of all runs, in the order in which they were scheduled. */
export async function stepsOf(world: Pick<World, 'temporal'>, id: string): Promise<DoneStep[]> {
  const runs = await runsOf(world, id);
  return runs.flatMap((events) => events.flatMap((event) => stepOf(event, events) ?? []));
}

export async function modelStepsOf(world: Pick<World, 'temporal'>, id: string): Promise<Extract<DoneStep, { name: 'model-step' }>[]> {
  return (await stepsOf(world, id)).filter((step) => step.name === 'model-step');
}

/** Of all runs: what a turn takes is the difference. */
export async function eventsSoFar(world: Pick<World, 'temporal'>, id: string): Promise<number> {
  return (await runsOf(world, id)).flat().length;
}

/** What the Temporal UI shows on top of the conversation. */
export async function currentDetails({ temporal }: Pick<World, 'temporal'>, id: string): Promise<string> {
  const { currentDetails } = await temporal.workflow.getHandle(id).query<{ currentDetails: string }>('__temporal_workflow_metadata');
  return currentDetails;
}

function stepOf(event: HistoryEvent, events: readonly HistoryEvent[]): DoneStep | undefined {
  const scheduled = event.activityTaskScheduledEventAttributes;
  if (!scheduled) return undefined;
  const belongs = (to: { readonly scheduledEventId?: unknown } | null | undefined): boolean =>
    String(to?.scheduledEventId) === String(event.eventId);
  const started = events.find((other) => belongs(other.activityTaskStartedEventAttributes))?.activityTaskStartedEventAttributes;
  const completed = events.find((other) => belongs(other.activityTaskCompletedEventAttributes))?.activityTaskCompletedEventAttributes;
  return {
    name: scheduled.activityType?.name,
    summary: read(event.userMetadata?.summary),
    input: read(scheduled.input?.payloads?.[0]),
    output: completed ? read(completed.result?.payloads?.[0]) : undefined,
    attempt: started?.attempt ?? 0,
  } as DoneStep;
}

function read(payload: Payload | null | undefined): unknown {
  return payload ? defaultDataConverter.payloadConverter.fromPayload(payload) : undefined;
}
