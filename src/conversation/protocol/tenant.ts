/** Names of tenants, and whole names of scopes (records/identity.ts), as they may come in. */
import { scopeParts, TENANT_PATTERN } from '../../records/identity.js';
import { ID_PATTERN } from './limits.js';

export { TENANT_PATTERN };

export function isTenant(value: unknown): value is string {
  return typeof value === 'string' && TENANT_PATTERN.test(value);
}

export function isScope(value: unknown): value is string {
  if (typeof value !== 'string') return false;
  const { tenant, scope } = scopeParts(value);
  return ID_PATTERN.test(scope) && (tenant === undefined || isTenant(tenant));
}
