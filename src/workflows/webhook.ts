/**
 * Workflows that run one activity beside all conversations.
 *
 * The workflow `webhook`: delivers one event to the endpoint of its scope, for as long as a day. It is no part of its conversation, which
 * goes on, hands over and ends without it; attempts cost no history.
 *
 * The workflow `retention`: deletes what has been over or idle for longer than the installation keeps it, once; a schedule starts it.
 *
 * The workflow `gc`: ends conversations that are idle for as long as they say, and archives what is old, once; a schedule starts it.
 */
import { ApplicationFailure, type ActivityOptions } from '@temporalio/common';
import type { GcOutcome, RetentionOutcome, WebhookDelivery, WebhookOutcome } from '../conversation/outbox/webhook-effects.js';
import { failureOf } from './activities.js';
import type { Host } from './host.js';

/** After 5 s, 15 s, 45 s, 2, 7 and 20 minutes, then each hour; a receiver may ask for another time (`Retry-After`). */
const POSTING: ActivityOptions = {
  startToCloseTimeout: '30s',
  heartbeatTimeout: '10s',
  scheduleToCloseTimeout: '24h',
  retry: { initialInterval: '5s', backoffCoefficient: 3, maximumInterval: '1h' },
};

/** Fails with `NotDelivered` where no attempt was acknowledged. */
export async function deliverWebhook(host: Host, delivery: WebhookDelivery): Promise<WebhookOutcome> {
  const { type, conversation } = delivery;
  try {
    const options = { ...POSTING, summary: `${type} of ${conversation}` };
    return (await host.activity('post-webhook', delivery, options)) as WebhookOutcome;
  } catch (error) {
    const { type: kind, message } = failureOf(error);
    if (kind === 'cancelled') throw error;
    throw ApplicationFailure.nonRetryable(`${type} of ${conversation} was not delivered: ${message}`, 'NotDelivered');
  }
}

/** What it has deleted stays deleted, so that another attempt goes on there. */
const DELETING: ActivityOptions = {
  startToCloseTimeout: '24h',
  heartbeatTimeout: '10s',
  retry: { initialInterval: '1m', backoffCoefficient: 2, maximumInterval: '1h', maximumAttempts: 10 },
  summary: 'deletes conversations that were over or idle for long enough',
};

const COLLECTING: ActivityOptions = { ...DELETING, summary: 'ends conversations that are idle for long enough, and archives what is old' };

export async function collectGarbage(host: Pick<Host, 'activity'>): Promise<GcOutcome> {
  return (await host.activity('collect', {}, COLLECTING)) as GcOutcome;
}

export async function applyRetention(host: Pick<Host, 'activity'>): Promise<RetentionOutcome> {
  return (await host.activity('retain', {}, DELETING)) as RetentionOutcome;
}
