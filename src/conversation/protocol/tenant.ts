/** Names of tenants, and whole names of scopes (records/scope.ts), as they may come in. */
import { scopeParts } from '../../records/scope.js';
import { ID_PATTERN } from './contract.js';

/** A folder, a part of a store's keys and a value that can be searched for. */
export const TENANT_PATTERN = /^[a-z0-9][a-z0-9-]{0,38}$/;

export function isTenant(value: unknown): value is string {
  return typeof value === 'string' && TENANT_PATTERN.test(value);
}

export function isScope(value: unknown): value is string {
  if (typeof value !== 'string') return false;
  const { tenant, scope } = scopeParts(value);
  return ID_PATTERN.test(scope) && (tenant === undefined || isTenant(tenant));
}
