/**
 * Limits of providers in Redis, each under `perdura:{r:<provider/model#account>}:<what>` (rate-limits.ts has the port and the rules), where
 * `<what>` is
 *
 *   state    what a call changes, by MessagePack: cjson would round the numbers
 *   tickets  hash, id of a call -> its place in line
 *   line     sorted set by name: share, number in it, id
 *   leases   hash, id of a call that has room -> what was taken for it
 *   ends     sorted set, `t` and a ticket's id or `l` and a lease's -> when it ends
 *   same     hash, share and conversation -> calls that wait
 *
 * Nothing of it is needed once no call waits.
 */
import { escapedForKey, literally } from './keys.js';
import { scanKeys, type RedisLink } from './link.js';
import { showLimiter, toFlow, withPeriods, type LimiterState, type RateLimits, type Taken } from '../rate-limits.js';

const WHAT = ['state', 'tickets', 'line', 'leases', 'ends', 'same'] as const;

/** `clock`: of tests; else Redis has the time, since the clocks of machines differ. */
export function createRedisRateLimits(link: RedisLink, clock?: () => number): RateLimits {
  const run = (attempt: string, of: string, doing: string, given: object): Promise<unknown> =>
    link.ask(`${attempt} ${of}`, (redis) =>
      redis.perduraLimit(...WHAT.map((what) => limitKey(of, what)), doing, clock ? String(clock()) : '', JSON.stringify(given)),
    );
  return {
    async take(of, claim) {
      const { tenant: _tenant, isBackground: _isBackground, ...rest } = claim;
      const [status, position, waiting, ms, expectedMs] = (await run('take room of', of, 'take', { ...rest, flow: toFlow(claim) })) as [
        Taken['status'],
        ...number[],
      ];
      if (status !== 'wait') return { status };
      return { status, position: Number(position), waiting: Number(waiting), ms: Number(ms), expectedMs: Number(expectedMs) };
    },

    async learn(of, id, seen, set) {
      await run('note what is left of', of, 'learn', { id, seen: withPeriods(seen), set });
    },

    async release(of, id, outcome) {
      await run('give back room of', of, 'release', { id, ...outcome });
    },

    async list() {
      const attempt = 'see the limits of providers';
      const names = new Set<string>();
      for await (const key of scanKeys(link, attempt, literally('perdura:{r:'))) {
        const of = /^perdura:\{r:([^}]*)\}:state$/.exec(key)?.[1];
        if (of !== undefined) names.add(decodeURIComponent(of));
      }
      return Promise.all(
        [...names].sort().map(async (of) => {
          const [state, streams, now] = (await run('see the limits of', of, 'show', {})) as [string, number, string];
          return showLimiter(of, JSON.parse(state) as Omit<LimiterState, 'tickets' | 'leases'>, streams, Number(now));
        }),
      );
    },
  };
}

function limitKey(of: string, what: (typeof WHAT)[number]): string {
  return `perdura:{r:${escapedForKey(of)}}:${what}`;
}
