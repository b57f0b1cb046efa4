/**
 * Runs as a process of its own (child.ts): writes into the store that its arguments name, and tells each write on stdout once it
 * is acknowledged.
 */
import { createFileStore } from '../../src/stores/file/index.js';
import { createRedisStore } from '../../src/stores/redis/index.js';
import type { ConversationKey } from '../../src/stores/store.js';
import { toTraces } from '../../src/memory/traces.js';
import { answerEntry } from './builders.js';

export interface WriterTask {
  readonly kind: 'redis' | 'file';
  readonly where: string;
  readonly key: ConversationKey;
  readonly what: 'entries' | 'commits' | 'events';
  readonly from: number;
  /** Goes on every `step` numbers, until `to`. */
  readonly step: number;
  readonly to: number;
}

async function write({ kind, where, key, what, from, step, to }: WriterTask): Promise<void> {
  const traceLines = (entry: Parameters<typeof toTraces>[0]) => toTraces(entry, key.conversation).map((trace) => JSON.stringify(trace));
  const store = kind === 'redis' ? createRedisStore({ url: where }) : createFileStore({ dir: where, traceLines });
  for (let n = from; n <= to; n += step) {
    if (what === 'entries') await store.entries.append(key, [answerEntry(n)]);
    if (what === 'events') await store.feed.publish(key, [{ event: { n } }]);
    if (what === 'commits') {
      const claim = { id: `turn_0001/c${n}`, hash: 'h' };
      await store.effects.reserve(key, claim, String(process.pid));
      await store.effects.commit(key, claim, { n }, [answerEntry(n)]);
    }
    process.stdout.write(`${n}\n`);
  }
  await store.close();
}

void write(JSON.parse(process.argv[2] ?? '') as WriterTask);
