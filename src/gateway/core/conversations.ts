/**
 * The six things that every protocol does with conversations: submit a message, attach to its turn, stop, decide, read, manage. The last
 * four are those of the client. What a gateway answers is in Temporal and in the store, and another one goes on.
 */
import type { PerduraClient } from '../../client.js';
import { checkMessage } from '../../client/sending.js';
import type { Message, StartOptions, TurnResult } from '../../conversation/protocol/contract.js';
import { mapMedia, MEDIA_KINDS, sourcesIn, type MediaKind } from '../../records/message.js';
import { checkAttachments, placeAttachments } from './attachments.js';
import { toProblem } from './errors.js';
import { followTurn, type TurnEventAt, type Following, createTurnEnds, followSubmitted } from '../../client/turns/follow-turn.js';
import { CLEARED, handOver, openConversation, type Submitted } from '../../client/turns/stream.js';

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

export function createConversations(client: PerduraClient, log?: (line: string) => void): Conversations {
  const ends = createTurnEnds(client);
  const lately = new Set<string>();
  /** A refusal the reader hears from the end; what strangers write into an id is no line of a log. */
  const onFeedFailed = (id: string, error: unknown): void => {
    if (toProblem(error).status >= 500) log?.(`the live events of ${id} cannot be read: ${String(error)}`);
  };

  const submit: Conversations['submit'] = async (id, given, { start, signal = new AbortController().signal } = {}) => {
    await refuseBad(given);
    const checked = await checkAttachments(client, given);
    const { cursor: before, isNew } = await openConversation(client, id, start);
    if (isNew) {
      lately.add(id);
      if (lately.size > MAX_LATELY) lately.delete(lately.keys().next().value ?? '');
    }
    return handOver(client, id, await placeAttachments(client, id, checked), { before, signal });
  };

  const readingWith = (needsWorker: boolean): Conversations => {
    const attach = (wanted: Following): AsyncGenerator<TurnEventAt, void> =>
      followTurn({ client, ends, onFeedFailed }, { ...wanted, needsWorker });
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
