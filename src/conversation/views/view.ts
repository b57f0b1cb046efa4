/** What a conversation shows of itself: pure projections of its state. */
import { awaitedOrigin } from '../lineage/lineage.js';
import { runningChildren } from '../turn/delegation.js';
import { withTokenRatio } from '../state/compaction-state.js';
import { modelOf, fallbackOf, isRunningTool } from '../state/turn-access.js';
import { planned } from '../stepping/control.js';
import { queuedId, type QueueItem, isStoreUpToDate } from '../state/queue-state.js';
import { subAgentsOf } from '../stepping/sub-agents.js';
import { budgetOf } from '../state/budget.js';
import { compactsAt } from '../context/compaction.js';
import { isChangingContext, isRunning } from '../effect.js';
import { approvalsOf } from '../turn/approvals.js';
import type { ContextIndex, Phase, QueuedEvent, Status, TurnResult, Waiting } from '../protocol/contract.js';
import { scopeAndTenant, turnId, turnNumber } from '../../records/identity.js';
import { type JsonValue, NO_USAGE } from '../../records/message.js';
import { countSlots, listSlots } from '../../records/slots.js';
import { resetIds } from '../inbox/arrivals.js';
import { queuedCount } from '../inbox/queue-editing.js';
import { countMessages } from '../context/consolidation.js';
import type { ConversationState } from '../state.js';
import type { EndedTurn, Retry } from '../state/turn-state.js';
import type { ControlStatus, ControlView } from '../protocol/stepping.js';
import { asCode, truncate, oneLine, isoTime } from '../../records/text.js';

export function statusOf(state: ConversationState, historyEvents: number): Status {
  const { title, session, epoch } = state;
  const waiting = waitingOf(state);
  const origin = state.lineage?.origin;
  const last = state.ended[state.ended.length - 1];
  return {
    phase: phaseOf(state),
    ...(waiting === undefined ? {} : { waiting, waitingFor: explainWaiting(waiting) }),
    session,
    turn: state.latestTurn,
    turns: state.turnsEnded,
    ...(state.pace && { answeredAt: state.pace.answered }),
    epoch,
    mode: state.control?.mode ?? 'auto',
    stepLock: state.control?.lock?.id ?? null,
    pausedBy: explainPause(state),
    nextStep: state.control?.mode === 'stepping' ? (planned(state)?.words ?? null) : null,
    ...withSubAgents(state),
    queued: queuedCount(state.queue),
    context: {
      tokens: state.contextTokens,
      budget: state.settings?.contextBudget ?? 0,
      ...(state.settings && { compactsAt: compactsAt(state.settings) }),
      chunks: countSlots(state.context) + (state.compaction.base === null ? 0 : 1),
      prefixHash: state.compaction.prefix.hash,
      prefixChanges: state.compaction.prefix.changes,
      prefixCause: state.compaction.prefix.cause,
      compactions: compactionsOf(state),
    },
    window: {
      since: state.consolidation.since,
      messages: countMessages(state.consolidation.turns),
      consolidated: consolidatedInPrompt(state),
      limit: state.settings?.memory.window ?? null,
      consolidating: consolidatingNow(state),
      owed: state.consolidation.pendingRequests.length,
    },
    pendingApprovals: approvalsOf(state).length,
    budget: Object.keys(budgetOf(state)).length > 0 ? budgetOf(state) : null,
    usage: state.usage,
    ...(last?.error && { lastError: { turnId: turnId(last.number), stopReason: last.stopReason, ...last.error } }),
    historyEvents,
    ...(state.appEvents && {
      appEvents: {
        chunks: state.appEvents.chunks.length,
        unreduced: state.appEvents.unreduced,
        parkedCount: state.appEvents.parkedCount,
        parked: state.appEvents.parked,
      },
    }),
    agent: state.identity.agent,
    ...scopeAndTenant(state.identity.scope),
    model: modelOf(state),
    chosenModel: state.modelOverride,
    ...fallbackNow(state),
    ...(state.allowedCalls && { allowedCalls: state.allowedCalls.map(({ tool, target, callId }) => ({ tool, target, callId })) }),
    title,
    life: state.identity.life,
    ...(origin
      ? { origin: { kind: origin.kind, conversation: origin.conversation, turn: state.lineage?.opened?.turn ?? origin.turn } }
      : {}),
    rejectedInputs: state.rejected,
  };
}

function withSubAgents(state: ConversationState): Pick<Status, 'subAgents'> {
  const subAgents = subAgentsOf(state);
  return subAgents.length > 0 ? { subAgents } : {};
}

function fallbackNow({ turn, ended }: ConversationState): Pick<Status, 'fallback'> {
  const last = ended[ended.length - 1];
  const fallback = turn ? fallbackOf(turn) : last?.fallback;
  return fallback ? { fallback: { ...fallback, turn: turnId(turn?.number ?? last?.number ?? 0) } } : {};
}

/** Answer of `setMode` and `setBreakpoints`. */
export function controlOf(state: ConversationState): ControlStatus {
  const { control } = state;
  return {
    mode: control?.mode ?? 'auto',
    stepLock: control?.lock?.id ?? null,
    breakpoints: control?.breakpoints ?? {},
    pausedBy: explainPause(state),
    next: planned(state)?.words ?? null,
  };
}

export function controlViewOf(state: ConversationState): ControlView {
  const { turn, settings, control, compaction } = state;
  const { thresholds } = settings ?? {};
  const call = turn?.phase.kind === 'model' ? turn.phase.call : undefined;
  const calls = turn ? (turn.phase.kind === 'tools' ? turn.phase.calls : turn.phase.riding) : [];
  return {
    ...controlOf(state),
    running: control?.lock?.words ?? null,
    thresholds: thresholds
      ? { soft: thresholds.soft, hard: thresholds.hard, truncation: thresholds.truncation, autoCompact: thresholds.autoCompact }
      : null,
    turn: turn && {
      id: turnId(turn.number),
      modelCall: call ? { id: call.id, inFlight: isRunning(state, 'model-step'), failures: call.failures } : null,
      calls: calls.map(({ id, name, target, status }) => ({ id, name, target, status: isRunningTool(state, id) ? 'running' : status })),
    },
    leftOut: countSlots(compaction.leftOut ?? []),
    ...withSubAgents(state),
  };
}

export function queueOf(state: ConversationState): QueuedEvent[] {
  return state.queue.map((item) => ({ id: queuedId(item), event: queuedEvent(state, item), queuedAt: item.at }));
}

/** The query `context`: the system prompt, what the epoch stands on, and the messages, with what they take. */
export function contextOf(state: ConversationState): ContextIndex {
  const { compaction, settings, contextTokens: total } = state;
  const fixed = settings?.fixedTokens ?? 0;
  const { head } = compaction.prefix;
  const flow = Math.max(0, total - fixed - compaction.baseTokens);
  return {
    epoch: state.epoch,
    session: state.session,
    budget: settings?.contextBudget ?? 0,
    ...assumedBudget(state),
    compactsAt: settings ? compactsAt(settings) : 0,
    total,
    ...(settings?.tokenizer !== undefined && { tokenizer: settings.tokenizer }),
    ...withTokenRatio(state),
    reported: compaction.reported,
    compactions: compactionsOf(state),
    canUndo: compaction.before !== null,
    ...windowOf(state),
    ...(compaction.cited?.length && { cited: compaction.cited }),
    ...(compaction.leftOut?.length && { leftOut: compaction.leftOut }),
    chunks: [
      { kind: 'SYSTEM', tokens: fixed, ...(head && { ref: head.system, tools: head.tools }) },
      ...(compaction.base === null ? [] : [{ kind: 'MEMORY', tokens: compaction.baseTokens, ref: compaction.base } as const]),
      ...(state.context.length === 0 ? [] : [{ kind: 'WORKING_FLOW', tokens: flow, slots: state.context } as const]),
    ],
  };
}

/** Without trims, which number their episodes among those of compactions. */
function compactionsOf({ compaction, consolidation }: ConversationState): number {
  return Math.max(0, compaction.compactions - consolidation.trims);
}

function windowOf(state: ConversationState): Pick<ContextIndex, 'window'> {
  const { settings, consolidation } = state;
  const consolidated = consolidatedInPrompt(state);
  if (!settings || (consolidated === 0 && !consolidation.trimmed)) return {};
  const { times: trims, messages, unsummarized } = consolidation.trimmed ?? { times: 0, messages: 0, unsummarized: 0 };
  const trimsFrom = settings.memory.trim === 'at-window' ? null : settings.thresholds.soft;
  return { window: { consolidated, trimsFrom, trims, messages, unsummarized } };
}

function consolidatedInPrompt({ consolidation, context }: ConversationState): number {
  if (consolidation.covered.length === 0) return 0;
  const there = new Set(listSlots(context));
  const turns = consolidation.covered.flatMap((one) => one.turns);
  return countMessages(turns.filter(({ slots }) => listSlots(slots).some((slot) => there.has(slot))));
}

/** At a session's end the one of the window is among those that are awaited. */
function consolidatingNow({ consolidation: { pending, ending } }: ConversationState): number {
  return ending ? ending.awaited.filter(({ outcome }) => outcome === null).length : Number(pending !== null);
}

function assumedBudget({ compaction: { learned }, settings }: ConversationState): Pick<ContextIndex, 'assumedBudget'> {
  return learned && learned.model === settings?.model && learned.tokens === settings.contextBudget
    ? { assumedBudget: learned.assumed }
    : {};
}

export function endedTurn(state: ConversationState, id: string): EndedTurn | undefined {
  const number = turnNumber(id);
  return state.ended.find((turn) => turn.number === number);
}

/** A turn that runs, or whose message waits in the queue. */
export function isTurnOpen(state: ConversationState, id: string): boolean {
  const number = turnNumber(id);
  return state.turn?.number === number || state.queue.some((item) => isQueuedAs(item, number));
}

export function resultOf(ended: EndedTurn, text: string, textRef?: TurnResult['textRef']): TurnResult {
  const { stopReason, usage, toolCalls, fallback, error, fits } = ended;
  const payload = fits && !textRef ? dataIn(text) : undefined;
  return {
    turnId: turnId(ended.number),
    text,
    ...(textRef ? { textRef } : {}),
    stopReason,
    usage,
    ...(payload === undefined ? {} : { payload }),
    toolCalls,
    ...(fallback && { fallback }),
    ...(error ? { error } : {}),
  };
}

/** It was found to fit before; a processor may have changed it since. */
export function dataIn(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

/** A result for someone who is not kept waiting for the turn itself. */
export function pendingResult(id: string | null, stopReason: 'continues' | 'queued' | 'reset', text = ''): TurnResult {
  return { turnId: id, text, stopReason, usage: NO_USAGE, toolCalls: 0 };
}

function phaseOf(state: ConversationState): Phase {
  const { turn } = state;
  if (state.control?.mode === 'stepping' && state.control.lock === null && planned(state)) return 'stepping';
  if (!turn) {
    if (state.queue[0]?.kind === 'reset' || isRunning(state, 'rewind')) return 'resetting';
    if (isChangingContext(state)) return 'compacting';
    if (state.retries['store'] && !isStoreUpToDate(state)) return 'waiting-to-retry';
    if (state.queue.length > 0) return 'thinking';
    return state.closing === 'no' ? 'idle' : 'closing';
  }
  if (turn.phase.kind === 'tools') {
    const runs = isRunning(state, 'run-tool');
    if (!runs && approvalsOf(state).length > 0) return 'waiting-for-person';
    return state.retries['store'] && !runs ? 'waiting-to-retry' : 'running-tools';
  }
  const { call } = turn.phase;
  if (isRunning(state, 'model-step')) return 'thinking';
  if (isChangingContext(state)) return 'compacting';
  return state.retries[call.id] || state.retries['store'] ? 'waiting-to-retry' : 'thinking';
}

/** Of spilled messages only the bounds are known; a turn between them that ended is remembered as ended, or the query comes too late. */
function isQueuedAs(item: QueueItem, turn: number): boolean {
  if (item.kind === 'spilled') return item.turns[0] <= turn && turn <= item.turns[1];
  return item.kind === 'message' && item.turn === turn;
}

/** UTF-16 units of a queued message's first words. */
const PREVIEW = 120;

function queuedEvent(state: ConversationState, item: QueueItem): QueuedEvent['event'] {
  if (item.kind === 'spilled') return { kind: 'more', count: countSlots(item.slots) };
  if (item.kind === 'app') return { kind: 'app', type: item.type, id: item.id };
  if (item.kind === 'reset') return { kind: 'reset', resetId: resetIds(state, item.number)[0] ?? '' };
  const { messageId, turn, bytes, delivery, text = '' } = item;
  const preview = truncate(oneLine(truncate(text, 4 * PREVIEW)), PREVIEW);
  return { kind: 'message', messageId, turnId: turnId(turn), bytes, delivery, ...(preview !== '' && { preview }) };
}

/**
 * The conversation as a card in the Temporal UI: Markdown, small, and no word that anyone else wrote but as code. The page shows about seven
 * lines of it and cuts off the rest, so it is one paragraph with line breaks, what matters most first.
 */
export function detailsOf(state: ConversationState): string {
  const status = statusOf(state, 0);
  const { agent, title, usage, context, lastError } = status;
  const { asked, answered } = state.words ?? {};
  const used = context.budget > 0 ? ` (${Math.round((context.tokens / context.budget) * 100)} %)` : '';
  const lastTool = state.lastTool === null ? '' : ` · **last tool** ${describeTool(state.lastTool)}`;
  return [
    `**${asCode(agent)}**${title === null ? '' : ` · ${asCode(title)}`} · ${asCode(status.model ?? 'model not known yet')}${describeFallback(status)}`,
    `**turn ${status.turn}** · ${status.phase} · session ${status.session}${status.queued > 0 ? ` · ${status.queued} queued` : ''}${lastTool}`,
    status.waitingFor === undefined ? undefined : `**waiting for** ${asCode(status.waitingFor)}`,
    asked === undefined ? undefined : `**asked** ${asCode(asked)}`,
    answered === undefined || lastError ? undefined : `**answered** ${asCode(answered)}`,
    lastError && `**last turn** ${asCode(`${lastError.type}: ${lastError.message}`)}`,
    `**context** ${context.tokens} tokens${used} · **used** ${usage.inputTokens} in, ${usage.outputTokens} out · ${costOf(usage.costUsd)}`,
  ]
    .filter((line) => line !== undefined)
    .join('  \n');
}

function describeFallback({ fallback }: Status): string {
  return fallback ? ` · ${fallback.turn} by ${asCode(fallback.model)} in place of ${asCode(fallback.insteadOf)} (${fallback.reason})` : '';
}

function describeTool({ name, target, outcome }: NonNullable<ConversationState['lastTool']>): string {
  return `${asCode(target === '' ? name : `${name}: ${target}`)}${outcome === undefined ? '' : ` · ${outcome}`}`;
}

function costOf(usd: number | null): string {
  return usd === null ? 'cost not known' : `$${usd.toFixed(4)}`;
}

// What a conversation waits for: as data, and in the words of `status.waitingFor`.

export function waitingOf(state: ConversationState): Waiting | undefined {
  const origin = awaitedOrigin(state);
  if (origin !== undefined) return { kind: 'origin', conversation: origin };
  const { turn, retries, consolidation } = state;
  const call = turn?.phase.kind === 'model' ? turn.phase.call : undefined;
  const storeRetry = isStoreUpToDate(state) ? undefined : retries['store'];
  const retry = (call && retries[call.id]) ?? storeRetry;
  // A repeated call does not show that a failed store is back; a model may well be thinking after a repeated call.
  if (retry && (!isRunning(state, 'model-step') || retry.failure.type === STORE_AWAY)) return retryOf(retry);
  const evictRetry = turn || isRunning(state, 'evict') ? undefined : retries['evict'];
  if (evictRetry) return retryOf(evictRetry);
  const { ending } = consolidation;
  if (ending && !turn) return { kind: 'memory', scope: state.identity.scope, until: isoTime(ending.until) };
  return waitingForStep(state) ?? waitingForPerson(state) ?? waitingForTime(state) ?? waitingForWorker(state) ?? waitingForChild(state);
}

const STORE_AWAY = 'StoreUnavailable';

export function explainWaiting(waiting: Waiting): string {
  switch (waiting.kind) {
    case 'origin':
      return `the turns of ${waiting.conversation} that it begins with`;
    case 'retry':
      return `${waiting.reason}: ${waiting.message}; trying again at ${waiting.until}`;
    case 'memory':
      return `memory:${waiting.scope} to consolidate this session; not waited for after ${waiting.until}`;
    case 'step':
      return `a step: ${waiting.next}`;
    case 'breakpoint':
      return `a step: ${waiting.next} (stopped by ${waiting.why})`;
    case 'approval':
    case 'question':
    case 'client-tool': {
      const { kind, tool, target, others, until } = waiting;
      const what = {
        question: 'a person: an answer to',
        approval: 'a person: approval of',
        'client-tool': 'the client: what it answers to',
      }[kind];
      const more = others === 0 ? '' : ` and ${others} more`;
      return `${what} ${tool}${target === '' ? '' : ` (${target})`}${more}; until ${until}`;
    }
    case 'worker':
      return (
        `a worker of task queue ${waiting.taskQueue} to run ${waiting.tool}: none had taken it at ${waiting.since}; ` +
        `perdura worker --tools ${waiting.tool} is one`
      );
    case 'time':
      return `the time that ${waiting.tool} names: ${waiting.until}`;
    case 'sub-agent':
      return `the sub-agent ${waiting.conversation}`;
  }
}

/** What stopped it, and where when that was in a sub-agent. */
export function explainPause({ control }: ConversationState): string | null {
  if (!control || control.pausedBy === null) return null;
  return control.pausedIn === undefined ? control.pausedBy : `${control.pausedBy} in ${control.pausedIn}`;
}

function waitingForStep(state: ConversationState): Waiting | undefined {
  const { control } = state;
  const next = control?.mode === 'stepping' && control.lock === null ? planned(state)?.words : undefined;
  if (next === undefined) return undefined;
  const why = explainPause(state);
  return why === null ? { kind: 'step', next } : { kind: 'breakpoint', next, why };
}

/** The oldest request. */
function waitingForPerson(state: ConversationState): Waiting | undefined {
  const [first, ...others] = approvalsOf(state);
  if (!first) return undefined;
  const { kind, conversation, callId, tool, target, expiresAt } = first;
  return { kind, conversation, callId, tool, target, others: others.length, until: isoTime(expiresAt) };
}

/** The one that is over first. */
function waitingForTime({ turn }: ConversationState): Waiting | undefined {
  if (turn?.phase.kind !== 'tools') return undefined;
  const [first] = turn.phase.calls
    .flatMap(({ status, name, sleepsUntil }) => (status === 'sleeping' && sleepsUntil !== undefined ? [{ tool: name, sleepsUntil }] : []))
    .sort((a, b) => a.sleepsUntil - b.sleepsUntil);
  return first && { kind: 'time', tool: first.tool, until: isoTime(first.sleepsUntil) };
}

/** The one that has waited longest. Whether a worker has taken it since, only Temporal knows (client/perdura-client.ts). */
function waitingForWorker({ turn }: ConversationState): Waiting | undefined {
  if (turn?.phase.kind !== 'tools') return undefined;
  const [first] = turn.phase.calls
    .flatMap(({ status, name, plan: { taskQueue }, unserved }) =>
      status === 'waiting' && taskQueue !== undefined && unserved ? [{ tool: name, taskQueue, since: unserved.since }] : [],
    )
    .sort((a, b) => a.since - b.since);
  return first && { kind: 'worker', ...first, since: isoTime(first.since) };
}

function waitingForChild(state: ConversationState): Waiting | undefined {
  const [conversation] = runningChildren(state);
  return conversation === undefined ? undefined : { kind: 'sub-agent', conversation };
}

function retryOf({ failure, until }: Retry): Waiting {
  return { kind: 'retry', reason: failure.type, message: failure.message, until: isoTime(until) };
}
