/**
 * What a tenant's conversations are called, by it and in Temporal. Each tenant has separate ids. Those of no tenant keep theirs; an
 * id that is a tenant's conversation is looked up under a hash for them, where there is nothing, as a tenant's look-up of another's is.
 */
import { createHmac } from 'node:crypto';
import { ClientError } from '../errors.js';
import type { Description } from '../describe.js';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';
import { CHILD_PATTERN, splitChildId } from '../../conversation/protocol/limits.js';

// A tenant's ids. A name is looked up under a keyed hash of the tenant and that name, so two tenants may use one id, and no tenant can
// name a conversation of another: also not by the id that Temporal knows.

export interface TenantIds {
  /** All of the tenant's ids begin so, and no other's. */
  readonly prefix: string;
  /** Of a conversation, or of a sub-agent. Throws `invalid` for what can be no id. */
  toWorkflowId(publicId: string): string;
  /** What the ids begin with that stand for public ids beginning so; undefined where they have no beginning in common. */
  toPrefix(publicPrefix: string): string | undefined;
}

const DOMAIN = 'perdura tenant ids 1';
/** Of conversations that are found by their messages (gateway/core/supplied-history.ts): they are listed together. */
const FAMILY = /^api-[0-9a-f]{24}-/;

/** The same for every gateway that has the key. */
export function createTenantIds(tenant: string, key: string): TenantIds {
  const hash = (kind: 'tenant' | 'family' | 'id', name: string, digits: number): string =>
    createHmac('sha256', key)
      .update(JSON.stringify([DOMAIN, kind, tenant, name]))
      .digest('hex')
      .slice(0, digits);
  const prefix = `t-${hash('tenant', '', 12)}-`;
  const hashFamily = (publicId: string): string => hash('family', FAMILY.exec(publicId)?.[0] ?? publicId, 16);
  return {
    prefix,
    toWorkflowId(publicId) {
      if (!ID_PATTERN.test(publicId) && !CHILD_PATTERN.test(publicId)) throw noId(publicId);
      const [root, ...below] = splitChildId(publicId);
      return [`${prefix}${hashFamily(root)}${hash('id', root, 32)}`, ...below].join(':');
    },
    toPrefix: (publicPrefix) => (FAMILY.exec(publicPrefix)?.[0] === publicPrefix ? `${prefix}${hashFamily(publicPrefix)}` : undefined),
  };
}

function noId(publicId: string): ClientError {
  const shown = JSON.stringify(publicId.slice(0, 80));
  return new ClientError('invalid', `${shown} cannot be a conversation's id: it must match ${ID_PATTERN.source}`);
}

/** Any tenant's. */
export const TENANT_IDS = /t-[0-9a-f]{12}-[0-9a-f]{48}/g;

export interface TenantNames {
  /** null: those of none. */
  readonly tenant: string | null;
  /** Of all workflow ids that are the tenant's; of none: of those that hide. */
  readonly prefix: string;
  /** Throws `invalid` for what can be no id. */
  toWorkflowId(publicId: string): Promise<string>;
  /** What workflow ids begin with that stand for public ids beginning so; undefined where they have no beginning in common. */
  toPrefix(publicPrefix: string): string | undefined;
  /** Undefined where there is no such conversation any more. */
  toPublicId(workflowId: string): Promise<string | undefined>;
  includes(workflowId: string): Promise<boolean>;
}

type Owner = Pick<Description, 'tenant' | 'publicId'>;

/** Whose conversations are, and what their tenants call them, as their memos say. */
export interface KnownConversations {
  /** What a list or a description has just shown; of a sub-agent it may lack the public id, which says nothing of its parent's. */
  note(workflowId: string, owner: Owner): void;
  /** It was deleted. */
  drop(workflowId: string): void;
  /** Undefined where there is no such conversation. */
  find(workflowId: string): Promise<Owner | undefined>;
}

const MAX_KNOWN = 10_000;
/** Another gateway may delete a conversation: soon after that this one, too, no longer says what it was called. */
const KNOWN_FOR_MS = 30_000;

/** Sub-agents are known by their parent's. */
export function baseId(id: string): string {
  return splitChildId(id)[0];
}

export function createKnownConversations(describe: (id: string) => Promise<Owner>, now: () => number = Date.now): KnownConversations {
  const known = new Map<string, { readonly owner: Owner; readonly at: number }>();
  const remember = (workflowId: string, { tenant, publicId }: Owner): void => {
    const id = baseId(workflowId);
    known.delete(id);
    known.set(id, { owner: { tenant, publicId: publicId === null ? null : baseId(publicId) }, at: now() });
    if (known.size > MAX_KNOWN) known.delete(known.keys().next().value ?? '');
  };
  return {
    note(workflowId, owner) {
      if (owner.publicId !== null) remember(workflowId, owner);
    },
    drop: (workflowId) => void known.delete(baseId(workflowId)),
    async find(workflowId) {
      const id = baseId(workflowId);
      const before = known.get(id);
      if (before !== undefined && now() - before.at < KNOWN_FOR_MS) return before.owner;
      known.delete(id);
      const found = await describe(id).catch((error: unknown) => {
        const { kind } = error as Partial<ClientError>;
        if (kind === 'not-found' || kind === 'invalid') return undefined;
        throw error;
      });
      if (found !== undefined) remember(id, found);
      return found;
    },
  };
}

export function createTenantNames(known: KnownConversations, tenant: string, key: string): TenantNames {
  const { prefix, toWorkflowId, toPrefix } = createTenantIds(tenant, key);
  return {
    tenant,
    prefix,
    toPrefix,
    toWorkflowId: async (publicId) => toWorkflowId(publicId),
    toPublicId: async (workflowId) => (await known.find(workflowId))?.publicId ?? undefined,
    includes: async (workflowId) => workflowId.startsWith(prefix),
  };
}

const HIDDEN = createTenantIds('', 'what those of no tenant may not see');
const HASHED = new RegExp(`^${TENANT_IDS.source}`);

export function createNamesOfNone(known: KnownConversations): TenantNames {
  // A program may have begun one for a tenant, under an id of its choice.
  const includes = async (id: string): Promise<boolean> => !HASHED.test(id) && ((await known.find(id))?.tenant ?? null) === null;
  return {
    tenant: null,
    prefix: HIDDEN.prefix,
    includes,
    toPrefix: (prefix) => prefix,
    toWorkflowId: async (id) => ((await includes(id)) ? id : HIDDEN.toWorkflowId(id)),
    toPublicId: async (workflowId) => (await known.find(workflowId))?.publicId ?? undefined,
  };
}
