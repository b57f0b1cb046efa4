/**
 * apply(state, event) -> state. Total: every event in every state, and never a throw.
 *
 * @rule conversation/counters-never-back: Counters never go back within a life. (test: test/conversation/lives/own.test.ts)
 * @rule conversation/plain-json: The state is plain JSON: it equals its own round trip. (test: test/conversation/lives/own.test.ts)
 * @rule conversation/effect-until-ended: An effect is in `inFlight` from its start to its end, or until the conversation gives it up; a
 *   later result only adds its cost. (test: test/conversation/turn/turns.test.ts)
 */
import { acceptReduced, receiveAppEvent } from './context/app-events.js';
import { withChunksInContext } from './context/chunks.js';
import { rejectInput, requestReset } from './inbox/arrivals.js';
import { noteUpserted } from './attributes.js';
import { requestUndo, answerInVain, requestCompaction } from './context/compaction.js';
import { advanceControl, setBreakpoints, setMode, startStep } from './stepping/control.js';
import { isHeld, type ConversationState } from './state.js';
import { queuedId } from './state/queue-state.js';
import { raiseBudget } from './state/budget.js';
import { noteChildAsks, lookAfterChildren, noteParentNotified, acceptOrder } from './turn/delegation.js';
import { noteChildControl, noteOrdered } from './stepping/sub-agents.js';
import { EFFECTS } from './effect-table.js';
import type { ConversationEvent, EventOf } from './event.js';
import type { Effect } from './effect.js';
import { holdEvent, isRewinding, requestRewind } from './lineage/lineage.js';
import { editQueue, withdraw } from './inbox/queue-editing.js';
import { endSession, requestClose } from './session.js';
import { setModel, withoutRetry } from './state/turn-access.js';
import { acceptChildEnd, acceptDecision, passWaits } from './turn/tool-round.js';
import { chooseChunks } from './context/chosen-chunks.js';
import { requestTruncation } from './context/truncation.js';
import { acceptMessage, beginTurn, endIfStopped, passTime, requestInterrupt, sendStop, stopTurn } from './turn/turn.js';
import { acceptConsolidation, advanceConsolidation, endsWithNothing } from './context/consolidation.js';
import { noteTitled, rename } from './turn/title.js';

export function apply(before: ConversationState, event: ConversationEvent): ConversationState {
  const now = { ...before, now: Math.max(before.now, event.at) };
  const state = holdEvent(now, event) ?? change(now, event);
  // A reset keeps its place in the queue; when it is next and a turn runs, that turn is stopped.
  const [head] = state.queue;
  const isReset = state.turn && head?.kind === 'reset' && !isHeld(state, 'event', queuedId(head));
  const reset = isReset ? stopTurn(state, 'the session is being reset', event.at) : state;
  const stopped = reset.turn && isRewinding(reset) ? stopTurn(reset, 'the conversation is being rewound', event.at) : reset;
  const advanced = answerInVain(advanceConsolidation(stopped));
  const ended = endsWithNothing(advanced) ? endSession(advanced, 'nothing-to-do') : advanced;
  return advanceControl(before, before.context === ended.context ? ended : withChunksInContext(ended), event);
}

function change(state: ConversationState, event: ConversationEvent): ConversationState {
  switch (event.kind) {
    case 'message-received':
      return acceptMessage(state, event);
    case 'reset-requested':
      return requestReset(state, event);
    case 'interrupt-requested':
      return requestInterrupt(state, event);
    case 'close-requested':
      return requestClose(state, event);
    case 'withdraw-requested':
      return withdraw(state, event);
    case 'decided':
      return acceptDecision(state, event);
    case 'budget-raised':
      return raiseBudget(state, event);
    case 'model-set':
      return setModel(state, event);
    case 'app-event-received':
      return receiveAppEvent(state, event);
    case 'app-event-reduced':
      return acceptReduced(state, event);
    case 'mode-set':
      return setMode(state, event);
    case 'breakpoints-set':
      return setBreakpoints(state, event);
    case 'step-requested':
      return startStep(state, event);
    case 'queue-edited':
      return editQueue(state, event);
    case 'compaction-requested':
      return requestCompaction(state, event);
    case 'truncation-requested':
      return requestTruncation(state, event);
    case 'chunks-chosen':
      return chooseChunks(state, event);
    case 'undo-requested':
      return requestUndo(state, event);
    case 'rewind-requested':
      return requestRewind(state, event);
    case 'renamed':
      return rename(state, event);
    case 'title-upserted':
      return noteTitled(state);
    case 'input-rejected':
      return rejectInput(state, event);
    case 'turn-begun':
      return beginTurn(state);
    case 'effect-started':
      return startEffect(state, event);
    case 'effect-completed':
      return completeEffect(state, event);
    case 'effect-failed':
      return failEffect(state, event);
    case 'stop-sent':
      return sendStop(state, event.at);
    case 'child-asks':
      return noteChildAsks(state, event);
    case 'child-stepped':
      return noteChildControl(state, event);
    case 'parent-ordered':
      return acceptOrder(state, event);
    case 'children-ordered':
      return noteOrdered(state, event);
    case 'child-ended':
      return acceptChildEnd(state, event);
    case 'late-children-stopped': {
      const { lateChildren: _, ...rest } = state;
      return rest;
    }
    case 'children-notified':
      return { ...state, childDecisions: [] };
    case 'parent-notified':
      return noteParentNotified(state, event);
    case 'consolidation-ended':
      return acceptConsolidation(state, event);
    case 'attributes-upserted':
      return noteUpserted(state, event);
    case 'time-passed':
      return passWaits(passTime(state));
    case 'hand-over-due':
      return { ...state, handOver: event.reason };
    case 'upgrade-due':
      return { ...state, upgrade: event.parked || state.upgrade === 'parked-too' ? 'parked-too' : 'between-turns' };
    case 'run-continued': {
      const continued = lookAfterChildren({ ...state, handOver: null, attributes: { ...state.attributes, known: 'unknown' } });
      const { upgrade: _, ...rest } = endStoppedTools(continued);
      return rest;
    }
    default:
      return unknownEvent(state, event);
  }
}

/** Fields of an effect belong together by its name, which the compiler follows inside the table only. */
type AnyKind = { readonly [K in 'started' | 'completed' | 'failed']: (state: ConversationState, what: unknown) => ConversationState } & {
  readonly late?: (state: ConversationState, id: string, output: unknown) => ConversationState;
  readonly retriedAs?: string;
};

function kindOf(effect: Effect['effect']): AnyKind | undefined {
  return (EFFECTS as unknown as Record<string, AnyKind>)[effect];
}

function startEffect(state: ConversationState, event: EventOf<'effect-started'>): ConversationState {
  const kind = kindOf(event.effect);
  if (!kind) return rejectEffect(state, event);
  const { effect, id, input } = event;
  const counters = { ...state.counters, effect: state.counters.effect + 1 };
  const running: ConversationState = { ...state, counters, inFlight: [...state.inFlight, { effect, id, input } as Effect] };
  return (kind.started as AnyKind['started'] | undefined)?.(running, event) ?? running;
}

/** (conversation/effect-until-ended) */
function completeEffect(state: ConversationState, event: EventOf<'effect-completed'>): ConversationState {
  const kind = kindOf(event.effect);
  if (!kind) return rejectEffect(state, event);
  const running = state.inFlight.find(({ effect, id }) => effect === event.effect && id === event.id);
  if (!running) {
    const rest = endStoppedTools(state, event.id);
    return kind.late?.(rest, event.id, event.output) ?? rest;
  }
  const ended = withoutRetry(landed(state, running), kind.retriedAs ?? event.id);
  const { id, output, at } = event;
  return held(ended, kind.completed(ended, { id, input: running.input, output, at }));
}

function failEffect(state: ConversationState, event: EventOf<'effect-failed'>): ConversationState {
  const kind = kindOf(event.effect);
  if (!kind) return rejectEffect(state, event);
  const running = state.inFlight.find(({ effect, id }) => effect === event.effect && id === event.id);
  if (!running) return endStoppedTools(state, event.id);
  const { id, failure, at } = event;
  return endIfStopped(kind.failed(landed(state, running), { id, input: running.input, failure, at }));
}

/** All of them where none is named: the next run hears of none. */
function endStoppedTools(state: ConversationState, ended?: string): ConversationState {
  const { stoppedTools = [], ...others } = state;
  const left = ended === undefined ? [] : stoppedTools.filter((id) => id !== ended);
  if (left.length === stoppedTools.length) return state;
  return left.length === 0 ? others : { ...others, stoppedTools: left };
}

function landed(state: ConversationState, running: Effect): ConversationState {
  return { ...state, inFlight: state.inFlight.filter((one) => one !== running) };
}

/** What had to wait until the conversation was open comes now, in its order. */
function held(before: ConversationState, after: ConversationState): ConversationState {
  const opened = before.lineage?.isOpen === false && after.lineage?.isOpen === true;
  return opened ? (before.lineage?.held ?? []).reduce(apply, after) : endIfStopped(after);
}

function rejectEffect(state: ConversationState, { effect, at }: { readonly effect: string; readonly at: number }): ConversationState {
  return rejectInput(state, { kind: 'input-rejected', name: effect, reason: 'an effect this version does not know', at });
}

/** An event of a newer version: kept out, never a crash. */
function unknownEvent(state: ConversationState, event: never): ConversationState {
  const { kind, at } = event as { kind: string; at: number };
  return rejectInput(state, { kind: 'input-rejected', name: kind, reason: 'an event this version does not know', at });
}
