/**
 * Activities as workflows see them. How each is run stands in the table of effects; a retry here is the only retry layer, and what should
 * be seen or be stoppable while it waits comes back as a failure and waits in the conversation's state instead.
 */
import { ActivityCancellationType, proxyActivities, type ActivityOptions } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { policyOf, summaryOfEffect, type Policy } from '../conversation/effect-table.js';
import type { HealInput, RecallInput } from '../conversation/activity-io/effects.js';
import type { Effect } from '../conversation/lifecycle.js';

/** A worker that is silent for this long is taken for dead. Activities beat twice a second. */
const HEARTBEAT = '10s';

/** Effects that are activities, by their names. */
export type ActivityEffect = Extract<Effect, { effect: keyof Activities }>;

/** The activity of that name does it; what it answers is the effect's output. */
export function runActivity(effect: ActivityEffect): Promise<unknown> {
  const policy = policyOf(effect);
  if (!policy) throw new Error(`${effect.effect} is no activity`);
  const activities = proxyActivities<Record<string, (input: unknown) => Promise<unknown>>>(optionsOf(policy));
  const activity = activities[effect.effect];
  if (!activity) throw new Error(`there is no activity ${effect.effect}`);
  return activity.executeWithOptions({ summary: summaryOfEffect(effect) }, [effect.input]);
}

const asked = proxyActivities<Activities>({ startToCloseTimeout: '10s', retry: { initialInterval: '500ms', maximumAttempts: 3 } });
const healing = proxyActivities<Activities>({ startToCloseTimeout: '2m', heartbeatTimeout: HEARTBEAT, retry: { maximumAttempts: 3 } });

/** Handlers ask for an answer that this run no longer has at hand. */
export function recall(input: RecallInput): ReturnType<Activities['recall']> {
  return asked.recall.executeWithOptions({ summary: 'read an answer again' }, [input]);
}

export function heal(input: HealInput): ReturnType<Activities['heal']> {
  return healing.heal.executeWithOptions({ summary: 'rebuild from history what the store has lost' }, [input]);
}

function optionsOf({ startToClose, beats, firstRetry, lastRetry, attempts, isStoppable }: Policy): ActivityOptions {
  return {
    startToCloseTimeout: startToClose,
    ...(beats && { heartbeatTimeout: HEARTBEAT }),
    retry: {
      initialInterval: firstRetry,
      backoffCoefficient: 2,
      ...(lastRetry !== undefined && { maximumInterval: lastRetry }),
      ...(attempts !== undefined && { maximumAttempts: attempts }),
    },
    ...(isStoppable && { cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED }),
  };
}
