/**
 * Conversations as one tenant has them: the client of the installation, with ids of the tenant's own (ids.ts).
 *
 * Each method is here by name: a new method of the client does not compile until its view for a tenant is decided.
 *
 * @rule tenants/public-ids: An incoming id is looked up under its hash, whatever it is; an outgoing id is the public one. (test:
 *   test/gateway/tenants/every-route.test.ts)
 * @rule tenants/start-reaches-no-other: The fields of a start are named here: none of them reaches another conversation. (test:
 *   test/gateway/tenants/every-route.test.ts)
 */
import { randomUUID } from 'node:crypto';
import type { PerduraClient } from '../../client.js';
import { withCurrentStatus } from '../../client/current-status.js';
import { ClientError } from '../../client/errors.js';
import { ID_PATTERN, type StartOptions } from '../../conversation/protocol/contract.js';
import { qualifiedScope, scopeParts } from '../../records/scope.js';
import { createTenantIds, type TenantIds } from './ids.js';
import { createIdsOfNoTenant } from './no-tenant.js';
import { createPublicIds } from './public-ids.js';
import { createReveal, type Asked, type Reveal } from './reveal.js';
import type { ScopeMemory } from '../../client/memory.js';

/** `key`: the same for every gateway of an installation, and secret (docs/operations/deploying.md). */
export function createTenantClient(client: PerduraClient, tenant: string, key: string): PerduraClient {
  const { prefix, toWorkflowId, prefixOf } = createTenantIds(tenant, key);
  return createOwnClient(client, { tenant, prefix, toWorkflowId, prefixOf });
}

/** Of users of no tenant, who see nothing of tenants. */
export function createClientOfNoTenant(client: PerduraClient): PerduraClient {
  const { hidden, ...ids } = createIdsOfNoTenant(client);
  return createOwnClient(client, { tenant: null, prefix: hidden, ...ids });
}

interface Own {
  /** Null: those of none. */
  readonly tenant: string | null;
  /** Of ids of Temporal that are the tenant's. */
  readonly prefix: string;
  readonly toWorkflowId: (publicId: string) => string | Promise<string>;
  readonly prefixOf: TenantIds['prefixOf'];
  /** Where the prefix does not say it. */
  readonly isOwn?: (id: string) => Promise<boolean>;
}

function createOwnClient(client: PerduraClient, ids: Own): PerduraClient {
  const { tenant } = ids;
  const publicIds = createPublicIds(client);
  const reveal = createReveal({ tenant: tenant ?? '', prefix: ids.prefix, publicIdOf: (id) => publicIds.of(id) });
  const owner = tenant === null ? {} : { tenant };
  /** What a start, a fork or a new life of a tenant's has beside what was asked. */
  const owned = (publicId: string): Pick<StartOptions, 'tenant' | 'publicId'> =>
    tenant === null ? {} : { ...owner, publicId: basePart(publicId) };

  /**
   * `own` are the ids that the request names, as Temporal has them; its answer, or what is wrong, names them as the request does
   * (tenants/public-ids).
   */
  const asked = async <T>(named: readonly string[], work: (show: Show, ...own: readonly string[]) => Promise<T>): Promise<T> => {
    const own = await Promise.all(named.map(async (id) => ids.toWorkflowId(id)));
    const names: Asked = new Map(named.map((id, at) => [basePart(own[at] ?? ''), basePart(id)]));
    try {
      return await work((value) => reveal.value(value, names), ...own);
    } catch (error) {
      throw await reveal.error(error, names);
    }
  };
  const on =
    <Rest extends readonly unknown[], T>(act: (id: string, ...rest: Rest) => Promise<T>) =>
    (id: string, ...rest: Rest): Promise<T> =>
      asked([id], (_show, own = '') => act(own, ...rest));
  const shown =
    <Rest extends readonly unknown[], T>(act: (id: string, ...rest: Rest) => Promise<T>) =>
    (id: string, ...rest: Rest): Promise<T> =>
      asked([id], async (show, own = '') => show(await act(own, ...rest)));

  const isOwn = ids.isOwn ?? ((id: string) => Promise.resolve(id.startsWith(ids.prefix)));

  /** (tenants/start-reaches-no-other) */
  const startOf = (publicId: string, start: StartOptions = {}): StartOptions => {
    const { agent, scope, title, autoTitle, model, mode, budget, context } = start;
    return { agent, scope, title, autoTitle, model, mode, budget, context, ...owned(publicId) };
  };

  const own: PerduraClient = {
    namespace: client.namespace,
    taskQueue: client.taskQueue,

    start: (id = `conv-${randomUUID()}`, options) =>
      asked([id], async (_show, own) => ({ ...(await client.start(own, startOf(id, options))), id })),
    send: (id, message, { start, ...options } = {}) =>
      asked([id], async (show, own = '') =>
        show(await client.send(own, message, { ...options, ...(start && { start: startOf(id, start) }) })),
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
    describe: (id) =>
      asked([id], async (show, own = '') => {
        const found = await client.describe(own);
        if (found.publicId !== null) publicIds.note(own, found.publicId);
        return { ...(await show(found)), id, publicId: null };
      }),
    key: on((id) => client.key(id)),
    runs: on((id) => client.runs(id)),

    list: ({ limit = 50, query, idPrefix, where, scan } = {}) =>
      asked([], async (show) => {
        const narrow = idPrefix === undefined ? undefined : ids.prefixOf(idPrefix);
        const among = narrow ?? (tenant === null ? undefined : ids.prefix);
        const most = where === undefined ? limit : (scan ?? Number.MAX_SAFE_INTEGER);
        const rows = await client.list({
          ...{ limit: most, tenant },
          ...(query !== undefined && { query }),
          ...(among !== undefined && { idPrefix: among }),
        });
        for (const { id, publicId } of rows) if (publicId !== null) publicIds.note(id, publicId);
        const known = await show(rows);
        const own = known.map((row) => ({ ...row, publicId: null }));
        // By the names that the tenant knows.
        const fits = (row: (typeof own)[number]): boolean =>
          (idPrefix === undefined || row.id.startsWith(idPrefix)) && (where?.(row) ?? true);
        return own.filter(fits).slice(0, limit);
      }),
    usage: ({ by = 'model', since } = {}) =>
      asked([], async (show) => {
        const report = await client.usage({ by, tenant, ...(since && { since }) });
        const named = by === 'scope' ? report.sums.map((sum) => ({ ...sum, of: scopeParts(sum.of).scope })) : report.sums;
        return { ...report, sums: await show(named) };
      }),

    fork: (id, { id: wanted = `conv-${randomUUID()}`, at, title, agent, scope, budget }) =>
      asked([id, wanted], async (show, own = '', ownWanted) => {
        const options = { at, id: ownWanted, title, agent, scope, budget, ...owned(wanted) };
        return show(await client.fork(own, options));
      }),
    resume: (id, { title, agent, scope, budget } = {}) =>
      asked([id], async (show, own = '') => show(await client.resume(own, { title, agent, scope, budget, ...owned(id) }))),
    begin: (id, life, { title, agent, scope } = {}) =>
      asked([id], async (show, own = '') => show(await client.begin(own, life, { title, agent, scope, ...owned(id) }))),
    rewind: on((id, to: string) => client.rewind(id, to)),
    deleteConversation: shown(async (id) => {
      const deleted = await client.deleteConversation(id);
      publicIds.drop(id);
      return deleted;
    }),
    retry: shown((id, ...rest: Tail<PerduraClient['retry']>) => client.retry(id, ...rest)),
    edit: shown((id, ...rest: Tail<PerduraClient['edit']>) => client.edit(id, ...rest)),
    attach: on((id, picture: Uint8Array) => client.attach(id, picture)),
    upload: (parts, options) => client.upload(parts, { ...options, ...owner }),
    uploaded: (ref) => client.uploaded(ref, owner),
    uploadedBytes: (ref) => client.uploadedBytes(ref, owner),
    attachUploaded: on((id, ref: string) => client.attachUploaded(id, ref, owner)),
    // Of all owners: the installation's client does it.
    sweepUploads: () => Promise.resolve(0),

    approvals: shown((id) => client.approvals(id)),
    allApprovals: ({ limit } = {}) =>
      asked([], async (show) => {
        const all = await client.allApprovals({
          ...(limit !== undefined && { limit }),
          ...(tenant !== null && { idPrefix: ids.prefix }),
        });
        const own = <T>(found: readonly T[], idOf: (one: T) => string): Promise<T[]> => filterAsync(found, (one) => isOwn(idOf(one)));
        return show({
          ...all,
          approvals: await own(all.approvals, ({ via }) => via),
          silent: await own(all.silent, ({ id }) => id),
        });
      }),
    decide: (id, { conversation, ...decision }, options) =>
      asked(conversation === undefined ? [id] : [id, conversation], (_show, own = '', below) =>
        client.decide(own, { ...decision, ...(below !== undefined && { conversation: below }) }, options),
      ),
    raiseBudget: on((id, budget: Parameters<PerduraClient['raiseBudget']>[1]) => client.raiseBudget(id, budget)),
    setModel: on((id, model: string | null) => client.setModel(id, model)),

    async *watch(id, options) {
      const own = await ids.toWorkflowId(id);
      const names: Asked = new Map([[basePart(own), basePart(id)]]);
      try {
        for await (const { cursor, event } of client.watch(own, options)) yield { cursor, event: await reveal.value(event, names) };
      } catch (error) {
        throw await reveal.error(error, names);
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
      asked([id], async (show, own = '') => {
        const found = await show(await client.timeline(own, turn));
        const bars = found.bars.map((bar) => ({ ...bar, worker: null }));
        const marks = found.marks.map((mark) => (mark.kind === 'worker-changed' ? { ...mark, words: 'another worker went on' } : mark));
        return { ...found, bars, marks, workers: [] };
      }),
    contextView: shown((id) => client.contextView(id)),
    chunk: on((id, chunk: string, offset?: number) => client.chunk(id, chunk, offset)),
    why: shown((id, turn: string) => client.why(id, turn)),
    contextChanges: shown((id) => client.contextChanges(id)),
    moments: shown((id, options?: Parameters<PerduraClient['moments']>[1]) => client.moments(id, options)),
    moment: (id, position) =>
      asked([id], async (show, own = '') => {
        const { changes, ...moment } = await show(await client.moment(own, position));
        const names: Asked = new Map([[basePart(own), basePart(id)]]);
        const shownIn = (text: string | null): Promise<string | null> =>
          text === null ? Promise.resolve(null) : reveal.words(text, names);
        const named = changes.map(async ({ path, before, after }) => ({
          path,
          before: await shownIn(before),
          after: await shownIn(after),
        }));
        return { ...moment, changes: await Promise.all(named) };
      }),

    standing: async (options) =>
      withCurrentStatus(await own.list(options), { statusOf: (id) => own.status(id), hasWorker: () => Promise.resolve(true) }),
    // Workers are the installation's, and their names are those of machines.
    workers: () => Promise.resolve({ taskQueue: client.taskQueue, workers: [], queues: [] }),
    failures: ({ limit } = {}) =>
      asked([], async (show) => {
        const among = tenant === null ? {} : { idPrefix: ids.prefix };
        return show(await client.failures({ ...(limit !== undefined && { limit }), tenant, ...among }));
      }),

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
      return createTenantScope(client.scope(qualifiedScope(tenant ?? undefined, scope)), scope, {
        asked: (work) => asked([], work),
        reveal,
        workflowId: async (id) => ids.toWorkflowId(id),
      });
    },

    // The installation's client is others' too.
    close: () => Promise.resolve(),
  };
  return own;
}

async function filterAsync<T>(all: readonly T[], fits: (one: T) => Promise<boolean>): Promise<T[]> {
  const fit = await Promise.all(all.map(fits));
  return all.filter((_one, at) => fit[at]);
}

type Show = <T>(value: T) => Promise<T>;

type Tail<F> = F extends (id: string, ...rest: infer Rest) => unknown ? Rest : never;

/** Sub-agents are known by their parent's. */
function basePart(publicId: string): string {
  return publicId.split(':')[0] ?? publicId;
}

/** Long-term memory of a tenant's scope, in the names that the tenant knows. */

interface Frame {
  readonly reveal: Reveal;
  readonly workflowId: (publicId: string) => Promise<string>;
  readonly asked: <T>(work: () => Promise<T>) => Promise<T>;
}

function createTenantScope(memory: ScopeMemory, scope: string, { reveal, asked, workflowId }: Frame): ScopeMemory {
  const shown = <T>(work: () => Promise<T>): Promise<T> => asked(async () => reveal.value(await work()));
  return {
    scope,
    text: () => asked(() => memory.text()),
    changes: () => shown(() => memory.changes()),
    textOf: (version) => asked(() => memory.textOf(version)),
    history: () => asked(async () => each(await memory.history(), reveal.value)),
    search: (question, { conversation, ...options } = {}) =>
      shown(async () => {
        const own = conversation === undefined ? undefined : await workflowId(conversation);
        return memory.search(question, { ...options, conversation: own });
      }),
    open: (address, around) => shown(() => memory.open(address, around)),
    facts: (options) => shown(() => memory.facts(options)),
    proposals: () => shown(() => memory.proposals()),
    status: () => shown(() => memory.status()),
    wouldForget: (text) => asked(() => memory.wouldForget(text)),
    forget: (text) => asked(() => memory.forget(text)),
    review: (id, decision) => asked(() => memory.review(id, decision)),
    care: (agent) => asked(() => memory.care(agent)),
  };
}

async function* each<T>(items: AsyncIterable<T>, change: (item: T) => Promise<T>): AsyncGenerator<T> {
  for await (const item of items) yield await change(item);
}
