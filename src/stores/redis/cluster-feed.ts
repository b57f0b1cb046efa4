/**
 * Follows live events in a cluster. A blocking XREAD may only name feeds of one slot, and each conversation has another; so it is
 * the nodes that say when a feed has changed (CLIENT TRACKING). Two connections to each node that has one of the feeds: an ear, to which it
 * says so once for each look, and one that looks.
 *
 * - However many feeds and readers, two connections a node, and none without a reader.
 * - A look that was under way when a feed changed is followed by another one: no change is missed.
 * - A feed that has moved to another node is read anew, after a resync: by a failover it may have lost events, and have others in their place
 *   by now. One that is silent is looked up all the same.
 * - Where a node's ACL or a proxy refuses to say what has changed, feeds are looked up every 50 ms.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { errorMessage } from '../../platform/errors.js';
import { compareCursors } from '../feed-cursor.js';
import { countReaders, type FeedFollower, type Followed } from '../feed-tail.js';
import type { RedisCluster } from './cluster.js';
import { isReply, mayPass } from './replies.js';

/** The channel by which a connection of protocol 2 hears of changes. */
const CHANGED = '__redis__:invalidate';
/** A feed of which nothing was heard for so long is looked up. */
const SILENT_MS = 5_000;
/** With many feeds events gather, for as long as no person notices. */
const PAUSE_MS_PER_FEED = 0.02;
const MAX_PAUSE_MS = 20;
/** Between looks at a node that does not say what has changed. */
const POLL_MS = 50;
const MAX_BETWEEN_TRIES_MS = 1_000;

interface Placed {
  /** When it was looked up last. */
  heardAt: number;
  /** The node that it was read from last. */
  node?: string;
  ear?: Ear;
}

interface Ear {
  /** Looks these up now, and again whenever they change. */
  look(feeds: Iterable<string>): Promise<void>;
  close(): void;
}

export function createClusterFollower(cluster: RedisCluster, log?: (line: string) => void): FeedFollower {
  const feeds = new Map<string, Followed<Placed>>();
  const ears = new Map<string, Ear>();
  const closing = new AbortController();
  let isRunning = false;
  let isDue = false;
  let wake: (() => void) | undefined;
  const due = (): void => {
    isDue = true;
    wake?.();
  };

  /** What a node has as the newest event of a feed. */
  const heard = (feed: string, ear: Ear, newest: string | undefined): void => {
    const followed = feeds.get(feed);
    if (followed?.ear !== ear) return;
    followed.heardAt = Date.now();
    const isNews = newest === undefined ? -1 : compareCursors(newest, followed.tail.head());
    if (isNews > 0) followed.tail.ring(newest);
    // It lost something, or all.
    else if (isNews < 0) followed.tail.look(newest);
  };
  const end = (feed: string, error: unknown): void => {
    const followed = feeds.get(feed);
    feeds.delete(feed);
    followed?.tail.fail(error);
    due();
  };

  const openEar = (node: string): Ear => {
    const connect = (): Redis => {
      const redis = cluster.connectTo(node, { protocol: 2, retryStrategy: () => null, lazyConnect: true });
      if (redis === undefined) throw new Error(`its node ${node} is not known any more`);
      return redis;
    };
    const [hearing, looking] = [connect(), connect()];
    const changed = new Set<string>();
    let isLooking = false;
    let polling: NodeJS.Timeout | undefined;
    const mine = (): string[] => [...feeds].flatMap(([feed, followed]) => (followed.ear === ear ? [feed] : []));

    const lookOnce = (feed: string): Promise<void> =>
      looking.xrevrange(feed, '+', '-', 'COUNT', 1).then(
        ([newest]) => heard(feed, ear, newest?.[0]),
        (error: unknown) => {
          if (!isReply(error) || mayPass(error) || /^(?:MOVED|ASK)\b/.test(error.message)) throw error;
          // It is no stream: its readers end, and no others.
          end(feed, error);
        },
      );
    const lookAtChanged = async (): Promise<void> => {
      if (isLooking) return;
      isLooking = true;
      try {
        while (changed.size > 0) {
          const now = [...changed];
          changed.clear();
          await Promise.all(now.map(lookOnce));
          if (changed.size > 0 && now.length > 1) await delay(Math.min(MAX_PAUSE_MS, now.length * PAUSE_MS_PER_FEED));
        }
      } catch (error) {
        lost(error);
      } finally {
        isLooking = false;
      }
    };
    const lost = (error: unknown): void => {
      if (ears.get(node) !== ear) return;
      ear.close();
      report(error);
      due();
    };
    const listen = async (): Promise<void> => {
      const id = await hearing.client('ID');
      await hearing.subscribe(CHANGED);
      await looking.client('TRACKING', 'ON', 'REDIRECT', id);
    };
    const opened = listen().catch((error: unknown) => {
      if (!isReply(error) || mayPass(error)) throw error;
      log?.(
        `reading live events of ${node}: ${errorMessage(error)}; feeds are looked up every ${POLL_MS} ms, which an ACL with &${CHANGED} and +client|tracking spares it`,
      );
      polling = setInterval(() => void ear.look(mine()).catch(lost), POLL_MS);
    });
    // Who looks is told; before that there may be no one.
    opened.catch(() => undefined);
    for (const redis of [hearing, looking])
      redis.on('error', () => undefined).on('end', () => lost(new Error('the connection was closed')));
    hearing.on('messageBuffer', (_channel: Buffer, keys: readonly Buffer[] | null) => {
      const names = keys === null ? mine() : keys.map(String);
      for (const name of names) if (feeds.get(name)?.ear === ear) changed.add(name);
      void lookAtChanged();
    });

    const ear: Ear = {
      async look(which) {
        await opened;
        for (const feed of which) changed.add(feed);
        await lookAtChanged();
      },
      close() {
        if (ears.get(node) === ear) ears.delete(node);
        clearInterval(polling);
        for (const followed of feeds.values()) if (followed.ear === ear) delete followed.ear;
        hearing.disconnect();
        looking.disconnect();
      },
    };
    return ear;
  };

  /** Each feed with the node that has it; those that moved there are begun anew. */
  const place = async (): Promise<void> => {
    if (cluster.status !== 'ready') await cluster.ping();
    const now = Date.now();
    const looks = new Map<Ear, string[]>();
    for (const [feed, followed] of feeds) {
      const node = cluster.ownerOf(feed);
      if (node === undefined) throw new Error('CLUSTERDOWN a slot has no node');
      const ear = ears.get(node) ?? openEar(node);
      ears.set(node, ear);
      const isNew = followed.ear !== ear;
      if (isNew && followed.node !== undefined && followed.node !== node) followed.tail.restart(undefined);
      if (isNew || now - followed.heardAt >= SILENT_MS) looks.set(ear, [...(looks.get(ear) ?? []), feed]);
      [followed.node, followed.ear] = [node, ear];
    }
    const used = new Set([...feeds.values()].map(({ ear }) => ear));
    for (const ear of ears.values()) if (!used.has(ear)) ear.close();
    const looked = await Promise.allSettled([...looks].map(([ear, which]) => ear.look(which)));
    for (const [i, [ear]] of [...looks].entries()) {
      const result = looked[i];
      if (result?.status !== 'rejected') continue;
      ear.close();
      throw result.reason;
    }
  };

  let failures = 0;
  const report = (error: unknown): void => {
    failures += 1;
    if (failures === 1 && !closing.signal.aborted) log?.(`reading live events: ${errorMessage(error)}; trying again until it answers`);
  };
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  const run = async (): Promise<void> => {
    while (feeds.size > 0 && !closing.signal.aborted) {
      const before = failures;
      isDue = false;
      await place().catch(report);
      if (failures === before) failures = 0;
      else await cluster.refresh().catch(() => undefined);
      if (closing.signal.aborted) break;
      if (failures > 0)
        await delay(Math.min(100 * failures, MAX_BETWEEN_TRIES_MS), undefined, { signal: closing.signal }).catch(() => undefined);
      else if (!isDue) await pause(SILENT_MS);
    }
    for (const ear of [...ears.values()]) ear.close();
  };
  const start = (): void => {
    isRunning = true;
    const stopHearing = cluster.onMoved(due);
    void run().finally(() => {
      isRunning = false;
      stopHearing();
      // One was joined after the last look at what there is to follow.
      if (feeds.size > 0 && !closing.signal.aborted) start();
    });
  };

  return {
    ...countReaders<Placed>(feeds, {
      begin: () => ({ heardAt: Date.now() }),
      begun: () => {
        if (isRunning) due();
        else start();
      },
      left: () => {
        if (feeds.size === 0) due();
      },
    }),

    close() {
      closing.abort();
      due();
    },
  };
}
