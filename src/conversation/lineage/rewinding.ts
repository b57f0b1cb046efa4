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
import type { RewindInput } from './lineage-effects.js';
import { compactsAt, nextMove } from '../context/compaction.js';
import type { EventOf } from '../event.js';
import { withdraw } from '../inbox/queue-editing.js';
import type { Completed, Failed } from '../effect.js';
import { answer, pendingRequests, request } from '../requests.js';
import type { ConversationState } from '../state.js';
import { isWithin, resumeWith } from './lineage.js';
import { listSlots, withSlot, type SlotRange } from '../../records/slots.js';
import { turnId, turnNumber } from '../../records/identity.js';

export function requestRewind(state: ConversationState, event: EventOf<'rewind-requested'>): ConversationState {
  const { requestId: id, to, before, messageId } = event;
  return request(state, { kind: 'rewind', id, input: { to, ...(before && { before }), ...(messageId !== undefined && { messageId }) } });
}

/** From the request on no turn begins. */
export function isRewinding(state: ConversationState): boolean {
  return pendingRequests(state, 'rewind').length > 0;
}

/** The next one; undefined while there is none, or a turn is being stopped, or a session ended: these come first. */
export function rewindInput(state: ConversationState): RewindInput | undefined {
  const { consolidation, compaction } = state;
  const [next] = pendingRequests(state, 'rewind');
  if (!next || state.turn || consolidation.ending) return undefined;
  const { to, before } = next.input;
  return {
    identity: state.identity,
    requestId: next.id,
    move: state.counters.move + 1,
    branch: (state.branches ?? 0) + 1,
    to,
    ...(before && { before }),
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

export function acceptRewound(state: ConversationState, { input, output: result }: Completed<'rewind'>): ConversationState {
  const epoch = state.epoch + 1;
  const session = Math.max(state.session, result.session);
  const inContext = new Set(listSlots(result.context));
  // What long-term memory does not have yet, and has no request for: it never gets what was cut.
  const { turns, pending, covered } = state.consolidation;
  const left = turns.slice(pending?.turns ?? 0).filter(({ slots }) => isWithin(slots, inContext));
  // A summary that also has turns that were cut stands for none of them.
  const stillCovered = covered.filter((one) => one.turns.every(({ slots }) => isWithin(slots, inContext)));
  const rewound = { ...resumeWith(state, result), epoch, session };
  const branch = result.cut?.branch ?? null;
  const known: ConversationState = {
    ...rewound,
    consolidation: { ...rewound.consolidation, turns: left, covered: stillCovered },
    ...(branch !== null && { branches: Math.max(state.branches ?? 0, branch) }),
  };
  return answer(known, 'rewind', [input.requestId], {
    kind: 'rewound',
    result: { to: turnId(result.cut?.to ?? turnNumber(input.to)), cut: result.turns, branch, session, epoch },
  });
}

/** (lineage/failed-rewind-changes-nothing) */
export function failRewind(state: ConversationState, { input: { requestId }, failure }: Failed<'rewind'>): ConversationState {
  const messageId = pendingRequests(state, 'rewind').find(({ id }) => id === requestId)?.input.messageId;
  const without = messageId === undefined ? state : withdraw(state, { kind: 'withdraw-requested', messageId, at: state.now });
  return answer(without, 'rewind', [requestId], { kind: 'failed', type: failure.type, message: failure.message });
}

/** (lineage/rewind-between-turns) */
function waitingSlots({ queue }: ConversationState): readonly SlotRange[] {
  const slots = queue.flatMap((item) => (item.kind === 'message' ? [item.slot] : item.kind === 'spilled' ? listSlots(item.slots) : []));
  return slots.sort((a, b) => a - b).reduce<readonly SlotRange[]>(withSlot, []);
}
