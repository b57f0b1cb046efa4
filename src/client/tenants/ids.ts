/**
 * A tenant's ids. A name is looked up under a keyed hash of the tenant and that name, so two tenants may use one id, and no tenant can
 * name a conversation of another: also not by the id that Temporal knows.
 */
import { createHmac } from 'node:crypto';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';
import { CHILD_PATTERN } from '../../conversation/protocol/limits.js';
import { ClientError } from '../errors.js';

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
      const [root = '', ...below] = publicId.split(':');
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
