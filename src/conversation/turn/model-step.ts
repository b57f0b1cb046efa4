/**
 * The step that calls the model: its input, and how its result changes the state.
 *
 * @rule turn/result-of-flight-counts: A result counts only for the call that is in flight; a later one is dropped, and only its cost
 *   counts. (test: test/conversation/turn/turns.test.ts)
 * @rule turn/no-reason-defers-twice: A step that comes back without a call (`deferred`) says why; the call is numbered anew, and no reason
 *   defers twice without an answer between. (test: test/conversation/turn/riding.test.ts)
 * @rule turn/line-is-no-failure: A call that waits in line for a provider's limit (`isInLine`) has not failed: it waits as often as it must,
 *   under its number, and no other model is called for that. (test: test/conversation/turn/in-line.test.ts)
 */
import { counted } from '../../records/text.js';
import { withoutShown } from '../context/citing.js';
import { MAX_RECOVERIES, notePrompt, numbersOf, showWholeAgain, TOO_FULL } from '../context/compaction.js';
import { knownRefusals, learnFromAnswer, learnSize, mayBeTooLong, noteUnexplained, suspectSize } from '../context/learning.js';
import { acceptNews, pinMemory, pinnedMemory } from '../context/pinned-memory.js';
import type { TurnError } from '../protocol/contract.js';
import { citationsUsage, payOnce, sharesOf } from '../state/budget.js';
import type { ModelAnswer, ModelStepInput, RidingTool } from './model-step-effects.js';
import type { StepFailure, Writes } from '../outbox/writes.js';
import type { Turn, ModelCall, ToolCall } from '../state/turn-state.js';
import { assistantEntry, type AssistantBlock, type JsonValue, addUsage, NO_USAGE } from '../../records/message.js';
import type { Completed, Failed } from '../effect.js';
import { noteTurnEnd } from '../outbox/deliveries.js';
import { acceptWritten, asksAttributes, withoutHungTexts } from '../outbox/pending-writes.js';
import {
  retryAfter,
  storeRetryAfter,
  withRetry,
  withoutRetry,
  isAsWanted,
  currentModelCall,
  fallbackModel,
  fallbackOf,
  openToolCalls,
  spend,
  withModelCall,
  withTurn,
} from '../state/turn-access.js';
import { addNotice, announce, settle } from '../outbox/settlement.js';
import { shownContext } from '../context/truncation.js';
import { withSlot } from '../../records/slots.js';
import type { ConversationState } from '../state.js';
import { estimateTokens } from '../../records/token-estimate.js';
import { inTokens, withFixedRatio, withTokenRatio } from '../state/compaction-state.js';
import { takeMode } from '../stepping/control.js';
import { acceptToolResult, startRound } from './tool-round.js';
import { isSlow, noteAnswered } from './pace.js';
import { askNextModel } from './fallback.js';
import { endFailed, endTurn, endWithOpenCalls, nextModelCall } from './turn.js';
import { turnId } from '../../records/identity.js';
import { LONG_WAIT_MS } from '../../records/turn-end.js';
import { acceptWords, acceptTitle } from './title.js';
import { withLearnedBudget, type CallSettings, type Configured } from '../state/settings.js';

/** Retries after transient failures of the model, with growing pauses: about twenty minutes. */
const MAX_MODEL_FAILURES = 24;
/** After as many failures of a call the server may fail at what is in it. */
const DOUBTED_AT = 2;
/** Failures before the model call: the store is down, or an input processor or the agent's folder is unusable. */
const BEFORE_THE_CALL: readonly string[] = ['StoreUnavailable', 'processor-failed', 'internal'];
const CONTEXT_FULL: TurnError = {
  type: 'context-full',
  message:
    'The conversation no longer fits into the model, and making its older turns shorter did not help: ' +
    'send something shorter, or start a new session with /new.',
};

/** `write`: all pending writes. */
export function modelStepInput(state: ConversationState, write: Writes): ModelStepInput | undefined {
  const { turn, settings, identity, session, compaction } = state;
  if (turn?.phase.kind !== 'model') return undefined;
  const { call, riding } = turn.phase;
  const isFirst = !turn.isConfigured;
  const shares = sharesOf(state);
  const pinned = pinnedMemory(state);
  const inPlace = fallbackModel(state);
  const fallback = fallbackOf(turn);
  return {
    identity,
    session,
    turn: turnId(turn.number),
    write,
    tools: riding.filter(({ status }) => status !== 'done').map(toRidingTool),
    ...(state.appContext && { appContext: state.appContext }),
    ...(state.parent && { parent: state.parent }),
    configure: isFirst
      ? {
          model: state.modelOverride,
          ...(inPlace !== undefined && { fallback: inPlace }),
          knownHash: settings?.hash ?? null,
          ...(settings && { knownMemory: settings.memory.version }),
        }
      : null,
    ...(asksAttributes(state) && { asksAttributes: true }),
    ...(settings?.showsWords && write.messages.length > 0 && { showsWords: true as const }),
    ...(isFirst && state.isModeOpen && { wantsMode: true }),
    ...(state.autoTitle === 'wanted' && { wantsTitle: true }),
    ...(isFirst && compaction.base === null && state.context[0]?.[0] === turn.firstSlot && { opensSession: true }),
    numbers: numbersOf(state),
    settings: settings && callSettings(settings),
    ...(pinned && { pinned: { version: pinned.version, told: pinned.told, forgotten: pinned.forgotten } }),
    ...(compaction.learned && { learned: compaction.learned }),
    ...(turn.deferred.length > 0 && { deferred: turn.deferred }),
    ...(shares && { shares }),
    call: {
      id: call.id,
      slot: call.slot,
      seq: call.seq,
      context: shownContext(state),
      base: compaction.base,
      since: state.consolidation.since,
      ...(compaction.prefix.hash !== null && { prefix: compaction.prefix.hash }),
      ...(compaction.cited && { cited: compaction.cited }),
      ...withTokenRatio(state),
      ...withFixedRatio(state),
      ...knownRefusals(state),
      ...(mayBeTooLong(state) && { doubtsSize: true }),
      ...((call.failures === DOUBTED_AT || turn.overflowRecoveries > 0) && { doubtsReason: true }),
      ...(turn.outputRef === undefined ? {} : { output: turn.outputRef }),
      ...(turn.toolsRef === undefined ? {} : { tools: turn.toolsRef }),
      ...(turn.callsBefore === undefined ? {} : { callsBefore: turn.callsBefore }),
      ...(turn.stop && { stop: turn.stop }),
      ...(isSlow(state) && { isSlow: true }),
      firstToolCall: turn.toolCalls + 1,
      ...((hasUsed(turn) || fallback) && { soFar: { usage: turn.usage, toolCalls: turn.toolCalls, ...(fallback && { fallback }) } }),
    },
  };
}

function hasUsed({ usage, toolCalls }: Turn): boolean {
  return toolCalls > 0 || usage.inputTokens > 0 || usage.outputTokens > 0 || usage.costUsd !== 0;
}

function callSettings(settings: NonNullable<ConversationState['settings']>): CallSettings {
  const { agentHash, model, contextBudget, compactionRatio, thresholds, budget, fallback, memory } = settings;
  const { version, forgotten } = memory;
  const limits = { contextBudget, compactionRatio, thresholds, ...(budget && { budget }) };
  return { agentHash, model, ...limits, ...(fallback && { fallback }), memory: { version, forgotten } };
}

function toRidingTool({ id: callId, name, target, slot, seq, askedIn, plan }: ToolCall): RidingTool {
  return { callId, name, target, slot, seq, askedIn, plan };
}

export function acceptModelStep(before: ConversationState, { input, output }: Completed<'model-step'>): ConversationState {
  const written = acceptWritten(withoutRetry(before, 'store'), input.write, output.written);
  const found = acceptWords(acceptTitle(pinMemory(acceptFound(written, input, output)), output.title), input, output);
  const state = payMade(output.tools.reduce(acceptToolResult, found), input, output);
  if (!state.turn) return state;
  switch (output.kind) {
    case 'answered':
      return acceptAnswer(state, output.answer);
    case 'failed':
      return failCall(state, input.call.id, output.failure, 'the model');
    case 'deferred':
      return acceptDeferral(state, output);
  }
}

/** Counts the cost of citations and embeddings once: a retried step finds them made and reports none. */
function payMade(
  state: ConversationState,
  { turn }: Completed<'model-step'>['input'],
  output: Completed<'model-step'>['output'],
): ConversationState {
  const usage = [citationsUsage(output.citations), output.embedded].flatMap((one) => one ?? []).reduce(addUsage, NO_USAGE);
  if (usage === NO_USAGE) return state;
  const paid = { ...state, usage: addUsage(state.usage, usage) };
  return state.turn && turnId(state.turn.number) === turn ? spend(paid, usage) : paid;
}

export function failModelStep(failed: ConversationState, { input, failure, at }: Failed<'model-step'>): ConversationState {
  const state = withoutHungTexts(failed, input.write, failure);
  const call = currentModelCall(state);
  if (!state.turn || call?.id !== input.call.id) return state; // (turn/result-of-flight-counts)
  if (state.turn.stopping) return endWithOpenCalls(countFailure(state, call), 'interrupted');
  if (!BEFORE_THE_CALL.includes(failure.type)) return failCall(state, call.id, failure, 'Temporal');
  // Unlimited retries: the message is safe in history, and the model was not called.
  const retry = storeRetryAfter(failure, (state.retries[call.id]?.attempts ?? 0) + 1, at);
  return withRetry(withRetry(state, call.id, retry), 'store', retry);
}

/** Counts only the cost of a result that arrived after its step was given up. */
export function payLateStep(state: ConversationState, output: Completed<'model-step'>['output']): ConversationState {
  const results: readonly (readonly [string, unknown])[] = [
    ...output.tools.map((tool) => [tool.callId, tool] as const),
    ...(output.kind === 'answered' ? [[output.answer.call, { answer: output.answer, citations: output.citations }] as const] : []),
  ];
  return results.reduce((now, [id, result]) => payOnce(now, id, result as JsonValue), state);
}

function acceptFound(
  state: ConversationState,
  { configure }: Completed<'model-step'>['input'],
  { configured, base }: Completed<'model-step'>['output'],
): ConversationState {
  const { learned } = state.compaction;
  const { isModelOpen, ...rest } = state;
  const isRead = configure !== null && isAsWanted(state, configure);
  const known: ConversationState = isModelOpen && isRead ? rest : state;
  const settled = configured?.kind === 'settings' ? { ...known, settings: withLearnedBudget(configured.settings, learned) } : known;
  const shown = showWholeAgain(settled, state.settings);
  const based: ConversationState = base
    ? { ...shown, compaction: { ...shown.compaction, base: base.ref, baseTokens: inTokens(state, estimateTokens(base.text)) } }
    : shown;
  if (configure === null) return based;
  const ruled = configured?.kind === 'settings' ? takeMode(based, configured.mode) : based;
  return withTurn(ruled, ({ fallback, ...turn }) => ({
    ...turn,
    // A fallback that is no longer in the agent's list was not called.
    ...(fallback && (!isRead || fallback.model === null || based.settings?.model === fallback.model) && { fallback }),
    isConfigured: isRead,
  }));
}

/** (turn/no-reason-defers-twice) */
function acceptDeferral(
  state: ConversationState,
  { reason, configured, usedUp, recalled, news }: Extract<Completed<'model-step'>['output'], { readonly kind: 'deferred' }>,
): ConversationState {
  const { turn } = state;
  if (!turn) return state;
  if (turn.stopping) return endWithOpenCalls(state, 'interrupted');
  if (configured?.kind === 'unusable') return endUnusable(state, configured);
  if (usedUp) return endWithOpenCalls(state, 'budget', usedUp);
  const told = recalled === undefined ? state : withRecalled(state, turn, recalled);
  const heard = news ? acceptNews(told, turn, news) : told;
  const noted = withTurn(heard, (now) => ({ ...now, deferred: [...now.deferred, reason] }));
  return nextModelCall(noted, openToolCalls(noted));
}

/** Adds the recalled text as a notice, which then is an entry of the turn like any other. */
function withRecalled(state: ConversationState, turn: Turn, text: string): ConversationState {
  const noticed = addNotice(state, turn, 'recall', text);
  return { ...noticed, contextTokens: noticed.contextTokens + inTokens(noticed, estimateTokens(text)) };
}

function endUnusable(state: ConversationState, { type, message, webhooks }: Extract<Configured, { kind: 'unusable' }>): ConversationState {
  const after = endWithOpenCalls(state, 'failed', { type, message });
  const ended = after.ended[after.ended.length - 1];
  // If there are settings, endTurn has noted the end already.
  return state.settings === null && ended ? noteTurnEnd(after, ended, webhooks) : after;
}

function acceptAnswer(given: ConversationState, answer: ModelAnswer): ConversationState {
  const call = currentModelCall(given);
  const { turn } = given;
  const paid: ConversationState = { ...given, usage: addUsage(given.usage, answer.usage) };
  if (!turn || call?.id !== answer.call) return paid; // (turn/result-of-flight-counts)
  const state = noteAnswered(withoutRetry(paid, call.id));
  if (answer.fenced) return endTurn(spend(state, answer.usage), 'interrupted');

  const calls = answer.blocks.filter((block) => block.kind === 'tool-call');
  const hasAnswer = hasText(answer.blocks);
  const entry = assistantEntry(answer, call.seq);
  const { inputTokens, outputTokens } = answer.usage;
  const seen = entry ? withoutShown(state) : state;
  const shown = seen === state ? 0 : (state.compaction.shownOnce ?? 0);
  const answered: ConversationState = {
    ...notePrompt(spend(seen, answer.usage), Math.max(0, inputTokens - shown), answer),
    context: entry ? withSlot(state.context, answer.slot) : state.context,
    // The count of a cut prompt does not measure the context.
    contextTokens: inputTokens > 0 && !answer.promptCut ? Math.max(0, inputTokens - shown) + outputTokens : seen.contextTokens,
    outbox: entry && !answer.persisted ? { ...state.outbox, entries: [...state.outbox.entries, entry] } : state.outbox,
  };
  const spoken = withTurn(learnFromAnswer(answered, answer), (now) => ({
    ...now,
    seq: now.seq + (hasAnswer ? 1 : 0) + calls.length,
    answerSlot: hasAnswer ? answer.slot : now.answerSlot,
    toolCalls: now.toolCalls + calls.length,
    deferred: [],
  }));

  switch (answer.stop) {
    case 'tool-calls':
      return startRound(spoken, answer.slot, calls, answer.plans ?? []);
    case 'pause':
      return turn.stopping ? endTurn(spoken, 'interrupted') : countRound(spoken, nextModelCall);
    case 'end':
      if (answer.schemaViolation !== undefined && !turn.stopping) return repair(spoken, answer.schemaViolation);
      return turn.stopping ? endTurn(spoken, 'interrupted') : endTurn(spoken, 'end', answer.promptCut && describeCut(answer, state));
    case 'interrupted':
      return endTurn(spoken, 'interrupted');
    case 'max-tokens':
      return endTurn(spoken, 'end', {
        type: 'max-tokens',
        message: `The answer was cut at ${state.settings?.maxTokens ?? 'its'} tokens; say "continue", or raise maxTokens of agent "${state.identity.agent}".`,
      });
    case 'refusal':
      return endTurn(spoken, 'refused', {
        type: 'refusal',
        message: 'The model declined to answer this; put it differently and send it again.',
      });
    case 'context-full':
      return recoverFromOverflow(learnSize(spoken), CONTEXT_FULL);
  }
}

function describeCut(
  { promptCut, model }: ModelAnswer,
  { identity }: ConversationState,
): { readonly type: string; readonly message: string } {
  const { sent = 0, read = 0 } = promptCut ?? {};
  return {
    type: 'prompt-cut',
    message:
      `The model did not see all of the prompt: of about ${sent} tokens the server of ${model} has read ${read}. ` +
      `Set context.maxTokens of agent "${identity.agent}" to what that server gives the model, or give it more.`,
  };
}

/** If Temporal reports the failure, the step did not return, and the model may be fine. */
function failCall(state: ConversationState, id: string, failure: StepFailure, reportedBy: 'the model' | 'Temporal'): ConversationState {
  const call = currentModelCall(state);
  const { turn } = state;
  if (!turn || call?.id !== id) return state; // (turn/result-of-flight-counts)
  if (failure.isInLine && !turn.stopping) return waitInLine(state, turn, call, failure);
  const failures = call.failures + 1;
  const failed = countFailure(state, call);
  if (turn.stopping) return endWithOpenCalls(failed, 'interrupted');
  if (TOO_FULL.includes(failure.type)) {
    // Another reason (an image, a limit of the account) does not show the model's size.
    const sized = failure.type === 'context-full' ? learnSize(failed) : failed;
    return recoverFromOverflow(settle(sized, [{ effect: id, entry: null }]), { type: failure.type, message: failure.message });
  }
  if (failure.type === 'invalid-request' && failure.status !== undefined) {
    const error = { type: failure.type, message: failure.message };
    if (mayBeTooLong(failed)) return recoverFromOverflow(suspectSize(settle(failed, [{ effect: id, entry: null }])), error);
    return endWithOpenCalls(noteUnexplained(failed), 'failed', error);
  }
  const moved = reportedBy === 'the model' ? askNextModel(failed, call, failure, MAX_MODEL_FAILURES) : undefined;
  if (moved) return moved;
  if (failure.transient && failures < MAX_MODEL_FAILURES) {
    const retry = retryAfter(failure, failures, state.now);
    return announce(withRetry(failed, id, retry), {
      kind: 'waiting',
      turn: turnId(turn.number),
      reason: failure.type,
      for: `${failure.type}: ${failure.message}`,
      until: retry.until,
    });
  }
  return endFailed(failed, call, failure);
}

/** (turn/line-is-no-failure) */
function waitInLine(state: ConversationState, turn: Turn, { id }: ModelCall, failure: StepFailure): ConversationState {
  const retry = retryAfter(failure, (state.retries[id]?.attempts ?? 0) + 1, state.now);
  const waiting = withRetry(state, id, retry);
  // News of a shorter wait would come when it is over, and cost a step.
  if (retry.until - state.now <= LONG_WAIT_MS) return waiting;
  return announce(waiting, { kind: 'waiting', turn: turnId(turn.number), reason: failure.type, for: failure.message, until: retry.until });
}

function countFailure(state: ConversationState, { id, failures }: ModelCall): ConversationState {
  return withModelCall(state, id, (call) => ({ ...call, failures: failures + 1 }));
}

/** Tells the model once, in a separate entry, why its answer does not fit the schema. */
function repair(state: ConversationState, schemaViolation: string): ConversationState {
  const { turn } = state;
  if (!turn) return state;
  if (turn.schemaViolation !== undefined) {
    const message = `The answer does not fit message.output, also after it was corrected once: ${schemaViolation}`;
    return endTurn(state, 'failed', { type: 'output-schema', message });
  }
  const text = `Your answer does not fit the schema: ${schemaViolation}\nAnswer again, with the corrected JSON alone.`;
  return nextModelCall(withTurn(addNotice(state, turn, 'repair', text), (now) => ({ ...now, schemaViolation })));
}

/** Compacts after the model refused a prompt as too long, and calls it again. If that does not help, the turn ends with `error`. */
function recoverFromOverflow(state: ConversationState, error: TurnError): ConversationState {
  const { turn } = state;
  if (!turn || turn.stopping) return endWithOpenCalls(state, 'interrupted');
  if (turn.overflowRecoveries >= MAX_RECOVERIES) return endWithOpenCalls(state, 'failed', error);
  const counted = withTurn(state, (now) => ({ ...now, overflowRecoveries: now.overflowRecoveries + 1 }));
  return nextModelCall({ ...counted, compaction: { ...counted.compaction, forced: error } }, openToolCalls(counted));
}

function countRound(state: ConversationState, go: (state: ConversationState) => ConversationState): ConversationState {
  const limit = state.settings?.maxToolRounds ?? Infinity;
  if ((state.turn?.rounds ?? 0) >= limit) {
    return endTurn(state, 'tool-limit', {
      type: 'tool-limit',
      message: `The model paused more than ${counted(limit, 'time')}; say "continue" to go on.`,
    });
  }
  return go(withTurn(state, (turn) => ({ ...turn, rounds: turn.rounds + 1 })));
}

function hasText(blocks: readonly AssistantBlock[]): boolean {
  return blocks.some((block) => block.kind === 'text');
}
