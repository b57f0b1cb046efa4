/**
 * The `deliver` step: events become bodies, made once of what the store has, and a separate workflow delivers each. Done again it begins
 * none a second time: an event has one id.
 */
import { createHash } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import { Context } from '@temporalio/activity';
import type { DeliverInput, DueEvent, WebhookDelivery, WebhookOutcome } from '../../conversation/outbox/webhook-effects.js';
import { webhookTypeOf } from '../../conversation/outbox/deliveries.js';
import { splitChildId } from '../../conversation/protocol/limits.js';
import { readArguments, readText } from '../../memory/bodies.js';
import { answerIn } from '../../records/message.js';
import { scopeParts, readTenant } from '../../records/identity.js';
import { truncate } from '../../records/text.js';
import { MAX_ERROR } from '../../records/turn-end.js';
import { withoutSecrets } from '../../tools/egress-scan.js';
import { readHealed } from '../context/context.js';
import type { ConversationDependencies, ActivityDependencies, PostOutcome } from '../dependencies.js';
import { MAX_WEBHOOK_TEXT, type WebhookEvent } from '../../records/webhooks/webhook-event.js';

/** Of what a call that waits would run with. */
const ARGUMENT_CHARACTERS = 2_000;

export async function deliver(dependencies: ConversationDependencies, input: DeliverInput): Promise<void> {
  const { startDelivery, identity, key } = dependencies;
  if (!startDelivery) throw ApplicationFailure.nonRetryable('this worker has no way to begin deliveries', 'not-available');
  // In their order: the first attempts are made in that, too, while the receiver keeps up.
  for (const event of input.events) {
    const made = await toWebhookEvent(dependencies, input, event);
    await startDelivery({
      id: toEventId(dependencies, event),
      type: webhookTypeOf(event),
      identity,
      conversation: key.conversation,
      body: JSON.stringify(made),
      ...(event.kind === 'waiting' && { wait: { callId: event.callId, until: event.until } }),
    });
  }
}

function toEventId({ key: { namespace, conversation, life } }: ConversationDependencies, { number }: DueEvent): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([namespace, conversation, life, number]))
    .digest('hex');
  return `evt_${hash.slice(0, 32)}`;
}

async function toWebhookEvent(dependencies: ConversationDependencies, input: DeliverInput, event: DueEvent): Promise<WebhookEvent> {
  const { identity, key, secrets } = dependencies;
  const clean = (text: string): string => (secrets ? withoutSecrets(text, secrets) : text);
  const { tenant, scope } = scopeParts(identity.scope);
  const conversation = await shownId(dependencies, key.conversation);
  const title = input.title === null ? null : clean(input.title);
  const about = {
    ...{ conversation, agent: identity.agent, scope, ...(tenant !== undefined && { tenant }) },
    ...{ title, turn: event.turn, sequence: event.number },
  };
  const timestamp = new Date(event.at).toISOString();
  if (event.kind === 'waiting') {
    const { callId, what, tool, askedIn, until, hash } = event;
    const given = (await readArguments(dependencies.store, key, { callId, askedIn })) ?? null;
    const shown = clean(truncate(JSON.stringify(given), ARGUMENT_CHARACTERS));
    const command = `perdura ${what === 'question' ? 'answer' : 'approve'} ${tenant === undefined ? '' : `${tenant}/`}${conversation} ${callId}`;
    const { parent } = input;
    const data = {
      ...about,
      ...{ callId, tool, arguments: shown, hash, expiresAt: new Date(until).toISOString(), command },
      ...(parent && { parent: { conversation: await shownId(dependencies, parent.conversation), callId: parent.callId } }),
    };
    return { type: `${what}.waiting`, timestamp, data };
  }
  const { stopReason, usage, toolCalls, error, answerSlot } = event.ended;
  const text = await answerAt(dependencies, answerSlot);
  const data = {
    ...about,
    stopReason,
    text: text === null ? null : truncate(clean(text), MAX_WEBHOOK_TEXT),
    ...(text !== null && text.length > MAX_WEBHOOK_TEXT && { isCut: true }),
    usage,
    toolCalls,
    ...(error && { error: { type: error.type, message: truncate(clean(error.message), MAX_ERROR) } }),
  };
  return { type: webhookTypeOf(event) === 'turn.failed' ? 'turn.failed' : 'turn.finished', timestamp, data };
}

/** Null where the store has lost it, and history too. */
async function answerAt(dependencies: ConversationDependencies, slot: number | null): Promise<string | null> {
  if (slot === null) return '';
  const { store, key } = dependencies;
  const [found] = await store.entries.read(key, [slot]);
  const [entry] = found ? [found] : await readHealed(dependencies, [slot]).catch(() => []);
  if (entry?.message.role !== 'assistant') return null;
  const answer = answerIn(entry.message.blocks);
  return answer ? readText(store, key, answer.textRef ?? answer.text) : '';
}

/** As its tenant knows it. Receivers may be the tenant's, and the id that Temporal has is the installation's. */
async function shownId({ readPublicId, identity }: ConversationDependencies, id: string): Promise<string> {
  if (readTenant(identity.scope) === undefined) return id;
  if (!readPublicId) throw ApplicationFailure.nonRetryable(`this worker has no way to ask what a tenant calls ${id}`, 'not-available');
  const [root, ...below] = splitChildId(id);
  return [await readPublicId(root), ...below].join(':');
}

// The `post-webhook` step: one attempt at one event. What fails is tried again by Temporal, under the same id and with the same bytes.

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
