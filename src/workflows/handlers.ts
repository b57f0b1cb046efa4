/** What a client may say (design section 3): checked here, turned into events, and answered when the state has the answer. */
import { ApplicationFailure } from '@temporalio/common';
import { messageReceived, turnOfMessage } from '../conversation/inbox/arrivals.js';
import { LIMITS, type CompactionOutcome, type ResetResult, type TurnResult } from '../conversation/protocol/contract.js';
import type { Recalled } from '../conversation/activity-io/effects.js';
import { readClose, readOptionalText, readTitle, readTurnRequest, readRewind } from '../conversation/protocol/input.js';
import { readMessage, type ParsedMessage } from '../conversation/protocol/message.js';
import { readConsolidationNews } from '../conversation/protocol/memory-contract.js';
import type { ConversationState } from '../conversation/state.js';
import { turnId } from '../records/identity.js';
import type { EndedTurn } from '../conversation/state/turn-state.js';
import { contextOf, endedTurn, isTurnOpen, pendingResult, queueOf, resultOf, statusOf } from '../conversation/views/view.js';
import { heal, recall } from './activities.js';
import type { Answers } from './answers.js';
import { compactionOutcome } from '../conversation/context/requests.js';
import { type Handling, accepted, askAgain, refuseUnopened, refuseWhenClosing } from './handling.js';
import { handleStepping } from './stepping.js';
import { handleHumanInput } from './human-input.js';
import {
  closeSignal,
  compactUpdate,
  consolidatedSignal,
  contextQuery,
  FAILURES,
  interruptSignal,
  messageSignal,
  newSignal,
  queueQuery,
  renameSignal,
  resetUpdate,
  sendUpdate,
  statusQuery,
  truncateUpdate,
  turnUpdate,
  undoCompactionUpdate,
  openedUpdate,
  rewindUpdate,
} from './messages.js';
import type { Opened, RewindResult } from '../conversation/protocol/lineage.js';
import { rewindOutcome } from '../conversation/lineage/rewinding.js';

interface Conversation extends Pick<Handling, 'host' | 'state' | 'dispatch' | 'notifier' | 'isHandingOver'> {
  readonly answers: Answers;
}

/** Signals are accepted before we see them; only Temporal's own 2 MiB holds them back. */
const SIGNAL_BYTES = 4 * 1024 * 1024;

export interface Handled {
  readonly count: () => number;
  /** With its answer, from here or from the store; undefined while the store does not answer. */
  readonly resultOf: (ended: EndedTurn) => Promise<TurnResult | undefined>;
}

export function handleMessages(conversation: Conversation): Handled {
  const { host, state, dispatch, answers, notifier, isHandingOver } = conversation;
  let updates = 0;
  let waitingSends = 0;

  const reject = (name: string, reason: string): void => dispatch({ kind: 'input-rejected', name, reason, at: host.now() });
  const accept = (said: ParsedMessage, id: string): void =>
    said.kind === 'reset'
      ? dispatch({ kind: 'reset-requested', resetId: id, at: host.now() })
      : dispatch(messageReceived(said, id, host.now()));
  const counted = <Args extends unknown[], Result>(handle: (...args: Args) => Promise<Result>) => {
    return (...args: Args): Promise<Result> => {
      updates += 1;
      return handle(...args);
    };
  };

  host.setHandler(messageSignal, (payload: unknown) => {
    const said = readMessage(payload, SIGNAL_BYTES);
    if (said.ok) accept(said.value, said.value.id ?? host.uuid());
    else reject('message', said.reason);
  });
  host.setHandler(newSignal, (payload: unknown) => {
    const id = readOptionalText(payload, 'new', 'id');
    if (id.ok) dispatch({ kind: 'reset-requested', resetId: id.value ?? host.uuid(), at: host.now() });
    else reject('new', id.reason);
  });
  host.setHandler(interruptSignal, (payload: unknown) => {
    const reason = readOptionalText(payload, 'interrupt', 'reason');
    // A stop is a stop, also when its reason cannot be read.
    dispatch({ kind: 'interrupt-requested', reason: reason.ok ? (reason.value ?? null) : null, at: host.now() });
  });
  host.setHandler(renameSignal, (payload: unknown) => {
    const title = readTitle(payload);
    if (!title.ok) return reject('rename', title.reason);
    dispatch({ kind: 'renamed', title: title.value, at: host.now() });
    host.upsertMemo({ title: title.value });
  });
  host.setHandler(consolidatedSignal, (payload: unknown) => {
    const news = readConsolidationNews(payload);
    // Of an earlier life: this one has not asked for it.
    if (news.ok && news.value.life === state().identity.life) dispatch({ kind: 'consolidation-ended', ...news.value, at: host.now() });
    else if (!news.ok) reject('consolidated', news.reason);
  });
  handleStepping({ host, state, dispatch, notifier, isHandingOver, counted, reject });
  handleHumanInput({ host, state, dispatch, counted, accept, reject });
  host.setHandler(closeSignal, (payload?: unknown) => {
    const close = readClose(payload);
    if (close.ok) dispatch({ kind: 'close-requested', at: host.now(), ...close.value });
    else reject('close', close.reason);
  });
  host.onOtherSignal((name) => {
    reject(name, 'no signal of that name');
  });

  host.setHandler(
    sendUpdate,
    counted(async (payload: unknown): Promise<TurnResult> => {
      const said = accepted(readMessage(payload));
      const id = said.id ?? host.uuid();
      accept(said, id);
      if (said.kind === 'reset') {
        await notifier.until(() => isHandingOver() || isResetOver(state(), id));
        refuseUnopened(state());
        const done = resetResult(state(), id);
        return done ? pendingResult(null, 'reset', done.reply) : pendingResult(null, 'continues');
      }
      // Kept here too: by the time the turn ends, the state may have heard too many others to remember this id.
      let known: string | undefined;
      const turnOf = (): string | undefined => (known = turnOfMessage(state(), id) ?? known);
      // A steering message has no turn yet that could be asked for: it waits in any case.
      const given = turnOf();
      if (given !== undefined && !isOver(state(), given) && waitingSends >= LIMITS.waitingSends) return pendingResult(given, 'queued');
      waitingSends += 1;
      try {
        await notifier.until(() => isHandingOver() || isOver(state(), turnOf()));
      } finally {
        waitingSends -= 1;
      }
      refuseUnopened(state());
      const turn = turnOf();
      if (turn === undefined || !isOver(state(), turn)) return pendingResult(turn ?? null, 'continues');
      const ended = endedTurn(state(), turn);
      if (!ended) return answeredLongAgo(turn);
      return cachedResult(ended) ?? (await storedResult(ended)) ?? pendingResult(turn, 'continues');
    }),
    {
      validator: (payload: unknown) => {
        accepted(readMessage(payload));
        refuseWhenClosing(state());
      },
    },
  );
  host.setHandler(
    turnUpdate,
    counted(async (payload: unknown): Promise<TurnResult> => {
      const turn = accepted(readTurnRequest(payload));
      await notifier.until(() => isHandingOver() || endedTurn(state(), turn) !== undefined || !isTurnOpen(state(), turn));
      refuseUnopened(state());
      const ended = endedTurn(state(), turn);
      const result = ended && (cachedResult(ended) ?? (await storedResult(ended)));
      if (result) return result;
      if (ended) throw askAgain(`${turn} has ended, but the store, which has its answer, does not answer now`);
      if (isTurnOpen(state(), turn)) return pendingResult(turn, 'continues');
      throw unknownTurn(turn);
    }),
    {
      validator: (payload: unknown) => {
        const turn = accepted(readTurnRequest(payload));
        if (!endedTurn(state(), turn) && !isTurnOpen(state(), turn)) throw unknownTurn(turn);
      },
    },
  );
  host.setHandler(
    resetUpdate,
    counted(async (payload?: unknown): Promise<ResetResult> => {
      const id = accepted(readOptionalText(payload, 'reset', 'id')) ?? host.uuid();
      dispatch({ kind: 'reset-requested', resetId: id, at: host.now() });
      await notifier.until(() => isHandingOver() || isResetOver(state(), id));
      refuseUnopened(state());
      const done = resetResult(state(), id);
      if (done) return done;
      throw askAgain('the conversation hands over to its next run');
    }),
    {
      validator: (payload?: unknown) => {
        accepted(readOptionalText(payload, 'reset', 'id'));
        refuseWhenClosing(state());
      },
    },
  );
  for (const [update, name, kind] of [
    [compactUpdate, 'compact', 'compaction-requested'],
    [undoCompactionUpdate, 'undoCompaction', 'undo-requested'],
    [truncateUpdate, 'truncate', 'truncation-requested'],
  ] as const) {
    host.setHandler(
      update,
      counted(async (payload?: unknown): Promise<CompactionOutcome> => {
        const id = accepted(readOptionalText(payload, name, 'id')) ?? host.uuid();
        if (!compactionOutcome(state(), id)) dispatch({ kind, requestId: id, at: host.now() });
        await notifier.until(() => isHandingOver() || compactionOutcome(state(), id) !== undefined);
        refuseUnopened(state());
        const outcome = compactionOutcome(state(), id);
        if (outcome) return outcome;
        throw askAgain('the conversation hands over to its next run');
      }),
      {
        validator: (payload?: unknown) => {
          accepted(readOptionalText(payload, name, 'id'));
          refuseWhenClosing(state());
        },
      },
    );
  }
  handleLineage({ host, state, dispatch, notifier, isHandingOver, counted, accept });
  host.onOtherUpdate((name) => {
    throw ApplicationFailure.nonRetryable(`no update "${name}" in a conversation`, 'UnknownUpdate');
  });

  host.setHandler(statusQuery, () => statusOf(state(), host.info().historyLength));
  host.setHandler(contextQuery, () => contextOf(state()));
  host.setHandler(queueQuery, () => queueOf(state()));

  /** The text is at hand in the run that heard it. */
  const cachedResult = (ended: EndedTurn): TurnResult | undefined => {
    const known = answers.of(turnId(ended.number));
    if (known) return resultOf(ended, known.text, known.textRef);
    return ended.answerSlot === null ? resultOf(ended, '') : undefined;
  };

  /** A later run reads it from the store. Undefined while that is away. */
  const storedResult = async (ended: EndedTurn): Promise<TurnResult | undefined> => {
    const { identity } = state();
    const slot = ended.answerSlot ?? 0;
    const ask = (): Promise<Recalled | undefined> => recall(host, { identity, slot }).catch(() => undefined);
    let answer = await ask();
    if (answer === null) {
      // Whether it helped shows when the store is read again.
      await heal(host, { identity, slots: [slot] }).catch(() => undefined);
      answer = await ask();
    }
    if (answer === null) return resultOf(ended, '[The store has lost this answer, and the history that could rebuild it is gone.]');
    return answer && resultOf(ended, answer.text, answer.textRef);
  };

  return { count: () => updates, resultOf: async (ended) => cachedResult(ended) ?? (await storedResult(ended)) };
}

/** It has ended, or is so long ago that only the store knows. */
function isOver(state: ConversationState, turn: string | undefined): boolean {
  return turn !== undefined && (endedTurn(state, turn) !== undefined || !isTurnOpen(state, turn));
}

/** The same message again, after its turn has left the state. */
function answeredLongAgo(turn: string): TurnResult {
  const message = `this message was ${turn}, which ended long ago; its answer is in the history`;
  return { ...pendingResult(turn, 'queued'), stopReason: 'end', error: { type: 'answered-before', message } };
}

function isResetOver(state: ConversationState, id: string): boolean {
  return state.resets.some((reset) => reset.resetId === id);
}

/** Throws for one that was taken out of the queue. */
function resetResult(state: ConversationState, id: string): ResetResult | undefined {
  const known = state.resets.find((reset) => reset.resetId === id);
  if (known?.result !== null) return known?.result;
  throw ApplicationFailure.nonRetryable('the reset was taken out of the queue; the session goes on', FAILURES.withdrawn);
}

function unknownTurn(turn: string): ApplicationFailure {
  return ApplicationFailure.nonRetryable(
    `${turn} is not running, waiting, or one of the last ${LIMITS.rememberedTurns}; older turns are in the history`,
    FAILURES.unknownTurn,
  );
}

/** What a client may say about other lives and rewinds: `opened` and `rewind`. */

function handleLineage(handling: Omit<Handling, 'reject'>): void {
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
