/** All that programs do with conversations, put together from the parts beside this file. */
import { randomUUID } from 'node:crypto';
import { type Client, WorkflowExecutionAlreadyStartedError, type WorkflowHandle } from '@temporalio/client';
import { checkMessage, createAnsweringAgain, createSending } from './sending.js';
import { createAttach, createUploads, DEFAULT_KEPT_BYTES } from './uploads.js';
import { describeConversation, withoutTaken, type Description } from './describe.js';
import { createSchedules } from './schedules.js';
import { createDispatch, createStepping } from './stepping.js';
import { ClientError, toClientError } from './errors.js';
import { createLineageClient } from './lineage.js';
import { createScopeMemory, type ScopeMemory } from './memory.js';
import { searchScopes } from './search-scopes.js';
import type { PerduraClient } from './interface.js';
import { streamTurn } from './turns/stream.js';
import { createList } from './listing.js';
import { createFleet, createUsage } from './fleet.js';
import { createInsight, type Replay } from './insight.js';
import { createHumanInput } from './human-input.js';
import {
  createWithSignal,
  withRetries,
  createAskChange,
  createAskQuery,
  createAskWorker,
  createUnlessNoWorker,
} from './temporal/patience.js';
import { createReading } from './reading.js';
import {
  type ContextIndex,
  CONVERSATION_PATTERN,
  type ConversationOutcome,
  type Message,
  type QueuedEvent,
  type StartOptions,
  type Status,
} from '../conversation/protocol/contract.js';
import { readStart } from '../conversation/protocol/input.js';
import { CHILD_PATTERN } from '../conversation/protocol/limits.js';
import { fetchRuns, type FetchedRuns } from '../heal/fetch-runs.js';
import { readArguments } from '../memory/bodies.js';
import type { Recall } from '../memory/recall/recall.js';
import type { Embedder } from '../models/embedder.js';
import { scopeAndTenant } from '../records/identity.js';
import type { ConversationKey, Store } from '../stores/store.js';
import {
  closeSignal,
  compactUpdate,
  contextQuery,
  interruptSignal,
  messageSignal,
  queueQuery,
  renameSignal,
  resetUpdate,
  statusQuery,
  undoCompactionUpdate,
  WORKFLOW_TYPE,
} from '../workflows/messages.js';

/** What a client needs; by default all of it follows from the settings. */
export interface ClientOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly taskQueue: string;
  /** Milliseconds after which what only a worker answers is given up where none is; default: never (`createClient`: 30 s). */
  readonly workerPatienceMs?: number;
  /** Why an agent cannot be used, where that is known here; undefined where only the worker knows. Default: it does. */
  readonly agentRefusal?: (agent: string, tenant?: string) => Promise<string | undefined>;
  /** Replays histories by the workflow's code; without it only the store tells of the past. */
  readonly replay?: Replay;
  /** Opened only when something is watched or read. */
  readonly store: () => Store | Promise<Store>;
  /** Bytes that search indexes of conversations may take in memory, all scopes together. */
  readonly searchCacheBytes?: number;
  /** Bytes of files that the conversations of one tenant may keep, as they are stored; default: 1 GiB. */
  readonly keptFileBytes?: number;
  /** Searches by meaning too, as the workers do; called at the first search. Default: by words alone. */
  readonly embedder?: () => Promise<Embedder | undefined>;
  /** Called by the client's `close`, after its store is closed. */
  readonly close?: () => Promise<void>;
}

/** A client from its parts: for programs that have a connection and a store already. */
export function createClientWith({
  client,
  namespace,
  taskQueue,
  workerPatienceMs: patienceMs = Infinity,
  agentRefusal: refusalOf,
  replay,
  store: openTheStore,
  searchCacheBytes: cacheBytes,
  keptFileBytes = DEFAULT_KEPT_BYTES,
  embedder,
  close,
}: ClientOptions): PerduraClient {
  let opened: Promise<Store> | undefined;
  const store = (): Promise<Store> => (opened ??= Promise.resolve(openTheStore()));
  let indexes: Promise<Recall> | undefined;
  const recall = (): Promise<Recall> => (indexes ??= firstRecall(store, { cacheBytes, embedder }));
  const handleOf = (id: string): WorkflowHandle => client.workflow.getHandle(checkedId(id));
  const startOptions = (id: string, options: StartOptions) => {
    const start = readStart(options);
    if (!start.ok) throw new ClientError('invalid', `cannot start ${id}: ${start.reason}`);
    const { agent, scope, title, origin, publicId, owner, idle } = start.value;
    const parent = origin?.kind === 'fork' ? { parent: origin.conversation, parentTurn: origin.turn ?? '' } : {};
    return {
      workflowId: checkedId(id, CONVERSATION_PATTERN),
      taskQueue,
      args: [options],
      memo: {
        agent,
        ...scopeAndTenant(scope),
        ...(publicId === null ? {} : { publicId }),
        ...(owner === undefined ? {} : { owner }),
        ...(idle === undefined ? {} : { idle }),
        ...(title === null ? {} : { title }),
        ...parent,
      },
      staticSummary: title === null ? agent : `${agent} · ${title}`,
      staticDetails: `A conversation with agent \`${agent}\`, long-term memory of \`${scope}\`. What it does now stands under Current Details.`,
    };
  };
  const withSignal = createWithSignal(client);

  const describe = async (id: string): Promise<Description> => describeConversation(handleOf(id));

  /** A running conversation is not started again, and keeps its agent. */
  const checkAgent = async (id: string, { agent, tenant }: StartOptions): Promise<void> => {
    const why = agent === undefined ? undefined : await refusalOf?.(agent, tenant);
    if (why === undefined) return;
    const isRunning = await describe(id).then(
      ({ state }) => state === 'running',
      () => false,
    );
    if (!isRunning) throw new ClientError('not-found', `cannot start ${id}: ${why}`);
  };

  const keyOf = async (id: string, known?: Description): Promise<ConversationKey> => {
    const { life, scope } = known ?? (await describe(id));
    return { namespace, scope: scope ?? (await status(id)).scope, conversation: id, life };
  };

  const unlessAway = createUnlessNoWorker({ client, namespace, patienceMs, describe });
  const askWorker = createAskWorker(unlessAway, withSignal);
  const askQuery = createAskQuery(unlessAway, withSignal);

  const status = async (id: string): Promise<Status> => {
    const found = await askQuery({ id, attempt: `cannot read the status of ${id}` }, () => handleOf(id).query(statusQuery));
    return found.waiting?.kind === 'worker' ? withoutTaken(found, await describe(id)) : found;
  };

  const signalled = async (attempt: string, send: () => Promise<void>): Promise<void> => withRetries({ attempt, patienceMs: 10_000 }, send);

  const askChange = createAskChange(handleOf, askWorker);

  const list = createList(client);
  const scope = (name: string): ScopeMemory =>
    createScopeMemory({ client, namespace, taskQueue, store, recall, askWorker, askQuery }, name);
  const scopes = async (): Promise<readonly string[]> => (await store()).scopes.list(namespace);
  const people = createHumanInput({
    handleOf,
    askWorker,
    askQuery,
    withId,
    argumentsOf: async (approval) => readArguments(await store(), await keyOf(approval.conversation), approval),
    async running({ query, ...options }) {
      // Conversations of other queues have other workers, which may be away.
      const ours = `ExecutionStatus = 'Running' AND TaskQueue = '${taskQueue.replaceAll("'", "''")}'`;
      const wanted = `${ours}${query === undefined ? '' : ` AND (${query})`}`;
      return (await list({ ...options, query: wanted })).map(({ id }) => id);
    },
    within: (ms, call) => client.withDeadline(Date.now() + ms, call),
  });

  const reading = createReading({ store, keyOf });
  const stepping = createStepping({ handleOf, askWorker, askChange, askQuery, entries: (id, slots) => reading.entries(id, slots) });
  const context = (id: string): Promise<ContextIndex> =>
    askQuery({ id, attempt: `cannot read the context of ${id}` }, () => handleOf(id).query(contextQuery));
  const runs = (id: string): Promise<FetchedRuns> =>
    fetchRuns(client.workflowService, { namespace, workflowId: checkedId(id) }).catch((error: unknown) => {
      throw toClientError(error, `cannot fetch the history of ${id}`);
    });
  const sending = createSending({ client, taskQueue, unlessAway, handleOf, withSignal, startOptions, checkAgent, withId });

  const all: Omit<PerduraClient, 'stream'> = {
    namespace,
    taskQueue,
    ...stepping,
    ...createInsight({ namespace, store, keyOf, describe, status, context, control: stepping.control, reading, runs, replay }),
    ...createUsage({ store, namespace }),
    ...createSchedules({ client, startOptions }),
    ...createLineageClient({
      ...{ client, namespace, taskQueue, store, handleOf, askWorker, unlessAway, describe, status, startOptions, checkAgent },
    }),
    ...people,
    ...createFleet({
      ...{ service: client.workflowService, namespace, taskQueue, list, status },
      within: (ms, call) => client.withDeadline(Date.now() + ms, call),
    }),
    ...reading,
    ...createAttach({ store, keyOf, keptBytes: keptFileBytes }),
    ...createUploads({ namespace, store, keyOf, keptBytes: keptFileBytes }),
    send: sending.send,
    turn: sending.turn,
    ...createAnsweringAgain({
      handleOf,
      askWorker,
      status,
      reading,
      untilEnded: sending.untilEnded,
      bodyOf: async (id, ref) => (await store()).bodies.get(await keyOf(id), ref),
    }),

    async start(id = `conv-${randomUUID()}`, options = {}) {
      const prepared = startOptions(id, options);
      await checkAgent(id, options);
      try {
        await client.workflow.start(WORKFLOW_TYPE, prepared);
        return { id, attached: false };
      } catch (error) {
        if (error instanceof WorkflowExecutionAlreadyStartedError) return { id, attached: true };
        throw toClientError(error, `cannot start ${id}`);
      }
    },

    async message(id, message) {
      const outgoing = await withId(message);
      await signalled(`cannot send to ${id}`, () => handleOf(id).signal(messageSignal, outgoing));
      return { messageId: outgoing.id };
    },

    interrupt: (id, reason) =>
      signalled(`cannot interrupt ${id}`, () => handleOf(id).signal(interruptSignal, reason === undefined ? {} : { reason })),

    reset: (id, options) => askChange({ ...options, id, attempt: `cannot reset ${id}` }, resetUpdate),

    compact: (id, options) => askChange({ ...options, id, attempt: `cannot compact ${id}` }, compactUpdate),

    dispatch: createDispatch({ handleOf, askWorker }),

    undoCompaction: (id, options) => askChange({ ...options, id, attempt: `cannot undo the compaction of ${id}` }, undoCompactionUpdate),

    context,

    rename: (id, title) => signalled(`cannot rename ${id}`, () => handleOf(id).signal(renameSignal, { title })),

    closeConversation: (id, { memory } = {}) =>
      signalled(`cannot close ${id}`, () =>
        memory === false ? handleOf(id).signal(closeSignal, { memory }) : handleOf(id).signal(closeSignal),
      ),

    outcome: (id, { signal } = {}) =>
      withRetries({ attempt: `cannot wait for the end of ${id}`, signal }, () =>
        withSignal(signal, () => handleOf(id).result() as Promise<ConversationOutcome>),
      ),

    cancel: (id) =>
      signalled(`cannot cancel ${id}`, async () => {
        await handleOf(id).cancel();
      }),

    terminate: (id, reason) =>
      signalled(`cannot terminate ${id}`, async () => {
        await handleOf(id).terminate(reason);
      }),

    status,

    queue: (id): Promise<QueuedEvent[]> =>
      askQuery({ id, attempt: `cannot read the queue of ${id}` }, () => handleOf(id).query(queueQuery)),

    describe,

    key: (id) => keyOf(id),

    scope,

    scopes,

    search: (question, options) => searchScopes({ scopes, scope }, question, options),

    runs,

    list,

    async close() {
      await (await opened)?.close();
      await close?.();
    },
  };
  return { ...all, stream: (id, message, options) => streamTurn(all, id, message, options) };
}

/** A sub-agent can be spoken of, but is started by its parent alone. */
function checkedId(id: string, ...patterns: readonly RegExp[]): string {
  const allowed = patterns.length > 0 ? patterns : [CONVERSATION_PATTERN, CHILD_PATTERN];
  if (allowed.some((pattern) => pattern.test(id))) return id;
  throw new ClientError(
    'invalid',
    `${JSON.stringify(id.slice(0, 80))} cannot be a conversation's id: it must match ${CONVERSATION_PATTERN.source}`,
  );
}

async function withId(message: string | Message): Promise<Message & { readonly id: string }> {
  await checkMessage(message);
  const given = typeof message === 'string' ? { text: message } : message;
  return { ...given, id: given.id ?? randomUUID() };
}

/** Stemmers and lists of words are loaded by the first search, not by every command. */
async function firstRecall(
  store: () => Promise<Store>,
  { cacheBytes, embedder }: { readonly cacheBytes: number | undefined; readonly embedder: ClientOptions['embedder'] },
): Promise<Recall> {
  const { openRecall } = await import('../memory/recall/open-recall.js');
  return openRecall({ store: await store(), ...(cacheBytes !== undefined && { cacheBytes }), embedder: await embedder?.() }).recall;
}
