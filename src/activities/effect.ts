/**
 * Reserve, do, commit: the way every paid or side-effecting piece of work goes (design section 2).
 *
 * A fenced effect keeps its cost and writes nothing else.
 *
 * @rule activities/never-again: A committed effect returns its result and is never done again. (test: test/workflows/model-step.test.ts)
 * @rule activities/one-write: Result and entry are one write. With the store away the result still goes to Temporal, marked as not
 *   persisted. (test: test/workflows/model-step.test.ts)
 */
import { randomUUID } from 'node:crypto';
import { log } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { Entry, JsonValue } from '../records/message.js';
import type { ItemRecord } from '../records/memory/agent-memory.js';
import type { Spending } from '../records/spending.js';
import { StoreUnavailable, type ConversationKey, type EffectClaim, type LiveEvent, type Reservation } from '../stores/store.js';
import type { ConversationIdentity } from '../records/identity.js';
import type { TraceStore } from './dependencies.js';

export interface Effect<Result> {
  readonly claim: EffectClaim;
  /** By an attempt that has reserved it together with other writes. */
  readonly reserved?: Reserved;
  /** `earlier`: how many attempts reserved this before and did not commit. */
  readonly work: (attempt: { readonly id: string; readonly earlier: number }) => Promise<Done<Result>>;
  readonly fenced: (done?: Done<Result>) => Result;
}

export interface Reserved {
  readonly claim: EffectClaim;
  readonly attempt: string;
  readonly reservation: Reservation | undefined;
}

export interface Done<Result> {
  readonly result: Result;
  /** None when there is nothing to remember. */
  readonly entry?: Entry;
  readonly spent?: Spending;
  /** Written with the entry or not at all. */
  readonly items?: readonly ItemRecord[];
  /** Told to watchers once it has committed. */
  readonly publish?: readonly LiveEvent[];
}

/** Of work for a conversation, now; nothing where no model was called. */
export function toSpending(
  { key, identity }: { readonly key: ConversationKey; readonly identity: Pick<ConversationIdentity, 'agent'> },
  { kind, model, usage }: Pick<Spending, 'kind' | 'model' | 'usage'>,
): { readonly spent?: Spending } {
  const { conversation, scope } = key;
  if (usage.inputTokens + usage.outputTokens === 0) return {};
  return { spent: { at: Date.now(), kind, conversation, agent: identity.agent, scope, model, usage } };
}

/** What an attempt has cost that brought no answer. `attempt`: an id that no other attempt has. */
export function noteFailedSpending(where: TraceStore, attempt: string, spent: Spending | undefined): Promise<void> {
  return noteSpending(where, attempt, spent && { ...spent, failed: true });
}

/** Of what has no commit. A store that is away loses it: what it was paid for matters more than its price. */
export async function noteSpending({ store, key }: TraceStore, id: string, spent: Spending | undefined): Promise<void> {
  if (!spent) return;
  await store.effects.spend(key, id, spent).catch((error: unknown) => {
    log.warn('what a call has cost could not be written', { id, error: String(error) });
  });
}

type Persistable = { readonly persisted: boolean };

const TRIES = 4;
const PAUSE_MS = 250;

export async function performEffect<Result extends Persistable>({ store, key }: TraceStore, effect: Effect<Result>): Promise<Result> {
  const { claim } = effect;
  const id = effect.reserved?.attempt ?? randomUUID();
  const reservation = effect.reserved?.reservation ?? (await retryWrite(() => store.effects.reserve(key, claim, id)));
  if (reservation.status === 'committed') return reservation.result as unknown as Result;
  if (reservation.status === 'fenced') return effect.fenced();
  if (reservation.status === 'conflict') throw conflict(claim);

  const done = await effect.work({ id, earlier: reservation.earlier });
  try {
    const { result, entry, ...extras } = done;
    const entries = entry ? [entry] : [];
    const commitment = await retryWrite(() => store.effects.commit(key, claim, result as unknown as JsonValue, entries, extras));
    if (commitment.status === 'committed') return commitment.result as unknown as Result;
    if (commitment.status === 'fenced') return effect.fenced(done);
  } catch (error) {
    if (error instanceof StoreUnavailable) return { ...done.result, persisted: false };
    throw error;
  }
  throw conflict(claim);
}

/**
 * Tried again in place. What is done is paid for, and what has one attempt only would be reported as "outcome unknown" without ever
 * having run: a store that blinks should not show.
 */
export async function retryWrite<T>(write: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || attempt === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

function conflict({ id }: EffectClaim): ApplicationFailure {
  return ApplicationFailure.nonRetryable(
    `effect ${id} was already done for another request; the conversation's history and its store do not belong together`,
    'effect-conflict',
  );
}
