/** Many readers of live events in one process: of one feed they share one watcher, and feeds that are silent cost little. */
import fs from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
import { createFileStore } from '../../../src/stores/file/index.js';
import type { Store } from '../../../src/stores/store.js';
import { waitFor } from '../../support/wait-for.js';
import { aConversation, events, eventsOf, numbered, readCount, readUntil } from '../builders.js';

let dir: string;
let writer: Store;
let store: Store;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-readers-'));
  writer = createFileStore({ dir });
  store = createFileStore({ dir });
});
afterEach(async () => {
  await Promise.all([writer.close(), store.close()]);
  await rm(dir, { recursive: true });
});

/** Those of an earlier file of this process may still be closing, so a test compares by at most. */
const watchers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'FSEventWrap').length;

test('200 readers of one feed have one watcher, and each has everything once, wherever it began', async () => {
  const key = aConversation();
  const before = watchers();
  await writer.feed.publish(key, events(numbered(1, 50)));
  const all = await readCount(store.feed, key, '0', 50);
  await waitFor(watchers, (count) => count <= before);
  const reading = Array.from({ length: 200 }, (_, at) => readCount(store.feed, key, all[at % 50]?.cursor ?? '0', 49 - (at % 50) + 250));
  await waitFor(watchers, (count) => count > 0 && count <= before + 1);
  for (let n = 51; n <= 300; n += 25) await writer.feed.publish(key, events(numbered(n, n + 24)));
  const read = await Promise.all(reading);
  read.forEach((one, at) => expect(eventsOf(one)).toEqual(numbered((at % 50) + 2, 300)));
  await waitFor(watchers, (count) => count <= before);
});

describe('while the clock stands still', () => {
  beforeEach(() => jest.useFakeTimers({ doNotFake: ['Date', 'hrtime', 'nextTick', 'queueMicrotask', 'setImmediate', 'setInterval'] }));
  afterEach(() => jest.useRealTimers());

  test('200 feeds that are silent are looked at ten times a second and take little memory, and what comes is told of without a look', async () => {
    const keys = Array.from({ length: 200 }, () => aConversation());
    for (const key of keys) await writer.feed.publish(key, events(numbered(1, 1)));
    const began = process.memoryUsage().heapUsed;
    const looks = jest.spyOn(fs, 'statSync');
    const reading = keys.map((key) => readCount(store.feed, key, '0', 2));
    /** All have looked, and wait. */
    const settled = async (): Promise<void> => {
      while (jest.getTimerCount() < keys.length) await immediate();
    };
    const looksIn = async (ms: number): Promise<number> => {
      await settled();
      looks.mockClear();
      jest.advanceTimersByTime(ms);
      await settled();
      return looks.mock.calls.length / keys.length;
    };
    expect([await looksIn(14), await looksIn(1), await looksIn(14), await looksIn(1)]).toEqual([0, 1, 0, 1]);
    await looksIn(2_000);
    expect([await looksIn(99), await looksIn(1), await looksIn(99), await looksIn(1)]).toEqual([0, 1, 0, 1]);
    expect((process.memoryUsage().heapUsed - began) / keys.length).toBeLessThan(200 * 1024);
    looks.mockRestore();
    for (const [at, key] of keys.entries()) {
      await writer.feed.publish(key, [{ event: { n: 2 } }]);
      expect(eventsOf((await reading[at]) ?? [])).toEqual(numbered(1, 2));
    }
  });
});

test('a reader that takes its time holds up no other, and misses nothing', async () => {
  const key = aConversation();
  await writer.feed.publish(key, events(numbered(1, 1)));
  const stop = new AbortController();
  const slow: unknown[] = [];
  const taking = (async () => {
    for await (const { event } of store.feed.read(key, '0', stop.signal)) {
      slow.push(event);
      if (slow.length % 100 === 1) await sleep(20);
      if (slow.length === 2_000) return;
    }
  })();
  const quick = readCount(store.feed, key, '0', 2_000);
  for (let n = 2; n <= 2_000; n += 27) await writer.feed.publish(key, events(numbered(n, Math.min(n + 26, 2_000))));
  expect(eventsOf(await quick)).toEqual(numbered(1, 2_000));
  await taking;
  expect(slow).toEqual(numbered(1, 2_000));
  stop.abort();
});

test('a feed that is lost while many read it is a resync for each, and goes on', async () => {
  const key = aConversation();
  await writer.feed.publish(key, events(numbered(1, 3)));
  const readers = Array.from({ length: 20 }, () =>
    readUntil(store.feed, key, '0', (read) => (read.at(-1)?.event as { n?: number }).n === 9),
  );
  await waitFor(watchers, (count) => count > 0);
  await sleep(100);
  const { conversationDir } = await import('../../../src/stores/file/paths.js');
  await rm(join(conversationDir(dir, key), 'feed.jsonl'));
  await sleep(200);
  const another = createFileStore({ dir });
  await another.feed.publish(key, events(numbered(9, 9)));
  for (const read of await Promise.all(readers)) {
    expect(eventsOf(read)).toEqual([...numbered(1, 3), { kind: 'resync' }, { n: 9 }]);
  }
  await another.close();
});
