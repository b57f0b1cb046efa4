/**
 * Turns taken back in place: the context becomes what it was at the end of an earlier turn, and goes on from there.
 *
 * Counters go on: no turn and no slot is given twice. Usage stays paid. The store keeps the cut turns as a branch, which can be forked.
 *
 * @rule lineage/rewind-between-turns: A rewind happens between turns: it stops the running one first. Waiting messages stay, and are
 *   answered after it. (test: test/workflows/lineage.test.ts)
 * @rule lineage/failed-rewind-changes-nothing: A failed rewind changes nothing, and takes back the message that came with it. (test:
 *   test/conversation/lineage/lineage.test.ts)
 */
import type { RewindInput } from '../activity-io/lineage-effects.js';
import { compactsAt, nextMove } from '../context/compaction.js';
import type { EventOf } from '../event.js';
import { withdraw } from '../inbox/queue-editing.js';
import type { Completed, Failed } from '../effect.js';
import type { RewindOutcome, RewindState, ConversationState } from '../state.js';
import { isWithin, resumeWith } from './lineage.js';
import { listSlots, withSlot, type SlotRange } from '../../records/slots.js';
import { turnId, turnNumber } from '../../records/identity.js';

const REMEMBERED = 16;
const NONE: RewindState = { branches: 0, asked: [], outcomes: [] };

export function requestRewind(state: ConversationState, event: EventOf<'rewind-requested'>): ConversationState {
  const { requestId, to, before, messageId } = event;
  const { asked, outcomes } = state.rewinds ?? NONE;
  if ([...asked, ...outcomes].some((one) => one.requestId === requestId)) return state;
  const request = { requestId, to, ...(before && { before }), ...(messageId !== undefined && { messageId }) };
  return withRewinds(state, () => ({ asked: [...asked, request] }));
}

/** From the asking on no turn begins. */
export function isRewinding({ rewinds }: ConversationState): boolean {
  return rewinds !== undefined && rewinds.asked.length > 0;
}

/** The next one; undefined while there is none, or a turn is being stopped, or a session ended: these come first. */
export function rewindInput(state: ConversationState): RewindInput | undefined {
  const { rewinds, consolidation, compaction } = state;
  const next = rewinds?.asked[0];
  if (!rewinds || !next || state.turn || consolidation.ending) return undefined;
  return {
    identity: state.identity,
    requestId: next.requestId,
    move: state.counters.move + 1,
    branch: rewinds.branches + 1,
    to: next.to,
    ...(next.before && { before: next.before }),
    slot: state.counters.slot,
    waiting: waitingSlots(state),
    session: state.session,
    at: state.now / 1000,
    compactions: compaction.compactions,
    ...(state.settings && { line: compactsAt(state.settings) }),
  };
}

export function startRewind(state: ConversationState): ConversationState {
  return nextMove(state);
}

export function acceptRewound(state: ConversationState, { input: { requestId }, output: result }: Completed<'rewind'>): ConversationState {
  const epoch = state.epoch + 1;
  const session = Math.max(state.session, result.session);
  const inContext = new Set(listSlots(result.context));
  // What long-term memory does not have yet, and was not asked for: of what was cut it never will.
  const { turns, pending, covered } = state.consolidation;
  const left = turns.slice(pending?.turns ?? 0).filter(({ slots }) => isWithin(slots, inContext));
  // A summary that also has turns that were cut stands for none of them.
  const stillCovered = covered.filter((one) => one.turns.every(({ slots }) => isWithin(slots, inContext)));
  const rewound = { ...resumeWith(state, result), epoch, session };
  return answer({ ...rewound, consolidation: { ...rewound.consolidation, turns: left, covered: stillCovered } }, requestId, {
    kind: 'rewound',
    result: {
      to: result.cut ? turnId(result.cut.to) : toOf(state, requestId),
      cut: result.turns,
      branch: result.cut?.branch ?? null,
      session,
      epoch,
    },
  });
}

export function failRewind(state: ConversationState, { input: { requestId }, failure }: Failed<'rewind'>): ConversationState {
  const said = state.rewinds?.asked.find((one) => one.requestId === requestId)?.messageId;
  const unsaid = said === undefined ? state : withdraw(state, { kind: 'withdraw-requested', messageId: said, at: state.now });
  // (lineage/failed-rewind-changes-nothing)
  return answer(unsaid, requestId, { kind: 'failed', type: failure.type, message: failure.message });
}

export function rewindOutcome({ rewinds }: ConversationState, requestId: string): RewindOutcome | undefined {
  return rewinds?.outcomes.find((one) => one.requestId === requestId)?.outcome;
}

function answer(state: ConversationState, requestId: string, outcome: RewindOutcome): ConversationState {
  return withRewinds(state, ({ asked, outcomes, branches }) => ({
    asked: asked.filter((one) => one.requestId !== requestId),
    branches: outcome.kind === 'rewound' && outcome.result.branch !== null ? Math.max(branches, outcome.result.branch) : branches,
    outcomes: [...outcomes, { requestId, outcome }].slice(-REMEMBERED),
  }));
}

function toOf({ rewinds }: ConversationState, requestId: string): string {
  const to = rewinds?.asked.find((one) => one.requestId === requestId)?.to ?? '';
  return turnId(turnNumber(to));
}

/** (lineage/rewind-between-turns) */
function waitingSlots({ queue }: ConversationState): readonly SlotRange[] {
  const slots = queue.flatMap((item) => (item.kind === 'message' ? [item.slot] : item.kind === 'spilled' ? listSlots(item.slots) : []));
  return slots.sort((a, b) => a - b).reduce<readonly SlotRange[]>(withSlot, []);
}

function withRewinds(state: ConversationState, change: (rewinds: RewindState) => Partial<RewindState>): ConversationState {
  const rewinds = state.rewinds ?? NONE;
  return { ...state, rewinds: { ...rewinds, ...change(rewinds) } };
}
