/**
 * The answer of a turn as batches of events, for a reader that comes late: what has been void since is left out up to the live edge, and
 * from there on it is live.
 */
import type { TurnView } from '../../../records/turn-view.js';
import { parseCursor } from '../../../stores/feed-cursor.js';
import { orSilence } from '../../../platform/promises.js';
import { createAnswerParts, type AnswerEvent } from './answer-parts.js';
import type { Followed } from './follow-turn.js';

export interface AnswerBatch {
  readonly events: readonly AnswerEvent[];
  /** The turn after them. */
  readonly view: TurnView;
}

/** A feed that is silent for so long at first may have nothing; its reader hears that, and what comes then is old up to the edge all the same. */
const IDLE_MS = 100;
/** One that is silent for so long has brought all that it has, though the edge is not of this turn. */
const LAG_MS = 300;

/** `edge`: the feed's newest cursor when the reader came; absent for one that is there from the beginning. */
export async function* answerStream(followed: AsyncGenerator<Followed, void>, edge?: string): AsyncGenerator<AnswerBatch, void> {
  const parts = createAnswerParts();
  const batch = (events: readonly AnswerEvent[]): AnswerBatch => ({ events, view: parts.view() });
  let held: AnswerEvent[] | undefined = edge === undefined ? undefined : [];
  let isTold = false;
  for await (const item of orSilence(followed, () => patienceFor(held, isTold))) {
    if (item === undefined) {
      yield batch(withoutVoid(held ?? []));
      if (held?.length !== 0) held = undefined;
      isTold = true;
      continue;
    }
    const events = parts.take(item.event);
    const isEnd = item.event.kind === 'turn-finished';
    if (held === undefined) {
      yield batch(events);
    } else {
      held.push(...events);
      if (isEnd || hasReached(item.cursor, edge)) {
        yield batch(withoutVoid(held));
        held = undefined;
      }
    }
    if (isEnd) return;
  }
}

/** Undefined: as long as it takes, since it is live, or has told its reader that there is nothing yet. */
function patienceFor(held: readonly AnswerEvent[] | undefined, isTold: boolean): number | undefined {
  if (held === undefined) return undefined;
  if (held.length > 0) return LAG_MS;
  return isTold ? undefined : IDLE_MS;
}

/** What is void was never there, what grew piece by piece comes in one, and what was asked and answered is no longer asked. */
export function withoutVoid(events: readonly AnswerEvent[]): readonly AnswerEvent[] {
  const gone = new Set(events.flatMap((event) => (event.kind === 'void' ? event.parts : [])));
  const answers = events.flatMap((event, at) => (event.kind === 'decided' || event.kind === 'tool-finished' ? [{ event, at }] : []));
  const kept: AnswerEvent[] = [];
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
