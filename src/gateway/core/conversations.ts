/**
 * The six things that every protocol does with conversations: submit a message, attach to its turn, stop, decide, read, manage. The last
 * four are those of the client. What a gateway answers is in Temporal and in the store, and another one goes on.
 */
import type { PerduraClient } from '../../client.js';
import { ClientError } from '../../client/errors.js';
import { checkMessage } from '../../client/sending.js';
import type { Delivery, Message, StartOptions, TurnResult } from '../../conversation/protocol/contract.js';
import { readMessage } from '../../conversation/protocol/message.js';
import { mapMedia, MEDIA_KINDS, NO_USAGE, sourcesIn, type MediaKind } from '../../records/message.js';
import { OLDEST } from '../../stores/feed-cursor.js';
import { checkAttachments, placeAttachments } from './attachments.js';
import { followTurn, type TurnEventAt, type Following, createTurnEnds, followSubmitted } from './follow-turn.js';
import { findTurn, describeIfAny, isRunning } from './turn-status.js';

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

export interface Conversations {
  readonly client: PerduraClient;
  /**
   * Hands a message over, durably, and answers once it is taken; the same id is one message. With `start` the conversation is begun where
   * there is none, and gone on with where it has ended. What it names of `POST /v1/attachments` becomes the conversation's. `signal` gives
   * up waiting for a message that joins a running turn.
   */
  submit(
    id: string,
    message: Message & { readonly id: string },
    options?: { readonly start?: StartOptions; readonly signal?: AbortSignal },
  ): Promise<Submitted>;
  /** A turn as it happens; the last event is `turn-finished`. */
  attach(wanted: Following): AsyncGenerator<TurnEventAt, void>;
  /** The same of what was submitted, from its beginning, also where it was submitted before. */
  answer(submitted: Submitted, signal: AbortSignal): AsyncGenerator<TurnEventAt, void>;
  /** Waits for the end of a turn, however long that takes. */
  ended(id: string, turn: string, signal: AbortSignal): Promise<TurnResult>;
  /** The same for a reader that gets nothing before the end: where no worker is, it hears that (`no-worker`), and the turn goes on later. */
  readonly whileWorked: Conversations;
  /** Ids of conversations that were begun here of late and begin so, the latest first: Temporal's lists have them a moment later. */
  begunLately(prefix: string): readonly string[];
}

/** In a busy cluster a list comes to know of a beginning within seconds. */
const MAX_LATELY = 1_000;

/** The answer to a message that clears the session. */
export const CLEARED: TurnResult = { turnId: null, text: 'Session cleared.', stopReason: 'reset', usage: NO_USAGE, toolCalls: 0 };

export function createConversations(client: PerduraClient, log?: (line: string) => void): Conversations {
  const ends = createTurnEnds(client);
  const lately = new Set<string>();

  /** The newest cursor of its live events, once it runs. A conversation that runs costs one request to Temporal. */
  const open = async (id: string, start: StartOptions | undefined): Promise<string> => {
    if (start === undefined) return client.newestCursor(id);
    const description = await describeIfAny(client, id);
    if (description?.state === 'running') return client.newestCursor(id, { of: description });
    if (description) await goOn(client, id);
    else if (!(await client.start(id, start)).attached) {
      lately.add(id);
      if (lately.size > MAX_LATELY) lately.delete(lately.keys().next().value ?? '');
      return OLDEST;
    }
    return client.newestCursor(id);
  };

  /** The turn that a message joined, when it has. */
  const waitForTurn = (id: string, message: Message & { readonly id: string }, after: string, signal: AbortSignal): Promise<string> => {
    const answered = client.send(id, message, { signal }).then(({ turnId }) => {
      if (turnId === null)
        throw new ClientError('closed', `${message.id} has no turn in ${id}: it was taken back, or the session was cleared`);
      return turnId;
    });
    return findTurn(client, id, { messageId: message.id, after, signal, answered });
  };

  const submit: Conversations['submit'] = async (id, given, { start, signal = new AbortController().signal } = {}) => {
    await refuseBad(given);
    const checked = await checkAttachments(client, given);
    const before = await open(id, start);
    const message = await placeAttachments(client, id, checked);
    if (isReset(message)) {
      await client.send(id, message, { signal });
      return { conversation: id, messageId: message.id, turn: null, acceptedAs: 'queue', position: 0, after: before };
    }
    const { messageId, turnId, acceptedAs, position } = await client.enqueue(id, message);
    const after = acceptedAs === 'duplicate' ? OLDEST : before;
    const turn = turnId ?? (await waitForTurn(id, message, after, signal));
    return { conversation: id, messageId, turn, acceptedAs, position, after };
  };

  const readingWith = (needsWorker: boolean): Conversations => {
    const attach = (wanted: Following): AsyncGenerator<TurnEventAt, void> =>
      followTurn({ client, ends, ...(log && { log }) }, { ...wanted, needsWorker });
    return {
      client,
      submit,
      attach,

      async *answer(submitted, signal) {
        const { turn } = submitted;
        if (turn !== null) yield* followSubmitted(attach, { ...submitted, turn }, signal);
        else yield { cursor: null, event: { kind: 'turn-finished', turn: '', result: CLEARED } };
      },

      ended: async (id, turn, signal) => ends.whole(id, await ends.end(id, turn, signal, { needsWorker })),
      get whileWorked() {
        return readingWith(true);
      },
      begunLately: (prefix) => [...lately].filter((id) => id.startsWith(prefix)).reverse(),
    };
  };

  return readingWith(false);
}

/** Before a conversation is begun for it, and before an answer begins to stream; files that come with it are looked at as they are placed. */
async function refuseBad(message: Message): Promise<void> {
  const isOfFilesAlone = message.text.trim() === '' && sourcesIn(message).length > 0;
  const addresses = mapMedia(message, (sources) => sources.filter((source) => 'url' in source));
  const rest = Object.fromEntries(Object.entries(message).filter(([name]) => !MEDIA_KINDS.includes(name as MediaKind)));
  await checkMessage({ ...rest, ...addresses, text: isOfFilesAlone ? 'x' : message.text });
}

/** As the workflow reads it: with a picture beside it, `/new` is a message like any other. */
export function isReset(message: Message): boolean {
  const read = readMessage(message);
  return read.ok && read.value.kind === 'reset';
}

/** One that has ended goes on with its turns. */
async function goOn(client: PerduraClient, id: string): Promise<void> {
  try {
    await client.resume(id);
  } catch (error) {
    // Another gateway was first.
    if ((await isRunning(client, id)) !== true) throw error;
  }
}
