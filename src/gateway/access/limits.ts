/**
 * How often and how much at once. Counted in Redis where the gateways of an installation share one, so that each of them knows the count of
 * all; in this process where there is none, and for as long as Redis does not answer.
 */
import { createHash } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes, type RateLimiterAbstract } from 'rate-limiter-flexible';
import { GatewayError } from '../core/errors.js';

/** A connection of ioredis, and what its keys begin with. */
export interface SharedCounts {
  readonly client: object;
  readonly prefix: string;
}

export interface Limiter {
  /** One more. Throws 429, with the time to wait, where that is too many. */
  take(key: string): Promise<void>;
}

/** Makes a limit: so many points in so many seconds, counted by key. */
export type CreateLimiter = (name: string, points: number, seconds: number) => Limiter;

/** Limits of this process, or shared by all that use one Redis. */
export function createLimits(shared?: SharedCounts): CreateLimiter {
  return (name, points, duration) => {
    const memory = new RateLimiterMemory({ points, duration });
    const limiter: RateLimiterAbstract =
      shared === undefined
        ? memory
        : new RateLimiterRedis({
            storeClient: shared.client,
            keyPrefix: `${shared.prefix}:${name}`,
            points,
            duration,
            // A client beyond the limit costs Redis nothing.
            inMemoryBlockOnConsumed: points,
            rejectIfRedisNotReady: true,
            insuranceLimiter: memory,
          });
    return {
      async take(key) {
        try {
          await limiter.consume(shortened(key));
        } catch (error) {
          if (!(error instanceof RateLimiterRes)) throw error;
          const retryAfter = Math.max(1, Math.ceil(error.msBeforeNext / 1000));
          throw new GatewayError({
            status: 429,
            type: 'too-many-requests',
            message: `too many requests: wait ${retryAfter} s`,
            retryAfter,
          });
        }
      },
    };
  };
}

/** Hashes of names that clients give: of one length, and they reveal nothing to a reader of the store. */
function shortened(key: string): string {
  return createHash('sha256').update(key).digest('base64url').slice(0, 22);
}

interface OpenCounter {
  /** Returns the way to give it back. Throws 429 where too many are open. */
  open(key: string): () => void;
}

/** Requests and streams that are open at once, in this gateway. */
export function createOpenCounter(max: number): OpenCounter {
  const open = new Map<string, number>();
  return {
    open(key) {
      const before = open.get(key) ?? 0;
      if (before >= max) {
        const message = `${max} requests and streams of this token are open: close some, or wait`;
        throw new GatewayError({ status: 429, type: 'too-many-requests', message, retryAfter: 1 });
      }
      open.set(key, before + 1);
      let isOpen = true;
      return () => {
        if (!isOpen) return;
        isOpen = false;
        const now = (open.get(key) ?? 1) - 1;
        if (now === 0) open.delete(key);
        else open.set(key, now);
      };
    },
  };
}
