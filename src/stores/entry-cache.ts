/**
 * Entries as this process has read them, so that a long conversation is not parsed anew for every call of its model. An entry
 * never changes once it is written; whether it is still there is asked each time (C1), for that is how a loss is noticed.
 *
 * C1  Only what the store says is there now is answered.
 * C2  Bounded by bytes; the conversation that was read longest ago goes first.
 */
import type { Entry } from '../conversation/message.js';

export interface EntryCache {
  /** The entries known of this conversation, by slot; not to be changed. */
  of(conversation: string): ReadonlyMap<number, Entry>;
  add(conversation: string, slot: number, entry: Entry, bytes: number): void;
  /** Something of it is gone, and with it our trust in the rest. */
  forget(conversation: string): void;
}

interface Known {
  readonly entries: Map<number, Entry>;
  bytes: number;
}

const NOTHING: ReadonlyMap<number, Entry> = new Map();

export function createEntryCache(mostBytes: number): EntryCache {
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
  return {
    of(conversation) {
      const known = conversations.get(conversation);
      if (!known) return NOTHING;
      conversations.delete(conversation);
      conversations.set(conversation, known);
      return known.entries;
    },
    add(conversation, slot, entry, size) {
      const known = conversations.get(conversation) ?? { entries: new Map(), bytes: 0 };
      if (known.entries.has(slot)) return;
      conversations.set(conversation, known);
      known.entries.set(slot, entry);
      known.bytes += size;
      bytes += size;
      makeRoom();
    },
    forget: drop,
  };
}
