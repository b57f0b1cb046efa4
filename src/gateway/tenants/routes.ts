/**
 * The principal decides which conversations there are: that of a tenant reaches those of the tenant, and a user of none those of none.
 * Operators of none have all, and those of a tenant, as the tenant has them, with `?tenant=NAME`. A user has the client of a user.
 */
import type { MiddlewareHandler } from 'hono';
import type { PerduraClient } from '../../client.js';
import type { Message } from '../../conversation/protocol/contract.js';
import { TRACEPARENT } from '../../conversation/protocol/message.js';
import type { AgentDescription, GatewayVariables } from '../context.js';
import { isTenant, TENANT_PATTERN } from '../../conversation/protocol/limits.js';
import { mayAct, type Principal } from '../access/principal.js';
import { createUserClient } from '../access/user-client.js';
import { createConversations, type Conversations } from '../core/conversations.js';
import { GatewayError } from '../core/errors.js';
import { createClientOfNoTenant, createTenantClient } from '../../client/tenants/client.js';

interface TenantOptions {
  readonly client: PerduraClient;
  /** Hashes tenants' ids: the same for every gateway of an installation. Without one no tenant is served. */
  readonly tenantKey?: string;
  /** Names of agents that a tenant, or a client of no tenant, may use. */
  readonly agents?: (tenant?: string) => Promise<readonly string[]>;
  readonly describeAgent?: (name: string, tenant?: string) => Promise<AgentDescription | undefined>;
  readonly log?: (line: string) => void;
}

/**
 * The most tenants and users in memory, by their last request: readers of one share what they wait for (client/turns/follow-turn.ts), since all of
 * them may see the same.
 */
const MAX_KNOWN = 1_000;

/** Runs once the principal is known. */
export function ofTenant({ client, tenantKey, agents, describeAgent, log }: TenantOptions): MiddlewareHandler<GatewayVariables> {
  const known = new Map<string, Conversations>();
  const openKnown = (who: readonly unknown[], open: () => PerduraClient): Conversations => {
    const key = JSON.stringify(who);
    const conversations = known.get(key) ?? createConversations(open(), log);
    known.delete(key);
    known.set(key, conversations);
    if (known.size > MAX_KNOWN) known.delete(known.keys().next().value ?? '');
    return conversations;
  };
  const openTenant = (tenant: string): Conversations => {
    if (tenantKey !== undefined) return openKnown([tenant], () => createTenantClient(client, tenant, tenantKey));
    const message = 'this gateway serves no tenants: it was started without a tenant key';
    throw new GatewayError({ status: 501, type: 'no-tenants', message });
  };
  const ofNone = createClientOfNoTenant(client);
  const ofAll = createConversations(withReachableForks(client), log);
  const openFor = (principal: Principal, tenant: string | undefined): Conversations => {
    if (mayAct(principal, 'operator')) return tenant === undefined ? ofAll : openTenant(tenant);
    const reach = {
      principal,
      agents: () => agents?.(tenant) ?? Promise.resolve([]),
      describeAgent: (name: string) => describeAgent?.(name, tenant) ?? Promise.resolve(undefined),
    };
    const { name, scopes } = principal;
    return openKnown([tenant, name, scopes], () => createUserClient(tenant === undefined ? ofNone : openTenant(tenant).client, reach));
  };
  return async (context, next) => {
    // Open paths have none.
    const principal = context.get('principal') as Principal | undefined;
    const tenant = principal && tenantFor(principal, context.req.queries('tenant') ?? []);
    if (principal !== undefined && tenant !== undefined) {
      context.set('principal', { ...principal, tenant });
      context.set('agents', () => agents?.(tenant) ?? Promise.resolve([]));
      context.set('describeAgent', (name) => describeAgent?.(name, tenant) ?? Promise.resolve(undefined));
      context.set('temporalLink', () => Promise.resolve(undefined));
    }
    if (principal !== undefined) context.set('conversations', ofRequest(openFor(principal, tenant), context.req.header('traceparent')));
    await next();
  };
}

/** What a request says goes on in its trace (W3C Trace Context): the turn links to it. A header that is none is passed over, as W3C asks. */
function ofRequest(conversations: Conversations, traceparent: string | undefined): Conversations {
  if (traceparent === undefined || !TRACEPARENT.test(traceparent)) return conversations;
  const { client } = conversations;
  const traced = <M extends Message>(message: M): M => ({ ...message, traceparent });
  const toTraced = (message: string | Message): Message => traced(typeof message === 'string' ? { text: message } : message);
  return {
    ...conversations,
    client: {
      ...client,
      send: (id, message, options) => client.send(id, toTraced(message), options),
      enqueue: (id, message) => client.enqueue(id, toTraced(message)),
    },
    submit: (id, message, options) => conversations.submit(id, traced(message), options),
  };
}

/** A fork of a tenant's conversation that a principal outside the tenant begins would have no id in the tenant. */
function withReachableForks(client: PerduraClient): PerduraClient {
  return {
    ...client,
    async fork(id, options) {
      const { tenant, publicId } = await client.describe(id);
      if (tenant === null) return client.fork(id, options);
      const message =
        `cannot fork ${id}: it is a conversation of the tenant ${tenant}, which could not reach the fork; ask with ?tenant=${tenant}` +
        (publicId === null ? '' : ` and the id that it has there, ${publicId}`);
      throw new GatewayError({ status: 409, type: 'of-tenant', message });
    },
  };
}

/** A name is refused alike whether or not there is such a tenant. */
function tenantFor(principal: Principal, [named, ...more]: readonly string[]): string | undefined {
  if (named === undefined) return principal.tenant;
  if (!isTenant(named) || more.length > 0) {
    throw new GatewayError({ status: 400, type: 'invalid', message: `tenant: one name, which matches ${TENANT_PATTERN.source}` });
  }
  if (principal.tenant === named) return named;
  if (principal.tenant === undefined && mayAct(principal, 'operator')) return named;
  throw new GatewayError({ status: 403, type: 'forbidden', message: 'tenant: it is named by an operator of no tenant alone' });
}

/** For routes about all of the installation: to a tenant they are not there. */
export const untenanted: MiddlewareHandler<GatewayVariables> = async (context, next) => {
  if (context.get('principal').tenant !== undefined) {
    throw new GatewayError({ status: 404, type: 'not-found', message: `there is no ${context.req.path}` });
  }
  await next();
};
