/** Sends a message and waits until its turn has ended, over hand-overs, worker deaths and lost connections; and answers a turn anew. */
import { randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation, type Client, type WorkflowHandle, type WorkflowStartOptions } from '@temporalio/client';
import type { Message, StartOptions, TurnResult, RewindRequest, Status } from '../conversation/protocol/contract.js';
import { NO_USAGE, isFromPerson, MEDIA_KINDS, shownText, type Media, type UserMessage } from '../records/message.js';
import { messageSignal, sendUpdate, turnUpdate, WORKFLOW_TYPE, rewindUpdate } from '../workflows/messages.js';
import { withRetries, type WithSignal, describeDelivery, type UnlessNoWorker, type AskWorker } from './temporal/patience.js';
import { partSchema, readMessage } from '../conversation/protocol/message.js';
import { turnId, turnNumber } from '../records/identity.js';
import { messageSchemaRefusal } from '../platform/json-schema/check.js';
import { ClientError } from './errors.js';
import type { ReadingClient } from './reading.js';

export interface Sending {
  readonly client: Client;
  readonly taskQueue: string;
  readonly unlessAway: UnlessNoWorker;
  readonly handleOf: (id: string) => WorkflowHandle;
  readonly withSignal: WithSignal;
  /** Rejects for an agent that there is not. */
  readonly checkAgent: (id: string, start: StartOptions) => Promise<void>;
  readonly startOptions: (
    id: string,
    options: StartOptions,
  ) => WorkflowStartOptions & { readonly args: StartOptions[]; readonly workflowId: string };
  readonly withId: (message: string | Message) => Promise<Message & { readonly id: string }>;
}

export interface SendingClient {
  send(id: string, message: string | Message, options?: { start?: StartOptions; signal?: AbortSignal }): Promise<TurnResult>;
  turn(id: string, turnId: string, options?: { signal?: AbortSignal }): Promise<TurnResult>;
  untilEnded(id: string, first: TurnResult, signal?: AbortSignal): Promise<TurnResult>;
}

export function createSending(parts: Sending): SendingClient {
  const { client, taskQueue, unlessAway, handleOf, withSignal, startOptions, checkAgent, withId } = parts;

  /** Goes on asking until the turn has ended, whatever run answers. */
  const untilEnded = async (id: string, first: TurnResult, signal?: AbortSignal): Promise<TurnResult> => {
    let result = first;
    while ((result.stopReason === 'continues' || result.stopReason === 'queued') && result.turnId !== null) {
      const { turnId } = result;
      result = await withRetries({ attempt: `cannot wait for ${turnId} of ${id}`, signal }, () =>
        withSignal(signal, () => handleOf(id).executeUpdate(turnUpdate, { args: [{ turnId }] })),
      );
    }
    return result;
  };

  return {
    untilEnded,

    async send(id, message, { start, signal: given } = {}) {
      const outgoing = await withId(message);
      if (start) await checkAgent(id, start);
      const attempt = `cannot send to ${id}`;
      /** A signal is in the history at once, worker or not; an update that no worker takes is nowhere. */
      const keep = async (): Promise<string> => {
        const signalled = { signal: messageSignal, signalArgs: [outgoing] as [Message] };
        if (start) await client.workflow.signalWithStart(WORKFLOW_TYPE, { ...startOptions(id, start), ...signalled });
        else await handleOf(id).signal(messageSignal, outgoing);
        return describeDelivery(outgoing.id);
      };
      const converse = async (signal: AbortSignal | undefined): Promise<TurnResult> => {
        for (;;) {
          const result = await withRetries({ attempt, signal }, () =>
            withSignal(signal, () => {
              const options = { args: [outgoing] as [Message], updateId: `send-${outgoing.id}` };
              if (!start) return handleOf(id).executeUpdate(sendUpdate, options);
              const startWorkflowOperation = new WithStartWorkflowOperation(WORKFLOW_TYPE, {
                ...startOptions(id, start),
                workflowIdConflictPolicy: 'USE_EXISTING',
              });
              // Its failure is the update's too; unobserved it would be an unhandled rejection.
              startWorkflowOperation.workflowHandle().catch(() => undefined);
              return client.workflow.executeUpdateWithStart(sendUpdate, { ...options, startWorkflowOperation });
            }),
          );
          // A reset that met a hand-over has no turn to ask for: it is sent again, to the next run.
          if (result.stopReason !== 'continues' || result.turnId !== null) return untilEnded(id, result, signal);
        }
      };
      return unlessAway({ id, attempt, signal: given, without: keep, ...(start && { queue: taskQueue }) }, converse);
    },

    turn: (id, turnId, { signal } = {}) =>
      unlessAway({ id, attempt: `cannot wait for ${turnId} of ${id}`, signal, without: 'the turn goes on once one does' }, (waitSignal) =>
        untilEnded(id, { turnId, text: '', stopReason: 'continues', usage: NO_USAGE, toolCalls: 0 }, waitSignal),
      ),
  };
}

/** As the workflow checks it, so that a signal is refused before it is sent; and its schemas, which no workflow may compile. */
export async function checkMessage(message: string | Message): Promise<void> {
  const read = readMessage(message);
  if (!read.ok) throw new ClientError('invalid', read.reason);
  const refusal = typeof message === 'string' ? undefined : await messageSchemaRefusal(message);
  if (refusal !== undefined) throw new ClientError('invalid', refusal);
}

// Answers a turn anew, or a reworded message: a rewind to before the turn that brings the message along, so that both happen or neither.

/** The new answer, and what it is in place of. */
export interface AnsweredAgain extends TurnResult {
  /** Turns that went, and the branch that keeps them; null where there was nothing to keep. */
  readonly cut: number;
  readonly branch: number | null;
}

/** Options of a request for another answer. */
export interface AnswerAgainOptions {
  /** Id of the message that is sent; by default one is made. */
  readonly messageId?: string;
  readonly signal?: AbortSignal;
  /** Called once the old turns are cut and the new one is there, with its id: from then on only the answer is waited for. */
  readonly onBegun?: (turn: string) => void;
}

/** Answers of a last turn, anew or of another question. */
export interface AnswerAgainClient {
  /** Answers the last turn anew: its message is sent again, and the old answer becomes a branch. A running turn is stopped. */
  retry(id: string, options?: AnswerAgainOptions): Promise<AnsweredAgain>;
  /**
   * Takes back `turn` and all after it, and says `text` in its place, with the pictures and the answer's schema of the old message. What
   * went becomes a branch. `turn` is one of those that `history` has; without it, the last.
   */
  edit(id: string, text: string, options?: AnswerAgainOptions & { readonly turn?: string }): Promise<AnsweredAgain>;
}

interface TurnMessage {
  readonly turn: string;
  readonly message: UserMessage;
}

interface Access {
  readonly handleOf: (id: string) => WorkflowHandle;
  readonly askWorker: AskWorker;
  readonly status: (id: string) => Promise<Status>;
  readonly reading: Pick<ReadingClient, 'history' | 'entries'>;
  /** Undefined where the store does not have it. */
  readonly bodyOf: (id: string, ref: string) => Promise<string | undefined>;
  readonly untilEnded: (id: string, first: TurnResult, signal?: AbortSignal) => Promise<TurnResult>;
}

export function createAnsweringAgain({ handleOf, askWorker, status, reading, untilEnded, bodyOf }: Access): AnswerAgainClient {
  /** Messages of people in the turn. */
  const messagesIn = async (id: string, attempt: string, turn: string | undefined): Promise<readonly TurnMessage[]> => {
    const [{ phase, turn: latest }, entries] = await Promise.all([status(id), reading.history(id)]);
    const fromPeople = entries.filter(({ message }) => isFromPerson(message));
    const wanted = turn ?? fromPeople.at(-1)?.turn;
    const found = fromPeople.filter((entry) => entry.turn === wanted);
    if (wanted === undefined) throw new ClientError('conflict', `${attempt}: it has no message yet`);
    if (found.length === 0) {
      throw new ClientError('not-found', `${attempt}: ${wanted} is not in it as it stands now; \`perdura show ${id}\` shows its turns`);
    }
    if (turn === undefined && phase !== 'idle' && turnNumber(wanted) < latest) {
      throw new ClientError('conflict', `${attempt}: ${turnId(latest)} has only just begun; wait a moment and try again`);
    }
    const slots = found.map(({ slot }) => slot);
    return (await reading.entries(id, slots, { whole: true })).flatMap(({ turn: of, message }) =>
      message.role === 'user' ? [{ turn: of, message }] : [],
    );
  };

  /** Tools of the program that sent it: it still runs them. */
  const readTools = async (id: string, messages: readonly TurnMessage[]): Promise<Pick<Message, 'tools'>> => {
    const ref = messages[0]?.message.tools?.ref;
    const json = ref === undefined ? undefined : await bodyOf(id, ref);
    return json === undefined ? {} : { tools: JSON.parse(json) as NonNullable<Message['tools']> };
  };

  const answerAgain = async (
    id: string,
    attempt: string,
    { before, message, signal, onBegun }: { readonly before: string; readonly message: Message } & Omit<AnswerAgainOptions, 'messageId'>,
  ): Promise<AnsweredAgain> => {
    const requestId = randomUUID();
    const args: [RewindRequest] = [{ before, id: requestId, message }];
    const done = await askWorker({ id, attempt, signal }, () =>
      handleOf(id).executeUpdate(rewindUpdate, { args, updateId: `rewind-${requestId}` }),
    );
    const { cut, branch, turnId: turn } = done;
    if (turn === undefined)
      throw new ClientError('failed', `${attempt}: its worker is of an earlier version; the turns are cut all the same`);
    onBegun?.(turn);
    const usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, costUsd: 0 };
    const result = await untilEnded(id, { turnId: turn, text: '', stopReason: 'continues', usage, toolCalls: 0 }, signal);
    return { ...result, cut, branch };
  };

  return {
    async retry(id, { messageId = randomUUID(), ...options } = {}) {
      const attempt = `cannot answer the last turn of ${id} anew`;
      const messages = await messagesIn(id, attempt, undefined);
      if (messages.some(({ message }) => typeof message.text !== 'string')) {
        throw new ClientError('failed', `${attempt}: the store has only the beginning of its message; say it with \`perdura edit ${id}\``);
      }
      // A message that joined the running turn was a separate one.
      const text = messages.map(({ message }) => partSchema(shownText(message.text)).text).join('\n\n');
      const message = checked(attempt, { id: messageId, text, ...besideText(messages), ...(await readTools(id, messages)) });
      return answerAgain(id, attempt, { before: messages[0]?.turn ?? '', message, ...options });
    },

    async edit(id, text, { turn, messageId = randomUUID(), ...options } = {}) {
      const attempt = `cannot edit ${turn ?? 'the last turn'} of ${id}`;
      const messages = await messagesIn(id, attempt, turn);
      const message = checked(attempt, { id: messageId, text, ...besideText(messages), ...(await readTools(id, messages)) });
      return answerAgain(id, attempt, { before: messages[0]?.turn ?? '', message, ...options });
    },
  };
}

function checked(attempt: string, message: Message): Message {
  const read = readMessage(message);
  if (!read.ok) throw new ClientError('invalid', `${attempt}: ${read.reason}`);
  if (read.value.kind === 'reset') throw new ClientError('invalid', `${attempt}: /new is no message; \`perdura rewind\` takes turns back`);
  return message;
}

/** Pictures, sound and video, and what its answer has to fit. */
function besideText(messages: readonly TurnMessage[]): Media & Pick<Message, 'output'> {
  const lists = MEDIA_KINDS.map((kind) => [kind, messages.flatMap(({ message }) => message[kind] ?? [])] as const);
  const output = messages.map(({ message }) => partSchema(shownText(message.text)).output).find((schema) => schema !== undefined);
  return { ...Object.fromEntries(lists.filter(([, list]) => list.length > 0)), ...(output && { output }) };
}
