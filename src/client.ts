/** The one door to conversations: start them, talk to them, watch them, read them. */
import { randomUUID } from 'node:crypto';
import {
  Client,
  Connection,
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowHandle,
} from '@temporalio/client';
import { ClientError, toClientError } from './client/errors.js';
import { persistInTrying } from './client/persist-in-trying.js';
import { temporalConnection, type Config } from './config.js';
import {
  ID_PATTERN,
  type FeedEvent,
  type Message,
  type QueuedEvent,
  type ResetResult,
  type StartOptions,
  type Status,
  type TurnResult,
} from './conversation/contract.js';
import { readMessage, readStart } from './conversation/input.js';
import type { Entry } from './conversation/message.js';
import { turnNumber } from './conversation/state.js';
import { withBodies } from './memory/bodies.js';
import { openStore } from './stores/open.js';
import type { ConversationKey, Store } from './stores/store.js';
import {
  closeSignal,
  interruptSignal,
  messageSignal,
  queueQuery,
  renameSignal,
  resetUpdate,
  sendUpdate,
  statusQuery,
  turnUpdate,
  WORKFLOW_TYPE,
} from './workflows/messages.js';

export { ClientError, type ClientErrorKind } from './client/errors.js';

export interface Started {
  readonly id: string;
  /** True when a conversation of that id was already running: nothing was started, `options` were not used. */
  readonly attached: boolean;
}

export interface WatchEvent {
  /** Hand it to the next `watch` to go on where this one ended. */
  readonly cursor: string;
  readonly event: FeedEvent;
}

export interface PerduraClient {
  readonly namespace: string;
  readonly taskQueue: string;
  /** Starts a conversation, or attaches to the running one of that id. Without an id one is made. */
  start(id: string | undefined, options?: StartOptions): Promise<Started>;
  /** Sends a message and waits for the end of its turn, over hand-overs, worker deaths and lost connections. `start` starts the conversation in the same round trip. */
  send(id: string, message: string | Message, options?: { start?: StartOptions; signal?: AbortSignal }): Promise<TurnResult>;
  /** Waits for the result of a turn that was sent before. */
  turn(id: string, turnId: string, options?: { signal?: AbortSignal }): Promise<TurnResult>;
  /** Sends a message and does not wait (a signal). Answers its id. */
  message(id: string, message: string | Message): Promise<{ messageId: string }>;
  interrupt(id: string, reason?: string): Promise<void>;
  reset(id: string): Promise<ResetResult>;
  /** No new messages; what is queued is run out, then the workflow completes. */
  closeConversation(id: string): Promise<void>;
  rename(id: string, title: string): Promise<void>;
  status(id: string): Promise<Status>;
  queue(id: string): Promise<QueuedEvent[]>;
  /** Live events after `after` (default: from now on), until `signal` aborts. A retried attempt begins with `reset`. */
  watch(id: string, options?: { after?: string; signal?: AbortSignal }): AsyncIterable<WatchEvent>;
  /** Everything recorded, oldest first, with long texts at hand. */
  history(id: string): Promise<Entry[]>;
  /** Ids of conversations, latest started first. */
  list(options?: {
    limit?: number;
  }): Promise<{ id: string; running: boolean; agent: string | null; title: string | null; startedAt: Date }[]>;
  close(): Promise<void>;
}

/** What a client needs; by default all of it follows from the settings. */
export interface ClientOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly taskQueue: string;
  /** Opened only when something is watched or read. */
  readonly store: () => Store;
  readonly close?: () => Promise<void>;
}

/** Connects by the settings: `TEMPORAL_*` by Temporal's own rules, and the store that the workers use. */
export async function createClient(config: Config): Promise<PerduraClient> {
  const { connectionOptions, namespace } = await temporalConnection(config);
  const connection = await Connection.connect({
    ...connectionOptions,
    channelArgs: { 'grpc.max_receive_message_length': 256 * 1024 * 1024 },
  }).catch((error: unknown) => {
    throw toClientError(error, `cannot connect to Temporal at ${connectionOptions.address}`);
  });
  return createClientWith({
    client: new Client({ connection, namespace }),
    namespace,
    taskQueue: config.taskQueue,
    store: () => openStore(config),
    close: () => connection.close(),
  });
}

export function createClientWith({ client, namespace, taskQueue, store: openTheStore, close }: ClientOptions): PerduraClient {
  let opened: Store | undefined;
  const store = (): Store => (opened ??= openTheStore());
  const handleOf = (id: string): WorkflowHandle => client.workflow.getHandle(checkedId(id));
  const startOptions = (id: string, options: StartOptions) => {
    const start = readStart(options);
    if (!start.ok) throw new ClientError('invalid', `cannot start ${id}: ${start.reason}`);
    const { agent, scope, title } = start.value;
    return {
      workflowId: checkedId(id),
      taskQueue,
      args: [options],
      memo: { agent, scope, ...(title === null ? {} : { title }) },
      staticSummary: title === null ? agent : `${agent} · ${title}`,
    };
  };
  const withSignal = <T>(signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> =>
    signal ? client.withAbortSignal(signal, call) : call();

  /** Goes on asking until the turn has ended, whatever run answers. */
  const untilEnded = async (id: string, first: TurnResult, signal?: AbortSignal): Promise<TurnResult> => {
    let result = first;
    while ((result.stopReason === 'continues' || result.stopReason === 'queued') && result.turnId !== null) {
      const { turnId } = result;
      result = await persistInTrying({ attempt: `cannot wait for ${turnId} of ${id}`, signal }, () =>
        withSignal(signal, () => handleOf(id).executeUpdate(turnUpdate, { args: [{ turnId }] })),
      );
    }
    return result;
  };

  const keyOf = async (id: string): Promise<ConversationKey> => {
    const attempt = `cannot look up ${id}`;
    const description = await handleOf(id)
      .describe()
      .catch((error: unknown) => {
        throw toClientError(error, attempt);
      });
    const life = description.raw.workflowExecutionInfo?.firstRunId || description.runId;
    const known = description.memo?.['scope'];
    const scope = typeof known === 'string' ? known : (await status(id)).scope;
    return { namespace, scope, conversation: id, life };
  };

  const status = (id: string): Promise<Status> =>
    handleOf(id)
      .query(statusQuery)
      .catch((error: unknown) => {
        throw toClientError(error, `cannot read the status of ${id}`);
      });

  const signalled = async (attempt: string, send: () => Promise<void>): Promise<void> =>
    persistInTrying({ attempt, patienceMs: 10_000 }, send);

  return {
    namespace,
    taskQueue,

    async start(id = `conv-${randomUUID()}`, options = {}) {
      const own = startOptions(id, options);
      try {
        await client.workflow.start(WORKFLOW_TYPE, own);
        return { id, attached: false };
      } catch (error) {
        if (error instanceof WorkflowExecutionAlreadyStartedError) return { id, attached: true };
        throw toClientError(error, `cannot start ${id}`);
      }
    },

    async send(id, message, { start, signal } = {}) {
      const own = withId(message);
      const attempt = `cannot send to ${id}`;
      for (;;) {
        const result = await persistInTrying({ attempt, signal }, () =>
          withSignal(signal, () => {
            const options = { args: [own] as [Message], updateId: `send-${own.id}` };
            if (!start) return handleOf(id).executeUpdate(sendUpdate, options);
            const startWorkflowOperation = new WithStartWorkflowOperation(WORKFLOW_TYPE, {
              ...startOptions(id, start),
              workflowIdConflictPolicy: 'USE_EXISTING',
            });
            // Its own failure is the update's too; unobserved it would be an unhandled rejection.
            startWorkflowOperation.workflowHandle().catch(() => undefined);
            return client.workflow.executeUpdateWithStart(sendUpdate, { ...options, startWorkflowOperation });
          }),
        );
        // A reset that met a hand-over has no turn to ask for: it is said again, to the next run.
        if (result.stopReason !== 'continues' || result.turnId !== null) return untilEnded(id, result, signal);
      }
    },

    turn: (id, turnId, { signal } = {}) =>
      untilEnded(
        id,
        {
          turnId,
          text: '',
          stopReason: 'continues',
          usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, costUsd: 0 },
          toolCalls: 0,
        },
        signal,
      ),

    async message(id, message) {
      const own = withId(message);
      await signalled(`cannot send to ${id}`, () => handleOf(id).signal(messageSignal, own));
      return { messageId: own.id };
    },

    interrupt: (id, reason) =>
      signalled(`cannot interrupt ${id}`, () => handleOf(id).signal(interruptSignal, reason === undefined ? {} : { reason })),

    reset(id) {
      const resetId = randomUUID();
      return persistInTrying({ attempt: `cannot reset ${id}` }, () =>
        handleOf(id).executeUpdate(resetUpdate, { args: [{ id: resetId }], updateId: `reset-${resetId}` }),
      );
    },

    rename: (id, title) => signalled(`cannot rename ${id}`, () => handleOf(id).signal(renameSignal, { title })),

    closeConversation: (id) => signalled(`cannot close ${id}`, () => handleOf(id).signal(closeSignal)),

    status,

    queue: (id): Promise<QueuedEvent[]> =>
      handleOf(id)
        .query(queueQuery)
        .catch((error: unknown) => {
          throw toClientError(error, `cannot read the queue of ${id}`);
        }),

    async *watch(id, { after = '$', signal = new AbortController().signal } = {}) {
      const key = await keyOf(id);
      for await (const { cursor, event } of store().feed.read(key, after, signal)) {
        yield { cursor, event: event as unknown as FeedEvent };
      }
    },

    async history(id) {
      const key = await keyOf(id);
      const entries: Entry[] = [];
      for (let after = 0, last = Infinity; after < last;) {
        const page = await store().entries.page(key, after, PAGE);
        entries.push(...page.entries);
        after += PAGE;
        last = page.last;
      }
      const whole = await Promise.all(entries.map(async (entry) => ({ ...entry, message: await withBodies(store(), key, entry) })));
      return whole.sort((a, b) => turnNumber(a.turn) - turnNumber(b.turn) || a.seq - b.seq);
    },

    async list({ limit = 50 } = {}) {
      const found = [];
      for await (const { workflowId, status: state, memo, startTime } of client.workflow.list({
        query: `WorkflowType = '${WORKFLOW_TYPE}'`,
      })) {
        const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);
        found.push({
          id: workflowId,
          running: state.name === 'RUNNING',
          agent: text(memo?.['agent']),
          title: text(memo?.['title']),
          startedAt: startTime,
        });
        if (found.length === limit) break;
      }
      return found;
    },

    async close() {
      await opened?.close();
      await close?.();
    },
  };
}

const PAGE = 500;

function checkedId(id: string): string {
  if (ID_PATTERN.test(id)) return id;
  throw new ClientError('invalid', `${JSON.stringify(id.slice(0, 80))} cannot be a conversation's id: it must match ${ID_PATTERN.source}`);
}

/** Checked here as the workflow checks it, so that a signal is refused before it is sent. */
function withId(message: string | Message): Message & { readonly id: string } {
  const checked = readMessage(message);
  if (!checked.ok) throw new ClientError('invalid', checked.reason);
  const said = typeof message === 'string' ? { text: message } : message;
  return { ...said, id: said.id ?? randomUUID() };
}
