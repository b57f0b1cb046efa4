/** A turn as it is shown to a client that may have a part of it, and that answers what waits with a new request. */
import type { PerduraClient } from '../../../client.js';
import { OLDEST } from '../../../stores/feed-cursor.js';
import { answerStream, type AnswerBatch } from './answer-stream.js';
import type { Conversations, Submitted } from '../conversations.js';
import type { Followed } from './follow-turn.js';
import { createToolCalls, type CallEvent } from '../calls/tool-calls.js';
import { createKnownUpTo, createWaitingCalls, type AnsweredCall, type AskedCall } from '../calls/waiting-calls.js';
import { orUndefinedAfter } from '../../../platform/promises.js';

/** Several calls of one step are asked for one after the other: for so long a stream waits for the next of them before it ends. */
const PAUSE_MS = 300;
/** Live events that are silent for so long may have been lost, and with them that the turn waits; asked less and less often. */
const FIRST_LOOK_MS = 3_000;
const LAST_LOOK_MS = 30_000;

export interface ShownTurn {
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
  readonly answered?: readonly AnsweredCall[];
  /** Calls up to whose asking the client has the turn; default: those that it has answered. */
  readonly known?: readonly AnsweredCall[];
}

export async function* shownTurn(
  { client }: Pick<Conversations, 'client'>,
  { id, turn, follow, edge }: ShownTurn,
  { gone, answered = [], known = answered }: Showing,
): AsyncGenerator<ShownEvent, void> {
  const waiting = createWaitingCalls(answered);
  const isKnown = createKnownUpTo(known);
  const left = new AbortController();
  const followed = follow(AbortSignal.any([gone, left.signal]));
  const batches = shownCalls(client, { id, turn }, answerStream(followed, edge));
  const seen = new Set<string>();
  let next = batches.next();
  /** Beside the live events: no worker may be there to answer it. */
  let look: Promise<{ readonly found: readonly CallEvent[] }> | undefined;
  let patience = FIRST_LOOK_MS;
  try {
    for (;;) {
      const isPausing = waiting.all().length > 0;
      const item = await orUndefinedAfter(isPausing ? PAUSE_MS : patience, look ? Promise.race([next, look]) : next);
      if (item === undefined) {
        if (isPausing) return yield { kind: 'pause', waiting: waiting.all() };
        patience = Math.min(LAST_LOOK_MS, 2 * patience);
        look ??= lostWaits(client, { id, turn }, seen).then((found) => ({ found }));
        continue;
      }
      if ('found' in item) look = undefined;
      else if (item.done === true) return;
      else next = batches.next();
      for (const event of 'found' in item ? item.found : item.value) {
        if (event.kind === 'asked') seen.add(askOf(event.callId, event.what));
        if (event.kind === 'tool-called') seen.add(event.callId);
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

/** With what its tool calls were asked and answered in full. */
async function* shownCalls(
  client: Pick<PerduraClient, 'history'>,
  { id, turn }: Pick<ShownTurn, 'id' | 'turn'>,
  batches: AsyncGenerator<AnswerBatch, void>,
): AsyncGenerator<readonly CallEvent[], void> {
  const calls = createToolCalls(client, id, turn ?? '');
  for await (const { events } of batches) {
    const expanded: CallEvent[] = [];
    for (const event of events) expanded.push(...(await calls.expand(event)));
    yield expanded;
  }
}

function askOf(callId: string, what: AskedCall['what']): string {
  return `${callId} ${what}`;
}

/** What the turn waits for by now, as its conversation says, without what the live events have shown. `seen`: calls, and what was asked of them. */
async function lostWaits(
  client: PerduraClient,
  { id, turn }: Pick<ShownTurn, 'id' | 'turn'>,
  seen: ReadonlySet<string>,
): Promise<readonly CallEvent[]> {
  const waiting = await client.approvals(id).catch(() => []);
  return waiting.flatMap(({ callId, conversation, turnId, kind, tool, target, expiresAt, arguments: input = {} }): CallEvent[] => {
    if (conversation !== id || turnId !== turn || seen.has(askOf(callId, kind))) return [];
    const called: CallEvent[] = seen.has(callId) ? [] : [{ kind: 'tool-called', callId, name: tool, input }];
    return [...called, { kind: 'asked', turn: turnId, callId, name: tool, what: kind, target, until: expiresAt }];
  });
}

/** Of what was submitted, from its beginning. */
export async function viewOf(core: Conversations, submitted: Submitted): Promise<ShownTurn> {
  const { conversation: id, turn, acceptedAs, after } = submitted;
  const edge = acceptedAs === 'duplicate' ? await core.client.newestCursor(id) : after;
  return { id, turn, follow: (signal) => core.answer(submitted, signal), edge };
}

/** Of a turn that began before. */
export async function viewAgain(core: Conversations, id: string, turn: string): Promise<ShownTurn> {
  const edge = await core.client.newestCursor(id);
  return { id, turn, follow: (signal) => core.attach({ id, turn, after: OLDEST, signal }), edge };
}
