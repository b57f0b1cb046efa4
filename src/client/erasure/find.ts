/** What there is of a person: in the store, and in Temporal, where conversations are found by the scope in their memo. */
import { ScheduleNotFoundError, type Client, type ScheduleHandle, type WorkflowExecutionInfo } from '@temporalio/client';
import { readStart } from '../../conversation/protocol/input.js';
import { memoryWorkflowId, MEMORY_WORKFLOW_TYPE } from '../../conversation/protocol/memory-contract.js';
import { readTenant } from '../../records/identity.js';
import type { ConversationKey, Store } from '../../stores/store.js';
import { WEBHOOK_WORKFLOW_TYPE, WORKFLOW_TYPE } from '../../workflows/messages.js';
import { deleteConversation, unlessGone } from '../deletion.js';
import { describeConversation, type Description } from '../describe.js';
import { isUnimplemented } from '../errors.js';

/** Ends a conversation that runs no more, in store and Temporal. Throws `ClientError`. */
export async function deleteEnded({ client, namespace, taskQueue, store }: ErasureAccess, id: string): Promise<void> {
  const describe = async (wanted: string): Promise<Description> => describeConversation(client.workflow.getHandle(wanted));
  await deleteConversation({ client, namespace, taskQueue, store: () => Promise.resolve(store), describe }, id);
}

export interface ErasureAccess {
  readonly client: Client;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly store: Store;
}

/** Who is to be erased. A scope by its whole name, a tenant's with the tenant before it. */
export type Whose = { readonly kind: 'scope' | 'tenant'; readonly name: string };

export interface Run {
  readonly id: string;
  readonly runId: string;
  readonly isRunning: boolean;
}

/** What one look has found. */
export interface Found {
  readonly conversations: readonly Run[];
  readonly lives: readonly ConversationKey[];
  readonly memories: readonly Run[];
  readonly deliveries: readonly Run[];
  readonly schedules: readonly string[];
  readonly scopes: readonly string[];
}

/** What was found by now: what is removed can be found no more. */
export interface Known {
  readonly conversations: Set<string>;
  readonly lives: Set<string>;
  readonly scopes: Set<string>;
  /** Of Temporal, by run; those that were told to be deleted are listed until they are. */
  readonly told: Map<string, Run>;
  /** Lives and runs that may be at work for a scope, by scope. */
  readonly writers: Map<string, Set<string>>;
}

export function createKnown({ kind, name }: Whose): Known {
  return {
    conversations: new Set(),
    lives: new Set(),
    scopes: new Set(kind === 'scope' ? [name] : []),
    told: new Map(),
    writers: new Map(),
  };
}

export async function findPerson(access: ErasureAccess, whose: Whose, known: Known): Promise<Found> {
  const { store, namespace, client } = access;
  const isTheirs = isOfPerson(whose);
  for (const scope of await store.scopes.list(namespace)) if (isTheirs(scope)) known.scopes.add(scope);
  const lives = new Map<string, ConversationKey>();
  const add = (key: ConversationKey): void => void lives.set(nameLife(key), key);
  for (const scope of known.scopes) for (const key of await store.scopes.lives({ namespace, scope })) add(key);

  const conversations: Run[] = [];
  const messages: { readonly run: Run; readonly into: string }[] = [];
  for await (const info of list(client, WORKFLOW_TYPE)) {
    const run = toRun(info);
    const { into, scope } = toMemo(info);
    const life = firstRun(info);
    const stored = lives.get(nameLife({ conversation: run.id, life }));
    if (into !== undefined) {
      messages.push({ run, into });
      continue;
    }
    // What another program began has no memo; then the store knows whose its life is.
    const of = scope ?? stored?.scope;
    if (of === undefined || !isTheirs(of)) continue;
    conversations.push(run);
    known.scopes.add(of);
    if (!stored) add({ namespace, conversation: run.id, life, scope: of });
  }
  await addPaid(access, { isTheirs, lives, add });

  const ids = new Set([...known.conversations, ...[...lives.values()].map(({ conversation }) => conversation)]);
  conversations.push(...messages.filter(({ into }) => ids.has(into)).map(({ run }) => run));
  return {
    conversations: untold(conversations, known),
    lives: [...lives.values()],
    memories: untold(await listMemories(client, isTheirs, known.scopes), known),
    deliveries: untold(await listDeliveries(client, ids), known),
    schedules: await listSchedules(client, isTheirs, ids),
    scopes: [...known.scopes],
  };
}

export function isOfPerson({ kind, name }: Whose): (scope: string) => boolean {
  return kind === 'scope' ? (scope) => scope === name : (scope) => readTenant(scope) === name;
}

/** Lives of which the store has costs alone: Redis notes a life once it has an entry. */
async function addPaid(
  { store, namespace }: ErasureAccess,
  {
    isTheirs,
    lives,
    add,
  }: {
    readonly isTheirs: (scope: string) => boolean;
    readonly lives: ReadonlyMap<string, ConversationKey>;
    readonly add: (key: ConversationKey) => void;
  },
): Promise<void> {
  const ids = new Set([...lives.values()].map(({ conversation }) => conversation));
  const paid = new Map<string, string>();
  for await (const { conversation, scope } of store.spendings.all({ namespace })) {
    if (isTheirs(scope) && !ids.has(conversation)) paid.set(conversation, scope);
  }
  for (const [conversation, scope] of paid) for (const key of await store.lives.list({ namespace, conversation, scope })) add(key);
}

async function listMemories(client: Client, isTheirs: (scope: string) => boolean, scopes: ReadonlySet<string>): Promise<Run[]> {
  const found = new Map<string, Run>();
  for await (const info of list(client, MEMORY_WORKFLOW_TYPE))
    if (isTheirs(scopeOfMemory(info.workflowId))) found.set(info.runId, toRun(info));
  // One that began a moment ago is not listed yet.
  for (const scope of scopes) {
    const latest = await unlessGone(client.workflow.getHandle(memoryWorkflowId(scope)).describe());
    if (latest) found.set(latest.runId, toRun(latest));
  }
  return [...found.values()];
}

async function listDeliveries(client: Client, ids: ReadonlySet<string>): Promise<Run[]> {
  const found: Run[] = [];
  for await (const info of list(client, WEBHOOK_WORKFLOW_TYPE)) {
    const conversation = /^webhook:(.*):[^:]+$/.exec(info.workflowId)?.[1] ?? '';
    if (ids.has(conversation)) found.push(toRun(info));
  }
  return found;
}

async function listSchedules(client: Client, isTheirs: (scope: string) => boolean, ids: ReadonlySet<string>): Promise<string[]> {
  const found: string[] = [];
  try {
    for await (const { scheduleId, action, memo } of client.schedule.list()) {
      if (action?.type !== 'startWorkflow' || action.workflowType !== WORKFLOW_TYPE) continue;
      const into = memo?.['into'];
      const scope = await scopeOfSchedule(client.schedule.getHandle(scheduleId));
      if ((typeof into === 'string' && ids.has(into)) || (scope !== undefined && isTheirs(scope))) found.push(scheduleId);
    }
  } catch (error) {
    // What runs workflows in memory has no schedules.
    if (!isUnimplemented(error)) throw error;
  }
  return found;
}

async function scopeOfSchedule(handle: ScheduleHandle): Promise<string | undefined> {
  try {
    const { action } = await handle.describe();
    const start = readStart(action.args?.[0]);
    return start.ok ? start.value.scope : undefined;
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return undefined;
    throw error;
  }
}

/** Of `memory:<scope>`, and of the one for another task queue beside it. */
export function scopeOfMemory(workflowId: string): string {
  return workflowId.split(':')[1] ?? '';
}

export function list(client: Client, type: string): AsyncIterable<WorkflowExecutionInfo> {
  return client.workflow.list({ query: `WorkflowType = '${type}'` });
}

export function toRun({ workflowId, runId, status }: Pick<WorkflowExecutionInfo, 'workflowId' | 'runId' | 'status'>): Run {
  return { id: workflowId, runId, isRunning: status.name === 'RUNNING' };
}

export function firstRun({ runId, raw }: WorkflowExecutionInfo): string {
  return (raw as { readonly firstRunId?: string | null }).firstRunId || runId;
}

export function toMemo({ memo }: WorkflowExecutionInfo): { readonly scope?: string; readonly into?: string } {
  const [scope, into]: unknown[] = [memo?.['scope'], memo?.['into']];
  return { ...(typeof scope === 'string' && { scope }), ...(typeof into === 'string' && { into }) };
}

function untold(runs: readonly Run[], { told }: Known): Run[] {
  return runs.filter(({ runId }) => !told.has(runId));
}

export function nameLife({ conversation, life }: Pick<ConversationKey, 'conversation' | 'life'>): string {
  return `${conversation}/${life}`;
}
