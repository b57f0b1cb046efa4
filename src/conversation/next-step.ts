/**
 * nextStep(state) -> Step: what to start now. It looks at what is in flight, so the loop asks after every event.
 *
 * N1  Nothing new starts once a hand-over is due; the run ends when nothing is in flight.
 * N2  No model call while something is unpersisted or unsettled, or a steering message is not yet recorded.
 * N4  No model call beside a compaction: what it will see is just being decided.
 * N3  Local runs are never started beside ordinary ones, and at most `PARALLEL_TOOLS` run at once.
 * N5  One local step at a time (a round of local tools is one): on replay the results of several come at once, and what follows
 *     from them could come in another order than it did. By the rules from 2 on.
 * N6  No timer beside a local step: where its result came in a task of its own the timer was started, and a replay, to which it comes
 *     in the same task, would take it back before it began. By the rules from 2 on.
 */
import { attributesDue, type SearchAttributes } from './attributes.js';
import type { ChildNews, ConversationOutcome } from './contract.js';
import { compactInput, compactionCause, truncationDue, uncompactInput, type CompactionCause } from './compaction.js';
import { eventToReduce } from './app-events.js';
import type { AppEvent, ReducerView } from './reducers.js';
import { isHeld } from './control.js';
import type { AskMemoryInput, PutAwayInput } from './memory-effects.js';
import type { CallModelInput, ConversationIdentity, HealInput, ParentLink, RecordInput } from './effects.js';
import type { CompactInput, TruncateInput, UncompactInput } from './compaction-effects.js';
import type { NotifyInput, RunToolInput } from './tool-effects.js';
import { childToStart, newsForParent, runningChildren, startsChild, type ChildStart } from './delegation.js';
import type { Entry } from './message.js';
import { openingStep, type OpeningStep } from './lineage.js';
import { isLooking, lookDue, nextLook, type Look } from './looking-after.js';
import { notifyInput } from './notice.js';
import { recordInput } from './recording.js';
import { rewindStep, type RewindStep } from './rewinding.js';
import type { ConversationState } from './state.js';
import { turnId } from './turn-id.js';
import type { EndedTurn, ToolCall, Turn } from './turn-state.js';
import { CONSOLIDATING_RULES, WEIGHING_RULES } from './rules.js';
import { STOP_GRACE_MS } from './turn.js';
import { callsInFlight } from './turn-access.js';
import { nextWait } from './waiting.js';
import { truncateInput } from './truncation.js';
import { askMemoryInput, owesNothing, putAwayInput } from './window.js';

export type Step =
  | { readonly kind: 'tell-attributes'; readonly attributes: SearchAttributes }
  | { readonly kind: 'record'; readonly input: RecordInput }
  | { readonly kind: 'persist'; readonly identity: ConversationIdentity; readonly entries: readonly Entry[] }
  /** `summary` is for the Temporal UI. */
  | { readonly kind: 'call-model'; readonly input: CallModelInput; readonly summary: string }
  | { readonly kind: 'run-tools'; readonly local: boolean; readonly runs: readonly ToolRun[] }
  /** Tell the model call and the tools in flight to stop. */
  | { readonly kind: 'stop'; readonly children: readonly string[] }
  | { readonly kind: 'compact'; readonly input: CompactInput; readonly cause: CompactionCause; readonly summary: string }
  | { readonly kind: 'uncompact'; readonly input: UncompactInput }
  | { readonly kind: 'reduce'; readonly event: AppEvent; readonly view: ReducerView }
  | { readonly kind: 'truncate'; readonly input: TruncateInput; readonly summary: string }
  /** The end of a session by the rules before 2: nothing is kept of it but its traces. */
  | { readonly kind: 'consolidate' }
  | { readonly kind: 'ask-memory'; readonly input: AskMemoryInput; readonly summary: string }
  | { readonly kind: 'put-away'; readonly input: PutAwayInput }
  | { readonly kind: 'heal'; readonly input: HealInput }
  | { readonly kind: 'start-child'; readonly start: ChildStart }
  | { readonly kind: 'look-after'; readonly look: Look }
  | { readonly kind: 'tell-children'; readonly told: NonNullable<ConversationState['toChildren']> }
  | { readonly kind: 'tell-parent'; readonly parent: ParentLink; readonly news: ChildNews }
  /** How the one turn of a sub-agent ended; its text is read by whoever performs this. */
  | { readonly kind: 'report'; readonly parent: ParentLink; readonly ended: EndedTurn }
  | { readonly kind: 'notify'; readonly input: NotifyInput; readonly summary: string }
  | OpeningStep
  | RewindStep
  | { readonly kind: 'hand-over'; readonly reason: string }
  | { readonly kind: 'finish'; readonly outcome: ConversationOutcome }
  /** Until something happens, or it is `until` (epoch milliseconds); `why` is for people. */
  | { readonly kind: 'wait'; readonly until?: number; readonly why?: string };

export interface ToolRun {
  readonly input: RunToolInput;
  readonly summary: string;
}

const PARALLEL_TOOLS = 16;
/** Unrecorded text that may be carried through a hand-over; continue-as-new with 2 MiB of input kills the workflow. */
const CARRIED_TEXT_BYTES = 128 * 1024;
/** What an unrecorded message takes beside its text: ten thousand short ones are much. */
const MESSAGE_BYTES = 150;

export function nextStep(state: ConversationState): Step {
  const stop = stopStep(state);
  if (stop) return stop;
  const opening = openingStep(state);
  if (opening) return opening === 'wait' ? waitStep(state) : opening;
  if (state.handOver !== null) return handOverStep(state, state.handOver);
  const rewind = rewindStep(state);
  if (rewind) return rewind === 'hold' ? (storeStep(state) ?? waitStep(state)) : rewind;
  return (
    attributesStep(state) ??
    putAwayStep(state) ??
    storeStep(state) ??
    askMemoryStep(state) ??
    relativesStep(state) ??
    noticeStep(state) ??
    reduceStep(state) ??
    idleMemoryStep(state) ??
    turnStep(state) ??
    sessionStep(state) ??
    waitStep(state)
  );
}

function stopStep(state: ConversationState): Step | undefined {
  const { turn } = state;
  if (!turn?.stopping || turn.stopping.sentAt !== null) return undefined;
  const children = runningChildren(state);
  return callsInFlight(state).length + children.length > 0 ? { kind: 'stop', children } : undefined;
}

function attributesStep(state: ConversationState): Step | undefined {
  const attributes = attributesDue(state);
  return attributes ? { kind: 'tell-attributes', attributes } : undefined;
}

/** N1, but for texts and answers that are too much to carry: these go to the store first. */
function handOverStep(state: ConversationState, reason: string): Step {
  const busy =
    state.memory.doing !== null ||
    typeof state.rewinds?.doing === 'string' ||
    state.window.puttingAway ||
    state.window.owed.some(({ asking }) => asking) ||
    state.recording ||
    state.persisting ||
    state.heal?.doing === 'running' ||
    state.notifying === true ||
    startsChild(state) ||
    isLooking(state) ||
    state.parentTold?.report === 'running' ||
    callsInFlight(state).length > 0;
  if (carriedText(state) > CARRIED_TEXT_BYTES) return storeStep(state) ?? waitStep(state);
  return busy ? waitStep(state) : { kind: 'hand-over', reason };
}

function storeStep(state: ConversationState): Step | undefined {
  if (isLocallyBusy(state)) return undefined; // N5
  if (state.recording || state.persisting || state.heal?.doing === 'running' || isStoreResting(state)) return undefined;
  if (state.heal?.doing === 'due') return { kind: 'heal', input: { identity: state.identity, slots: state.heal.slots } };
  const input = recordInput(state);
  if (input) return { kind: 'record', input };
  return state.unpersisted.length > 0 ? { kind: 'persist', identity: state.identity, entries: state.unpersisted } : undefined;
}

/** Before the store step: a turn that begins meanwhile would be in the way. */
function putAwayStep(state: ConversationState): Step | undefined {
  const input = isStoreResting(state) || isLocallyBusy(state) ? undefined : putAwayInput(state);
  return input && { kind: 'put-away', input };
}

/** Beside the conversation: nobody waits for it but a session's end. */
function askMemoryStep(state: ConversationState): Step | undefined {
  const input = askMemoryInput(state);
  if (!input) return undefined;
  const { messages, why } = input.request;
  return { kind: 'ask-memory', input, summary: `memory:${state.identity.scope} · ${messages} messages (${why})` };
}

/** What sub-agents and the parent are to hear. Signals: they are on their way at once. */
function relativesStep(state: ConversationState): Step | undefined {
  const look = lookDue(state);
  if (look) return { kind: 'look-after', look };
  const { toChildren = [], parent } = state;
  if (toChildren.length > 0) return { kind: 'tell-children', told: toChildren };
  const news = newsForParent(state);
  if (!parent || news === undefined) return undefined;
  if (news !== 'report') return { kind: 'tell-parent', parent, news };
  const ended = state.ended[state.ended.length - 1];
  const isWritten = !state.recording && state.unpersisted.length === 0 && state.outbox.settle.length === 0;
  return ended && isWritten ? { kind: 'report', parent, ended } : undefined;
}

function reduceStep(state: ConversationState): Step | undefined {
  const due = state.recording ? undefined : eventToReduce(state);
  return due && { kind: 'reduce', ...due };
}

function noticeStep(state: ConversationState): Step | undefined {
  const input = notifyInput(state);
  return input && { kind: 'notify', input, summary: `tell of ${input.waiting.length} that wait for a person` };
}

function turnStep(state: ConversationState): Step | undefined {
  const { turn } = state;
  if (!turn || turn.stopping) return undefined;
  return turn.doing.kind === 'model' ? modelStep(state, turn) : toolStep(state, turn, turn.doing.calls);
}

function modelStep(state: ConversationState, turn: Turn): Step | undefined {
  if (turn.doing.kind !== 'model' || !state.settings) return undefined;
  const { call } = turn.doing;
  if (call.inFlight || (call.retry && state.now < call.retry.until)) return undefined;
  if (state.recording || state.unpersisted.length > 0 || state.outbox.settle.length > 0 || hasJoining(state)) return undefined; // N2
  if (state.memory.doing) return undefined; // N4
  const memory = memoryStep(state);
  if (memory) return memory;
  if (isHeld(state, 'model-call', call.id)) return undefined;
  const { memory: memorySettings } = state.settings;
  return {
    kind: 'call-model',
    input: {
      identity: state.identity,
      session: state.session,
      turn: turnId(turn.number),
      call: call.id,
      slot: call.slot,
      seq: call.seq,
      context: state.context,
      base: state.memory.base,
      ...(state.window.recap === null ? {} : { recap: state.window.recap }),
      ...(memorySettings ? { memory: { version: memorySettings.version, forgotten: memorySettings.forgotten } } : {}),
      agentHash: state.settings.agentHash,
      model: state.settings.model,
      ...(turn.outputRef === undefined ? {} : { output: turn.outputRef }),
      firstToolCall: turn.toolCalls + 1,
      soFar: { usage: turn.usage, toolCalls: turn.toolCalls },
    },
    summary: `${state.settings.model} · turn ${turn.number} step ${turn.modelCalls} · ~${Math.ceil(state.contextTokens / 1000)}k in`,
  };
}

/** Design section 4: before every model call, in this order. */
function memoryStep(state: ConversationState): Step | undefined {
  const undo = isLocallyBusy(state) ? undefined : uncompactInput(state);
  if (undo) return { kind: 'uncompact', input: undo };
  const truncation = truncateStep(state);
  if (truncation) return truncation;
  const cause = compactionCause(state);
  // What a person asks for is done when it is asked for, in every mode.
  if (cause !== 'asked' && state.turn && isHeld(state, 'compaction')) return undefined;
  const input = cause && compactInput(state);
  if (!cause || !input) return undefined;
  return { kind: 'compact', input, cause, summary: `${input.model} · compact (${cause}) · ~${Math.ceil(state.contextTokens / 1000)}k` };
}

function truncateStep(state: ConversationState): Step | undefined {
  if (!truncationDue(state) || (isHeld(state, 'truncation') && !state.memory.truncationAsked)) return undefined;
  const input = truncateInput(state);
  return input && { kind: 'truncate', input, summary: `leave ~${Math.ceil(input.excess / 1000)}k out of the prompt` };
}

/** Between turns only what somebody has asked for. */
function idleMemoryStep(state: ConversationState): Step | undefined {
  if (state.turn || state.unpersisted.length > 0 || state.window.puttingAway) return undefined;
  return memoryStep(state);
}

function toolStep(state: ConversationState, turn: Turn, calls: readonly ToolCall[]): Step | undefined {
  // A tool reads its arguments from the answer that asks for it, which the store must have.
  if (state.unpersisted.some((entry) => calls.some((call) => call.askedIn === entry.slot))) return undefined;
  const start = childToStart(state);
  if (start) return { kind: 'start-child', start };
  const local = calls.every((call) => call.plan.local); // N3
  if (local && isLocallyBusy(state, 'tools')) return undefined; // N5
  const running = calls.filter((call) => call.status === 'running').length;
  const waiting = calls
    .filter(({ id, status }) => status === 'waiting' && !isHeld(state, 'tool-run', id))
    .slice(0, PARALLEL_TOOLS - running);
  if (waiting.length === 0) return undefined;
  return {
    kind: 'run-tools',
    local,
    runs: waiting.map((call) => ({
      input: {
        identity: state.identity,
        session: state.session,
        turn: turnId(turn.number),
        callId: call.id,
        name: call.name,
        slot: call.slot,
        seq: call.seq,
        askedIn: call.askedIn,
        plan: call.plan,
        ...(call.person && { person: call.person }),
        ...(state.appContext && { appContext: state.appContext }),
        ...(state.parent && { parent: state.parent }),
      },
      summary: call.target === '' ? call.name : `${call.name}: ${call.target}`,
    })),
  };
}

function sessionStep(state: ConversationState): Step | undefined {
  if (state.turn) return undefined;
  const ends = state.queue[0]?.kind === 'reset' || (state.queue.length === 0 && state.closing === 'running-out');
  if (ends) return state.rules < CONSOLIDATING_RULES ? { kind: 'consolidate' } : undefined;
  if (state.queue.length > 0 || state.closing === 'no' || !owesNothing(state)) return undefined;
  if (state.parentTold && state.parentTold.report !== 'yes') return undefined;
  if (state.recording || state.persisting || state.unpersisted.length > 0 || state.outbox.settle.length > 0) return undefined;
  return { kind: 'finish', outcome: { turns: state.turnsEnded, sessions: state.session, usage: state.usage } };
}

function waitStep(state: ConversationState): Step {
  const times: { until: number; why: string }[] = [];
  const stopping = state.turn?.stopping;
  if (stopping?.sentAt) times.push({ until: stopping.sentAt + STOP_GRACE_MS, why: 'what was told to stop' });
  else if (isLocallyBusy(state)) return { kind: 'wait' }; // N6
  const call = state.turn?.doing.kind === 'model' ? state.turn.doing.call : undefined;
  if (call?.retry && state.now < call.retry.until) times.push({ until: call.retry.until, why: `the model: ${call.retry.failure.type}` });
  if (state.storeRetry && isStoreResting(state)) times.push({ until: state.storeRetry.until, why: 'the store' });
  const { ending, pending, owed, putAwayRetry } = state.window;
  if (putAwayRetry && state.now < putAwayRetry.until)
    times.push({ until: putAwayRetry.until, why: `the store: ${putAwayRetry.failure.type}` });
  if (!state.turn && ending && state.now < ending.until) times.push({ until: ending.until, why: `memory:${state.identity.scope}` });
  else if (!state.turn && pending && state.now < pending.until) times.push({ until: pending.until, why: `memory:${state.identity.scope}` });
  const retry = owed[0]?.asking ? undefined : owed[0]?.retry;
  if (retry && state.now < retry.until) times.push({ until: retry.until, why: `memory:${state.identity.scope}: ${retry.failure.type}` });
  const wait = nextWait(state);
  if (wait && !stopping) times.push(wait);
  const look = nextLook(state);
  if (look !== undefined && !stopping) times.push({ until: look, why: 'a look after the sub-agents' });
  const [first] = times.sort((a, b) => a.until - b.until);
  return first ? { kind: 'wait', ...first } : { kind: 'wait' };
}

/** Whether a local activity is in flight, `but` for other tools of the same round. */
function isLocallyBusy(state: ConversationState, but?: 'tools'): boolean {
  if (state.rules < CONSOLIDATING_RULES) return false;
  if (state.recording || state.persisting || state.window.puttingAway || state.memory.doing?.kind === 'uncompact') return true;
  const doing = state.turn?.doing;
  if (but === 'tools' || doing?.kind !== 'tools' || !doing.calls.every((call) => call.plan.local)) return false;
  return doing.calls.some((call) => call.status === 'running');
}

function isStoreResting(state: ConversationState): boolean {
  return state.storeRetry !== null && state.now < state.storeRetry.until;
}

function hasJoining(state: ConversationState): boolean {
  return state.queue.some((item) => item.kind === 'message' && item.joinedAs !== undefined);
}

function carriedText(state: ConversationState): number {
  const beside = state.rules < WEIGHING_RULES ? 0 : MESSAGE_BYTES;
  const queued = state.queue.reduce((sum, item) => sum + (item.kind === 'message' && !item.recorded ? item.bytes + beside : 0), 0);
  return state.unpersisted.reduce((sum, entry) => sum + JSON.stringify(entry.message).length, queued);
}
