/**
 * An agent's list of models: if one cannot answer, the next is called. The state has the current model, so all workers call the same one. A
 * worker that knows a model to be away skips the call (circuit-breaker.ts); this saves time and changes nothing else.
 *
 * A failure that other models would share (a refused request, a key, a prompt that is too long) does not change the model. Within a turn
 * the model that answered stays; the next turn begins with the first of the list again.
 *
 * @rule turn/fallback-fences-first: The next model's call is a separate effect: the call before it is fenced, and its streamed text is
 *   withdrawn. (test: test/conversation/turn/fallback.test.ts)
 * @rule turn/all-models-failed: Once all models have failed, the conversation waits until one of them may be called again, and restarts the
 *   list; after as many rounds as a single model has retries, the turn fails. (test: test/conversation/turn/fallback.test.ts)
 * @rule turn/chosen-model-alone: A model that a person has chosen has no fallback: the choice may be about where the text is sent. (test:
 *   test/conversation/turn/fallback.test.ts)
 */
import type { FeedEvent } from '../protocol/contract.js';
import type { StepFailure } from '../outbox/writes.js';
import type { ModelCall, Turn } from '../state/turn-state.js';
import { announce, settle } from '../outbox/settlement.js';
import { isModelAway } from '../../records/turn-end.js';
import { turnId } from '../../records/identity.js';
import { truncate } from '../../records/text.js';
import type { ConversationState } from '../state.js';
import { retryAfter, withRetry, currentModelCall, openToolCalls, withTurn } from '../state/turn-access.js';
import { abandon } from '../state/budget.js';
import { endFailed, nextModelCall } from './turn.js';

const MAX_CHARACTERS = 500;

/** Undefined if there is no list, or other models would fail alike: the caller then retries this model. */
export function askNextModel(
  state: ConversationState,
  call: ModelCall,
  failure: StepFailure,
  maxRounds: number,
): ConversationState | undefined {
  const { turn, settings, now } = state;
  const list = settings?.fallback;
  // If the turn is not configured, a person has chosen a model meanwhile (turn/chosen-model-alone).
  if (!turn?.isConfigured || !list || !isModelAway(failure.type)) return undefined;
  const rounds = turn.fallback?.rounds ?? 0;
  const modelRetry = retryAfter(failure, rounds + 1, now);
  const until = Math.min(turn.fallback?.until ?? modelRetry.until, modelRetry.until);
  const reason = failure.type;
  const [next] = list.next;
  if (next !== undefined) {
    const fallback = { model: next, insteadOf: list.first, reason };
    return ask(
      state,
      call,
      { ...fallback, rounds, until },
      { kind: 'fallback', ...feedIds(turn, call), for: describeFailure(failure), ...fallback },
    );
  }
  // (turn/all-models-failed)
  if (rounds + 1 >= maxRounds) return endFailed(state, call, failure);
  const again = { model: null, insteadOf: list.first, reason, rounds: rounds + 1 };
  const requested = ask(state, call, again, { kind: 'reset', ...feedIds(turn, call), attempt: `${call.id}/left` });
  const { id } = currentModelCall(requested) ?? {};
  // The other models' calls may have taken as long as this wait.
  if (id === undefined || until <= now) return requested;
  const announced = announce(requested, { kind: 'waiting', turn: turnId(turn.number), reason, for: describeFailure(failure), until });
  return withRetry(announced, id, { until, attempts: rounds + 1, failure });
}

/** (turn/fallback-fences-first) */
function ask(state: ConversationState, call: ModelCall, fallback: NonNullable<Turn['fallback']>, news: FeedEvent): ConversationState {
  const left = abandon(settle(state, [{ effect: call.id, entry: null }]), [call.id]);
  const moved = withTurn(announce(left, news), (turn) => ({ ...turn, isConfigured: false, deferred: [], fallback }));
  return nextModelCall(moved, openToolCalls(moved));
}

function feedIds({ number }: Turn, { id }: ModelCall): { readonly turn: string; readonly call: string } {
  return { turn: turnId(number), call: id };
}

function describeFailure({ type, message }: StepFailure): string {
  return truncate(`${type}: ${message}`, MAX_CHARACTERS);
}
