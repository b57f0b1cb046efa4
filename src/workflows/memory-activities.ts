/** What the memory workflow has done by activities: on the asker's task queue, where its store is, or else on its own. */
import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import type { ConsolidateInput, RememberInput } from '../conversation/activity-io/memory-effects.js';

type Of<Name extends keyof Activities> = ReturnType<Activities[Name]>;

export interface MemoryActivities {
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
