/** The person or program that sends a request, and its rights. */
export const ROLES = ['user', 'operator', 'admin'] as const;
/** `user`: talks. `operator`: also decides on what others see, steps and repairs. `admin`: also deletes and hands out tokens. */
export type Role = (typeof ROLES)[number];

/** A client that was let in, and what it may do. */
export interface Principal {
  /** Unique for one token or one user: limits count by it, histories are matched within it, and the access log names it. */
  readonly name: string;
  readonly role: Role;
  /** The tenant whose conversations, memory and agents it reaches; absent: those of no tenant, or all with the role of an operator. */
  readonly tenant?: string;
}

export { TENANT_PATTERN } from '../../conversation/protocol/tenant.js';

export function mayAct(principal: Principal, needed: Role): boolean {
  return ROLES.indexOf(principal.role) >= ROLES.indexOf(needed);
}
