/**
 * The turn of a message that was submitted, from its beginning. Temporal answers a message that was sent before as it did the first time:
 * that it is late shows in the live events, which do not begin with the message then, or are silent, as those of a turn that waits are.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { OLDEST } from '../../../stores/feed-cursor.js';
import type { Followed, Following } from './follow-turn.js';

/** A message that a turn has just taken shows sooner. */
const SILENCE_MS = 250;

type Attach = (wanted: Following) => AsyncGenerator<Followed, void>;

export async function* wholeTurn(
  attach: Attach,
  { conversation, turn, after }: { readonly conversation: string; readonly turn: string; readonly after: string },
  signal: AbortSignal,
): AsyncGenerator<Followed, void> {
  const stop = new AbortController();
  const followed = attach({ id: conversation, turn, after, signal: AbortSignal.any([signal, stop.signal]) });
  try {
    const next = followed.next();
    next.catch(() => undefined);
    const first = after === OLDEST ? await next : await Promise.race([next, sleep(SILENCE_MS, undefined)]);
    if (first?.done === true) return;
    if (first !== undefined && (after === OLDEST || first.value.event.kind === 'message')) {
      yield first.value;
      return yield* followed;
    }
    stop.abort();
    yield* attach({ id: conversation, turn, after: OLDEST, signal });
  } finally {
    stop.abort();
  }
}
