/** The person or program that sends a request, its rights, and whether it still has them. */
import { GatewayError, toProblem } from '../core/errors.js';
import { RECORD_AWAY } from './spent.js';

/** From the least rights to all. */
export const ROLES = ['user', 'operator', 'admin'] as const;
/** `user`: talks. `operator`: also what is others', steps and repairs. `admin`: also deletes. Each operation: docs/reference/roles.md. */
export type Role = (typeof ROLES)[number];

/** A client that was let in, and what it may do. */
export interface Principal {
  /** Unique for one token or one user: limits count by it, histories are matched within it, and the access log names it. */
  readonly name: string;
  readonly role: Role;
  /** The tenant whose conversations, memory and agents it reaches; absent: those of no tenant, or all with the role of an operator. */
  readonly tenant?: string;
  /**
   * Of a user: the scopes of its conversations and memory; `ada-*` is each that begins so, and the first that is a name is where
   * its conversations begin. Absent: it talks in the scopes that agents have by themselves, where those that it began belong to it.
   */
  readonly scopes?: readonly string[];
}

/** A scope, or the beginning of several: `ada`, `ada-*`, `*`. */
export const SCOPES_PATTERN = /^(?:[A-Za-z0-9][A-Za-z0-9_-]{0,63}\*?|\*)$/;

export { TENANT_PATTERN } from '../../conversation/protocol/limits.js';

export function mayAct(principal: Principal, needed: Role): boolean {
  return ROLES.indexOf(principal.role) >= ROLES.indexOf(needed);
}

/**
 * Whether who was let in still may be. A token can be revoked, or end, while an answer is waited for or streamed: so it is looked at again,
 * and what is open ends.
 */
export interface Admission {
  /** Until it is stopped. */
  watch(): AdmissionWatch;
}

interface AdmissionWatch {
  /** Aborted once the token opens nothing any more, or opens something else. */
  readonly signal: AbortSignal;
  stop(): void;
}

/** With the second in which a changed file is noticed, well within a minute. */
const LOOK_AGAIN_MS = 15_000;

/** `again`: who the same token or cookie lets in now. */
export function createAdmission(
  principal: Principal,
  again: () => Promise<Principal | undefined>,
  everyMs: number = LOOK_AGAIN_MS,
): Admission {
  return {
    watch() {
      const ended = new AbortController();
      let unanswered = 0;
      const whyNoLonger = async (): Promise<unknown> => {
        try {
          const now = await again();
          unanswered = 0;
          return now !== undefined && listRights(now) === listRights(principal) ? undefined : noLonger();
        } catch (error) {
          const { status, type } = toProblem(error);
          if (status < 500) return noLonger();
          // A provider that does not answer has revoked nothing. The record of sign-outs may have one: it is read twice.
          unanswered += type === RECORD_AWAY ? 1 : 0;
          return unanswered > 1 ? error : undefined;
        }
      };
      const timer = setInterval(() => {
        void whyNoLonger().then((why) => {
          if (why === undefined) return;
          clearInterval(timer);
          ended.abort(why);
        });
      }, everyMs);
      timer.unref();
      return { signal: ended.signal, stop: () => clearInterval(timer) };
    },
  };
}

function listRights({ tenant, role, scopes }: Principal): string {
  return JSON.stringify([tenant, role, scopes]);
}

/** The error with which a stream ends. */
function noLonger(): GatewayError {
  return new GatewayError({
    status: 401,
    type: 'unauthorized',
    message: 'the token of this request opens nothing any more: it was revoked, or has ended',
  });
}
