/**
 * One turn as it happens, for a reader that may come late, come back, or be slow.
 *
 * - The last event is `turn-finished`, once, with the whole answer: from the feed, else from Temporal, else from the store.
 * - Before it come the turn's live events, in order; `resync` takes the place of lost ones.
 * - It reads no faster than its reader: events wait in the store, and are trimmed there.
 */
import type { ClientError, PerduraClient, WatchEvent } from '../../../client.js';
import type { TurnEvent, TurnResult } from '../../../records/feed-event.js';
import type { TurnEnds } from './turn-ends.js';

export interface Followed {
  /** To go on after it; null where the feed did not bring it. */
  readonly cursor: string | null;
  readonly event: TurnEvent;
}

export interface Following {
  readonly id: string;
  readonly turn: string;
  /** A cursor of the conversation's feed; "0": everything that is kept of the turn. */
  readonly after: string;
  readonly signal: AbortSignal;
}

/** How long the feed may lag behind the end of its turn. */
const FEED_PATIENCE_MS = 1_000;

export interface FollowParts {
  readonly client: Pick<PerduraClient, 'watch'>;
  readonly ends: TurnEnds;
  /** The feed cannot be read: the end comes all the same. */
  readonly log?: (line: string) => void;
}

type Step =
  | { readonly from: 'feed'; readonly item: IteratorResult<WatchEvent> }
  | { readonly from: 'feed-failed'; readonly error: unknown }
  | { readonly from: 'end'; readonly result: TurnResult }
  | { readonly from: 'patience' };

export async function* followTurn({ client, ends, log }: FollowParts, wanted: Following): AsyncGenerator<Followed, void> {
  const { id, turn, after, signal } = wanted;
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const feed = client.watch(id, { after, signal: either })[Symbol.asyncIterator]();
  const nextOfFeed = (): Promise<Step> =>
    feed.next().then(
      (item): Step => ({ from: 'feed', item }),
      (error: unknown): Step => ({ from: 'feed-failed', error }),
    );
  const end: Promise<Step> = ends.of(id, turn, either).then((result) => ({ from: 'end', result }));
  const beforeEnd = racing(end);
  let ended: TurnResult | undefined;
  let timer: NodeJS.Timeout | undefined;
  let patience: Promise<Step> | undefined;
  let live: Promise<Step> | undefined = nextOfFeed();
  try {
    for (;;) {
      const step = await (ended === undefined ? beforeEnd(live) : Promise.race([live, patience].filter((one) => one !== undefined)));
      if (step.from === 'feed' && step.item.done !== true) {
        const { cursor, event } = step.item.value;
        live = nextOfFeed();
        if (event.kind === 'resync') yield { cursor, event };
        else if (!('turn' in event) || event.turn !== turn) continue;
        else if (event.kind !== 'turn-finished') yield { cursor, event };
        else return void (yield { cursor, event: { ...event, result: await ends.whole(id, event.result) } });
      } else if (step.from === 'end') {
        ended = step.result;
        patience = new Promise((resolve) => (timer = setTimeout(resolve, FEED_PATIENCE_MS, { from: 'patience' })));
      } else if (step.from !== 'patience') {
        if (step.from === 'feed-failed' && !either.aborted && !isRefusal(step.error)) {
          log?.(`the live events of ${id} cannot be read: ${String(step.error)}`);
        }
        signal.throwIfAborted();
        live = undefined;
      }
      if (ended !== undefined && (live === undefined || step.from === 'patience')) break;
    }
    yield { cursor: null, event: { kind: 'turn-finished', turn, result: await ends.whole(id, ended) } };
  } finally {
    clearTimeout(timer);
    stop.abort();
    // It may have read on, and holds its connection until it is left.
    void feed.return?.().catch(() => undefined);
  }
}

/** There is no such conversation, as its reader hears from the end; what strangers write into an id is no line of a log. */
function isRefusal(error: unknown): boolean {
  const { kind } = error as Partial<ClientError>;
  return kind === 'not-found' || kind === 'invalid';
}

/** One that takes long against others, again and again: `Promise.race` would keep every winner until that one settles. */
function racing<T>(slow: Promise<T>): (quick: Promise<T> | undefined) => Promise<T> {
  let isSettled = false;
  let settle: ((outcome: Promise<T>) => void) | undefined;
  const settled = (): void => {
    isSettled = true;
    settle?.(slow);
  };
  slow.then(settled, settled);
  return (quick) => {
    if (quick === undefined) return slow;
    if (isSettled) return Promise.race([quick, slow]);
    return new Promise((resolve, reject) => {
      settle = resolve;
      quick.then(resolve, reject);
    });
  };
}
