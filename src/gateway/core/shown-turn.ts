/** A turn as it is shown to a client that may have a part of it, and that answers what waits with a new request. */
import { setTimeout as sleep } from 'node:timers/promises';
import { OLDEST } from '../../stores/feed-cursor.js';
import { answerStream } from './answer-stream.js';
import type { Conversations, Submitted } from './conversations.js';
import type { Followed } from './follow-turn.js';
import type { CallEvent } from './tool-calls.js';
import { createKnownUpTo, createWaitingCalls, type AskedCall } from './waiting-calls.js';

/** Several calls of one step are asked for one after the other: for so long a stream waits for the next of them before it ends. */
const PAUSE_MS = 300;

export interface TurnView {
  readonly id: string;
  readonly turn: string | null;
  readonly follow: (signal: AbortSignal) => AsyncGenerator<Followed, void>;
  /** The feed's newest cursor when the reader came; absent for one that is there from the beginning. */
  readonly edge?: string;
}

export type ShownEvent =
  /** `isKnown`: the client has it. */
  | { readonly kind: 'event'; readonly event: CallEvent; readonly isKnown: boolean }
  /** The last: nothing goes on until a person has answered these. */
  | { readonly kind: 'pause'; readonly waiting: readonly AskedCall[] };

export interface Showing {
  readonly gone: AbortSignal;
  /** Calls that the client has just answered. */
  readonly answered?: readonly string[];
  /** Calls up to whose asking the client has the turn; default: those that it has answered. */
  readonly known?: readonly string[];
}

export async function* shownTurn(
  { client }: Pick<Conversations, 'client'>,
  { id, turn, follow, edge }: TurnView,
  { gone, answered = [], known = answered }: Showing,
): AsyncGenerator<ShownEvent, void> {
  const waiting = createWaitingCalls(answered);
  const isKnown = createKnownUpTo(known);
  const left = new AbortController();
  const followed = follow(AbortSignal.any([gone, left.signal]));
  const batches = answerStream({ client, id, turn: turn ?? '', followed, ...(edge !== undefined && { edge }) });
  let next = batches.next();
  try {
    for (;;) {
      const item = waiting.all().length > 0 ? await Promise.race([next, sleep(PAUSE_MS, undefined)]) : await next;
      if (item === undefined) return yield { kind: 'pause', waiting: waiting.all() };
      if (item.done === true) return;
      next = batches.next();
      for (const event of item.value) {
        waiting.take(event);
        yield { kind: 'event', event, isKnown: isKnown(event) };
      }
    }
  } finally {
    left.abort();
    next.catch(() => undefined);
    void batches.return().catch(() => undefined);
  }
}

/** Of what was submitted, from its beginning. */
export async function viewOf(core: Conversations, submitted: Submitted): Promise<TurnView> {
  const { conversation: id, turn, acceptedAs, after } = submitted;
  const edge = acceptedAs === 'duplicate' ? await core.client.newestCursor(id) : after;
  return { id, turn, follow: (signal) => core.answer(submitted, signal), edge };
}

/** Of a turn that began before. */
export async function viewAgain(core: Conversations, id: string, turn: string): Promise<TurnView> {
  const edge = await core.client.newestCursor(id);
  return { id, turn, follow: (signal) => core.attach({ id, turn, after: OLDEST, signal }), edge };
}
