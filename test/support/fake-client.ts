/**
 * Clients for a gateway without Temporal, a worker or a store behind it: one that nothing may reach, and one of an installation that has
 * these conversations and no others. Both have every method of the real client, also those that it gets later.
 */
import type { Client } from '@temporalio/client';
import { createClientWith, type Listed, type PerduraClient } from '../../src/client.js';
import { ClientError } from '../../src/client/errors.js';
import { ID_PATTERN } from '../../src/conversation/protocol/contract.js';
import { CHILD_PATTERN, isScope } from '../../src/conversation/protocol/limits.js';
import type { Store } from '../../src/stores/store.js';

const REAL = createClientWith({ client: {} as Client, namespace: 'default', taskQueue: 'perdura', store: () => ({}) as Store });
const METHODS = Object.entries(REAL).flatMap(([name, value]) => (typeof value === 'function' ? [name] : []));

export interface Call {
  readonly method: string;
  readonly given: readonly unknown[];
}

type Method = (...given: readonly never[]) => unknown;

function clientOf(answer: (call: Call) => unknown, own: Readonly<Record<string, Method>> = {}): PerduraClient {
  const methods = METHODS.map((method) => {
    const act = own[method] as ((...given: readonly unknown[]) => unknown) | undefined;
    return [method, (...given: readonly unknown[]) => (act ? act(...given) : answer({ method, given }))] as const;
  });
  return { namespace: 'default', taskQueue: 'perdura', ...Object.fromEntries(methods) } as unknown as PerduraClient;
}

/** Whoever calls it is noted, and gets an error that no route expects: a refusal with `reached` empty was decided before any client. */
export function unreachedClient(): { readonly client: PerduraClient; readonly reached: string[] } {
  const reached: string[] = [];
  const client = clientOf(({ method }) => {
    reached.push(method);
    throw new Error(`reached: ${method}`);
  });
  return { client, reached };
}

export interface FakeConversation {
  /** In Temporal. */
  readonly id: string;
  readonly tenant: string | null;
  readonly publicId: string | null;
  readonly title: string;
  /** Default: that of the agent; and none. */
  readonly scope?: string;
  readonly owner?: string;
}

export interface FakeInstallation {
  readonly client: PerduraClient;
  /** All calls since the list was last emptied. */
  readonly calls: Call[];
  /** Conversations that were looked into, with what asked: `status t-…`. */
  readonly opened: string[];
  /** Scopes of memory that were asked for, by their whole names. */
  readonly scopes: string[];
}

export interface FakeOptions {
  readonly conversations?: readonly FakeConversation[];
  /** Whose each reference of an attachment is; null: of no tenant. */
  readonly uploads?: ReadonlyMap<string, string | null>;
}

const notFound = (what: string): ClientError => new ClientError('not-found', `there is no ${what}`);

/** It answers what is in lists, and of a conversation only that it was opened: what a route makes of its insides is another test's. */
export function fakeInstallation({ conversations = [], uploads = new Map() }: FakeOptions = {}): FakeInstallation {
  const calls: Call[] = [];
  const opened: string[] = [];
  const scopes: string[] = [];

  const ofId = (id: unknown): FakeConversation | undefined => conversations.find((one) => one.id === String(id).split(':')[0]);
  const checked = (id: unknown): FakeConversation => {
    if (typeof id !== 'string' || !(ID_PATTERN.test(id) || CHILD_PATTERN.test(id))) {
      throw new ClientError('invalid', `${JSON.stringify(String(id).slice(0, 80))} cannot be a conversation's id`);
    }
    const found = ofId(id);
    if (found === undefined) throw notFound(id);
    return found;
  };
  const open = ({ method, given }: Call): FakeConversation => {
    // A decision names the sub-agent that asks beside the conversation that was asked.
    const { conversation } = (method === 'decide' ? given[1] : {}) as { readonly conversation?: string };
    if (ofId(conversation) !== undefined) opened.push(`${method} ${conversation}`);
    const found = checked(given[0]);
    opened.push(`${method} ${String(given[0])}`);
    return found;
  };
  const owner = (ref: string, { tenant }: { readonly tenant?: string } = {}): string => {
    const of = uploads.get(ref);
    if (of === undefined || of !== (tenant ?? null)) throw new ClientError('not-found', `there is no attachment ${ref}`);
    return ref;
  };
  const among = ({ tenant, idPrefix }: { readonly tenant?: string | null; readonly idPrefix?: string } = {}): FakeConversation[] =>
    conversations.filter(
      (one) => (tenant === undefined || one.tenant === tenant) && (idPrefix === undefined || one.id.startsWith(idPrefix)),
    );
  const sum = { calls: 1, inputTokens: 1, cachedTokens: 0, outputTokens: 1, costUsd: 0 };

  /** Every method noted, also those that have an answer of their own. */
  const noted = (own: Readonly<Record<string, Method>>): Readonly<Record<string, Method>> =>
    Object.fromEntries(
      Object.entries(own).map(([method, act]) => [
        method,
        async (...given: readonly never[]) => {
          calls.push({ method, given });
          return act(...given);
        },
      ]),
    );

  const own = noted({
    async scopes() {
      const all = conversations.map(({ tenant, scope: name = 'default' }) => (tenant ? `${tenant}.${name}` : name));
      return Promise.resolve([...new Set(all)].sort());
    },

    describe(id: string) {
      const { tenant, publicId, title, scope = 'default', owner = null } = open({ method: 'describe', given: [id] });
      const base = { id, runId: 'r', life: 'r', state: 'running', taskQueue: 'perdura', agent: 'default', scope, owner };
      return {
        ...base,
        tenant,
        publicId,
        title,
        startedAt: new Date(0),
        closedAt: null,
        historyEvents: 1,
        historyBytes: 1,
        pendingActivities: [],
      };
    },
    start: (id: string) => ({ id, attached: ofId(id) !== undefined }),
    list: (options: object) => among(options).map(listed),
    standing: (options: object) => among(options).map((one) => ({ ...listed(one), current: null })),
    usage: (options: { readonly by: string; readonly tenant?: string | null }) => {
      const sums = among(options).map(({ id, tenant }) => ({ of: options.by === 'scope' ? `${tenant}.default` : id, ...sum }));
      return { by: options.by, since: null, sums, total: { of: 'total', ...sum } };
    },
    failures: (options: object) => {
      const own = among(options);
      const group = { kind: 'auth', message: 'no key', count: 1, newest: null, conversations: own.map(({ id }) => id) };
      return { failures: own.length === 0 ? [] : [group], more: false };
    },
    allApprovals: (options: { readonly idPrefix?: string }) => ({
      approvals: among(options).map(({ id, title }) => ({ via: id, conversation: id, callId: 'turn_0002/c1', arguments: { title } })),
      silent: [],
      more: false,
    }),
    workers: () => ({ taskQueue: 'perdura', workers: [], queues: [] }),
    upload: () => ({ ref: `att_${'1'.repeat(32)}`, mediaType: 'image/png', bytes: 1, sha256: '', expiresAt: '', used: false }),
    uploaded: (ref: string, options?: object) => ({
      ref: owner(ref, options),
      mediaType: 'image/png',
      bytes: 1,
      sha256: '',
      expiresAt: '',
      used: false,
    }),
    uploadedBytes: (ref: string, options?: object) => Buffer.from(owner(ref, options)),
    attachUploaded: (_id: string, ref: string, options?: object) => ({ ref: owner(ref, options), mediaType: 'image/png' }),
    sweepUploads: () => 0,
    close: () => undefined,
  });

  const scope = (name: string): unknown => {
    const isName: boolean = isScope(name);
    if (!isName) throw new ClientError('invalid', `${JSON.stringify(name.slice(0, 80))} cannot be a memory's scope`);
    calls.push({ method: 'scope', given: [name] });
    scopes.push(name);
    const empty = { version: 'v0', text: '', lines: [], facts: [], proposals: [], historyLines: 0, removed: [] };
    return new Proxy({ scope: name } as Record<string, unknown>, {
      get: (_scope, method) => {
        if (method === 'scope') return name;
        if (method === 'then') return undefined;
        if (method === 'status') return async () => undefined;
        if (method === 'textOf') return async () => '';
        return async () => (['text', 'forget', 'wouldForget', 'review'].includes(String(method)) ? empty : []);
      },
    });
  };

  async function* watch(id: string): AsyncGenerator<never> {
    calls.push({ method: 'watch', given: [id] });
    open({ method: 'watch', given: [id] });
  }

  const client = clientOf(
    async (call) => {
      calls.push(call);
      open(call);
      throw new ClientError('unavailable', 'a fake knows nothing of what is in a conversation');
    },
    { ...own, scope, watch } as Readonly<Record<string, Method>>,
  );
  return { client, calls, opened, scopes };
}

function listed({ id, tenant, publicId, title, scope = 'default' }: FakeConversation): Listed {
  const none = { model: null, turns: null, costUsd: null, status: null, closedAt: null };
  return {
    id,
    taskQueue: 'perdura',
    running: true,
    state: 'running',
    agent: 'default',
    scope,
    tenant,
    publicId,
    title,
    startedAt: new Date(0),
    ...none,
  };
}
