/**
 * The end of a conversation and of its sub-agents, in store and Temporal.
 *
 * Tombstones come first, and outlast everything: from then on nothing of the conversation is resumed, forked or healed, and no late write
 * stays. If a fork began meanwhile, the tombstones go away again (collections/lives.ts has its half of this). The rest is found by the
 * conversation's name, in the store and in Temporal, and never through something that may be gone already: if a deletion is cut short, the
 * same call again does the rest.
 */
import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import { MAX_LIVES } from '../conversation/protocol/memory-contract.js';
import { rawFallbackLines } from '../memory/documents/search-history.js';
import { dropDeleted } from '../memory/recall/recall.js';
import type { ConversationKey, Store } from '../stores/store.js';
import { deletedSignal, WORKFLOW_TYPE } from '../workflows/messages.js';
import type { Description } from './describe.js';
import { ClientError, toClientError } from './errors.js';
import { findMemory } from './memory.js';
import { listDeliveries } from './webhook-deliveries.js';

/** What was deleted of a conversation. */
export interface Deleted {
  /** Lives that the store had of it and of its sub-agents, and runs that Temporal has been told to delete: it does so in the background. */
  readonly lives: number;
  readonly runs: number;
  readonly subAgents: number;
  /** Whose long-term memory it had: MEMORY.md, summaries in HISTORY and facts stay there. */
  readonly scopes: readonly string[];
  /** How long the server keeps the histories of runs that have ended, those of `memory:<scope>` too; null where it does not say. */
  readonly retentionDays: number | null;
}

/** What the rest of the client lends. */
export interface DeletionAccess {
  readonly client: Client;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly store: () => Promise<Store>;
  readonly describe: (id: string) => Promise<Description>;
}

interface Run {
  readonly id: string;
  readonly runId: string;
  readonly life: string;
  readonly scope: string | null;
  readonly isRunning: boolean;
}

/** Of one conversation or sub-agent. */
interface Marks {
  readonly conversation: string;
  readonly lives: string[];
}

export async function deleteConversation(access: DeletionAccess, id: string): Promise<Deleted> {
  const { namespace } = access;
  const store = await access.store();
  const attempt = `cannot delete ${id}`;
  const described = await describeIfAny(access, id);
  if (described?.state === 'running') {
    throw new ClientError(
      'conflict',
      `${attempt}: it is running; end it with \`perdura end ${id} --wait\`, or at once with \`perdura end ${id} --terminate\``,
    );
  }
  const runs = await listRuns(access, id, described).catch((error: unknown) => {
    throw toClientError(error, attempt);
  });
  const lives = await listLives(store, { namespace, id }, runs);
  const before = await store.lives.deleted({ namespace, conversation: id });
  if (!described && runs.length + lives.length + before.length === 0) {
    throw new ClientError('not-found', `${attempt}: neither Temporal nor the store has a conversation of that id`);
  }
  await refuseForked(store, lives, attempt);

  const marks = toMarks(lives, runs);
  const at = Date.now() / 1000;
  for (const { conversation, lives: marked } of marks) {
    await store.lives.markDeleted(
      { namespace, conversation },
      marked.map((life) => ({ life, at })),
    );
  }
  await refuseForked(store, lives, attempt).catch(async (error: unknown) => {
    for (const { conversation, lives: marked } of marks) await store.lives.unmarkDeleted({ namespace, conversation }, marked);
    throw error;
  });

  // Of a scope Redis says nothing.
  const inStore = store.kind === 'file' ? lives.map(({ scope }) => scope) : [];
  const scopes = [...new Set([...inStore, ...runs.flatMap(({ scope }) => scope ?? [])])].sort();
  for (const scope of scopes) await redactFallbacks(store, { namespace, scope }, marks);
  for (const key of lives) {
    await store.uploads.release(key);
    await store.lives.delete(key);
  }
  for (const scope of scopes) await dropDeleted(store, { namespace, scope });
  try {
    // A sub-agent goes on when its parent was terminated. Lists are a moment late: one of them may have ended.
    for (const run of runs.filter(({ isRunning }) => isRunning))
      await unlessGone(access.client.workflow.getHandle(run.id, run.runId).terminate('deleted'));
    for (const scope of scopes) await notifyMemory(access, scope, marks);
    // They carry messages of the conversation; one that still tries would post them.
    for (const delivery of await listDeliveries(access.client, id)) {
      await unlessGone(access.client.workflow.getHandle(delivery.id, delivery.runId).terminate('deleted'));
      await deleteRun(access, delivery);
    }
    for (const run of runs) await deleteRun(access, run);
  } catch (error) {
    throw toClientError(error, `${id} is deleted from the store, but cannot be from Temporal: delete it again`);
  }
  return {
    lives: lives.length,
    runs: runs.length,
    subAgents: marks.filter(({ conversation }) => conversation !== id).length,
    scopes,
    retentionDays: await readRetention(access),
  };
}

async function describeIfAny({ describe }: DeletionAccess, id: string): Promise<Description | undefined> {
  return describe(id).catch((error: unknown) => {
    if (error instanceof ClientError && error.kind === 'not-found') return undefined;
    throw error;
  });
}

/** Every run of the tree that Temporal still has; what was started a moment ago is not listed yet. */
async function listRuns({ client }: DeletionAccess, id: string, described: Description | undefined): Promise<Run[]> {
  const query = `WorkflowType = '${WORKFLOW_TYPE}' AND (WorkflowId = '${id}' OR WorkflowId STARTS_WITH '${id}:')`;
  const found = new Map<string, Run>();
  if (described) {
    const { runId, life, scope } = described;
    found.set(runId, { id, runId, life, scope, isRunning: false });
  }
  for await (const info of client.workflow.list({ query })) found.set(info.runId, toRun(info));
  return [...found.values()];
}

function toRun({ workflowId, runId, memo, status, raw }: WorkflowExecutionInfo): Run {
  const scope: unknown = memo?.['scope'];
  return {
    id: workflowId,
    runId,
    life: (raw as { readonly firstRunId?: string | null }).firstRunId || runId,
    scope: typeof scope === 'string' ? scope : null,
    isRunning: status.name === 'RUNNING',
  };
}

/** Also those that the store cannot find by the name of the first conversation alone. */
async function listLives(
  { lives }: Store,
  { namespace, id }: { readonly namespace: string; readonly id: string },
  runs: readonly Run[],
): Promise<ConversationKey[]> {
  const tree = await lives.list({ namespace, conversation: id, tree: true });
  const known = new Set([id, ...tree.map(({ conversation }) => conversation)]);
  const others = [...new Set(runs.map((run) => run.id))].filter((conversation) => !known.has(conversation));
  return [...tree, ...(await Promise.all(others.map((conversation) => lives.list({ namespace, conversation })))).flat()];
}

function toMarks(lives: readonly ConversationKey[], runs: readonly Run[]): Marks[] {
  const marks = new Map<string, Set<string>>();
  for (const { conversation, life } of [...lives, ...runs.map((run) => ({ conversation: run.id, life: run.life }))]) {
    marks.set(conversation, (marks.get(conversation) ?? new Set()).add(life));
  }
  return [...marks].map(([conversation, marked]) => ({ conversation, lives: [...marked] }));
}

/** Forks inside of the tree go with it. */
async function refuseForked({ lives }: Store, tree: readonly ConversationKey[], attempt: string): Promise<void> {
  const inTree = new Set(tree.map(({ conversation }) => conversation));
  const forks = (await Promise.all(tree.map((life) => lives.forks(life)))).flat();
  const others = [...new Set(forks.map(({ conversation }) => conversation))].filter((other) => !inTree.has(other));
  if (others.length === 0) return;
  throw new ClientError(
    'conflict',
    `${attempt}: ${others.length === 1 ? 'a fork reads' : 'forks read'} its turns where they lie: ${others.join(', ')}; delete ${others.length === 1 ? 'it' : 'them'} first`,
  );
}

/** HISTORY has messages word for word where no model has summarized them. */
async function redactFallbacks({ documents }: Store, key: { readonly namespace: string; readonly scope: string }, marks: readonly Marks[]) {
  const lines = await rawFallbackLines(documents.history(key), marks);
  if (lines.size > 0) await documents.redact(key, (line) => (lines.has(line) ? DELETED_LINE : line));
}

const DELETED_LINE = '[deleted]';

/** Drops open requests to memory of these lives. Only conversations that people began make such requests. */
async function notifyMemory({ client, taskQueue }: DeletionAccess, scope: string, marks: readonly Marks[]): Promise<void> {
  const { id, isRunning } = await findMemory(client, scope, taskQueue);
  if (!isRunning) return;
  for (const { conversation, lives } of marks.filter((mark) => !mark.conversation.includes(':'))) {
    for (let from = 0; from < lives.length; from += MAX_LIVES) {
      const notice = { conversation, lives: lives.slice(from, from + MAX_LIVES) };
      await client.workflow
        .getHandle(id)
        .signal(deletedSignal, notice)
        .catch((error: unknown) => {
          if (toClientError(error, '').kind !== 'not-found') throw error;
        });
    }
  }
}

export async function deleteRun(
  { client, namespace }: Pick<DeletionAccess, 'client' | 'namespace'>,
  { id: workflowId, runId }: Pick<Run, 'id' | 'runId'>,
): Promise<void> {
  await unlessGone(client.workflowService.deleteWorkflowExecution({ namespace, workflowExecution: { workflowId, runId } }));
}

export async function unlessGone<T>(done: Promise<T>): Promise<T | undefined> {
  return done.catch((error: unknown) => {
    if (toClientError(error, '').kind !== 'not-found') throw error;
    return undefined;
  });
}

export async function readRetention({ client, namespace }: Pick<DeletionAccess, 'client' | 'namespace'>): Promise<number | null> {
  const described = await client.workflowService.describeNamespace({ namespace }).catch(() => undefined);
  const seconds = described?.config?.workflowExecutionRetentionTtl?.seconds;
  return seconds === undefined || seconds === null ? null : Math.ceil(Number(seconds) / 86_400);
}
