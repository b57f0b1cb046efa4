/** What a client may say about other lives and turns taken back: `opened` and `rewind`. */
import { ApplicationFailure, setHandler, uuid4 } from '@temporalio/workflow';
import type { Opened, RewindResult } from '../conversation/protocol/lineage.js';
import { readRewind } from '../conversation/protocol/input.js';
import { rewindOutcome } from '../conversation/lineage/rewinding.js';
import type { ConversationState } from '../conversation/state.js';
import { now } from './clock.js';
import { type Handling, accepted, askAgain, refuseWhenClosing } from './handling.js';
import { FAILURES, openedUpdate, rewindUpdate } from './messages.js';

export function handleLineage({ state, dispatch, notifier, isHandingOver, counted }: Omit<Handling, 'accept' | 'reject'>): void {
  setHandler(
    openedUpdate,
    counted(async (): Promise<Opened | null> => {
      await notifier.until(() => isHandingOver() || isOpen(state()) || isRefused(state()));
      const { lineage } = state();
      if (lineage?.refused) throw ApplicationFailure.nonRetryable(lineage.refused.message, typeOf(lineage.refused.type));
      if (isOpen(state())) return lineage?.opened ?? null;
      throw askAgain('the conversation hands over to its next run');
    }),
  );
  setHandler(
    rewindUpdate,
    counted(async (payload: unknown): Promise<RewindResult> => {
      const { to, id = uuid4() } = accepted(readRewind(payload));
      dispatch({ kind: 'rewind-requested', requestId: id, to, at: now() });
      await notifier.until(() => isHandingOver() || rewindOutcome(state(), id) !== undefined);
      const outcome = rewindOutcome(state(), id);
      if (outcome?.kind === 'rewound') return outcome.result;
      if (outcome) throw ApplicationFailure.nonRetryable(outcome.message, typeOf(outcome.type));
      throw askAgain('the conversation hands over to its next run');
    }),
    {
      validator: (payload: unknown) => {
        accepted(readRewind(payload));
        refuseWhenClosing(state());
      },
    },
  );
}

function isOpen({ lineage }: ConversationState): boolean {
  return lineage === undefined || lineage.isOpen;
}

function isRefused({ lineage }: ConversationState): boolean {
  return lineage !== undefined && lineage.refused !== null;
}

function typeOf(type: string): string {
  return type === 'unknown-turn' ? FAILURES.unknownTurn : type;
}
