/** Many readers of live events in one process: those of one feed share one follower, and feeds that are silent cost little. */
import fs from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
import { createFileStore } from '../../../src/stores/file/index.js';
import type { Store } from '../../../src/stores/store.js';
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

test('200 readers of one feed have everything once, wherever each began', async () => {
  const key = aConversation();
  await writer.feed.publish(key, events(numbered(1, 50)));
  const all = await readCount(store.feed, key, '0', 50);
  const reading = Array.from({ length: 200 }, (_, at) => readCount(store.feed, key, all[at % 50]?.cursor ?? '0', 49 - (at % 50) + 250));
  for (let n = 51; n <= 300; n += 25) await writer.feed.publish(key, events(numbered(n, n + 24)));
  const read = await Promise.all(reading);
  read.forEach((one, at) => expect(eventsOf(one)).toEqual(numbered((at % 50) + 2, 300)));
});

describe('while the clock stands still', () => {
  beforeEach(() => jest.useFakeTimers({ doNotFake: ['Date', 'hrtime', 'nextTick', 'queueMicrotask', 'setImmediate', 'setInterval'] }));
  afterEach(() => jest.useRealTimers());

  test('200 feeds that are silent are looked at ten times a second, each once for all its readers, and take little memory', async () => {
    const keys = Array.from({ length: 200 }, () => aConversation());
    for (const key of keys) await writer.feed.publish(key, events(numbered(1, 1)));
    const began = process.memoryUsage().heapUsed;
    const looks = jest.spyOn(fs, 'statSync');
    const reading = keys.map((key) => readCount(store.feed, key, '0', 2));
    const others = keys.map((key) => readCount(store.feed, key, '0', 2));
    /** All have looked and read, and wait. */
    const settled = async (): Promise<void> => {
      for (let [quiet, before] = [0, -1]; quiet < 50 || jest.getTimerCount() < keys.length; before = looks.mock.calls.length) {
        quiet = looks.mock.calls.length === before ? quiet + 1 : 0;
        await immediate();
      }
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
    for (const key of keys) await writer.feed.publish(key, [{ event: { n: 2 } }]);
    jest.advanceTimersByTime(100);
    for (const read of await Promise.all([...reading, ...others])) expect(eventsOf(read)).toEqual(numbered(1, 2));
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
  await sleep(200);
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
