/** The `post-webhook` step: one attempt at one event. What fails is tried again by Temporal, under the same id and with the same bytes. */
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { WebhookDelivery, WebhookOutcome } from '../../conversation/outbox/webhook-effects.js';
import type { ActivityDependencies, PostOutcome } from '../dependencies.js';

/** Another worker of the queue may have one. */
const NO_WEBHOOK: PostOutcome = {
  kind: 'failed',
  message: 'this worker has no webhook in its settings: set PERDURA_WEBHOOK_URL or PERDURA_WEBHOOKS where it runs',
};

export async function postWebhook(dependencies: ActivityDependencies, delivery: WebhookDelivery): Promise<WebhookOutcome> {
  const { info, cancellationSignal } = Context.current();
  if (await isOver(dependencies, delivery, info.attempt)) return { outcome: 'over' };
  const outcome = (await dependencies.webhooks?.post(delivery, cancellationSignal)) ?? NO_WEBHOOK;
  if (outcome.kind !== 'failed') return { outcome: outcome.kind, status: outcome.status };
  const { message, retryAfterMs } = outcome;
  const failure = ApplicationFailure.create({
    type: 'webhook-failed',
    message,
    nonRetryable: false,
    ...(retryAfterMs !== undefined && { nextRetryDelay: retryAfterMs }),
  });
  failure.stack = '';
  throw failure;
}

/** A person is not called to what has been decided meanwhile. The first attempt comes at once, without that check. */
async function isOver(
  { isWaiting, now = Date.now }: ActivityDependencies,
  { conversation, wait }: WebhookDelivery,
  attempt: number,
): Promise<boolean> {
  if (!wait) return false;
  if (now() >= wait.until) return true;
  if (attempt === 1 || !isWaiting) return false;
  return !(await isWaiting(conversation, wait.callId).catch(() => true));
}
