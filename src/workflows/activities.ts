/**
 * Activities as workflows see them. How each is run stands in the table of effects; a retry here is the only retry layer, and what should
 * be seen or be stoppable while it waits comes back as a failure and waits in the conversation's state instead.
 */
import { ActivityCancellationType, proxyActivities, type ActivityOptions } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { policyOf, summaryOfEffect, type Policy } from '../conversation/effect-table.js';
import type { HealInput, RecallInput } from '../conversation/activity-io/effects.js';
import type { Effect } from '../conversation/effect.js';
import type { ConsolidateInput, RememberInput } from '../conversation/activity-io/memory-effects.js';

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

/** What the memory workflow has done by activities: on the asker's task queue, where its store is, or else on its own. */

type Of<Name extends keyof Activities> = ReturnType<Activities[Name]>;

interface MemoryActivities {
  consolidate(input: ConsolidateInput, summary: string): Of<'consolidate'>;
  remember(input: RememberInput): Of<'remember'>;
  care(input: Parameters<Activities['care']>[0]): Of<'care'>;
  forget(input: Parameters<Activities['forget']>[0]): Of<'forget'>;
  review(input: Parameters<Activities['review']>[0]): Of<'review'>;
}

export function memoryActivities(taskQueue: string | undefined): MemoryActivities {
  const where = taskQueue === undefined ? {} : { taskQueue };
  const asking = proxyActivities<Activities>({
    ...where,
    // Two whole model calls, the second to repair the first.
    startToCloseTimeout: '21m',
    // A queue whose workers are gone for good must not hold up the others for ever.
    scheduleToStartTimeout: '2m',
    heartbeatTimeout: '10s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '5s', maximumAttempts: 4 },
  });
  const writing = proxyActivities<Activities>({
    ...where,
    startToCloseTimeout: '30s',
    scheduleToStartTimeout: '2m',
    retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '5s', maximumAttempts: 6 },
  });
  return {
    consolidate: (input, summary) => asking.consolidate.executeWithOptions({ summary }, [input]),
    remember: (input) => writing.remember.executeWithOptions({ summary: `write ${input.cause}` }, [input]),
    care: (input) => asking.care.executeWithOptions({ summary: 'merge duplicates and prune' }, [input]),
    forget: (input) => writing.forget.executeWithOptions({ summary: 'forget' }, [input]),
    review: (input) => writing.review.executeWithOptions({ summary: `${input.decision} ${input.id}` }, [input]),
  };
}
