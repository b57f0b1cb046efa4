/** The turn that a message becomes, known as soon as anything says it: the live events, or the answer. */
import type { PerduraClient } from '../../../client.js';

export interface JoinedTurn {
  readonly messageId: string;
  /** A cursor from before the message was handed over. */
  readonly after: string;
  readonly signal: AbortSignal;
  /** The turn, from the call that waits for its end. */
  readonly answered: Promise<string>;
}

export async function joinedTurn(client: Pick<PerduraClient, 'watch'>, id: string, joined: JoinedTurn): Promise<string> {
  const { messageId, after, signal, answered } = joined;
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const seen = async (): Promise<string> => {
    for await (const { event } of client.watch(id, { after, signal: either })) {
      if (event.kind === 'message' && event.messageId === messageId) return event.turn;
    }
    return new Promise(() => undefined);
  };
  try {
    return await Promise.race([answered, seen().catch(() => answered)]);
  } finally {
    answered.catch(() => undefined);
    stop.abort();
  }
}
