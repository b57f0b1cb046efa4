/**
 * A message, and the turn that answers it, as one stream: from its beginning, through approvals, and again after a restart of the program,
 * where the message has the same id.
 */
import { randomUUID } from 'node:crypto';
import type { Delivery, Message, StartOptions, TurnResult } from '../../conversation/protocol/contract.js';
import { readMessage } from '../../conversation/protocol/message.js';
import type { TurnEvent } from '../../records/feed-event.js';
import { NO_USAGE } from '../../records/message.js';
import { OLDEST } from '../../stores/feed-cursor.js';
import { ClientError } from '../errors.js';
import type { PerduraClient, StreamTurnOptions } from '../interface.js';
import { createTurnEnds, followSubmitted, followTurn } from './follow-turn.js';
import { describeIfAny, findTurn, isRunning } from './turn-status.js';

type Client = Omit<PerduraClient, 'stream'>;

/** The answer to a message that clears the session. */
export const CLEARED: TurnResult = { turnId: null, text: 'Session cleared.', stopReason: 'reset', usage: NO_USAGE, toolCalls: 0 };

/** `client.stream`: without a worker its end is the error `no-worker`, and the turn is answered later. */
export async function* streamTurn(
  client: Client,
  id: string,
  given: string | Message,
  { start = {}, signal = new AbortController().signal }: StreamTurnOptions = {},
): AsyncGenerator<TurnEvent, void> {
  const { id: messageId = randomUUID(), ...rest } = typeof given === 'string' ? { text: given } : given;
  const { cursor } = await openConversation(client, id, start);
  const submitted = await handOver(client, id, { ...rest, id: messageId }, { before: cursor, signal });
  const { turn } = submitted;
  if (turn === null) return void (yield { kind: 'turn-finished', turn: '', result: CLEARED });
  const ends = createTurnEnds(client);
  const attach: Parameters<typeof followSubmitted>[0] = (wanted) => followTurn({ client, ends }, { ...wanted, needsWorker: true });
  for await (const { event } of followSubmitted(attach, { conversation: id, turn, after: submitted.after }, signal)) yield event;
}

/**
 * The newest cursor of a conversation's live events, once it runs; with `start` it is begun where there is none (`isNew`), and gone on with
 * where it has ended. One that runs costs one request to Temporal.
 */
export async function openConversation(
  client: Client,
  id: string,
  start: StartOptions | undefined,
): Promise<{ readonly cursor: string; readonly isNew?: true }> {
  if (start === undefined) return { cursor: await client.newestCursor(id) };
  const description = await describeIfAny(client, id);
  if (description?.state === 'running') return { cursor: await client.newestCursor(id, { of: description }) };
  if (description) await goOn(client, id);
  else if (!(await client.start(id, start)).attached) return { cursor: OLDEST, isNew: true };
  return { cursor: await client.newestCursor(id) };
}

/** One that has ended goes on with its turns. */
async function goOn(client: Client, id: string): Promise<void> {
  try {
    await client.resume(id);
  } catch (error) {
    // Another one was first.
    if ((await isRunning(client, id)) !== true) throw error;
  }
}

export interface Submitted {
  readonly conversation: string;
  readonly messageId: string;
  /** The turn that answers it; null for `/new`, which has been done. */
  readonly turn: string | null;
  readonly acceptedAs: Delivery | 'duplicate';
  /** How many turns come before it. */
  readonly position: number;
  /** Where to begin to follow the turn, so that nothing of it is missed. */
  readonly after: string;
}

/** Durably; the same id is one message. `before`: the newest cursor before it. */
export async function handOver(
  client: Client,
  id: string,
  message: Message & { readonly id: string },
  { before, signal }: { readonly before: string; readonly signal: AbortSignal },
): Promise<Submitted> {
  if (isReset(message)) {
    await client.send(id, message, { signal });
    return { conversation: id, messageId: message.id, turn: null, acceptedAs: 'queue', position: 0, after: before };
  }
  const { messageId, turnId, acceptedAs, position } = await client.enqueue(id, message);
  const after = acceptedAs === 'duplicate' ? OLDEST : before;
  const turn = turnId ?? (await waitForTurn(client, id, message, { after, signal }));
  return { conversation: id, messageId, turn, acceptedAs, position, after };
}

/** The turn that a message joined, when it has. */
function waitForTurn(
  client: Client,
  id: string,
  message: Message & { readonly id: string },
  { after, signal }: { readonly after: string; readonly signal: AbortSignal },
): Promise<string> {
  const answered = client.send(id, message, { signal }).then(({ turnId }) => {
    if (turnId === null)
      throw new ClientError('closed', `${message.id} has no turn in ${id}: it was taken back, or the session was cleared`);
    return turnId;
  });
  return findTurn(client, id, { messageId: message.id, after, signal, answered });
}

/** As the workflow reads it: with a picture beside it, `/new` is a message like any other. */
export function isReset(message: Message): boolean {
  const read = readMessage(message);
  return read.ok && read.value.kind === 'reset';
}
