/**
 * The answer of a turn as batches of events, for a reader that comes late: what has been void since is left out up to the live edge, and
 * from there on it is live.
 */
import type { PerduraClient } from '../../../client.js';
import { parseCursor } from '../../../stores/feed-cursor.js';
import { createAnswerParts } from './answer-parts.js';
import type { Followed } from './follow-turn.js';
import { createToolCalls, type CallEvent } from '../calls/tool-calls.js';
import { orUndefinedAfter } from '../../../platform/promises.js';

export interface AnswerStream {
  readonly client: Pick<PerduraClient, 'history'>;
  readonly id: string;
  readonly turn: string;
  readonly followed: AsyncGenerator<Followed, void>;
  /** The feed's newest cursor when the reader came; absent for one that is there from the beginning. */
  readonly edge?: string;
}

/** A feed that is silent for so long at first may have nothing; its reader hears that, and what comes then is old up to the edge all the same. */
const IDLE_MS = 100;
/** One that is silent for so long has brought all that it has, though the edge is not of this turn. */
const LAG_MS = 300;

export async function* answerStream({ client, id, turn, followed, edge }: AnswerStream): AsyncGenerator<readonly CallEvent[], void> {
  const parts = createAnswerParts();
  const calls = createToolCalls(client, id, turn);
  let held: CallEvent[] | undefined = edge === undefined ? undefined : [];
  let isTold = false;
  let next = followed.next();
  try {
    for (;;) {
      const patience = patienceFor(held, isTold);
      const item = patience === undefined ? await next : await orUndefinedAfter(patience, next);
      if (item === undefined) {
        yield withoutVoid(held ?? []);
        if (held?.length !== 0) held = undefined;
        isTold = true;
        continue;
      }
      if (item.done === true) return;
      const { cursor, event } = item.value;
      const events: CallEvent[] = [];
      for (const one of parts.take(event)) events.push(...(await calls.expand(one)));
      if (event.kind !== 'turn-finished') next = followed.next();
      if (held === undefined) {
        yield events;
      } else {
        held.push(...events);
        if (event.kind === 'turn-finished' || hasReached(cursor, edge)) {
          yield withoutVoid(held);
          held = undefined;
        }
      }
      if (event.kind === 'turn-finished') return;
    }
  } finally {
    // It may still wait for its next event: what ends that is its signal.
    next.catch(() => undefined);
    void followed.return().catch(() => undefined);
  }
}

/** Undefined: as long as it takes, since it is live, or has told its reader that there is nothing yet. */
function patienceFor(held: readonly CallEvent[] | undefined, isTold: boolean): number | undefined {
  if (held === undefined) return undefined;
  if (held.length > 0) return LAG_MS;
  return isTold ? undefined : IDLE_MS;
}

/** What is void was never there, what grew piece by piece comes in one, and what was asked and answered is no longer asked. */
export function withoutVoid(events: readonly CallEvent[]): readonly CallEvent[] {
  const gone = new Set(events.flatMap((event) => (event.kind === 'void' ? event.parts : [])));
  const answers = events.flatMap((event, at) => (event.kind === 'decided' || event.kind === 'tool-finished' ? [{ event, at }] : []));
  const kept: CallEvent[] = [];
  for (const [at, event] of events.entries()) {
    if (event.kind === 'asked' && answers.some((one) => one.at > at && one.event.callId === event.callId)) {
      kept.push({ ...event, isOver: true });
      continue;
    }
    if (event.kind === 'void' || ('part' in event && gone.has(event.part))) continue;
    const last = kept.at(-1);
    if (event.kind === 'grow' && last?.kind === 'grow' && last.part === event.part) {
      kept[kept.length - 1] = { ...event, text: last.text + event.text };
    } else {
      kept.push(event);
    }
  }
  return kept;
}

function hasReached(cursor: string | null, edge: string | undefined): boolean {
  const [at, newest] = [parseCursor(cursor ?? ''), parseCursor(edge ?? '')];
  return at === undefined || newest === undefined || at.birth !== newest.birth || at.n >= newest.n;
}
