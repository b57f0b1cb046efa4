/**
 * Whose memory it is. A tenant's scope is another one than the same name without a tenant or in another one, since its whole name, as the
 * store and the memory workflow have it, begins with the tenant and a full stop, which no name that anyone chooses has.
 * A scope names its tenant: neither travels without the other.
 */

export interface ScopeParts {
  readonly tenant?: string;
  /** As it is called within its tenant. */
  readonly scope: string;
}

/** A folder, a part of a store's keys and a value that can be searched for. */
export const TENANT_PATTERN = /^[a-z0-9][a-z0-9-]{0,38}$/;

/** The whole name, which all have but the start of a conversation. */
export function qualifiedScope(tenant: string | undefined, scope: string): string {
  return tenant === undefined ? scope : `${tenant}.${scope}`;
}

export function scopeParts(qualified: string): ScopeParts {
  const at = qualified.indexOf('.');
  return at < 0 ? { scope: qualified } : { tenant: qualified.slice(0, at), scope: qualified.slice(at + 1) };
}

export function readTenant(qualified: string): string | undefined {
  return scopeParts(qualified).tenant;
}

/** As memos and statuses show it: the whole name, and the tenant where there is one. */
export function scopeAndTenant(qualified: string): ScopeParts {
  const tenant = readTenant(qualified);
  return { scope: qualified, ...(tenant === undefined ? {} : { tenant }) };
}
