/** Who asks, and what that person or program may do. */
export const ROLES = ['user', 'operator', 'admin'] as const;
/** `user`: talks. `operator`: also decides on what others see, steps and repairs. `admin`: also deletes and hands out tokens. */
export type Role = (typeof ROLES)[number];

export interface Principal {
  /** Of one token or one user alone: what limits are counted by, what one client's history is matched within, and who the access log names. */
  readonly name: string;
  readonly role: Role;
  /** Whose conversations, memory and agents these are; absent: those of no tenant, and with the role of an operator all. */
  readonly tenant?: string;
}

/** Names of tenants: a folder, a part of a store's keys and a value that can be searched for. */
export const TENANT_PATTERN = /^[a-z0-9][a-z0-9-]{0,38}$/;

export function mayAct(principal: Principal, needed: Role): boolean {
  return ROLES.indexOf(principal.role) >= ROLES.indexOf(needed);
}
