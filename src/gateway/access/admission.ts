/**
 * Whether who was let in still may be. A token can be revoked, or end, while an answer is waited for or streamed: so it is looked at again,
 * and what is open ends.
 */
import { GatewayError, toProblem } from '../core/errors.js';
import type { Principal } from './principal.js';

export interface Admission {
  /** Until it is stopped. */
  watch(): AdmissionWatch;
}

export interface AdmissionWatch {
  /** Aborted once the token opens nothing any more, or opens something else. */
  readonly signal: AbortSignal;
  stop(): void;
}

/** With the second in which a changed file is noticed, well within a minute. */
export const LOOK_AGAIN_MS = 15_000;

/** `again`: who the same token or cookie lets in now. */
export function createAdmission(
  principal: Principal,
  again: () => Promise<Principal | undefined>,
  everyMs: number = LOOK_AGAIN_MS,
): Admission {
  const isStill = async (): Promise<boolean> => {
    try {
      const now = await again();
      return now !== undefined && now.tenant === principal.tenant && now.role === principal.role;
    } catch (error) {
      // A provider that does not answer has revoked nothing.
      return toProblem(error).status >= 500;
    }
  };
  return {
    watch() {
      const ended = new AbortController();
      const timer = setInterval(() => {
        void isStill().then((still) => {
          if (still) return;
          clearInterval(timer);
          ended.abort(noLonger());
        });
      }, everyMs);
      timer.unref();
      return { signal: ended.signal, stop: () => clearInterval(timer) };
    },
  };
}

/** The error with which a stream ends. */
export function noLonger(): GatewayError {
  return new GatewayError({
    status: 401,
    type: 'unauthorized',
    message: 'the token of this request opens nothing any more: it was revoked, or has ended',
  });
}
