/**
 * Entries as this process has read or written them, so that a long conversation is not parsed anew for every call of its model. An
 * entry never changes once it is written; the store tells whether it is still there, for that is how a loss is noticed.
 *
 * The answer to a write holds for the next read, for a second, and over the same connection, as a store that lost something was away.
 * The store's answer is the number of entries. If it is less than the number before and those of the write, some are gone. Bounded by bytes;
 * the conversation read longest ago goes first.
 *
 * @rule redis/cached-if-the-store-has-it: The cache answers only with entries that the store has: each read checks it, or a write was just
 *   answered with it. (test: test/stores/redis/entry-cache.test.ts)
 */
import type { Entry } from '../../records/message.js';

export interface EntryCache {
  /** The entries known of this conversation, by slot; not to be changed. */
  of(conversation: string): ReadonlyMap<number, Entry>;
  add(conversation: string, slot: number, entry: Entry, bytes: number): void;
  /** A write was answered: so many entries it has added, and so many there are. */
  counted(conversation: string, count: { readonly added: number; readonly all: number }): void;
  /** Whether all that is known is there by the answer to the last write (redis/cached-if-the-store-has-it). True once for each answer. */
  isVouchedFor(conversation: string): boolean;
  /** The connection was lost: the next answers of a store are of what came back. */
  disconnected(): void;
  /** Something of it is gone, and with it our trust in the rest. */
  forget(conversation: string): void;
}

interface Known {
  readonly entries: Map<number, Entry>;
  bytes: number;
  /** As the store counted them last, over this connection. */
  count?: number;
  vouchedAt?: number;
}

const VOUCHED_FOR_MS = 1_000;

const NOTHING: ReadonlyMap<number, Entry> = new Map();

export function createEntryCache(mostBytes: number, now: () => number = Date.now): EntryCache {
  const conversations = new Map<string, Known>();
  let bytes = 0;

  const drop = (conversation: string): void => {
    bytes -= conversations.get(conversation)?.bytes ?? 0;
    conversations.delete(conversation);
  };
  const makeRoom = (): void => {
    for (const conversation of conversations.keys()) {
      if (bytes <= mostBytes) return;
      drop(conversation);
    }
  };
  const findKnown = (conversation: string): Known => {
    const known = conversations.get(conversation) ?? { entries: new Map<number, Entry>(), bytes: 0 };
    conversations.set(conversation, known);
    return known;
  };
  return {
    of(conversation) {
      const known = conversations.get(conversation);
      if (!known) return NOTHING;
      conversations.delete(conversation);
      conversations.set(conversation, known);
      return known.entries;
    },
    add(conversation, slot, entry, size) {
      const known = findKnown(conversation);
      if (known.entries.has(slot)) return;
      known.entries.set(slot, entry);
      known.bytes += size;
      bytes += size;
      makeRoom();
    },
    counted(conversation, { added, all }) {
      const before = conversations.get(conversation)?.count;
      // Entries known before the first count may be gone already.
      if (before === undefined || all < before + added) drop(conversation);
      Object.assign(findKnown(conversation), { count: all, vouchedAt: now() });
    },
    isVouchedFor(conversation) {
      const known = conversations.get(conversation);
      const at = known?.vouchedAt;
      if (!known || at === undefined) return false;
      known.vouchedAt = undefined;
      return now() - at <= VOUCHED_FOR_MS;
    },
    disconnected() {
      for (const known of conversations.values()) {
        known.count = undefined;
        known.vouchedAt = undefined;
      }
    },
    forget: drop,
  };
}
