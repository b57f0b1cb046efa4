/**
 * The turn of a message that was submitted, from its beginning. Temporal answers a message that was sent before as it did the first time:
 * that it is late shows in the live events, which do not begin with the message then.
 */
import { OLDEST } from '../../stores/feed-cursor.js';
import type { Conversations, Submitted } from './conversations.js';
import type { Followed } from './follow-turn.js';

export async function* wholeTurn(core: Conversations, taken: Submitted, signal: AbortSignal): AsyncGenerator<Followed, void> {
  const stop = new AbortController();
  const followed = core.answer(taken, AbortSignal.any([signal, stop.signal]));
  try {
    const first = await followed.next();
    if (first.done === true) return;
    const { conversation, turn, after } = taken;
    if (turn === null || after === OLDEST || first.value.event.kind === 'message') {
      yield first.value;
      return yield* followed;
    }
    stop.abort();
    yield* core.attach({ id: conversation, turn, after: OLDEST, signal });
  } finally {
    stop.abort();
  }
}
