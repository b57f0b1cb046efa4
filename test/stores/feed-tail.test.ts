/** Any number of readers of one feed, which is read once: each has all of it in order, once, whatever happens to the feed. */
import fc from 'fast-check';
import { setImmediate as turnOfLoop } from 'node:timers/promises';
import { OLDEST, parseCursor, toCursor } from '../../src/stores/feed-cursor.js';
import { createFeedTail, readFeed, type FeedEvent, type FeedTail } from '../../src/stores/feed-tail.js';

const isAfter = (a: string, b: string): boolean => {
  const [x, y] = [parseCursor(a) ?? { birth: 0, n: 0 }, parseCursor(b) ?? { birth: 0, n: 0 }];
  return x.birth === y.birth ? x.n > y.n : x.birth > y.birth;
};

/** A feed as a store keeps it. */
class Feed {
  kept: FeedEvent[] = [];
  birth = 1000;
  n = 0;
  said = 0;
  publish(count: number): void {
    for (let at = 0; at < count; at += 1) this.kept.push({ cursor: toCursor(this.birth, (this.n += 1)), event: { n: (this.said += 1) } });
  }
  trim(keep: number): void {
    if (this.kept.length > keep) this.kept = this.kept.slice(-keep);
  }
  /** What comes next has another birth, usually a later one. */
  lose(clock: number): void {
    this.kept = [];
    this.birth += clock;
    this.n = 0;
  }
  newest = (): string | undefined => this.kept.at(-1)?.cursor;
  page = (after: string, count = 7): FeedEvent[] => this.kept.filter(({ cursor }) => isAfter(cursor, after)).slice(0, count);
}

interface Reading {
  readonly after: string;
  readonly seen: FeedEvent[];
  /** Events that it may take now. */
  appetite: number;
  readonly stop: AbortController;
  /** What the feed had said when it began. */
  readonly from: number;
  done: Promise<void>;
}

/** The follower of a store, which reads when it is let, and its readers. */
class World {
  readonly feed = new Feed();
  tail: FeedTail | undefined;
  found: { readonly newest: string | undefined; readonly of: FeedTail | undefined } | undefined;
  joined = 0;
  readonly readings: Reading[] = [];

  follow(): void {
    this.answer();
    const news = this.tail && this.feed.page(this.tail.head(), 5).at(-1);
    if (news) this.tail?.ring(news.cursor);
  }
  /** What was found is known only later, when readers may have read on by themselves. */
  look(): void {
    this.answer();
    this.found = { newest: this.feed.newest(), of: this.tail };
  }
  answer(): void {
    if (this.found !== undefined && this.found.of === this.tail) this.tail?.look(this.found.newest);
    this.found = undefined;
  }
  read(after: string, appetite: number): Reading {
    const reading: Reading = { after, seen: [], appetite, stop: new AbortController(), from: this.feed.said, done: Promise.resolve() };
    const look = {
      newest: () => Promise.resolve(this.feed.newest()),
      page: (from: string) => Promise.resolve(this.feed.page(from)),
      pageSize: 7,
      join: (newest: string | undefined): FeedTail => {
        this.joined += 1;
        return (this.tail ??= createFeedTail(newest ?? OLDEST));
      },
      leave: (): void => {
        this.joined -= 1;
        if (this.joined === 0) this.tail = undefined;
      },
    };
    reading.done = (async () => {
      for await (const event of readFeed(after, reading.stop.signal, look)) {
        reading.seen.push(event);
        while (reading.appetite <= 0 && !reading.stop.signal.aborted) await turnOfLoop();
        reading.appetite -= 1;
      }
    })();
    this.readings.push(reading);
    return reading;
  }
  async settle(): Promise<void> {
    for (const reading of this.readings) reading.appetite = Infinity;
    this.feed.publish(1);
    for (let at = 0; at < 400; at += 1) {
      this.follow();
      if (at % 20 === 0) this.look();
      if (at % 4 === 0) await turnOfLoop();
    }
  }
  async end(): Promise<void> {
    for (const { stop } of this.readings) stop.abort();
    await Promise.all(this.readings.map(({ done }) => done));
  }
}

test('a reader that stops at the last event that there is ends, though nothing comes any more', async () => {
  const feed = new Feed();
  feed.publish(3);
  const [stop, ended] = [new AbortController(), jest.fn()];
  const look = {
    newest: () => Promise.resolve(feed.newest()),
    page: (from: string) => Promise.resolve(feed.page(from)),
    pageSize: 7,
    join: () => createFeedTail(OLDEST),
    leave: ended,
  };
  const reading = (async () => {
    for await (const { cursor } of readFeed(OLDEST, stop.signal, look)) if (cursor === feed.newest()) stop.abort();
  })();
  for (let at = 0; at < 100; at += 1) await turnOfLoop();
  expect(ended).toHaveBeenCalledTimes(1);
  await reading;
});

const isResync = ({ event }: FeedEvent): boolean => (event as { kind?: string }).kind === 'resync';
const numberOf = ({ event }: FeedEvent): number => (event as { n: number }).n;

type Act = readonly [string, number];
const acts = (...kinds: [string, number][]): fc.Arbitrary<Act[]> =>
  fc.array(fc.oneof(...kinds.map(([kind, weight]) => ({ weight, arbitrary: fc.tuple(fc.constant(kind), fc.nat(30)) }))), {
    maxLength: 60,
  });

async function perform(world: World, [kind, n]: Act): Promise<void> {
  if (kind === 'publish') world.feed.publish(n);
  if (kind === 'follow') world.follow();
  if (kind === 'look') world.look();
  if (kind === 'trim') world.feed.trim(n);
  if (kind === 'lose') world.feed.lose(n % 5 === 0 ? -7 : 10 + n);
  if (kind === 'read') {
    const cursors = [OLDEST, '$', world.feed.kept.at(n % Math.max(1, world.feed.kept.length))?.cursor ?? OLDEST];
    world.read(cursors[n % 3] ?? OLDEST, n % 7);
  }
  if (kind === 'eat') for (const [at, reading] of world.readings.entries()) if (at % 3 === n % 3) reading.appetite += n;
  if (kind === 'leave') world.readings[n % Math.max(1, world.readings.length)]?.stop.abort();
  for (let at = 0; at < n % 4; at += 1) await turnOfLoop();
}

test('without losses each reader has everything after its cursor, in order, once, and no resync', async () => {
  const property = fc.asyncProperty(
    acts(['publish', 5], ['follow', 5], ['look', 2], ['read', 3], ['eat', 4], ['leave', 1]),
    async (all) => {
      const world = new World();
      for (const act of all) await perform(world, act);
      await world.settle();
      const { said } = world.feed;
      for (const { after, seen, from, stop } of world.readings) {
        expect(seen.some(isResync)).toBe(false);
        const numbers = seen.map(numberOf);
        const first = after === OLDEST ? 1 : after === '$' ? Math.max(from + 1, numbers[0] ?? 1) : (parseCursor(after)?.n ?? 0) + 1;
        expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, at) => first + at));
        if (!stop.signal.aborted) expect(numbers.at(-1)).toBe(said);
      }
      await world.end();
      expect([world.joined, world.tail]).toEqual([0, undefined]);
    },
  );
  await fc.assert(property, { numRuns: 60 });
});

test('what is missing is named by a resync at its place; the rest comes in order, once, to the end', async () => {
  const kinds: [string, number][] = [
    ['publish', 6], ['follow', 5], ['look', 2], ['read', 3], ['eat', 4], ['leave', 1], ['trim', 2], ['lose', 1],
  ]; // prettier-ignore
  const property = fc.asyncProperty(acts(...kinds), async (all) => {
    const world = new World();
    for (const act of all) await perform(world, act);
    await world.settle();
    for (const { seen, stop } of world.readings) {
      let last: number | undefined;
      let mayJump = true;
      for (const event of seen) {
        if (isResync(event)) {
          // One is enough, wherever it is named.
          expect(mayJump && last !== undefined).toBe(false);
          mayJump = true;
          continue;
        }
        const n = numberOf(event);
        if (mayJump) expect(n).toBeGreaterThan(last ?? 0);
        else expect(n).toBe((last ?? 0) + 1);
        [last, mayJump] = [n, false];
      }
      if (!stop.signal.aborted) expect(last).toBe(world.feed.said);
    }
    await world.end();
  });
  await fc.assert(property, { numRuns: 120 });
});

test('a reader that is ahead of what was looked up for all is not sent back to the beginning', async () => {
  const world = new World();
  world.feed.publish(3);
  world.read('$', Infinity);
  await turnOfLoop();
  world.look();
  world.feed.publish(2);
  const ahead = world.read(OLDEST, Infinity);
  while (ahead.seen.length < 5) await turnOfLoop();
  world.answer();
  await world.settle();
  expect(ahead.seen.map(({ event }) => event)).toEqual([1, 2, 3, 4, 5, 6].map((n) => ({ n })));
  await world.end();
});
