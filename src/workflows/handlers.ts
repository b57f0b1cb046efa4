/** What a client may say (design section 3): checked here, turned into events, and answered when the state has the answer. */
import { ApplicationFailure } from '@temporalio/common';
import { tokenUsageOf } from '../conversation/context/chosen-chunks.js';
import { turnOfMessage } from '../conversation/inbox/arrivals.js';
import { LIMITS, type ResetResult, type TurnResult } from '../conversation/protocol/contract.js';
import type { Recalled } from '../conversation/outbox/writes.js';
import { readTurnRequest } from '../conversation/protocol/input.js';
import { readMessage } from '../conversation/protocol/message.js';
import { outcomeFor } from '../conversation/requests.js';
import type { ConversationState } from '../conversation/state.js';
import { turnId } from '../records/identity.js';
import type { EndedTurn } from '../conversation/state/turn-state.js';
import { approvalsOf } from '../conversation/turn/approvals.js';
import { contextOf, controlViewOf, endedTurn, isTurnOpen, pendingResult, queueOf, resultOf, statusOf } from '../conversation/views/view.js';
import { heal, recall } from './activities.js';
import {
  approvalsQuery,
  checkTokenUsageQuery,
  contextQuery,
  controlQuery,
  FAILURES,
  queueQuery,
  sendUpdate,
  statusQuery,
  turnUpdate,
} from './messages.js';
import { accepted, arrival, createRequests, refuseUnopened, refuseWhenClosing, sendAgain, type Handling } from './requests.js';
import { handleSignals, handleUpdates, resetResult } from './updates.js';
import { answerIn, type Answer } from '../records/message.js';
import type { ConversationEvent } from '../conversation/event.js';

interface Conversation extends Omit<Handling, 'counted'> {
  readonly answers: Answers;
}

export interface Handled {
  readonly count: () => number;
  /** With its answer, from here or from the store; undefined while the store does not answer. */
  readonly resultOf: (ended: EndedTurn) => Promise<TurnResult | undefined>;
}

export function handleMessages(conversation: Conversation): Handled {
  const { host, state, dispatch, answers, notifier, isHandingOver } = conversation;
  let updates = 0;
  let waitingSends = 0;
  const counted: Handling['counted'] =
    (handle) =>
    (...args) => {
      updates += 1;
      return handle(...args);
    };

  handleSignals(conversation);
  host.setHandler(
    sendUpdate,
    counted(async (payload: unknown): Promise<TurnResult> => {
      const message = accepted(readMessage(payload));
      const id = message.id ?? host.uuid();
      dispatch(arrival(message, id, host.now()));
      if (message.kind === 'reset') {
        const outcome = (): ResetResult | 'withdrawn' | undefined => outcomeFor(state(), 'reset', id);
        await notifier.until(() => isHandingOver() || outcome() !== undefined);
        refuseUnopened(state());
        return outcome() ? pendingResult(null, 'reset', resetResult(outcome()).reply) : pendingResult(null, 'continues');
      }
      // Kept here too: by the time the turn ends, the state may have heard too many others to remember this id.
      let known: string | undefined;
      const turnOf = (): string | undefined => (known = turnOfMessage(state(), id) ?? known);
      // A steering message has no turn yet that a client could query: it waits in any case.
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
      if (ended) throw sendAgain(`${turn} has ended, but the store, which has its answer, does not answer now`);
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
  handleUpdates(createRequests({ ...conversation, counted }));
  host.onOtherUpdate((name) => {
    throw ApplicationFailure.nonRetryable(`no update "${name}" in a conversation`, 'UnknownUpdate');
  });

  host.setHandler(statusQuery, () => statusOf(state(), host.info().historyLength));
  host.setHandler(contextQuery, () => contextOf(state()));
  host.setHandler(queueQuery, () => queueOf(state()));
  host.setHandler(controlQuery, () => controlViewOf(state()));
  host.setHandler(checkTokenUsageQuery, () => tokenUsageOf(state()));
  host.setHandler(approvalsQuery, () => approvalsOf(state()));

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

function unknownTurn(turn: string): ApplicationFailure {
  return ApplicationFailure.nonRetryable(
    `${turn} is not running, waiting, or one of the last ${LIMITS.rememberedTurns}; older turns are in the history`,
    FAILURES.unknownTurn,
  );
}

// The texts of the last turns of this run, for the handlers that wait for them. Not state: they are in history already, and
// a replay gathers them again. After a hand-over they are read from the store.

interface Answers {
  note(event: ConversationEvent): void;
  /** The last answer of the turn; undefined when this run does not know it. */
  of(turn: string): Answer | undefined;
}

const MAX_TURNS = 50;
const MAX_CHARACTERS = 256 * 1024;

export function createAnswers(): Answers {
  const answers = new Map<string, Answer>();
  return {
    note(event) {
      if (event.kind !== 'effect-completed' || event.effect !== 'model-step' || event.output.kind !== 'answered') return;
      const { turn, blocks } = event.output.answer;
      const latest = answerIn(blocks);
      if (!latest) return;
      answers.delete(turn);
      answers.set(turn, latest);
      let characters = 0;
      for (const [index, [id, answer]] of [...answers].reverse().entries()) {
        characters += answer.text.length;
        if (index > 0 && (index >= MAX_TURNS || characters > MAX_CHARACTERS)) answers.delete(id);
      }
    },
    of: (turn) => answers.get(turn),
  };
}
