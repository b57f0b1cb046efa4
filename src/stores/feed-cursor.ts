/**
 * Cursors of feeds, the same in every store: `<birth>-<n>`.
 *
 * From these a reader knows without a look at what was deleted whether it missed something (`resync`), at its start and
 * also when it falls behind later.
 *
 * @rule stores/birth-names-the-feed: A cursor's `birth` is the epoch milliseconds of the feed's first event; a feed that was lost and begun
 *   anew has another one. (test: test/stores/contract.ts)
 * @rule stores/gaps-show: A cursor's `n` is dense: after `b-n` comes `b-(n+1)`. Any other successor means that events between were trimmed
 *   or lost. (test: test/stores/contract.ts)
 * @rule stores/cursor-of-a-lost-feed: A cursor beyond the feed's last event is of a feed that is gone. (test: test/stores/contract.ts)
 */
interface Cursor {
  readonly birth: number;
  readonly n: number;
}

export const RESYNC = { kind: 'resync' } as const;
/** The cursor before everything that a feed has. */
export const OLDEST = '0';
/** From now on. */
export const NEWEST = '$';

export function toCursor(birth: number, n: number): string {
  return `${birth}-${n}`;
}

export function parseCursor(text: string): Cursor | undefined {
  const match = /^(\d{1,15})-(\d{1,15})$/.exec(text);
  return match === null ? undefined : { birth: Number(match[1]), n: Number(match[2]) };
}

/** Where one reader is in one feed. */
export interface FeedPosition {
  /** The cursor to read on from. */
  from(): string;
  /**
   * Compares itself with the feed's last event. True when what it read is gone (stores/cursor-of-a-lost-feed): it then starts at the
   * oldest, after a resync.
   */
  settle(last: string | undefined): boolean;
  /** What it read may not be what is there: it starts at the oldest. True where it has read something. */
  restart(): boolean;
  /** Goes on to the next event; `gap` means that a resync comes before it (stores/gaps-show), `seen` that it was delivered already. */
  step(cursor: string): 'next' | 'gap' | 'seen';
}

export function createFeedPosition(after: string): FeedPosition {
  let at = after;
  return {
    from: () => at,
    settle(last) {
      if (at === NEWEST) at = last ?? OLDEST;
      if (at === OLDEST || (last !== undefined && compareCursors(at, last) <= 0)) return false;
      at = OLDEST;
      return true;
    },
    restart() {
      const hasRead = at !== OLDEST;
      at = OLDEST;
      return hasRead;
    },
    step(cursor) {
      const before = at;
      if (before === OLDEST) {
        at = cursor;
        return 'next';
      }
      if (compareCursors(cursor, before) <= 0) return 'seen';
      at = cursor;
      return follows(before, cursor) ? 'next' : 'gap';
    },
  };
}

/** The cursor of a resync that comes before `cursor`: reading on from it delivers `cursor`. */
export function cursorBefore(cursor: string): string {
  const parsed = parseCursor(cursor);
  return parsed === undefined ? OLDEST : toCursor(parsed.birth, Math.max(0, parsed.n - 1));
}

function follows(before: string, cursor: string): boolean {
  return cursorBefore(cursor) === before;
}

/** A text that is no cursor of this store is beyond everything. */
export function compareCursors(a: string, b: string): number {
  const [left, right] = [parseCursor(a), parseCursor(b)];
  if (left === undefined) return 1;
  if (right === undefined) return -1;
  return left.birth - right.birth || left.n - right.n;
}
