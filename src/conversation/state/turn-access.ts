/** How the parts of a running turn are found and changed, which model answers it, and when a failed step is tried again. */
import type { Fallback } from '../protocol/contract.js';
import { running, isRunning } from '../effect.js';
import type { ConversationState } from '../state.js';
import type { ModelCall, ToolCall, Turn, Retry } from './turn-state.js';
import { addUsage } from '../../records/message.js';
import { listSlots, withSlot } from '../../records/slots.js';
import type { ConfigureRequest } from './settings.js';
import type { EventOf } from '../event.js';
import type { AppContextRef, StepFailure } from '../outbox/writes.js';

/** Ids of the model step and the tools in flight: what a stop is for. */
export function callsInFlight({ inFlight }: Pick<ConversationState, 'inFlight'>): string[] {
  return inFlight.flatMap(({ effect, id }) => (effect === 'model-step' || effect === 'run-tool' ? [id] : []));
}

export function withTurn(state: ConversationState, change: (turn: Turn) => Turn): ConversationState {
  return state.turn ? { ...state, turn: change(state.turn) } : state;
}

export function spend(state: ConversationState, usage: Turn['usage']): ConversationState {
  return withTurn(state, (turn) => ({ ...turn, usage: addUsage(turn.usage, usage) }));
}

export function currentModelCall({ turn }: ConversationState): ModelCall | undefined {
  return turn?.phase.kind === 'model' ? turn.phase.call : undefined;
}

/** The model that this turn's calls go to in place of the first; undefined: they go to the first, or to the one that a person has chosen. */
export function fallbackModel({ turn, modelOverride }: Pick<ConversationState, 'turn' | 'modelOverride'>): string | undefined {
  return modelOverride === null ? (turn?.fallback?.model ?? undefined) : undefined;
}

/** Undefined where the first of the list answers. */
export function fallbackOf({ fallback }: Pick<Turn, 'fallback'>): Fallback | undefined {
  if (!fallback || fallback.model === null) return undefined;
  const { model, insteadOf, reason } = fallback;
  return { model, insteadOf, reason };
}

/** An attempt at the model call has begun: it may have run what rides on it, or committed, and been lost after that. */
export function wasTried(state: ConversationState): boolean {
  const call = currentModelCall(state);
  return call !== undefined && (call.failures > 0 || state.retries[call.id] !== undefined || callsInFlight(state).includes(call.id));
}

export function withModelCall(state: ConversationState, id: string, change: (call: ModelCall) => ModelCall): ConversationState {
  return withTurn(state, (turn) =>
    turn.phase.kind === 'model' && turn.phase.call.id === id ? { ...turn, phase: { ...turn.phase, call: change(turn.phase.call) } } : turn,
  );
}

/** Those of the round, and those that ride. */
export function openToolCalls({ turn }: ConversationState): readonly ToolCall[] {
  if (!turn) return [];
  return (turn.phase.kind === 'tools' ? turn.phase.calls : turn.phase.riding).filter(({ status }) => status !== 'done');
}

export function isRunningTool(state: ConversationState, callId: string): boolean {
  const step = running(state, 'model-step');
  return running(state, 'run-tool', callId) !== undefined || step?.input.tools.some((tool) => tool.callId === callId) === true;
}

export function withToolCalls(state: ConversationState, change: (call: ToolCall) => ToolCall): ConversationState {
  return withTurn(state, (turn) =>
    turn.phase.kind === 'tools'
      ? { ...turn, phase: { kind: 'tools', calls: turn.phase.calls.map(change) } }
      : { ...turn, phase: { ...turn.phase, riding: turn.phase.riding.map(change) } },
  );
}

/** Results enter the context together and in the order of their calls, once (turn/results-before-next-call). */
export function closeRound(state: ConversationState, calls: readonly ToolCall[]): ConversationState {
  const there = new Set(listSlots(state.context));
  const missing = calls.filter(({ slot }) => !there.has(slot));
  return { ...state, context: missing.reduce((ranges, call) => withSlot(ranges, call.slot), state.context) };
}

// Which model answers: the one that the conversation was started with or was given since, otherwise the agent's model.
//
// The next step that calls a model reads the settings again, with the limits of that model. A call in flight goes on with the old one.

export function setModel(state: ConversationState, { model }: EventOf<'model-set'>): ConversationState {
  const { isModelOpen: _, ...rest } = state;
  const isOpen = model === null && state.settings !== null;
  const chosen: ConversationState = { ...rest, modelOverride: model, ...(isOpen && { isModelOpen: true }) };
  const call = currentModelCall(chosen);
  // A call that waits because the old model failed has no reason to wait any longer.
  const free = call && !isRunning(chosen, 'model-step') ? withoutRetry(chosen, call.id) : chosen;
  return withTurn(free, ({ fallback: _fallback, ...turn }) => ({ ...turn, isConfigured: false }));
}

/** The model that answers next; null while only the agent's files say it, and no step has read them yet. */
export function modelOf(state: ConversationState): string | null {
  const { modelOverride, isModelOpen, settings } = state;
  if (modelOverride !== null || isModelOpen) return modelOverride;
  return fallbackModel(state) ?? ownModel(settings);
}

/** The first of the agent's list also while another one answers. */
export function ownModel(settings: ConversationState['settings']): string | null {
  return settings?.fallback?.first ?? settings?.model ?? null;
}

/** The step that ends now has read the settings for the model that is wanted still. */
export function isAsWanted(state: ConversationState, request: Pick<ConfigureRequest, 'model' | 'fallback'>): boolean {
  return request.model === state.modelOverride && request.fallback === fallbackModel(state);
}

// When to try again what failed for a passing reason.

const FIRST_MS = 2_000;
const MAX_MS = 60_000;
/** A provider may ask for more; beyond a day an error serves the person better than a wait. */
const MAX_ASKED_MS = 24 * 3_600_000;

/** `attempts` counts this failure too. A delay that the other side requests replaces the doubled one. */
export function retryAfter(failure: StepFailure, attempts: number, at: number): Retry {
  const backoff = Math.min(MAX_MS, FIRST_MS * 2 ** Math.min(attempts - 1, 10));
  const delay = failure.retryAfterMs === undefined ? backoff : Math.min(failure.retryAfterMs, MAX_ASKED_MS);
  return { until: at + delay, attempts, failure };
}

const STORE_MAX_MS = 15_000;

/** A store that is back should be noticed soon: from half a second to fifteen. */
export function storeRetryAfter(failure: StepFailure, attempts: number, at: number): Retry {
  return { until: at + Math.min(STORE_MAX_MS, 500 * 2 ** Math.min(attempts - 1, 10)), attempts, failure };
}

export function withRetry(state: ConversationState, of: string, retry: Retry): ConversationState {
  return { ...state, retries: { ...state.retries, [of]: retry } };
}

export function withoutRetry(state: ConversationState, of: string): ConversationState {
  if (!state.retries[of]) return state;
  const { [of]: _over, ...retries } = state.retries;
  return { ...state, retries };
}

/** True until the time at which it is tried again. */
export function isResting(state: Pick<ConversationState, 'retries' | 'now'>, of: string): boolean {
  const retry = state.retries[of];
  return retry !== undefined && state.now < retry.until;
}

/** What runs side by side starts from the same values, so only each one's changes are applied; none undoes another's. */
export function contextAfter(
  now: AppContextRef | undefined,
  whole: AppContextRef,
  change: { readonly ref: string; readonly on: AppContextRef | null } | undefined,
): AppContextRef {
  const isUnchanged = JSON.stringify(now ?? null) === JSON.stringify(change?.on ?? null);
  if (!change || !now || isUnchanged) return whole;
  return { ...now, changes: [...(now.changes ?? []), { ref: change.ref }] };
}
