/**
 * One turn as it happens, for a reader that may come late, come back, or be slow; and how turns end, for any number of readers.
 *
 * - The last event is `turn-finished`, once, with the whole answer: from the feed, else from Temporal, else from the store.
 * - Before it come the turn's live events, in order; `resync` takes the place of lost ones.
 * - It reads no faster than its reader: events wait in the store, and are trimmed there.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ClientError } from '../errors.js';
import type { PerduraClient } from '../interface.js';
import { wholeAnswer, type WatchEvent } from '../reading.js';
import type { TurnEvent, TurnResult } from '../../records/feed-event.js';
import { answerText, NO_USAGE, type Entry } from '../../records/message.js';
import type { TurnEnd } from '../../records/turn-end.js';
import { OLDEST } from '../../stores/feed-cursor.js';

export interface TurnEventAt {
  /** To go on after it; null where the feed did not bring it. */
  readonly cursor: string | null;
  readonly event: TurnEvent;
}

export interface Following {
  readonly id: string;
  readonly turn: string;
  /** A cursor of the conversation's feed; "0": everything that the feed still has of the turn. */
  readonly after: string;
  readonly signal: AbortSignal;
  /** Its end is not waited for where no worker is: rejects with `no-worker`. Default: it is, since a worker may come. */
  readonly needsWorker?: boolean;
}

/** How long the feed may lag behind the end of its turn. */
const FEED_PATIENCE_MS = 1_000;

interface FollowParts {
  readonly client: Pick<PerduraClient, 'watch'>;
  readonly ends: TurnEnds;
  /** The feed cannot be read: the end comes all the same. */
  readonly onFeedFailed?: (id: string, error: unknown) => void;
}

type Step =
  | { readonly from: 'feed'; readonly item: IteratorResult<WatchEvent> }
  | { readonly from: 'feed-failed'; readonly error: unknown }
  | { readonly from: 'end'; readonly result: TurnResult }
  | { readonly from: 'patience' };

export async function* followTurn({ client, ends, onFeedFailed }: FollowParts, wanted: Following): AsyncGenerator<TurnEventAt, void> {
  const { id, turn, after, signal, needsWorker } = wanted;
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const feed = client.watch(id, { after, signal: either })[Symbol.asyncIterator]();
  const nextOfFeed = (): Promise<Step> =>
    feed.next().then(
      (item): Step => ({ from: 'feed', item }),
      (error: unknown): Step => ({ from: 'feed-failed', error }),
    );
  const end: Promise<Step> = ends.end(id, turn, either, { needsWorker }).then((result) => ({ from: 'end', result }));
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
        if (step.from === 'feed-failed' && !either.aborted) onFeedFailed?.(id, step.error);
        signal.throwIfAborted();
        live = undefined;
      }
      if (ended !== undefined && (live === undefined || step.from === 'patience')) break;
    }
    yield { cursor: null, event: { kind: 'turn-finished', turn, result: await ends.whole(id, ended) } };
  } finally {
    clearTimeout(timer);
    stop.abort();
    // It may have read on, and uses its connection until it is left.
    void feed.return?.().catch(() => undefined);
  }
}

/** A message that a turn has just taken shows sooner. */
const SILENCE_MS = 250;

type Attach = (wanted: Following) => AsyncGenerator<TurnEventAt, void>;

/**
 * The turn of a message that was submitted, from its beginning. Temporal answers a message that was sent before as it did the first time:
 * that it is late shows in the live events, which do not begin with the message then, or are silent, as those of a turn that waits are.
 */
export async function* followSubmitted(
  attach: Attach,
  { conversation, turn, after }: { readonly conversation: string; readonly turn: string; readonly after: string },
  signal: AbortSignal,
): AsyncGenerator<TurnEventAt, void> {
  const stop = new AbortController();
  const events = attach({ id: conversation, turn, after, signal: AbortSignal.any([signal, stop.signal]) });
  try {
    const next = events.next();
    next.catch(() => undefined);
    const first = after === OLDEST ? await next : await Promise.race([next, sleep(SILENCE_MS, undefined)]);
    if (first?.done === true) return;
    if (first !== undefined && (after === OLDEST || first.value.event.kind === 'message')) {
      yield first.value;
      return yield* events;
    }
    stop.abort();
    yield* attach({ id: conversation, turn, after: OLDEST, signal });
  } finally {
    stop.abort();
    // It may stand at an event that is not wanted, and uses its connection until it is left.
    void events.return().catch(() => undefined);
  }
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

const BETWEEN_TRIES_MS = 1_000;

/**
 * Temporal lets ten updates of a conversation wait at once, so the readers of one turn share one. A reader may wait without a limit: it
 * waits out a missing worker, a missing Temporal and a hand-over. If Temporal no longer answers for a turn, the store knows how it ended.
 */
export interface TurnEnds {
  /** Rejects with `not-found` where there is no such turn, and with the signal's reason; with `needsWorker` where no worker is. */
  end(id: string, turn: string, signal: AbortSignal, options?: { readonly needsWorker?: boolean | undefined }): Promise<TurnResult>;
  /** With the text in full. */
  whole(id: string, result: TurnResult): Promise<TurnResult>;
}

interface Waiting {
  readonly end: Promise<TurnResult>;
  readonly stop: AbortController;
  /** Of readers that hear of it where no worker is. */
  readonly away: Set<(error: unknown) => void>;
  readers: number;
}

/** As the store has it, which does not know what it used; undefined where it has nothing of it. */
export function recordedResult(turn: string, entries: readonly Entry[], ends: readonly TurnEnd[]): TurnResult | undefined {
  const found = entries.filter((entry) => entry.turn === turn);
  const end = ends.findLast((one) => one.turn === turn);
  if (found.length === 0 && end === undefined) return undefined;
  const last = found.findLast(({ message }) => message.role === 'assistant');
  return {
    turnId: turn,
    text: last === undefined ? '' : answerText(last.message),
    stopReason: end?.stopReason ?? 'end',
    usage: NO_USAGE,
    toolCalls: found.filter(({ message }) => message.role === 'tool').length,
    ...(end?.error && { error: end.error }),
  };
}

export function createTurnEnds(client: Pick<PerduraClient, 'turn' | 'history' | 'turnEnds'>): TurnEnds {
  const waiting = new Map<string, Waiting>();

  const wait = async (id: string, turn: string, { signal }: AbortController, away: Waiting['away']): Promise<TurnResult> => {
    for (;;) {
      try {
        return await client.turn(id, turn, { signal });
      } catch (error) {
        signal.throwIfAborted();
        const { kind } = error as Partial<ClientError>;
        if (kind === 'not-found') return recorded(id, turn);
        if (kind !== 'no-worker' && kind !== 'unreachable' && kind !== 'queue-full') throw error;
        if (kind === 'no-worker') for (const reject of away) reject(error);
        await sleep(BETWEEN_TRIES_MS, undefined, { signal });
      }
    }
  };

  const recorded = async (id: string, turn: string): Promise<TurnResult> => {
    const [entries, ends] = await Promise.all([client.history(id), client.turnEnds(id)]);
    const result = recordedResult(turn, entries, ends);
    if (result === undefined) throw new ClientError('not-found', `${id} has no ${turn}`);
    return result;
  };

  const shared = (id: string, turn: string): Waiting => {
    const key = `${id} ${turn}`;
    const known = waiting.get(key);
    if (known) return known;
    const stop = new AbortController();
    const away: Waiting['away'] = new Set();
    const end = wait(id, turn, stop, away).finally(() => waiting.delete(key));
    end.catch(() => undefined);
    const begun = { end, stop, away, readers: 0 };
    waiting.set(key, begun);
    return begun;
  };

  const whole = async (id: string, { textRef, ...result }: TurnResult): Promise<TurnResult> =>
    textRef === undefined ? result : { ...result, text: await wholeAnswer(client, id, { ...result, textRef }) };

  return {
    async end(id, turn, signal, { needsWorker = false } = {}) {
      signal.throwIfAborted();
      const wanted = shared(id, turn);
      wanted.readers += 1;
      let leave!: () => void;
      let giveUp!: (error: unknown) => void;
      const left = new Promise<never>((_resolve, reject) => {
        leave = () => reject(signal.reason as Error);
        giveUp = reject;
        signal.addEventListener('abort', leave, { once: true });
      });
      left.catch(() => undefined);
      if (needsWorker) wanted.away.add(giveUp);
      try {
        return await Promise.race([wanted.end, left]);
      } finally {
        signal.removeEventListener('abort', leave);
        wanted.away.delete(giveUp);
        wanted.readers -= 1;
        if (wanted.readers === 0) {
          wanted.stop.abort();
          if (waiting.get(`${id} ${turn}`) === wanted) waiting.delete(`${id} ${turn}`);
        }
      }
    },
    whole,
  };
}
