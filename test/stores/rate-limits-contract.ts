/** Limits of providers, in every store: who may call, who waits how long, and what is learnt from answers (stores/rate-limits.ts). */
import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { LEASE_MS, type PerKind, type SeenLimits } from '../../src/records/rate-limit.js';
import { learn, newLimiter, release, take, type LimiterState } from '../../src/stores/limiter-state.js';
import {
  BACKGROUND_COST,
  GRACE_MS,
  LATE_MS,
  MAX_WAIT_MS,
  type LimitClaim,
  type Outcome,
  type RateLimits,
  type Taken,
  withPeriods,
} from '../../src/stores/rate-limits.js';

const START = 1_738_100_000_000;
const HOUR = { limit: 60, remaining: 60, resetMs: 0 };

function call(id: string, over: Partial<LimitClaim> = {}): LimitClaim {
  return {
    ...{ id, tenant: 'acme', conversation: id, isBackground: false, input: 100, output: 50 },
    ...{ set: { requests: 60 } },
    ...over,
  };
}

export function rateLimitsContract(open: (clock: () => number) => RateLimits): void {
  describe('limits of providers', () => {
    let [now, of, limits] = [START, '', undefined as unknown as RateLimits];
    beforeEach(() => {
      now = START;
      of = `anthropic/${randomUUID()}#k1`;
      limits = open(() => now);
    });
    const passes = (ms: number): void => void (now += ms);
    const place = async (claim: LimitClaim): Promise<number> => {
      const taken = await limits.take(of, claim);
      return taken.status === 'wait' ? taken.position : 0;
    };
    /** So that the next call waits: of 60 one is kept back. */
    const useUp = async (set: PerKind = { requests: 60 }): Promise<void> => {
      for (let i = 0; i < 59; i++) expect(await limits.take(of, call(`used-${i}`, { set }))).toEqual({ status: 'granted' });
    };

    test('are none while nothing is known, and nothing is kept of that', async () => {
      expect(await limits.take(of, call('a', { set: {} }))).toEqual({ status: 'free' });
      await limits.learn(of, 'a', {}, {});
      await limits.release(of, 'a', { input: 10, output: 1 });
      expect((await limits.list()).filter((one) => one.of === of)).toEqual([]);
    });

    test('let calls through until they are reached, and then as they fill', async () => {
      await useUp();
      expect(await limits.take(of, call('a'))).toEqual({ status: 'wait', position: 1, waiting: 1, ms: 1_000, expectedMs: 1_000 });
      expect(await limits.take(of, call('b'))).toEqual({ status: 'wait', position: 2, waiting: 2, ms: 2_000, expectedMs: 2_000 });
      passes(1_000);
      expect(await limits.take(of, call('b'))).toMatchObject({ status: 'wait', position: 2 });
      expect(await limits.take(of, call('a'))).toEqual({ status: 'granted' });
      passes(1_000);
      expect(await limits.take(of, call('b'))).toEqual({ status: 'granted' });
    });

    test('give a call that has room the same room again', async () => {
      await useUp();
      for (let i = 0; i < 3; i++) expect(await limits.take(of, call('used-7'))).toEqual({ status: 'granted' });
      passes(1_000);
      expect(await limits.take(of, call('a'))).toEqual({ status: 'granted' });
    });

    test('keep a call in the share where it came first', async () => {
      await useUp();
      await limits.take(of, call('a'));
      expect(await limits.take(of, call('a', { isBackground: true, tenant: 'beta' }))).toMatchObject({ position: 1, waiting: 1 });
      passes(1_000);
      expect(await limits.take(of, call('a', { isBackground: true }))).toEqual({ status: 'granted' });
      expect(await limits.take(of, call('b'))).toMatchObject({ status: 'wait', position: 1, waiting: 1 });
    });

    test('share out by tenant, however many calls one of them has', async () => {
      await useUp();
      for (let i = 0; i < 20; i++) await limits.take(of, call(`a${i}`, { tenant: 'acme' }));
      expect(await place(call('b', { tenant: 'beta' }))).toBeLessThanOrEqual(2);
      expect(await place(call('a20', { tenant: 'acme' }))).toBe(22);
    });

    test('put the second call of a conversation behind the first ones of the others', async () => {
      await useUp();
      for (let i = 0; i < 3; i++) await limits.take(of, call(`child-${i}`, { conversation: 'busy' }));
      await limits.take(of, call('other-1'));
      expect(await place(call('other-2'))).toBeLessThan(await place(call('child-2', { conversation: 'busy' })));
    });

    test('serve people before what works in the background, which has its share all the same', async () => {
      await useUp();
      await limits.take(of, call('first'));
      await limits.take(of, call('title', { isBackground: true }));
      for (let i = 0; i < 2 * BACKGROUND_COST; i++) await limits.take(of, call(`p${i}`));
      expect(await place(call('title', { isBackground: true }))).toBeLessThanOrEqual(2);
      await limits.take(of, call('title-2', { isBackground: true }));
      const second = await place(call('title-2', { isBackground: true }));
      expect(second).toBeGreaterThan(BACKGROUND_COST);
      expect(second).toBeLessThan(2 * BACKGROUND_COST + 4);
    });

    test('keep room for the first in line when it needs much', async () => {
      const set = { tokens: 6_000 };
      const small = (id: string): LimitClaim => call(id, { set, input: 100, output: 100 });
      for (let i = 0; i < 29; i++) expect(await limits.take(of, small(`used-${i}`))).toEqual({ status: 'granted' });
      const big = call('big', { set, input: 3_000, output: 1_000 });
      expect(await limits.take(of, big)).toMatchObject({ status: 'wait', position: 1 });
      for (let second = 0; second < 39; second++) {
        passes(1_000);
        expect(await limits.take(of, small(`small-${second}`))).toMatchObject({ status: 'wait' });
        expect(await limits.take(of, big)).toMatchObject({ status: 'wait', position: 1 });
      }
      passes(2_000);
      expect(await limits.take(of, big)).toEqual({ status: 'granted' });
    });

    test('let no more streams run at once than may', async () => {
      const set = { streams: 2 };
      for (const id of ['a', 'b']) expect(await limits.take(of, call(id, { set }))).toEqual({ status: 'granted' });
      expect(await limits.take(of, call('c', { set }))).toMatchObject({ status: 'wait', position: 1 });
      await limits.release(of, 'a', {});
      expect(await limits.take(of, call('c', { set }))).toEqual({ status: 'granted' });
    });

    test('are not held up by who does not come back in time, whose place is kept for a while', async () => {
      await useUp();
      for (const id of ['gone', 'late', 'here']) await limits.take(of, call(id));
      expect(await limits.take(of, call('here'))).toMatchObject({ status: 'wait', position: 3, waiting: 3 });
      passes(3_000 + LATE_MS);
      // Room for four is there by now, and two that wait for it.
      expect(await limits.take(of, call('here'))).toEqual({ status: 'granted' });
      for (const id of ['next-1', 'next-2', 'next-3']) expect(await limits.take(of, call(id))).toEqual({ status: 'granted' });
      expect(await place(call('last'))).toBe(1);
      expect(await place(call('late'))).toBe(1);
      expect(await place(call('last'))).toBe(2);
      passes(MAX_WAIT_MS + GRACE_MS + 1);
      expect(await place(call('used-up'))).toBe(0);
    });

    test('take back the room and the place of a worker that died', async () => {
      const set = { streams: 1 };
      await limits.take(of, call('dead', { set }));
      expect(await limits.take(of, call('waits', { set }))).toMatchObject({ status: 'wait' });
      passes(LEASE_MS + MAX_WAIT_MS + GRACE_MS + 1);
      expect(await limits.take(of, call('next', { set }))).toEqual({ status: 'granted' });
      expect(await limits.take(of, call('last', { set }))).toMatchObject({ status: 'wait', position: 1, waiting: 1 });
    });

    test('are learnt from answers, and corrected by them: up by what the provider has seen, down by what others have used', async () => {
      const seen = (remaining: number): SeenLimits => ({ requests: { ...HOUR, remaining } });
      await limits.learn(of, 'unknown', seen(40), {});
      const left = async (): Promise<number | undefined> => (await limits.list()).find((one) => one.of === of)?.limits[0]?.left;
      expect(await left()).toBe(40);
      for (const id of ['a', 'b', 'c']) expect(await limits.take(of, call(id, { set: {} }))).toEqual({ status: 'granted' });
      expect(await left()).toBe(37);
      await limits.learn(of, 'b', seen(20), {});
      expect(await left()).toBe(20);
      // `a` has not been heard of, and `c` came after it: the provider may not have seen them by then.
      await limits.learn(of, 'b', seen(58), {});
      expect(await left()).toBe(56);
    });

    test('hold as a person has set them, below what a provider says', async () => {
      await limits.learn(of, 'x', { requests: { limit: 600, remaining: 600 } }, { requests: 60 });
      expect((await limits.list()).find((one) => one.of === of)?.limits).toEqual([
        { kind: 'requests', limit: 60, left: 60, perMs: 60_000, source: 'setting' },
      ]);
    });

    test('learn how a provider counts tokens', async () => {
      const set = {};
      let remaining = 100_000;
      const seen = (): SeenLimits => ({ tokens: { limit: 100_000, remaining } });
      await limits.learn(of, 'first', seen(), set);
      // It counts a tenth of what the request may take at most.
      for (let i = 0; i < 40; i++) {
        const claim = call(`c${i}`, { set, input: 100, output: 3_900 });
        await limits.take(of, claim);
        remaining -= 400;
        await limits.learn(of, claim.id, seen(), set);
        await limits.release(of, claim.id, {});
      }
      const spent = Array.from({ length: 100 }, (_, i) => limits.take(of, call(`d${i}`, { set, input: 100, output: 3_900 })));
      expect((await Promise.all(spent)).filter(({ status }) => status === 'granted').length).toBeGreaterThan(90);
    });

    test('wait as long as a provider wants, then go out fewer at once, where it says nothing of its limits', async () => {
      const round = async (name: string): Promise<string[]> => {
        const all = Array.from({ length: 40 }, (_, i) => `${name}${i}`);
        const taken = await Promise.all(all.map(async (id) => ({ id, ...(await limits.take(of, call(id, { set: {} }))) })));
        return taken.filter(({ status }) => status === 'granted').map(({ id }) => id);
      };
      const end = (ids: string[], outcome: Outcome) => Promise.all(ids.map((id) => limits.release(of, id, outcome)));
      await limits.take(of, call('a', { set: {} }));
      await limits.release(of, 'a', { refusedMs: 5_000 });
      expect(await limits.take(of, call('b', { set: {} }))).toMatchObject({ status: 'wait', position: 1 });
      await limits.release(of, 'b', {});
      passes(5_001);
      const first = await round('c');
      expect(first).toHaveLength(32);
      expect((await limits.list()).find((one) => one.of === of)).toMatchObject({
        limits: [{ kind: 'streams', limit: 32, source: 'refusals' }],
      });
      // All of one round count once.
      await end(first, { refusedMs: 1_000 });
      passes(60_000);
      const second = await round('d');
      expect(second).toHaveLength(16);
      await end(second, {});
      passes(60_000);
      expect((await round('e')).length).toBe(16);
    });

    test.each([86_400_000, 5_000])('are held up by a clock that was %d ms ahead for as long as it meant, and no longer', async (ahead) => {
      passes(ahead);
      await limits.take(of, call('a', { set: {} }));
      await limits.release(of, 'a', { refusedMs: 2_000 });
      passes(-ahead);
      const waits = await limits.take(of, call('b', { set: {} }));
      expect(waits).toMatchObject({ status: 'wait', position: 1 });
      expect(waits.status === 'wait' && waits.ms).toBeLessThanOrEqual(2_000);
      passes(2_001);
      expect(await limits.take(of, call('b', { set: {} }))).toEqual({ status: 'granted' });
    });

    test('decide as the pure functions do, call by call', async () => {
      const id = fc.integer({ min: 0, max: 14 }).map((n) => `call-${n}`);
      const seen = fc.record(
        {
          requests: fc.record({ limit: fc.constantFrom(20, 60), remaining: fc.integer({ min: 0, max: 60 }), resetMs: fc.nat(90_000) }),
          tokens: fc.record({ limit: fc.constant(50_000), remaining: fc.integer({ min: 0, max: 50_000 }) }),
          output: fc.record({ limit: fc.constant(9_000), remaining: fc.integer({ min: 0, max: 9_000 }) }),
        },
        { requiredKeys: [] },
      );
      const set = fc.constantFrom<PerKind>({}, {}, { streams: 3 }, { requests: 30 }, { input: 4_000 });
      const step = fc.oneof(
        {
          weight: 5,
          arbitrary: fc.record({
            kind: fc.constant('take' as const),
            id,
            set,
            tenant: fc.constantFrom('', 'acme', 'beta'),
            isBackground: fc.boolean(),
            input: fc.nat(2_000),
            output: fc.integer({ min: 1, max: 4_000 }),
          }),
        },
        { weight: 2, arbitrary: fc.record({ kind: fc.constant('learn' as const), id, set, seen }) },
        {
          weight: 2,
          arbitrary: fc.record({
            kind: fc.constant('release' as const),
            id,
            outcome: fc.constantFrom({}, { input: 700, output: 90 }, { refusedMs: 3_000 }),
          }),
        },
      );
      const steps = fc.array(fc.tuple(fc.constantFrom(0, 3, 400, 2_500, 30_000, 90_000, -2, -5_000, -86_400_000), step), {
        minLength: 5,
        maxLength: 60,
      });
      await fc.assert(
        fc.asyncProperty(steps, async (all) => {
          of = `anthropic/${randomUUID()}#k1`;
          let state: LimiterState | undefined;
          const pure = <T>(work: (state: LimiterState) => T): T => {
            const used = state ?? newLimiter(now);
            const answer = work(used);
            if (state || Object.keys(used.buckets).length > 0 || used.blocked > now) state = used;
            return answer;
          };
          for (const [ms, one] of all) {
            passes(ms);
            if (one.kind === 'take') {
              const claim = call(one.id, { ...one, conversation: `${Number(one.id.slice(5)) % 4}` });
              const [expected, given]: Taken[] = [pure((into) => take(into, claim, now)), await limits.take(of, claim)];
              expect(given).toEqual(expected);
            } else if (one.kind === 'learn') {
              pure((into) => learn(into, one.id, withPeriods(one.seen), one.set, now));
              await limits.learn(of, one.id, one.seen, one.set);
            } else {
              pure((into) => release(into, one.id, one.outcome, now));
              await limits.release(of, one.id, one.outcome);
            }
          }
        }),
        // Each run makes some hundred changes of a file: a busy machine makes fewer runs.
        { numRuns: 60, interruptAfterTimeLimit: 60_000 },
      );
    });
  });
}
