/**
 * The client as one tenant has it: the door at which a public id becomes a workflow id, and what comes back is named as the tenant knows it.
 *
 * @rule tenants/public-ids: An incoming id is looked up under its hash, whatever it is; an outgoing id is the public one. (test:
 *   test/gateway/tenants/every-route.test.ts)
 * @rule tenants/start-reaches-no-other: The fields of a start are named here: none of them reaches another conversation. (test:
 *   test/gateway/tenants/every-route.test.ts)
 */
import { randomUUID } from 'node:crypto';
import { ID_PATTERN, type StartOptions } from '../../conversation/protocol/contract.js';
import { searchScopes } from '../search-scopes.js';
import { streamTurn } from '../turns/stream.js';
import { qualifiedScope, scopeParts } from '../../records/identity.js';
import { withCurrentStatus } from '../listing.js';
import { ClientError } from '../errors.js';
import type { ScopeMemory } from '../memory.js';
import type { PerduraClient } from '../interface.js';
import {
  baseId,
  createKnownConversations,
  createNamesOfNone,
  createTenantNames,
  type KnownConversations,
  type TenantNames,
  TENANT_IDS,
} from './names.js';
import { DELETED } from '../describe.js';

/** `key`: the same for every gateway of an installation, and secret (docs/operations/deploying.md). */
export function createTenantClient(client: PerduraClient, tenant: string, key: string): PerduraClient {
  const known = createKnownConversations((id) => client.describe(id));
  return createDoor(client, known, createTenantNames(known, tenant, key));
}

/** Of users of no tenant, who see nothing of tenants. */
export function createClientOfNoTenant(client: PerduraClient): PerduraClient {
  const known = createKnownConversations((id) => client.describe(id));
  return createDoor(client, known, createNamesOfNone(known));
}

function noSchedule(id: string): Promise<never> {
  return Promise.reject(
    new ClientError('not-found', `there is no schedule ${id.slice(0, 80)}: those of an installation are its operator's`),
  );
}

type AnyMethod = (...given: readonly unknown[]) => Promise<unknown>;
type MethodsOnId<T> = { [K in keyof T]: T[K] extends (id: string, ...rest: never[]) => Promise<unknown> ? K : never }[keyof T];

/**
 * Methods that name one conversation and answer of that alone: first those whose answers name conversations. A new method of the client does
 * not compile until it stands here or below.
 */
const REVEALED = [
  ...(['turn', 'withdraw', 'compact', 'undoCompaction', 'dispatch', 'status', 'retry', 'edit', 'approvals', 'turnEnds'] as const),
  ...(['memory', 'items', 'item', 'turns', 'contextView', 'why', 'contextChanges', 'moments'] as const),
  ...(['setMode', 'step', 'setBreakpoints', 'truncate', 'executeTruncation', 'triggerCompaction', 'control'] as const),
] as const satisfies readonly MethodsOnId<PerduraClient>[];
const PLAIN = [
  ...(['message', 'enqueue', 'interrupt', 'reset', 'context', 'closeConversation', 'outcome', 'cancel', 'terminate', 'rename'] as const),
  ...(['queue', 'key', 'runs', 'rewind', 'attach', 'raiseBudget', 'setModel', 'newestCursor', 'history', 'latest', 'entries'] as const),
  ...([
    'countFile',
    'keepWishes',
    'branches',
    'archived',
    'whereabouts',
    'imported',
    'openMemory',
    'chunk',
    'editQueue',
    'checkTokenUsage',
  ] as const),
] as const satisfies readonly MethodsOnId<PerduraClient>[];

const REVEALED_OF_SCOPE = ['changes', 'open', 'facts', 'proposals', 'status'] as const satisfies readonly (keyof ScopeMemory)[];
const PLAIN_OF_SCOPE = ['text', 'textOf', 'wouldForget', 'forget', 'review', 'care'] as const satisfies readonly (keyof ScopeMemory)[];

interface Wrapped {
  /** The answer names conversations. */
  readonly isRevealed: boolean;
  /** The first argument is an id. */
  readonly hasId: boolean;
}

type Show = <T>(value: T) => Promise<T>;

function createDoor(client: PerduraClient, known: KnownConversations, names: TenantNames): PerduraClient {
  const { tenant } = names;
  const reveal = createReveal(names);
  const owner = tenant === null ? {} : { tenant };
  /** What a start, a fork or a new life of a tenant's has beside what the caller gives. */
  const owned = (publicId: string): Pick<StartOptions, 'tenant' | 'publicId'> =>
    tenant === null ? {} : { tenant, publicId: baseId(publicId) };
  const among = tenant === null ? {} : { idPrefix: names.prefix };

  /** The one way in and out: an answer, or what is wrong, names the conversations of the request as it does (tenants/public-ids). */
  const pass = async <T>(publicIds: readonly string[], act: (show: Show, ...ids: readonly string[]) => Promise<T>): Promise<T> => {
    const ids = await Promise.all(publicIds.map((id) => names.toWorkflowId(id)));
    const request: RequestNames = new Map(publicIds.map((id, at) => [baseId(ids[at] ?? ''), baseId(id)]));
    try {
      return await act((value) => reveal.value(value, request), ...ids);
    } catch (error) {
      throw await reveal.error(error, request);
    }
  };
  const wrap = <T, K extends keyof T>(target: T, methods: readonly K[], { isRevealed, hasId }: Wrapped): Pick<T, K> =>
    Object.fromEntries(
      methods.map((method) => [
        method,
        (...given: readonly unknown[]) =>
          pass(hasId ? [String(given[0])] : [], async (show, id) => {
            const act = target[method] as unknown as AnyMethod;
            const answer = await act(...(hasId ? [id, ...given.slice(1)] : given));
            return isRevealed ? show(answer) : answer;
          }),
      ]),
    ) as unknown as Pick<T, K>;

  /** (tenants/start-reaches-no-other) */
  const toStart = (publicId: string, start: StartOptions = {}): StartOptions => {
    const { agent, scope, title, autoTitle, model, mode, budget, context, owner } = start;
    return { agent, scope, title, autoTitle, model, mode, budget, context, owner, ...owned(publicId) };
  };

  const list: PerduraClient['list'] = ({ limit = 50, query, idPrefix, where, scan } = {}) =>
    pass([], async (show) => {
      const prefix = (idPrefix === undefined ? undefined : names.toPrefix(idPrefix)) ?? among.idPrefix;
      const rows = await client.list({
        ...{ limit: where === undefined ? limit : (scan ?? Number.MAX_SAFE_INTEGER), tenant },
        ...(query !== undefined && { query }),
        ...(prefix !== undefined && { idPrefix: prefix }),
      });
      for (const row of rows) known.note(row.id, row);
      const shown = (await show(rows)).map((row) => ({ ...row, publicId: null }));
      // By the names that the tenant knows.
      return shown.filter((row) => (idPrefix === undefined || row.id.startsWith(idPrefix)) && (where?.(row) ?? true)).slice(0, limit);
    });
  const { status, ...revealed } = wrap(client, REVEALED, { isRevealed: true, hasId: true });

  const scope = (name: string): ScopeMemory => {
    // As the tenant calls it: a whole name would be another's.
    if (!ID_PATTERN.test(name)) {
      const given = JSON.stringify(name.slice(0, 80));
      throw new ClientError('invalid', `${given} cannot be a memory's scope: it must match ${ID_PATTERN.source}`);
    }
    const memory = client.scope(qualifiedScope(tenant ?? undefined, name));
    return {
      scope: name,
      ...wrap(memory, REVEALED_OF_SCOPE, { isRevealed: true, hasId: false }),
      ...wrap(memory, PLAIN_OF_SCOPE, { isRevealed: false, hasId: false }),
      history: () => pass([], async (show) => mapEach(await memory.history(), show)),
      search: (question, { conversation, ...options } = {}) =>
        pass(conversation === undefined ? [] : [conversation], async (show, workflowId) =>
          show(await memory.search(question, { ...options, conversation: workflowId })),
        ),
    };
  };
  const scopes = async (): Promise<readonly string[]> =>
    (await client.scopes()).flatMap((name) => {
      const parts = scopeParts(name);
      return parts.tenant === (tenant ?? '') ? [parts.scope] : [];
    });

  const door: Omit<PerduraClient, 'stream'> = {
    namespace: client.namespace,
    taskQueue: client.taskQueue,
    ...wrap(client, PLAIN, { isRevealed: false, hasId: true }),
    ...revealed,
    status,
    list,

    start: (id = `conv-${randomUUID()}`, options) =>
      pass([id], async (_show, workflowId) => ({ ...(await client.start(workflowId, toStart(id, options))), id })),
    send: (id, message, { start, ...options } = {}) =>
      pass([id], async (show, workflowId = '') =>
        show(await client.send(workflowId, message, { ...options, ...(start && { start: toStart(id, start) }) })),
      ),
    describe: (id) =>
      pass([id], async (show, workflowId = '') => {
        const found = await client.describe(workflowId);
        known.note(workflowId, found);
        return { ...(await show(found)), id, publicId: null };
      }),
    fork: (id, { id: wanted = `conv-${randomUUID()}`, at, title, agent, scope, model, budget, owner, latestLifeOnly }) =>
      pass([id, wanted], async (show, workflowId = '', fork) =>
        show(await client.fork(workflowId, { at, id: fork, title, agent, scope, model, budget, owner, latestLifeOnly, ...owned(wanted) })),
      ),
    resume: (id, { title, agent, scope, model, budget, latestLifeOnly } = {}) =>
      pass([id], async (show, workflowId = '') =>
        show(await client.resume(workflowId, { title, agent, scope, model, budget, latestLifeOnly, ...owned(id) })),
      ),
    begin: (id, life, { title, agent, scope } = {}) =>
      pass([id], async (show, workflowId = '') => show(await client.begin(workflowId, life, { title, agent, scope, ...owned(id) }))),
    deleteConversation: (id) =>
      pass([id], async (show, workflowId = '') => {
        const deleted = await show(await client.deleteConversation(workflowId));
        known.drop(workflowId);
        return deleted;
      }),
    decide: (id, { conversation, ...decision }, options) =>
      pass(conversation === undefined ? [id] : [id, conversation], (_show, workflowId = '', below) =>
        client.decide(workflowId, { ...decision, ...(below !== undefined && { conversation: below }) }, options),
      ),
    async *watch(id, options) {
      const workflowId = await names.toWorkflowId(id);
      const request: RequestNames = new Map([[baseId(workflowId), baseId(id)]]);
      try {
        for await (const { cursor, event } of client.watch(workflowId, options))
          yield { cursor, event: await reveal.value(event, request) };
      } catch (error) {
        throw await reveal.error(error, request);
      }
    },
    timeline: (id, turn) =>
      pass([id], async (show, workflowId = '') => {
        const found = await show(await client.timeline(workflowId, turn));
        const bars = found.bars.map((bar) => ({ ...bar, worker: null }));
        const marks = found.marks.map((mark) => (mark.kind === 'worker-changed' ? { ...mark, words: 'another worker went on' } : mark));
        return { ...found, bars, marks, workers: [] };
      }),
    moment: (id, position) =>
      pass([id], async (show, workflowId = '') => {
        const { changes, ...moment } = await show(await client.moment(workflowId, position));
        // Fields of the state by any name: sentences, whatever they are called.
        const texts = await show(changes.map(({ before, after }) => ({ before: { words: before }, after: { words: after } })));
        return {
          ...moment,
          changes: changes.map(({ path }, at) => ({
            path,
            before: texts[at]?.before.words ?? null,
            after: texts[at]?.after.words ?? null,
          })),
        };
      }),

    upload: (parts, options) => client.upload(parts, { ...options, ...owner }),
    uploaded: (ref) => client.uploaded(ref, owner),
    uploadedBytes: (ref) => client.uploadedBytes(ref, owner),
    checkRoomForFiles: (bytes) => client.checkRoomForFiles(bytes, owner),
    attachUploaded: (id, ref) => pass([id], (_show, workflowId = '') => client.attachUploaded(workflowId, ref, owner)),
    // Of all owners: the installation's client does it.
    sweepUploads: () => Promise.resolve(0),

    usage: ({ by = 'model', since } = {}) =>
      pass([], async (show) => {
        const report = await client.usage({ by, tenant, ...(since && { since }) });
        const named = by === 'scope' ? report.sums.map((sum) => ({ ...sum, of: scopeParts(sum.of).scope })) : report.sums;
        return { ...report, sums: await show(named) };
      }),
    allApprovals: ({ limit } = {}) =>
      pass([], async (show) => {
        const all = await client.allApprovals({ ...(limit !== undefined && { limit }), ...among });
        const approvals = await filterAsync(all.approvals, ({ via }) => names.includes(via));
        return show({ ...all, approvals, silent: await filterAsync(all.silent, ({ id }) => names.includes(id)) });
      }),
    standing: async (options) =>
      withCurrentStatus(await list(options), { statusOf: (id) => status(id), hasWorker: () => Promise.resolve(true) }),
    failures: ({ limit } = {}) =>
      pass([], async (show) => show(await client.failures({ ...(limit !== undefined && { limit }), tenant, ...among }))),
    // Workers are the installation's, and their names are those of machines.
    workers: () => Promise.resolve({ taskQueue: client.taskQueue, workers: [], queues: [] }),
    // So are schedules, whose ids no tenant has to itself.
    addSchedule: noSchedule,
    schedules: () => Promise.resolve([]),
    pauseSchedule: noSchedule,
    deleteSchedule: noSchedule,

    scope,
    scopes,
    search: (question, options) => searchScopes({ scopes, scope }, question, options),

    // The installation's client is others' too.
    close: () => Promise.resolve(),
  };
  return { ...door, stream: (id, message, options) => streamTurn(door, id, message, options) };
}

async function filterAsync<T>(all: readonly T[], fits: (one: T) => Promise<boolean>): Promise<T[]> {
  const fit = await Promise.all(all.map(fits));
  return all.filter((_one, at) => fit[at]);
}

async function* mapEach<T>(items: AsyncIterable<T>, change: (item: T) => Promise<T>): AsyncGenerator<T> {
  for await (const item of items) yield await change(item);
}

// What a conversation says of itself and of others, in the names that its tenant knows.

interface Reveal {
  /** A copy with its ids and scopes as the tenant knows them. Texts of people, models and tools are left as they are. */
  value<T>(value: T, request?: RequestNames): Promise<T>;
  /** What to throw in the place of an error of the client below. */
  error(error: unknown, request?: RequestNames): Promise<unknown>;
}

/**
 * Conversations that the request itself has named, by their ids in Temporal: an answer names them as it did, whether there are such or not.
 */
type RequestNames = ReadonlyMap<string, string>;

/** Fields whose sentences name conversations. */
const WORDS = new Set([
  'id',
  'waitingFor',
  'message',
  'words',
  'next',
  'nextStep',
  'pausedBy',
  'why',
  'reason',
  'error',
  'for',
  'lastFailure',
  'failure',
]);
/** Messages and arguments of tools: these have fields of any name. */
const CONTENT = new Set(['arguments', 'payload', 'blocks', 'text', 'preview', 'input', 'context']);
const WHOLE = new RegExp(`^${TENANT_IDS.source}(?::turn_\\d+:\\d+)*$`);
const AT_ONCE = 16;
const NONE: RequestNames = new Map();
const ANOTHER = '(another conversation)';

type Names = Pick<TenantNames, 'tenant' | 'prefix' | 'toPublicId'>;

export function createReveal({ tenant, prefix, toPublicId }: Names): Reveal {
  const scopeWords = new RegExp(`(memory:|memory of )${tenant ?? ''}\\.`, 'g');

  /** Public ids of all that are named. */
  const lookUp = async (named: ReadonlySet<string>, request: RequestNames = NONE): Promise<ReadonlyMap<string, string>> => {
    const known = new Map(request);
    const rest = [...named].filter((id) => !known.has(id));
    while (rest.length > 0) {
      const found = rest
        .splice(0, AT_ONCE)
        .map(async (id) => known.set(id, id.startsWith(prefix) ? ((await toPublicId(id)) ?? DELETED) : ANOTHER));
      await Promise.all(found);
    }
    return known;
  };

  const rename = (text: string, known: ReadonlyMap<string, string>): string =>
    text.replace(TENANT_IDS, (id) => known.get(id) ?? ANOTHER).replace(scopeWords, '$1');

  const words = async (text: string, request?: RequestNames): Promise<string> =>
    rename(text, await lookUp(new Set(text.match(TENANT_IDS) ?? []), request));

  return {
    async value(value, request) {
      const named = new Set<string>();
      walk(value, (text) => {
        for (const id of text.match(TENANT_IDS) ?? []) named.add(id);
        return text;
      });
      const known = await lookUp(named, request);
      return walk(value, (text, key) => {
        if (key === 'scope' || key === 'scopes') return scopeParts(text).tenant === (tenant ?? '') ? scopeParts(text).scope : text;
        return rename(text, known);
      }) as typeof value;
    },

    async error(error, request) {
      if (!(error instanceof ClientError)) return error;
      return new ClientError(error.kind, await words(error.message, request), { cause: error });
    },
  };
}

/** Looks at ids, scopes and sentences, and at no content of messages. */
function walk(value: unknown, look: (text: string, key: string) => string, key = ''): unknown {
  if (typeof value === 'string')
    return WORDS.has(key) || key === 'scope' || key === 'scopes' || WHOLE.test(value) ? look(value, key) : value;
  if (Array.isArray(value)) return value.map((one) => walk(one, look, key));
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, CONTENT.has(name) ? one : walk(one, look, name)]));
}
