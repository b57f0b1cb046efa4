/** What a client may say about other lives and rewinds: `opened` and `rewind`. */
import { ApplicationFailure } from '@temporalio/common';
import type { Opened, RewindResult } from '../conversation/protocol/lineage.js';
import { turnOfMessage } from '../conversation/inbox/arrivals.js';
import { readRewind } from '../conversation/protocol/input.js';
import { rewindOutcome } from '../conversation/lineage/rewinding.js';
import type { ConversationState } from '../conversation/state.js';
import { type Handling, accepted, askAgain, refuseUnopened, refuseWhenClosing } from './handling.js';
import { FAILURES, openedUpdate, rewindUpdate } from './messages.js';

export function handleLineage(handling: Omit<Handling, 'reject'>): void {
  const { host, state, dispatch, notifier, isHandingOver, counted, accept } = handling;
  host.setHandler(
    openedUpdate,
    counted(async (): Promise<Opened | null> => {
      await notifier.until(() => isHandingOver() || isOpen(state()) || isRefused(state()));
      refuseUnopened(state());
      if (isOpen(state())) return state().lineage?.opened ?? null;
      throw askAgain('the conversation hands over to its next run');
    }),
  );
  host.setHandler(
    rewindUpdate,
    counted(async (payload: unknown): Promise<RewindResult> => {
      const { to, before, id = host.uuid(), message } = accepted(readRewind(payload));
      // Asked again after a hand-over, it is the same message.
      const messageId = message && (message.id ?? id);
      const isAnswered = rewindOutcome(state(), id) !== undefined;
      const said = messageId === undefined ? {} : { messageId };
      dispatch({ kind: 'rewind-requested', requestId: id, to, ...(before && { before }), ...said, at: host.now() });
      // No turn begins before the rewind is done; a person waits for this one's answer, so it is the first.
      if (message && messageId !== undefined && !isAnswered) accept({ ...message, delivery: 'interrupt' }, messageId);
      await notifier.until(() => isHandingOver() || rewindOutcome(state(), id) !== undefined);
      refuseUnopened(state());
      const outcome = rewindOutcome(state(), id);
      const turnId = messageId && turnOfMessage(state(), messageId);
      if (outcome?.kind === 'rewound') return { ...outcome.result, ...(turnId && { turnId }) };
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
