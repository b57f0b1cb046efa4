/**
 * The end of a person: a memory scope or a tenant, with all that store and Temporal have of it.
 *
 * - Everything is looked for again until a look finds nothing, so that what was begun, or written down, meanwhile goes too. Each pass begins
 *   with the tombstones: a worker that is busy for one of these lives writes nothing from then on, neither to it nor to its scope.
 * - Each pass looks in store and Temporal anew, and takes the way to a thing away after the thing: cut short anywhere, the same call again
 *   does the rest.
 * - Conversations that begin while it runs have read what is being erased, so they go too. What begins after its end sees nothing of it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { ScheduleNotFoundError } from '@temporalio/client';
import pLimit from 'p-limit';
import { splitChildId } from '../../conversation/protocol/limits.js';
import { readTenant } from '../../records/identity.js';
import type { ConversationKey } from '../../stores/store.js';
import { deleteRun, readRetention, unlessGone } from '../deletion.js';
import { ClientError, toClientError } from '../errors.js';
import {
  createKnown,
  deleteEnded,
  findPerson,
  nameLife,
  scopeOfMemory,
  type ErasureAccess,
  type Found,
  type Known,
  type Whose,
} from './find.js';

/** How much there was. What a call that was cut short has removed is not among it. */
export interface ErasedCounts {
  conversations: number;
  subAgents: number;
  /** Of conversations and sub-agents: each has its messages, long texts, items, summaries, ledger, costs, budgets, live events, vectors. */
  lives: number;
  /** In Temporal; those that ran were stopped. */
  runs: number;
  stopped: number;
  memoryRuns: number;
  deliveries: number;
  schedules: number;
  scopes: number;
  memoryVersions: number;
  historyEntries: number;
  facts: number;
  proposals: number;
  forgottenTexts: number;
  indexParts: number;
  uploads: number;
  signIns: number;
}

export interface Erased {
  readonly counts: Readonly<ErasedCounts>;
  /** Whole names. */
  readonly scopes: readonly string[];
  /** Ids of its conversations, for a search for copies of them; not for a receipt. */
  readonly conversations: readonly string[];
  /** Runs that Temporal was told to delete, and has not yet. */
  readonly notYetGone: number;
  /** How long the server keeps what has ended; null where it does not say. */
  readonly retentionDays: number | null;
  /** Whether the namespace archives histories, which deletes none of what was archived; null where it does not say. */
  readonly isArchived: boolean | null;
}

export interface ErasureOptions {
  /** Forks of other scopes that read its turns go too; without it they are named, and nothing is erased. */
  readonly withForks?: boolean;
  /** What is done now, for a person who waits. */
  readonly onProgress?: (what: string) => void;
  /** Between two looks: what was written a moment ago is not listed yet. */
  readonly pauseMs?: number;
  /** How long is waited for Temporal, which deletes in the background. */
  readonly goneMs?: number;
}

const PAUSE_MS = 1_000;
/** A server that is left as it is notes every 30 s how far it got, and shows what is deleted until then. */
const GONE_MS = 90_000;
const MAX_PASSES = 60;
const AT_ONCE = 8;

export async function erase(access: ErasureAccess, whose: Whose, options: ErasureOptions = {}): Promise<Erased> {
  const { namespace, client } = access;
  const { onProgress = () => undefined, pauseMs = PAUSE_MS } = options;
  const known = createKnown(whose);
  const counts = noCounts();
  for (let pass = 1; ; pass += 1) {
    onProgress(pass === 1 ? 'looking for everything' : `looking once more (${pass})`);
    const found = await findPerson(access, whose, known).catch((error: unknown) => {
      throw toClientError(error, `cannot erase the ${whose.kind} ${whose.name}`);
    });
    await eraseForks(access, whose, { found, known, options });
    const isDone = await eraseFound(access, whose, { found, known, counts, onProgress });
    // What was begun a moment ago is in no list yet.
    if (isDone && pass > 1) break;
    if (pass === MAX_PASSES) {
      throw new ClientError(
        'conflict',
        `cannot erase the ${whose.kind} ${whose.name}: conversations begin there all the time; revoke what begins them (tokens, programs, schedules of others), then run it again`,
      );
    }
    await delay(pauseMs);
  }
  const notYetGone = await untilGone(access, known, options);
  return {
    counts,
    scopes: [...known.scopes].sort(),
    conversations: [...known.conversations].sort(),
    notYetGone,
    retentionDays: await readRetention({ client, namespace }),
    isArchived: await readArchival(access),
  };
}

/** Forks of others read turns where these are: they go first, or nothing goes. */
async function eraseForks(
  access: ErasureAccess,
  whose: Whose,
  { found, known, options }: { readonly found: Found; readonly known: Known; readonly options: ErasureOptions },
): Promise<void> {
  const { store, namespace } = access;
  const mine = new Set(found.lives.map(nameLife));
  const others = new Set<string>();
  for (const life of found.lives) {
    for (const fork of await store.lives.forks({ ...life, namespace })) {
      if (!mine.has(nameLife(fork)) && !known.lives.has(nameLife(fork))) others.add(splitChildId(fork.conversation)[0]);
    }
  }
  if (others.size > 0 && options.withForks !== true) {
    throw new ClientError(
      'conflict',
      `cannot erase the ${whose.kind} ${whose.name}: conversations of others began with turns of it and read them: ${[...others].sort().join(', ')}; delete them first (\`perdura delete\`), or add --with-forks`,
    );
  }
  for (const other of others) {
    options.onProgress?.(`deleting ${other}, which reads its turns`);
    await deleteWithForks(access, other);
  }
}

async function deleteWithForks(access: ErasureAccess, id: string): Promise<void> {
  const { store, namespace, client } = access;
  const tree = await store.lives.list({ namespace, conversation: id, tree: true });
  const isInTree = (conversation: string): boolean => tree.some((life) => life.conversation === conversation);
  for (const life of tree) {
    for (const { conversation } of await store.lives.forks(life)) {
      if (!isInTree(conversation)) await deleteWithForks(access, splitChildId(conversation)[0]);
    }
  }
  await unlessGone(client.workflow.getHandle(id).terminate('erased'));
  await deleteEnded(access, id);
}

interface Pass {
  readonly found: Found;
  readonly known: Known;
  readonly counts: ErasedCounts;
  readonly onProgress: (what: string) => void;
}

/** Whether there was nothing. */
async function eraseFound(access: ErasureAccess, whose: Whose, { found, known, counts, onProgress }: Pass): Promise<boolean> {
  const { store, namespace, client } = access;
  const { conversations, lives, memories, deliveries, schedules, scopes } = found;
  const few = pLimit(AT_ONCE);
  const all = <T>(items: readonly T[], what: string, work: (item: T) => Promise<unknown>): Promise<unknown> => {
    let done = 0;
    const step = async (item: T): Promise<void> => {
      await work(item);
      done += 1;
      if (done % 100 === 0) onProgress(`${what}: ${done} of ${items.length}`);
    };
    return Promise.all(items.map((item) => few(() => step(item))));
  };
  const runs = [...conversations, ...memories, ...deliveries];
  const fresh = lives.filter((life) => !known.lives.has(nameLife(life)));
  const noteWriter = (scope: string, writer: string): void =>
    void known.writers.set(scope, (known.writers.get(scope) ?? new Set()).add(writer));
  const at = Date.now() / 1000;
  const marks = new Map<string, ConversationKey[]>();
  for (const life of fresh) marks.set(life.conversation, [...(marks.get(life.conversation) ?? []), life]);
  for (const { conversation, scope, life } of lives) {
    known.conversations.add(conversation);
    noteWriter(scope, life);
  }
  for (const { id, runId } of memories) noteWriter(scopeOfMemory(id), runId);

  await all([...marks], 'marking conversations', ([conversation, marked]) =>
    store.lives.markDeleted(
      { namespace, conversation },
      marked.map(({ life }) => ({ life, at })),
    ),
  );
  const running = runs.filter(({ isRunning }) => isRunning);
  await all(running, 'stopping what runs', ({ id, runId }) => unlessGone(client.workflow.getHandle(id, runId).terminate('erased')));
  for (const id of schedules) await unlessNoSchedule(client.schedule.getHandle(id).delete());
  // The store goes last: what it has tells of which conversations these are.
  for (const some of [deliveries, [...conversations, ...memories]]) {
    await all(some, 'removing runs from Temporal', async (run) => {
      await deleteRun(access, run);
      known.told.set(run.runId, run);
    });
  }
  await all(lives, 'removing conversations from the store', async (life) => {
    await store.uploads.release(life);
    await store.lives.delete(life);
  });
  let shared = 0;
  for (const scope of scopes) shared += await eraseScope(access, scope, { known, counts });
  shared += await eraseBelongings(access, whose, { scopes, counts });

  for (const life of fresh) known.lives.add(nameLife(life));
  const isChild = (id: string): boolean => splitChildId(id).length > 1;
  counts.conversations = [...known.conversations].filter((id) => !isChild(id)).length;
  counts.subAgents = [...known.conversations].filter(isChild).length;
  counts.lives = known.lives.size;
  counts.runs += conversations.length;
  counts.memoryRuns += memories.length;
  counts.deliveries += deliveries.length;
  counts.stopped += running.length;
  counts.schedules += schedules.length;
  counts.scopes = known.scopes.size;
  return runs.length + fresh.length + schedules.length + shared === 0;
}

/** What its conversations share, after it is counted. Answers how many records went. */
async function eraseScope(
  { store, namespace }: ErasureAccess,
  scope: string,
  { known, counts }: Pick<Pass, 'known' | 'counts'>,
): Promise<number> {
  const key = { namespace, scope };
  const { documents, facts, scopes } = store;
  // What a person must see to cannot be counted, and goes all the same.
  const count = (of: Promise<number>): Promise<number> => of.catch(() => 0);
  const historyEntries = async (): Promise<number> => {
    let entries = 0;
    for await (const _ of documents.history(key)) entries += 1;
    return entries;
  };
  counts.memoryVersions += await count(documents.changes(key).then(({ changes }) => changes.length));
  counts.historyEntries += await count(historyEntries());
  counts.facts += await count(facts.list(key, { all: true }).then((all) => all.facts.length));
  counts.proposals += await count(documents.proposals(key).then(({ proposals }) => proposals.length));
  counts.forgottenTexts += await count(documents.forgotten(key).then(({ length }) => length));
  counts.indexParts += await count(scopes.indexParts(key).then(({ length }) => length));
  return (await scopes.erase(key, [...(known.writers.get(scope) ?? [])])).records;
}

/** What is a scope's or a tenant's beside conversations and memory. Answers how many there were. */
async function eraseBelongings(
  { store, namespace }: ErasureAccess,
  { kind, name }: Whose,
  { scopes, counts }: { readonly scopes: readonly string[]; readonly counts: ErasedCounts },
): Promise<number> {
  const tenant = kind === 'tenant' ? name : (readTenant(name) ?? '');
  let signIns = 0;
  for (const owner of [...scopes, ...(kind === 'tenant' ? [`${name}.`] : [])])
    signIns += await store.signIns.removeAll({ namespace, owner });
  const uploads = await store.uploads.erase({ namespace, tenant }, kind === 'tenant' ? undefined : name);
  counts.signIns += signIns;
  counts.uploads += uploads;
  return signIns + uploads;
}

/** Answers how many runs are still there when the wait is over. */
async function untilGone(access: ErasureAccess, { told }: Known, { onProgress, pauseMs = PAUSE_MS, goneMs = GONE_MS }: ErasureOptions) {
  const { client } = access;
  const few = pLimit(AT_ONCE);
  const until = Date.now() + goneMs;
  let left = [...told.values()];
  for (;;) {
    const there = await Promise.all(
      left.map((run) => few(async () => ((await unlessGone(client.workflow.getHandle(run.id, run.runId).describe())) ? [run] : []))),
    );
    left = there.flat();
    if (left.length === 0 || Date.now() > until) return left.length;
    onProgress?.(`waiting for Temporal to remove ${left.length} runs`);
    await delay(Math.max(pauseMs, 10));
  }
}

async function readArchival({ client, namespace }: ErasureAccess): Promise<boolean | null> {
  const described = await client.workflowService.describeNamespace({ namespace }).catch(() => undefined);
  const state = described?.config?.historyArchivalState;
  // Temporal's `ArchivalState`: 1 is disabled, 2 enabled.
  return state === undefined || state === null ? null : Number(state) === 2;
}

async function unlessNoSchedule(done: Promise<unknown>): Promise<void> {
  await done.catch((error: unknown) => {
    if (!(error instanceof ScheduleNotFoundError)) throw error;
  });
}

function noCounts(): ErasedCounts {
  return {
    ...{ conversations: 0, subAgents: 0, lives: 0, runs: 0, stopped: 0, memoryRuns: 0, deliveries: 0, schedules: 0, scopes: 0 },
    ...{ memoryVersions: 0, historyEntries: 0, facts: 0, proposals: 0, forgottenTexts: 0, indexParts: 0, uploads: 0, signIns: 0 },
  };
}
