/** Long-term memory of one scope: read from the store, changed by its one writer, the workflow `memory:<scope>`. */
import { randomUUID } from 'node:crypto';
import { WithStartWorkflowOperation, type Client, WorkflowNotFoundError, type ConnectionLike } from '@temporalio/client';
import { ID_PATTERN } from '../conversation/protocol/contract.js';
import { isScope } from '../conversation/protocol/limits.js';
import {
  MEMORY_WORKFLOW_TYPE,
  type Cared,
  type Forgotten,
  type MemoryStatus,
  type Reviewed,
  memoryWorkflowId,
  type AskedConsolidation,
} from '../conversation/protocol/memory-contract.js';
import { isForgotten, toTombstone } from '../memory/documents/forgetting.js';
import { splitLines, type HistoryEntry, type MemoryChange, type MemoryText, type Proposal } from '../records/memory/documents.js';
import type { Recall, RecallQuery } from '../memory/recall/recall.js';
import type { Recalled } from '../memory/recall/recalled.js';
import type { FactRecord, ScopeKey, Store } from '../stores/store.js';
import { careUpdate, forgetUpdate, memoryStatusQuery, reviewUpdate, consolidateSignal } from '../workflows/messages.js';
import { ClientError, toClientError } from './errors.js';
import { openClient } from './temporal/encryption.js';
import type { AskQuery, AskWorker } from './temporal/patience.js';

/** Long-term memory of one scope: MEMORY.md, HISTORY, facts, and search in the conversations. */
export interface ScopeMemory {
  readonly scope: string;
  /** MEMORY.md as it is. */
  text(): Promise<MemoryText>;
  /** Every version of it, oldest first, with the lines that each brought and where they came from. */
  changes(): Promise<readonly MemoryChange[]>;
  /** The text of a version that there was once. */
  textOf(version: string): Promise<string | undefined>;
  /** HISTORY, newest first. */
  history(): Promise<AsyncIterable<HistoryEntry>>;
  /** All facts of the scope; with `all`, those too that others have replaced. */
  facts(options?: { readonly all?: boolean }): Promise<readonly FactRecord[]>;
  /** Finds messages and memories, by a whole question; best first. */
  search(question: string, options?: SearchOptions): Promise<readonly Recalled[]>;
  /** Messages at an address that a search has given, and around it, in order; empty where nothing is there. */
  open(address: string, around?: number): Promise<readonly Recalled[]>;
  /** Lines that only a tool's word stands behind, oldest first, decided ones too. */
  proposals(): Promise<readonly Proposal[]>;
  /** What the memory workflow does now; undefined where it does not run, since nothing was ever consolidated. */
  status(): Promise<MemoryStatus | undefined>;
  /** Removes every line and fact that says this, and keeps it from coming back. */
  forget(text: string): Promise<Forgotten>;
  /** What `forget` would take out, by the same rule as it. */
  wouldForget(text: string): Promise<ToForget>;
  /** Decides on a proposal. The first decision stays, and is answered. */
  review(id: string, decision: 'accept' | 'reject'): Promise<Reviewed>;
  /** Merges duplicates and prunes, now. */
  care(agent?: string): Promise<Cared>;
}

/** `now`: the asker's clock, by which "yesterday" is a day; this machine's without it. */
export type SearchOptions = Omit<RecallQuery, 'question' | 'now'> & { readonly now?: Date };

/** By the words of the text, whatever stands between them. */
export interface ToForget {
  readonly lines: readonly string[];
  readonly facts: readonly { readonly id: string; readonly fact: string }[];
  readonly proposals: readonly { readonly id: string; readonly line: string }[];
  readonly historyLines: number;
}

export interface MemoryAccess {
  readonly client: Client;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly store: () => Promise<Store>;
  readonly recall: () => Promise<Recall>;
  readonly askWorker: AskWorker;
  readonly askQuery: AskQuery;
}

export function createScopeMemory(
  { client, namespace, taskQueue, store, recall, askWorker, askQuery }: MemoryAccess,
  scope: string,
): ScopeMemory {
  const isName: boolean = isScope(scope);
  if (!isName) {
    throw new ClientError(
      'invalid',
      `${JSON.stringify(scope.slice(0, 80))} cannot be a memory's scope: it must match ${ID_PATTERN.source}, a tenant's with the tenant and a full stop before it`,
    );
  }
  const key: ScopeKey = { namespace, scope };
  const of = `the memory of ${scope}`;
  const documents = async (): Promise<Store['documents']> => (await store()).documents;

  /** Started where it does not run: a person may decide before anything was consolidated. */
  const decide = <Result>(attempt: string, update: { readonly name: string }, argument: object): Promise<Result> => {
    const updateId = `${update.name}-${randomUUID()}`;
    return askWorker({ id: memoryWorkflowId(scope), queue: taskQueue, attempt }, async () => {
      const id = await memoryIdFor(client, scope, taskQueue);
      const startWorkflowOperation = new WithStartWorkflowOperation(MEMORY_WORKFLOW_TYPE, {
        ...memoryStart(scope, { id, taskQueue }),
        workflowIdConflictPolicy: 'USE_EXISTING',
      });
      // Its failure is the update's too; unobserved it would be an unhandled rejection.
      startWorkflowOperation.workflowHandle().catch(() => undefined);
      return client.workflow.executeUpdateWithStart(update.name, {
        args: [argument],
        updateId,
        startWorkflowOperation,
      });
    });
  };

  return {
    scope,
    text: async () => (await documents()).memory(key),
    changes: async () => (await (await documents()).changes(key)).changes,
    textOf: async (version) => (await documents()).memoryText(key, version),
    history: async () => (await documents()).history(key),
    facts: async ({ all = false } = {}) => (await (await store()).facts.list(key, { all })).facts,
    search: async (question, { now = new Date(), ...options } = {}) => (await recall()).search(key, { ...options, question, now }),
    open: async (address, around) => (await recall()).open(key, address, around),
    proposals: async () => (await (await documents()).proposals(key)).proposals,

    async status() {
      try {
        const { id, isRunning } = await findMemory(client, scope, taskQueue);
        if (!isRunning) return undefined;
        return await askQuery({ id, queue: taskQueue, attempt: `cannot read the status of ${of}` }, () =>
          client.workflow.getHandle(id).query(memoryStatusQuery),
        );
      } catch (error) {
        const failure = toClientError(error, `cannot read the status of ${of}`);
        if (failure.kind === 'not-found') return undefined;
        throw failure;
      }
    },

    async wouldForget(text) {
      const tombstone = toTombstone(text, { id: 'asked', ts: 0, salt: scope });
      if (tombstone.words.length === 0) {
        throw new ClientError('invalid', `there is no word in ${JSON.stringify(text.slice(0, 80))} that could be forgotten`);
      }
      const isGone = (line: string): boolean => isForgotten(line, [tombstone], scope);
      const scopeDocuments = await documents();
      const [document, facts, proposals] = await Promise.all([
        scopeDocuments.memory(key),
        (await store()).facts.list(key),
        scopeDocuments.proposals(key),
      ]);
      let historyLines = 0;
      for await (const entry of scopeDocuments.history(key)) historyLines += splitLines(entry.text).filter(isGone).length;
      return {
        lines: splitLines(document.text).filter(isGone),
        facts: facts.facts.filter(({ fact }) => isGone(fact)).map(({ id, fact }) => ({ id, fact })),
        proposals: proposals.proposals.filter(({ line, state }) => state === 'open' && isGone(line)).map(({ id, line }) => ({ id, line })),
        historyLines,
      };
    },
    forget: (text) => decide(`cannot make ${of} forget this`, forgetUpdate, { text }),
    review: (id, decision) => decide(`cannot ${decision} ${id} of ${of}`, reviewUpdate, { id, decision }),
    care: (agent) => decide(`cannot take care of ${of}`, careUpdate, agent === undefined ? {} : { agent }),
  };
}

// Which workflow keeps a scope's memory, and with what it is started.

/**
 * `memory:<scope>`; where that lives on another task queue, one for ours beside it: that queue may have no worker any more, and a reset
 * would wait for it in vain. Writers of one store do not overwrite each other: MEMORY.md is compared before it is set.
 */
async function memoryIdFor(client: Client, scope: string, taskQueue: string): Promise<string> {
  return (await findMemory(client, scope, taskQueue)).id;
}

/** `isRunning`: of the one that was found; one that has ended answers nothing. */
export async function findMemory(
  client: Client,
  scope: string,
  taskQueue: string,
): Promise<{ readonly id: string; readonly isRunning: boolean }> {
  const id = memoryWorkflowId(scope);
  try {
    const found = await client.workflow.getHandle(id).describe();
    const isRunning = found.status.name === 'RUNNING';
    return isRunning && found.taskQueue !== taskQueue ? { id: `${id}:${taskQueue}`, isRunning } : { id, isRunning };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { id, isRunning: false };
    throw error;
  }
}

function memoryStart(scope: string, { id, taskQueue }: { readonly id: string; readonly taskQueue: string }) {
  return {
    workflowId: id,
    taskQueue,
    args: [{ scope }] as [{ scope: string }],
    memo: { scope },
    staticSummary: `long-term memory of ${scope}`,
    staticDetails: `The only writer of MEMORY.md and of what is remembered of \`${scope}\`. What it does now stands under Current Details.`,
  };
}

// How a worker reaches the memory workflow of a scope: a signal, with the start where it does not run.

interface MemoryPlace {
  readonly connection: ConnectionLike;
  readonly namespace: string;
  readonly taskQueue: string;
}

export function createAskMemory({
  connection,
  namespace,
  taskQueue,
}: MemoryPlace): (scope: string, request: AskedConsolidation) => Promise<void> {
  const client = openClient({ connection, namespace });
  return async (scope, request) => {
    const id = await memoryIdFor(client, scope, taskQueue);
    await client.workflow.signalWithStart(MEMORY_WORKFLOW_TYPE, {
      ...memoryStart(scope, { id, taskQueue }),
      signal: consolidateSignal,
      signalArgs: [request],
    });
  };
}
