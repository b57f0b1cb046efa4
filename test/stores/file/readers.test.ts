/** Many readers of live events in one process: of one feed they share one watcher, and feeds that are silent cost little. */
import fs from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createFileStore } from '../../../src/stores/file/index.js';
import type { Store } from '../../../src/stores/store.js';
import { waitFor } from '../../support/wait-for.js';
import { aConversation, events, eventsOf, numbered, readCount, readUntil } from '../builders.js';

jest.setTimeout(60_000);

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
  for (let n = 51; n <= 300; n += 5) await writer.feed.publish(key, events(numbered(n, n + 4)));
  const read = await Promise.all(reading);
  read.forEach((one, at) => expect(eventsOf(one)).toEqual(numbered((at % 50) + 2, 300)));
  await waitFor(watchers, (count) => count <= before);
});

test('200 feeds that are silent cost little time and memory, and what comes then comes at once', async () => {
  const keys = Array.from({ length: 200 }, () => aConversation());
  for (const key of keys) await writer.feed.publish(key, events(numbered(1, 1)));
  const began = process.memoryUsage().heapUsed;
  let count = 0;
  const { statSync } = fs;
  const counting = (...args: Parameters<typeof statSync>) => {
    count += 1;
    return statSync(...args);
  };
  Object.assign(fs, { statSync: counting });
  const reading = keys.map((key) => readCount(store.feed, key, '0', 2).then((read) => ({ read, at: performance.now() })));
  /** How often a feed is looked at in a second. */
  const looks = async (): Promise<number> => {
    const [before, from] = [count, performance.now()];
    await sleep(1_200);
    return ((count - before) / keys.length / (performance.now() - from)) * 1_000;
  };
  const fresh = await looks();
  await sleep(1_400);
  const silent = await looks();
  Object.assign(fs, { statSync });
  const bytes = (process.memoryUsage().heapUsed - began) / keys.length;
  const delays: number[] = [];
  for (const [at, key] of keys.entries()) {
    const sent = performance.now();
    await writer.feed.publish(key, [{ event: { n: 2 } }]);
    const { read, at: came } = (await reading[at]) ?? { read: [], at: Infinity };
    expect(eventsOf(read)).toEqual(numbered(1, 2));
    delays.push(came - sent);
  }
  delays.sort((a, b) => a - b);
  process.stderr.write(
    `  ∎ 200 feeds: ${fresh.toFixed(1)} looks a second, silent ${silent.toFixed(1)}, ${Math.round(bytes / 1024)} KB each; p50 ${delays[100]?.toFixed(1)} ms\n`,
  );
  // By the clock alone it is every 100 ms.
  expect(silent).toBeGreaterThan(0);
  expect(silent).toBeLessThan(12);
  expect(bytes).toBeLessThan(200 * 1024);
  // A watcher tells of it; by the clock alone it would be 50 ms on average and 100 at most.
  expect(delays[100]).toBeLessThan(90);
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
