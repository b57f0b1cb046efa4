/**
 * A turn as one stream of changes, which each protocol maps to its frames: what changes in the view of the turn (records/turn-view.ts), and
 * the events that are news in themselves. A reader that comes late gets a snapshot up to the live edge, and from there on it is live.
 */
import type { JsonValue } from '../../records/message.js';
import type { TurnEvent, TurnResult } from '../../records/feed-event.js';
import { changesBetween, EMPTY_VIEW, withEvent, type TurnChange, type TurnView } from '../../records/turn-view.js';
import { parseCursor } from '../../stores/feed-cursor.js';
import { orSilence } from '../../platform/promises.js';
import type { TurnEventAt } from '../../client/turns/follow-turn.js';

export type Change =
  | TurnChange
  | Extract<TurnEvent, { readonly kind: 'tool-started' | 'tool-finished' | 'decided' | 'waiting' | 'paused' | 'fallback' }>
  /** `isOver`: it has been answered since, as a reader that comes later sees. */
  | (Extract<TurnEvent, { readonly kind: 'asked' }> & { readonly isOver?: true })
  /** A call, once, before anything else of it; where its calls are read in full (interactive-turn.ts). */
  | { readonly kind: 'tool-called'; readonly callId: string; readonly name: string; readonly input: JsonValue }
  | { readonly kind: 'finished'; readonly result: TurnResult };

export interface TurnDelta {
  readonly changes: readonly Change[];
  /** The turn after them. */
  readonly view: TurnView;
}

/**
 * A feed that is silent for so long at first may have nothing; its reader hears that, and what comes then is old up to the edge all the
 * same.
 */
const IDLE_MS = 100;
/** One that is silent for so long has brought all that it has, though the edge is not of this turn. */
const LAG_MS = 300;

/** `edge`: the feed's newest cursor when the reader came; absent for one that is there from the beginning. */
export async function* turnStream(events: AsyncGenerator<TurnEventAt, void>, edge?: string): AsyncGenerator<TurnDelta, void> {
  let view = EMPTY_VIEW;
  /** Changes up to the edge; undefined once it is live. */
  let past: Change[] | undefined = edge === undefined ? undefined : [];
  let hasAnswered = false;
  /** Undefined: as long as it takes. */
  const patience = (): number | undefined => {
    if (past === undefined) return undefined;
    if (past.length > 0) return LAG_MS;
    return hasAnswered ? undefined : IDLE_MS;
  };
  for await (const item of orSilence(events, patience)) {
    if (item === undefined) {
      yield { changes: snapshot(past ?? []), view };
      if (past?.length !== 0) past = undefined;
      hasAnswered = true;
      continue;
    }
    const before = view;
    view = withEvent(before, item.event);
    const changes = [...changesBetween(before, view), ...newsIn(item.event)];
    const isEnd = item.event.kind === 'turn-finished';
    if (past === undefined) {
      yield { changes, view };
    } else {
      past.push(...changes);
      if (isEnd || hasReached(item.cursor, edge)) {
        yield { changes: snapshot(past), view };
        past = undefined;
      }
    }
    if (isEnd) return;
  }
}

function newsIn(event: TurnEvent): readonly Change[] {
  switch (event.kind) {
    case 'tool-started':
    case 'tool-finished':
    case 'asked':
    case 'decided':
    case 'waiting':
    case 'paused':
    case 'fallback':
      return [event];
    case 'turn-finished':
      return [{ kind: 'finished', result: event.result }];
    default:
      return [];
  }
}

/** Leaves out text that was taken back, joins each text into one change, and marks calls that have been answered since. */
export function snapshot(changes: readonly Change[]): readonly Change[] {
  const gone = new Set(changes.flatMap((change) => (change.kind === 'void' ? change.parts.map(({ id }) => id) : [])));
  const answers = changes.flatMap((change, at) => (change.kind === 'decided' || change.kind === 'tool-finished' ? [{ change, at }] : []));
  const standing: Change[] = [];
  for (const [at, change] of changes.entries()) {
    if (change.kind === 'asked' && answers.some((one) => one.at > at && one.change.callId === change.callId)) {
      standing.push({ ...change, isOver: true });
      continue;
    }
    if (change.kind === 'void' || ('part' in change && gone.has(change.part))) continue;
    const last = standing.at(-1);
    if (change.kind === 'grow' && last?.kind === 'grow' && last.part === change.part) {
      standing[standing.length - 1] = { ...change, text: last.text + change.text };
    } else {
      standing.push(change);
    }
  }
  return standing;
}

function hasReached(cursor: string | null, edge: string | undefined): boolean {
  const [at, newest] = [parseCursor(cursor ?? ''), parseCursor(edge ?? '')];
  return at === undefined || newest === undefined || at.birth !== newest.birth || at.n >= newest.n;
}

/** After so long a silence live events may have been lost, and with them that the turn waits; the looks become rarer. */
const FIRST_LOOK_MS = 3_000;
const LAST_LOOK_MS = 30_000;

/** The stream, and where it is silent what `look` finds meanwhile. */
export async function* withLooks<T>(
  stream: AsyncGenerator<T, void>,
  look: () => Promise<readonly T[]>,
  firstMs = FIRST_LOOK_MS,
): AsyncGenerator<T, void> {
  let patience = firstMs;
  for await (const item of orSilence(stream, () => patience)) {
    patience = item === undefined ? Math.min(LAST_LOOK_MS, 2 * patience) : firstMs;
    if (item !== undefined) yield item;
    else yield* await look();
  }
}
