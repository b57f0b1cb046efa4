/**
 * Conversations as one tenant has them: the client of the installation, with ids of the tenant's own (ids.ts).
 *
 * Q1  Each method is here by name: one that the client gets later does not compile until it is decided what a tenant sees of it.
 * Q2  An id that comes in is looked up under its hash, whatever it is; one that goes out is the public one.
 * Q3  What a start may say is named here: nothing that another conversation could be reached by.
 */
import { randomUUID } from 'node:crypto';
import type { PerduraClient } from '../../client.js';
import { withCurrentStatus } from '../../client/current-status.js';
import { ClientError } from '../../client/errors.js';
import { ID_PATTERN, type StartOptions } from '../../conversation/protocol/contract.js';
import { qualifiedScope, scopeParts } from '../../records/scope.js';
import { createTenantIds } from './ids.js';
import { createPublicIds } from './public-ids.js';
import { createReveal } from './reveal.js';
import { createTenantScope } from './scope.js';

/** `key`: the same for every gateway of an installation, and secret (docs/deploying.md). */
export function createTenantClient(client: PerduraClient, tenant: string, key: string): PerduraClient {
  const ids = createTenantIds(tenant, key);
  const publicIds = createPublicIds(client);
  const reveal = createReveal({ tenant, prefix: ids.prefix, publicIdOf: (id) => publicIds.of(id) });

  const workflowId = (publicId: string): string => {
    const own = ids.toWorkflowId(publicId);
    publicIds.note(own, publicId);
    return own;
  };

  /** Q2. */
  const asked = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw await reveal.error(error);
    }
  };
  const on =
    <Rest extends readonly unknown[], T>(act: (id: string, ...rest: Rest) => Promise<T>) =>
    (id: string, ...rest: Rest): Promise<T> =>
      asked(async () => act(workflowId(id), ...rest));
  const shown =
    <Rest extends readonly unknown[], T>(act: (id: string, ...rest: Rest) => Promise<T>) =>
    (id: string, ...rest: Rest): Promise<T> =>
      asked(async () => reveal.value(await act(workflowId(id), ...rest)));

  /** Q3. */
  const startOf = (publicId: string, start: StartOptions = {}): StartOptions => {
    const { agent, scope, title, autoTitle, model, mode, budget, context } = start;
    return { agent, scope, title, autoTitle, model, mode, budget, context, tenant, publicId: basePart(publicId) };
  };

  const own: PerduraClient = {
    namespace: client.namespace,
    taskQueue: client.taskQueue,

    start: (id = `conv-${randomUUID()}`, options) =>
      asked(async () => ({ ...(await client.start(workflowId(id), startOf(id, options))), id })),
    send: (id, message, { start, ...options } = {}) =>
      asked(async () =>
        reveal.value(await client.send(workflowId(id), message, { ...options, ...(start && { start: startOf(id, start) }) })),
      ),
    turn: shown((id, ...rest: [string, { signal?: AbortSignal }?]) => client.turn(id, ...rest)),
    message: on((id, message: Parameters<PerduraClient['message']>[1]) => client.message(id, message)),
    enqueue: on((id, message: Parameters<PerduraClient['enqueue']>[1]) => client.enqueue(id, message)),
    withdraw: shown((id, messageId: string) => client.withdraw(id, messageId)),
    interrupt: on((id, reason?: string) => client.interrupt(id, reason)),
    reset: on((id) => client.reset(id)),
    compact: shown((id) => client.compact(id)),
    undoCompaction: shown((id) => client.undoCompaction(id)),
    dispatch: shown((id, ...rest: Tail<PerduraClient['dispatch']>) => client.dispatch(id, ...rest)),
    context: on((id) => client.context(id)),
    closeConversation: on((id, options?: { memory?: boolean }) => client.closeConversation(id, options)),
    outcome: on((id, options?: { signal?: AbortSignal }) => client.outcome(id, options)),
    cancel: on((id) => client.cancel(id)),
    terminate: on((id, reason?: string) => client.terminate(id, reason)),
    rename: on((id, title: string) => client.rename(id, title)),
    status: shown((id) => client.status(id)),
    queue: on((id) => client.queue(id)),
    describe: (id) => asked(async () => ({ ...(await reveal.value(await client.describe(workflowId(id)))), id, publicId: null })),
    key: on((id) => client.key(id)),
    runs: on((id) => client.runs(id)),

    list: ({ limit = 50, query, idPrefix, where, scan } = {}) =>
      asked(async () => {
        const narrow = idPrefix === undefined ? undefined : ids.prefixOf(idPrefix);
        const most = where === undefined ? limit : (scan ?? Number.MAX_SAFE_INTEGER);
        const rows = await client.list({ limit: most, ...(query !== undefined && { query }), tenant, idPrefix: narrow ?? ids.prefix });
        for (const { id, publicId } of rows) if (publicId !== null) publicIds.note(id, publicId);
        const known = await reveal.value(rows);
        const own = known.map((row) => ({ ...row, publicId: null }));
        // By the names that the tenant knows.
        const fits = (row: (typeof own)[number]): boolean => (idPrefix === undefined || row.id.startsWith(idPrefix)) && (where?.(row) ?? true);
        return own.filter(fits).slice(0, limit);
      }),
    usage: ({ by = 'model', since } = {}) =>
      asked(async () => {
        const report = await client.usage({ by, tenant, ...(since && { since }) });
        const named = by === 'scope' ? report.sums.map((sum) => ({ ...sum, of: scopeParts(sum.of).scope })) : report.sums;
        return { ...report, sums: await reveal.value(named) };
      }),

    fork: (id, { id: wanted = `conv-${randomUUID()}`, at, title, agent, scope, budget }) =>
      asked(async () => {
        const options = { at, id: workflowId(wanted), title, agent, scope, budget, tenant, publicId: wanted };
        return reveal.value(await client.fork(workflowId(id), options));
      }),
    resume: (id, { title, agent, scope, budget } = {}) =>
      asked(async () => reveal.value(await client.resume(workflowId(id), { title, agent, scope, budget, tenant, publicId: basePart(id) }))),
    begin: (id, life, { title, agent, scope } = {}) =>
      asked(async () => reveal.value(await client.begin(workflowId(id), life, { title, agent, scope, tenant, publicId: basePart(id) }))),
    rewind: on((id, to: string) => client.rewind(id, to)),
    deleteConversation: shown((id) => client.deleteConversation(id)),
    retry: shown((id, ...rest: Tail<PerduraClient['retry']>) => client.retry(id, ...rest)),
    edit: shown((id, ...rest: Tail<PerduraClient['edit']>) => client.edit(id, ...rest)),
    attach: on((id, picture: Uint8Array) => client.attach(id, picture)),

    approvals: shown((id) => client.approvals(id)),
    allApprovals: ({ limit } = {}) =>
      asked(async () => reveal.value(await client.allApprovals({ ...(limit !== undefined && { limit }), idPrefix: ids.prefix }))),
    decide: (id, { conversation, ...decision }, options) =>
      asked(async () => {
        const where = conversation === undefined ? {} : { conversation: workflowId(conversation) };
        return client.decide(workflowId(id), { ...decision, ...where }, options);
      }),
    raiseBudget: on((id, budget: Parameters<PerduraClient['raiseBudget']>[1]) => client.raiseBudget(id, budget)),
    setModel: on((id, model: string | null) => client.setModel(id, model)),

    async *watch(id, options) {
      try {
        for await (const { cursor, event } of client.watch(workflowId(id), options)) yield { cursor, event: await reveal.value(event) };
      } catch (error) {
        throw await reveal.error(error);
      }
    },
    newestCursor: on((id) => client.newestCursor(id)),
    history: on((id, options?: Parameters<PerduraClient['history']>[1]) => client.history(id, options)),
    latest: on((id, options: Parameters<PerduraClient['latest']>[1]) => client.latest(id, options)),
    entries: on((id, ...rest: Tail<PerduraClient['entries']>) => client.entries(id, ...rest)),
    turnEnds: shown((id) => client.turnEnds(id)),
    branches: on((id) => client.branches(id)),
    archived: on((id) => client.archived(id)),
    memory: shown((id, which?: { readonly all?: boolean }) => client.memory(id, which)),
    imported: on((id) => client.imported(id)),
    items: shown((id) => client.items(id)),
    item: shown((id, item: string) => client.item(id, item)),
    openMemory: on((id, options?: { readonly session?: number }) => client.openMemory(id, options)),

    turns: shown((id, options?: Parameters<PerduraClient['turns']>[1]) => client.turns(id, options)),
    timeline: (id, turn) =>
      asked(async () => {
        const found = await reveal.value(await client.timeline(workflowId(id), turn));
        const bars = found.bars.map((bar) => ({ ...bar, worker: null }));
        const marks = found.marks.map((mark) => (mark.kind === 'worker-changed' ? { ...mark, words: 'another worker went on' } : mark));
        return { ...found, bars, marks, workers: [] };
      }),
    contextView: shown((id) => client.contextView(id)),
    chunk: (id, chunk, offset) => asked(() => client.chunk(workflowId(id), chunk, offset)),
    why: (id, turn) => asked(async () => ({ ...(await reveal.value(await client.why(workflowId(id), turn))), id })),
    contextChanges: shown((id) => client.contextChanges(id)),
    moments: shown((id, options?: Parameters<PerduraClient['moments']>[1]) => client.moments(id, options)),
    moment: (id, position) =>
      asked(async () => {
        const { changes, ...moment } = await reveal.value(await client.moment(workflowId(id), position));
        const shownIn = (text: string | null): Promise<string | null> => (text === null ? Promise.resolve(null) : reveal.words(text));
        const named = changes.map(async ({ path, before, after }) => ({ path, before: await shownIn(before), after: await shownIn(after) }));
        return { ...moment, changes: await Promise.all(named) };
      }),

    standing: async (options) =>
      withCurrentStatus(await own.list(options), { statusOf: (id) => own.status(id), hasWorker: () => Promise.resolve(true) }),
    // Workers are the installation's, and their names are those of machines.
    workers: () => Promise.resolve({ taskQueue: client.taskQueue, workers: [], queues: [] }),
    failures: ({ limit } = {}) =>
      asked(async () => reveal.value(await client.failures({ ...(limit !== undefined && { limit }), tenant, idPrefix: ids.prefix }))),

    setMode: shown((id, mode: Parameters<PerduraClient['setMode']>[1]) => client.setMode(id, mode)),
    step: shown((id, options?: Parameters<PerduraClient['step']>[1]) => client.step(id, options)),
    setBreakpoints: shown((id, breakpoints: Parameters<PerduraClient['setBreakpoints']>[1]) => client.setBreakpoints(id, breakpoints)),
    editQueue: on((id, edit: Parameters<PerduraClient['editQueue']>[1]) => client.editQueue(id, edit)),
    truncate: shown((id) => client.truncate(id)),
    executeTruncation: shown((id, chunks: readonly string[]) => client.executeTruncation(id, chunks)),
    triggerCompaction: shown((id, chunks: readonly string[]) => client.triggerCompaction(id, chunks)),
    checkTokenUsage: on((id) => client.checkTokenUsage(id)),
    control: shown((id) => client.control(id)),

    scope(scope) {
      // As the tenant calls it: a whole name would be another's.
      if (!ID_PATTERN.test(scope)) {
        const given = JSON.stringify(scope.slice(0, 80));
        throw new ClientError('invalid', `${given} cannot be a memory's scope: it must match ${ID_PATTERN.source}`);
      }
      return createTenantScope(client.scope(qualifiedScope(tenant, scope)), scope, { asked, reveal });
    },

    // The installation's client is others' too.
    close: () => Promise.resolve(),
  };
  return own;
}

type Tail<F> = F extends (id: string, ...rest: infer Rest) => unknown ? Rest : never;

/** Sub-agents are known by their parent's. */
function basePart(publicId: string): string {
  return publicId.split(':')[0] ?? publicId;
}
