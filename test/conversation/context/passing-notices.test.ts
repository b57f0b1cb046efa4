/** Notices that a prompt has only as long as they are true. */
import { shownContext, withPassing } from '../../../src/conversation/context/truncation.js';
import { NO_COMPACTION } from '../../../src/conversation/state/compaction-state.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { listSlots } from '../../../src/records/slots.js';

const LEFT_OUT = [[1, 2]] as const;

function stateWith(epoch: number, leftOut: ConversationState['compaction']['leftOut'] = []): ConversationState {
  const passing = [{ slot: 4, epoch: 1 }, { slot: 6, epoch: 1, leftOut: true as const }]; // prettier-ignore
  return { context: [[6, 6], [3, 5], [7, 9]], epoch, compaction: { ...NO_COMPACTION, passing, leftOut } } as unknown as ConversationState; // prettier-ignore
}

test('a notice stays in its epoch, and what it says of messages that are left out as long as there are any', () => {
  const shown = (state: ConversationState): number[] => listSlots(shownContext(state));
  expect(shown(stateWith(1))).toEqual([6, 3, 4, 5, 7, 8, 9]);
  expect(shown(stateWith(2, LEFT_OUT))).toEqual([6, 3, 5, 7, 8, 9]);
  expect(shown(stateWith(2))).toEqual([3, 5, 7, 8, 9]);
});

test('those that have left the context are known no longer', () => {
  const state = { ...stateWith(2), context: [[5, 9]] as const };
  expect(withPassing(state, { slot: 10, epoch: 2 }).map(({ slot }) => slot)).toEqual([6, 10]);
});
