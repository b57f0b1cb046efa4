/**
 * Turns taken back in place: the context becomes what it was at the end of an earlier turn, and goes on from there.
 *
 * W1  Between turns only: the running one is stopped first. Messages that wait stay, and are answered after it.
 * W2  Counters go on: no turn and no slot is given twice. Usage stays paid.
 * W3  What was cut stays in the store as a branch, from which it can be forked.
 * W4  One that fails changes nothing.
 */
import type { RewindInput } from './lineage-effects.js';
import type { ConversationEvent } from './event.js';
import type { RewindOutcome, RewindState } from './lineage-state.js';
import { isWithin, resumeWith } from './lineage.js';
import { slotsOf, withSlot, type SlotRange } from './slots.js';
import type { ConversationState } from './state.js';
import { turnId, turnNumber } from './turn-id.js';

type Of<Kind extends ConversationEvent['kind']> = Extract<ConversationEvent, { kind: Kind }>;

const REMEMBERED = 16;
const NONE: RewindState = { branches: 0, asked: [], doing: null, outcomes: [] };

export function requestRewind(state: ConversationState, { requestId, to }: Of<'rewind-requested'>): ConversationState {
  const { asked, outcomes } = state.rewinds ?? NONE;
  if ([...asked, ...outcomes].some((one) => one.requestId === requestId)) return state;
  return withRewinds(state, () => ({ asked: [...asked, { requestId, to }] }));
}

/** From the asking on no turn begins. */
export function isRewinding({ rewinds }: ConversationState): boolean {
  return rewinds !== undefined && rewinds.asked.length > 0;
}

export type RewindStep = { readonly kind: 'rewind'; readonly input: RewindInput; readonly summary: string };

/** 'hold': nothing else begins, but what the store is owed. Undefined: all goes on as usual. */
export function rewindStep(state: ConversationState): RewindStep | 'hold' | undefined {
  const { rewinds, window, memory } = state;
  const next = rewinds?.asked[0];
  if (!rewinds || !next) return undefined;
  if (rewinds.doing !== null) return 'hold';
  // A turn that is being stopped, a session that is being ended: these come first.
  if (state.turn || window.ending) return undefined;
  const busy = memory.doing !== null || window.puttingAway || state.recording || state.persisting || state.heal !== null;
  if (busy || state.unpersisted.length > 0 || state.outbox.settle.length > 0) return 'hold';
  const input: RewindInput = {
    identity: state.identity,
    requestId: next.requestId,
    branch: rewinds.branches + 1,
    to: next.to,
    slot: state.counters.slot,
    waiting: waitingSlots(state),
    session: state.session,
    at: state.now / 1000,
    compactions: memory.compactions,
  };
  return { kind: 'rewind', input, summary: `rewind to ${next.to}` };
}

export function startRewind(state: ConversationState, { requestId }: Of<'rewind-started'>): ConversationState {
  return withRewinds(state, () => ({ doing: requestId }));
}

export function acceptRewound(state: ConversationState, { requestId, result }: Of<'rewound'>): ConversationState {
  if (state.rewinds?.doing !== requestId) return state;
  const epoch = state.epoch + 1;
  const session = Math.max(state.session, result.session);
  const inContext = new Set(slotsOf(result.context));
  // What long-term memory does not have yet, and was not asked for: of what was cut it never will.
  const left = state.window.turns.slice(state.window.pending?.turns ?? 0).filter(({ slots }) => isWithin(slots, inContext));
  const rewound = { ...resumeWith(state, result), epoch, session };
  return answer({ ...rewound, window: { ...rewound.window, turns: left } }, requestId, {
    kind: 'rewound',
    result: { to: toOf(state, requestId), cut: result.turns, branch: result.cut?.branch ?? null, session, epoch },
  });
}

export function failRewind(state: ConversationState, { requestId, failure }: Of<'rewind-failed'>): ConversationState {
  if (state.rewinds?.doing !== requestId) return state;
  return answer(state, requestId, { kind: 'failed', type: failure.type, message: failure.message }); // W4
}

export function rewindOutcome({ rewinds }: ConversationState, requestId: string): RewindOutcome | undefined {
  return rewinds?.outcomes.find((one) => one.requestId === requestId)?.outcome;
}

function answer(state: ConversationState, requestId: string, outcome: RewindOutcome): ConversationState {
  return withRewinds(state, ({ asked, outcomes, branches }) => ({
    doing: null,
    asked: asked.filter((one) => one.requestId !== requestId),
    branches: outcome.kind === 'rewound' && outcome.result.branch !== null ? Math.max(branches, outcome.result.branch) : branches,
    outcomes: [...outcomes, { requestId, outcome }].slice(-REMEMBERED),
  }));
}

function toOf({ rewinds }: ConversationState, requestId: string): string {
  const to = rewinds?.asked.find((one) => one.requestId === requestId)?.to ?? '';
  return turnId(turnNumber(to));
}

/** W1. */
function waitingSlots({ queue }: ConversationState): readonly SlotRange[] {
  const slots = queue.flatMap((item) => (item.kind === 'message' ? [item.slot] : item.kind === 'spilled' ? slotsOf(item.slots) : []));
  return slots.sort((a, b) => a - b).reduce<readonly SlotRange[]>(withSlot, []);
}

function withRewinds(state: ConversationState, change: (rewinds: RewindState) => Partial<RewindState>): ConversationState {
  const rewinds = state.rewinds ?? NONE;
  return { ...state, rewinds: { ...rewinds, ...change(rewinds) } };
}
