/** Who asks, and what that person or program may do. */
export const ROLES = ['user', 'operator', 'admin'] as const;
/** `user`: talks. `operator`: also decides on what others see, steps and repairs. `admin`: also deletes and hands out tokens. */
export type Role = (typeof ROLES)[number];

/** Who has come in, and what they may do. */
export interface Principal {
  /** Of one token or one user alone: what limits are counted by, what one client's history is matched within, and who the access log names. */
  readonly name: string;
  readonly role: Role;
  /** Whose conversations, memory and agents these are; absent: those of no tenant, and with the role of an operator all. */
  readonly tenant?: string;
}

export { TENANT_PATTERN } from '../../conversation/protocol/tenant.js';

export function mayAct(principal: Principal, needed: Role): boolean {
  return ROLES.indexOf(principal.role) >= ROLES.indexOf(needed);
}
