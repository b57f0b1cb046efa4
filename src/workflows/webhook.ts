/**
 * The workflow `webhook`: delivers one event to the endpoint of its scope, for as long as a day. It is no part of its conversation, which
 * goes on, hands over and ends without it; attempts cost no history.
 */
import { ApplicationFailure, isCancellation, proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import type { WebhookDelivery, WebhookOutcome } from '../conversation/activity-io/webhook-effects.js';
import { failureOf } from './failure.js';

/** After 5 s, 15 s, 45 s, 2, 7 and 20 minutes, then each hour; a receiver may ask for another time (`Retry-After`). */
const posting = proxyActivities<Activities>({
  startToCloseTimeout: '30s',
  heartbeatTimeout: '10s',
  scheduleToCloseTimeout: '24h',
  retry: { initialInterval: '5s', backoffCoefficient: 3, maximumInterval: '1h' },
});

/** Fails with `NotDelivered` where no attempt was acknowledged. */
export async function webhook(delivery: WebhookDelivery): Promise<WebhookOutcome> {
  const { type, conversation } = delivery;
  try {
    return await posting['post-webhook'].executeWithOptions({ summary: `${type} of ${conversation}` }, [delivery]);
  } catch (error) {
    if (isCancellation(error)) throw error;
    const { message } = failureOf(error);
    throw ApplicationFailure.nonRetryable(`${type} of ${conversation} was not delivered: ${message}`, 'NotDelivered');
  }
}
