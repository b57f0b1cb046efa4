/**
 * Ids as those of no tenant have them: their own stay as they are. One that is a tenant's conversation is looked up under a hash, where there
 * is nothing, as a tenant's look-up of another's is.
 */
import type { PerduraClient } from '../../client.js';
import type { ClientError } from '../../client/errors.js';
import { createTenantIds, TENANT_IDS, type TenantIds } from './ids.js';

const HIDDEN = createTenantIds('', 'what those of no tenant may not see');
const HASHED = new RegExp(`^${TENANT_IDS.source}`);
const KNOWN_FOR_MS = 30_000;
const MAX_KNOWN = 10_000;

export interface OwnIds extends Omit<TenantIds, 'toWorkflowId' | 'prefix'> {
  /** Of no conversation that is shown. */
  readonly hidden: string;
  toWorkflowId(id: string): Promise<string>;
  isOwn(id: string): Promise<boolean>;
}

export function createIdsOfNoTenant(client: Pick<PerduraClient, 'describe'>, now: () => number = Date.now): OwnIds {
  const known = new Map<string, { readonly isOwn: boolean; readonly at: number }>();
  const isOwn = async (id: string): Promise<boolean> => {
    if (HASHED.test(id)) return false;
    // It may have been begun by a program, under an id of its own for a tenant.
    const [base = ''] = id.split(':');
    const before = known.get(base);
    if (before !== undefined && now() - before.at < KNOWN_FOR_MS) return before.isOwn;
    const found = await client.describe(base).catch((error: unknown) => {
      const { kind } = error as Partial<ClientError>;
      if (kind === 'not-found' || kind === 'invalid') return undefined;
      throw error;
    });
    if (found === undefined) return true;
    known.delete(base);
    known.set(base, { isOwn: found.tenant === null, at: now() });
    if (known.size > MAX_KNOWN) known.delete(known.keys().next().value ?? '');
    return found.tenant === null;
  };
  return {
    hidden: HIDDEN.prefix,
    isOwn,
    toWorkflowId: async (id) => ((await isOwn(id)) ? id : HIDDEN.toWorkflowId(id)),
    prefixOf: (prefix) => prefix,
  };
}
