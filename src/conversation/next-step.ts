/**
 * nextStep(state) -> Step: what to start now. It looks at what is in flight, so the loop asks after every event.
 *
 * Effects of one lane do not run side by side (effect-table.ts), and at most `PARALLEL_TOOLS` tools run at once.
 *
 * @rule conversation/nothing-in-flight: Nothing new starts once a hand-over is due; the run ends when nothing is in flight. (test:
 *   test/temporal/hand-over.test.ts)
 * @rule conversation/step-carries-writes: A model step carries all pending writes; a store step takes first what does not fit into it.
 *   (test: test/conversation/outbox/pending-writes.test.ts)
 * @rule conversation/store-up-to-date-first: Before the context changes or a session ends, the store has every earlier decision. (test:
 *   test/conversation/context/compaction.test.ts)
 */
import { eventToReduce } from './context/app-events.js';
import { attributesDue, type SearchAttributes } from './attributes.js';
import { titleDue, TITLE_ID, titleInput } from './turn/title.js';
import { uncompactInput, compactInput, compactionCause, truncationDue } from './context/compaction.js';
import { isChangingContext, isRunning, type Effect, type EffectName, type Effects } from './effect.js';
import type { ConversationOutcome } from './protocol/contract.js';
import { isHeld, type ConversationState } from './state.js';
import { queuedId, isStoreUpToDate } from './state/queue-state.js';
import { ordersDue, type DueOrder } from './stepping/sub-agents.js';
import { childToStart, newsForParent, runningChildren, lookDue, nextLook } from './turn/delegation.js';
import { isFree } from './effect-table.js';
import { type ParentLink, turnId } from '../records/identity.js';
import { openingOf, isRewinding, rewindInput } from './lineage/lineage.js';
import { modelStepInput } from './turn/model-step.js';
import { nextWait } from './turn/approvals.js';
import { areDeliveriesBegun, deliverInput } from './outbox/deliveries.js';
import { carriedText, handBackInput, pendingWrites, queueStepInput, storeStepInput } from './outbox/pending-writes.js';
import type { AppEvent, ReducerView } from './context/reducers.js';
import { isTruncationRequested, truncateInput } from './context/truncation.js';
import { callsInFlight, isRunningTool, openToolCalls, isResting } from './state/turn-access.js';
import type { ToolCall, Turn } from './state/turn-state.js';
import { STOP_GRACE_MS } from './turn/turn.js';
import { askMemoryInput, evictInput, areRequestsDelivered } from './context/consolidation.js';
import type { ChildNews } from './protocol/human-input.js';

export type Step =
  | (Effect & { readonly kind: 'effect' })
  /** The message at the head of the queue becomes a turn. */
  | { readonly kind: 'begin-turn' }
  | { readonly kind: 'reduce'; readonly event: AppEvent; readonly view: ReducerView }
  /** Tell the model step and the tools in flight to stop. */
  | { readonly kind: 'stop'; readonly children: readonly string[] }
  | { readonly kind: 'upsert-attributes'; readonly attributes: SearchAttributes }
  | { readonly kind: 'upsert-title'; readonly title: string }
  | { readonly kind: 'stop-late'; readonly children: readonly string[] }
  | { readonly kind: 'notify-children'; readonly decisions: NonNullable<ConversationState['childDecisions']> }
  | { readonly kind: 'order-children'; readonly orders: readonly DueOrder[] }
  | { readonly kind: 'notify-parent'; readonly parent: ParentLink; readonly news: ChildNews }
  | { readonly kind: 'hand-over'; readonly reason: string }
  | { readonly kind: 'finish'; readonly outcome: ConversationOutcome }
  /** The conversation cannot be: it fails with these words. */
  | { readonly kind: 'refuse'; readonly type: string; readonly message: string }
  /** Until something happens, or it is `until` (epoch milliseconds); `why` is for people. */
  | { readonly kind: 'wait'; readonly until?: number; readonly why?: string };

const PARALLEL_TOOLS = 16;
/** Unwritten text that may be carried through a hand-over; continue-as-new with 2 MiB of input kills the workflow. */
const CARRIED_TEXT_BYTES = 128 * 1024;

/** Of such text no hand-over carries more: the server terminates a workflow that continues with 2 MiB. */
const MAX_CARRIED_TEXT_BYTES = 1_200_000;

export function nextStep(state: ConversationState): Step {
  return (
    stopStep(state) ??
    openingStep(state) ??
    handOverStep(state) ??
    rewindStep(state) ??
    attributesStep(state) ??
    titleStep(state) ??
    evictStep(state) ??
    queueStep(state) ??
    askMemoryStep(state) ??
    relativesStep(state) ??
    deliverStep(state) ??
    reduceStep(state) ??
    idleMemoryStep(state) ??
    beginStep(state) ??
    turnStep(state) ??
    storeStep(state) ??
    sessionStep(state) ??
    waitStep(state)
  );
}

/** Undefined while something that it must not run beside is in flight. */
function effect<N extends EffectName>(state: ConversationState, name: N, id: string, input: Effects[N]['input']): Step | undefined {
  // `name` and `input` belong together by this signature; a union does not remember that.
  return isFree(state, name) ? ({ kind: 'effect', effect: name, id, input } as unknown as Step) : undefined;
}

function freshId(state: ConversationState, name: string): string {
  return `${name}_${state.counters.effect + 1}`;
}

function stopStep(state: ConversationState): Step | undefined {
  const { turn } = state;
  if (!turn?.stopping || turn.stopping.sentAt !== null) return undefined;
  const children = runningChildren(state);
  return callsInFlight(state).length + children.length > 0 ? { kind: 'stop', children } : undefined;
}

function openingStep(state: ConversationState): Step | undefined {
  const opening = openingOf(state);
  if (opening?.kind !== 'open') return opening?.kind === 'wait' ? waitStep(state) : opening;
  return effect(state, 'open-origin', 'origin', opening.input);
}

/** (conversation/nothing-in-flight), but for texts and answers that are too much to carry: these go to the store first. */
function handOverStep(state: ConversationState): Step | undefined {
  if (state.handOver === null) return undefined;
  const carried = carriedText(state);
  if (carried > CARRIED_TEXT_BYTES) {
    const store = queueStep(state) ?? storeStep(state);
    if (store) return store;
    if (isResting(state, 'store')) return waitStep(state);
  }
  if (state.inFlight.length > 0) return waitStep(state);
  // What steers a turn has no place in the store until the turn takes it: so the turn goes on, one step at a time.
  if (carried > MAX_CARRIED_TEXT_BYTES && state.turn) return undefined;
  return { kind: 'hand-over', reason: state.handOver };
}

/** From the asking on no turn begins; pending writes come first (conversation/store-up-to-date-first). */
function rewindStep(state: ConversationState): Step | undefined {
  if (isRunning(state, 'rewind')) return waitStep(state);
  const input = rewindInput(state);
  if (!input) return undefined;
  const isReady = isStoreUpToDate(state) && state.heal === null;
  return (isReady ? effect(state, 'rewind', input.requestId, input) : undefined) ?? queueStep(state) ?? storeStep(state) ?? waitStep(state);
}

function attributesStep(state: ConversationState): Step | undefined {
  const attributes = attributesDue(state);
  return attributes ? { kind: 'upsert-attributes', attributes } : undefined;
}

function titleStep(state: ConversationState): Step | undefined {
  const title = titleDue(state);
  if (title !== undefined) return { kind: 'upsert-title', title };
  const input = titleInput(state);
  return input && effect(state, 'title', TITLE_ID, input);
}

/** At a turn boundary, before the next turn begins. */
function evictStep(state: ConversationState): Step | undefined {
  const input = evictInput(state);
  if (!input || (input.what.kind === 'trim' && isChangingContext(state))) return undefined;
  // (conversation/store-up-to-date-first)
  return isStoreUpToDate(state) ? effect(state, 'evict', freshId(state, 'evict'), input) : storeStep(state);
}

/** A long queue: what is too much for state goes to the store, and comes back in time. */
function queueStep(state: ConversationState): Step | undefined {
  if (isResting(state, 'store')) return undefined;
  const { heal, identity } = state;
  if (heal && !heal.tried) return effect(state, 'heal', freshId(state, 'heal'), { identity, slots: heal.slots });
  if (!isFree(state, 'store-step')) return undefined;
  const input = queueStepInput(state);
  return input && effect(state, 'store-step', freshId(state, 'store'), input);
}

/** What no model call will carry, or not soon. */
function storeStep(state: ConversationState): Step | undefined {
  if (isResting(state, 'store') || isRunning(state, 'model-step') || !isFree(state, 'store-step')) return undefined;
  const input = storeStepInput(state);
  return input && effect(state, 'store-step', freshId(state, 'store'), input);
}

/** Beside the conversation: only a session's end waits for it. */
function askMemoryStep(state: ConversationState): Step | undefined {
  const input = askMemoryInput(state);
  return input && effect(state, 'ask-memory', input.request.requestId, input);
}

/** Notifications of sub-agents and of the parent. Signals: they are on their way at once. */
function relativesStep(state: ConversationState): Step | undefined {
  const look = lookDue(state);
  if (look) return effect(state, 'look-after', look.callId, { child: look.child });
  const { lateChildren = [], childDecisions = [], parent, capability } = state;
  if (lateChildren.length > 0) return { kind: 'stop-late', children: lateChildren };
  if (childDecisions.length > 0) return { kind: 'notify-children', decisions: childDecisions };
  const orders = ordersDue(state);
  if (orders.length > 0) return { kind: 'order-children', orders };
  const news = newsForParent(state);
  if (!parent || news === undefined) return undefined;
  if (news !== 'report') return { kind: 'notify-parent', parent, news };
  const ended = state.ended[state.ended.length - 1];
  if (!ended || !isStoreUpToDate(state)) return undefined;
  const handBack = handBackInput(state);
  if (handBack) {
    const isPossible = !isResting(state, 'store') && isFree(state, 'store-step') && !isRunning(state, 'store-step');
    return isPossible ? effect(state, 'store-step', freshId(state, 'store'), handBack) : undefined;
  }
  const { handedBack: context } = state;
  return effect(state, 'report', 'report', {
    parent,
    ended,
    ...(context && { context }),
    ...(capability === undefined ? {} : { capability }),
  });
}

/** Beside the conversation: only its end waits until deliveries have begun. */
function deliverStep(state: ConversationState): Step | undefined {
  const input = deliverInput(state);
  return input && effect(state, 'deliver', freshId(state, 'deliver'), input);
}

function reduceStep(state: ConversationState): Step | undefined {
  const due = isRunning(state, 'evict') ? undefined : eventToReduce(state);
  return due && { kind: 'reduce', ...due };
}

/** Between turns only what a client has requested. */
function idleMemoryStep(state: ConversationState): Step | undefined {
  return state.turn || isRunning(state, 'evict') ? undefined : memoryStep(state);
}

function beginStep(state: ConversationState): Step | undefined {
  const [head] = state.queue;
  if (state.turn || head?.kind !== 'message') return undefined;
  // A sub-agent that was stopped before it began has only to say so: no step reaches it any more.
  if (isHeld(state, 'event', queuedId(head)) && !(head.stopped && state.parent)) return undefined;
  return isRewinding(state) || isRunning(state, 'evict') ? undefined : { kind: 'begin-turn' };
}

function turnStep(state: ConversationState): Step | undefined {
  const { turn } = state;
  if (!turn || turn.stopping) return undefined;
  return turn.phase.kind === 'model' ? modelStep(state, turn) : toolStep(state, turn, turn.phase.calls);
}

function modelStep(state: ConversationState, turn: Turn): Step | undefined {
  if (turn.phase.kind !== 'model') return undefined;
  const { call } = turn.phase;
  if (isResting(state, call.id) || !isFree(state, 'model-step')) return undefined;
  // Results of tools that ride are in the context and not yet in the store: the step writes them, and decides after that
  // (conversation/store-up-to-date-first).
  const memory = openToolCalls(state).length > 0 ? undefined : memoryStep(state);
  if (memory) return memory;
  if (isHeld(state, 'model-call', call.id)) return undefined;
  const { write, isAll } = pendingWrites(state);
  if (!isAll) return storeStep(state); // (conversation/step-carries-writes)
  const input = modelStepInput(state, write);
  return input && effect(state, 'model-step', call.id, input);
}

/**
 * Design section 4: before every model call, in this order; each finds in the store what it decides about
 * (conversation/store-up-to-date-first).
 */
function memoryStep(state: ConversationState): Step | undefined {
  const due = memoryEffect(state);
  if (!due) return undefined;
  return isStoreUpToDate(state) ? due : (storeStep(state) ?? (isResting(state, 'store') ? waitStep(state) : undefined));
}

function memoryEffect(state: ConversationState): Step | undefined {
  const undo = uncompactInput(state);
  if (undo) return effect(state, 'uncompact', freshId(state, 'uncompact'), undo);
  if (truncationDue(state) && (!isHeld(state, 'truncation') || isTruncationRequested(state))) {
    const input = truncateInput(state);
    const truncation = input && effect(state, 'truncate', freshId(state, 'truncate'), input);
    if (truncation) return truncation;
  }
  const cause = compactionCause(state);
  // A request of a person is done at once, in every mode.
  if (!cause || (cause !== 'asked' && state.turn && isHeld(state, 'compaction'))) return undefined;
  const input = compactInput(state, cause);
  return input && effect(state, 'compact', `compact_${String(input.attempt).padStart(4, '0')}`, input);
}

function toolStep(state: ConversationState, turn: Turn, calls: readonly ToolCall[]): Step | undefined {
  // A tool reads its arguments from the answer that asks for it, which the store must have.
  if (state.outbox.entries.some((entry) => calls.some((call) => call.askedIn === entry.slot))) return undefined;
  const start = childToStart(state);
  if (start) return effect(state, 'start-child', start.callId, start);
  if (calls.filter(({ id }) => isRunningTool(state, id)).length >= PARALLEL_TOOLS) return undefined;
  const call = calls.find(({ id, status }) => status === 'waiting' && !isRunningTool(state, id) && !isHeld(state, 'tool-run', id));
  if (!call) return undefined;
  const { id: callId, name, target, slot, seq, askedIn, plan, person, unserved } = call;
  return effect(state, 'run-tool', callId, {
    identity: state.identity,
    session: state.session,
    turn: turnId(turn.number),
    ...{ callId, name, target, slot, seq, askedIn, plan },
    ...(unserved && { unserved: unserved.times }),
    ...(person && { person }),
    ...(state.appContext && { appContext: state.appContext }),
    ...(state.settings?.fallback?.next.length && { fallback: state.settings.fallback.next }),
    ...(state.parent && { parent: state.parent }),
  });
}

function sessionStep(state: ConversationState): Step | undefined {
  if (state.turn || state.queue.length > 0 || state.closing !== 'consolidated' || !areRequestsDelivered(state)) return undefined;
  if (state.parentNotified && !state.parentNotified.reported) return undefined;
  if (state.inFlight.length > 0 || !isStoreUpToDate(state) || !areDeliveriesBegun(state)) return undefined;
  return { kind: 'finish', outcome: { turns: state.turnsEnded, sessions: state.session, usage: state.usage } };
}

function waitStep(state: ConversationState): Step {
  const { turn, consolidation, identity, now } = state;
  const memory = `memory:${identity.scope}`;
  const stopping = turn?.stopping;
  const times: { until: number; why: string }[] = Object.entries(state.retries).map(([of, { until, failure }]) => ({
    until,
    why: of === 'store' ? 'the store' : `${of}: ${failure.type}`,
  }));
  if (stopping?.sentAt) times.push({ until: stopping.sentAt + STOP_GRACE_MS, why: 'what is being stopped' });
  const awaited = turn ? null : (consolidation.ending ?? consolidation.pending);
  if (awaited) times.push({ until: awaited.until, why: memory });
  const wait = nextWait(state);
  if (wait && !stopping) times.push(wait);
  const look = nextLook(state);
  if (look !== undefined && !stopping) times.push({ until: look, why: 'a look after the sub-agents' });
  const [first] = times.filter(({ until }) => now < until || until === wait?.until || until === look).sort((a, b) => a.until - b.until);
  return first ? { kind: 'wait', ...first } : { kind: 'wait' };
}
