/**
 * Items from the entries that speak of them: written again when the store was away, and when it has lost them. The text of a result
 * that is long enough to be an item travels by reference; where that body is lost the item is there, and says so when it is
 * read. What nothing in the conversation names (an item that was restored from a snapshot, or cleared) is not known here.
 */
import { createHash } from 'node:crypto';
import type { ConversationMessage, Entry, JsonObject, JsonValue } from '../../records/message.js';
import type { ConversationKey, Store } from '../../stores/store.js';
import { readInput } from '../bodies.js';
import { itemRecordSchema, splitAtCommas, type ItemRecord } from '../../records/memory/agent-memory.js';
import { openMemory, countCharacters } from './open-memory.js';
import { isRecord } from '../../platform/json.js';

/** The tool by which an agent stores something itself. */
const STORES = 'store_in_memory';

type ToolEntry = Entry & { readonly message: Extract<ConversationMessage, { role: 'tool' }> };

/** False for what `keepItems` would make nothing of. */
export function speaksOfItems({ message }: Entry): boolean {
  if (message.role === 'tool') return message.item !== undefined || message.name === STORES;
  return message.role === 'assistant' && message.blocks.some((block) => block.kind === 'tool-call' && block.name === STORES);
}

/** Idempotent: an item that is there stays as it is. */
export async function keepItems(store: Store, key: ConversationKey, entries: readonly Entry[]): Promise<void> {
  const results = entries.filter((entry): entry is ToolEntry => entry.message.role === 'tool');
  const records = await Promise.all(results.map((entry) => toRecord(store, key, entry)));
  await store.items.put(
    key,
    records.flatMap((record) => record ?? []),
  );
  await keepStored(store, key, entries, new Map(results.map((entry) => [entry.message.callId, entry])));
}

/** The item of a tool's result; undefined where it is none, or another's (retrieve_from_memory cites what it has read). */
async function toRecord(store: Store, key: ConversationKey, { message, session, slot, ts }: ToolEntry): Promise<ItemRecord | undefined> {
  const { item, text, callId, name } = message;
  if (item?.id !== itemId(key, callId)) return undefined;
  const { ref, bytes } = typeof text === 'string' ? await store.bodies.put(key, text) : text;
  const size = typeof text === 'string' ? countCharacters(text) : bytes;
  return resultRecord({ id: item.id, session, slot, name, ts, size, content: { ref, bytes, json: false } });
}

export function resultRecord({
  name,
  ...given
}: Pick<ItemRecord, 'id' | 'session' | 'slot' | 'ts' | 'size' | 'content'> & { readonly name: string }): ItemRecord {
  return { v: 1, type: 'action_result', source: name, tags: ['action', name], relatedTo: [], ...given };
}

/** What the agent has stored itself, from the calls that did it. */
async function keepStored(
  store: Store,
  key: ConversationKey,
  entries: readonly Entry[],
  results: ReadonlyMap<string, ToolEntry>,
): Promise<void> {
  for (const { message } of entries) {
    if (message.role !== 'assistant') continue;
    for (const block of message.blocks) {
      if (block.kind !== 'tool-call' || block.name !== STORES) continue;
      const result = results.get(block.callId);
      if (result?.message.outcome !== 'ok') continue;
      await storeAgain(store, key, result, asObject(await readInput(store, key, block)));
    }
  }
}

async function storeAgain(store: Store, key: ConversationKey, { message, session, slot, ts }: ToolEntry, input: JsonObject): Promise<void> {
  const { content, type, tags, relatedTo } = input;
  if (typeof content !== 'string') return;
  const { namespace, scope, conversation, life } = key;
  const memory = openMemory({
    store,
    place: { namespace, scope, conversation, life, session },
    slot,
    nextId: () => itemId(key, message.callId, 1),
    now: () => new Date(ts * 1000),
  });
  const known = itemRecordSchema.shape.type.safeParse(type);
  await memory.store({
    content,
    type: known.success ? known.data : 'custom',
    metadata: { source: 'user', tags: splitAtCommas(tags), relatedTo: splitAtCommas(relatedTo) },
  });
}

function asObject(value: JsonValue): JsonObject {
  return isRecord(value) ? (value as JsonObject) : {};
}

// Ids of items are made of the call that stores them: every attempt at it, and healing, give the same. They are no content addresses;
// the conversation goes in, so that shared memories do not mix theirs up.

const HASH_CHARACTERS = 12;

/** `nth`: of several that one call stores; a tool's result is 0. */
export function itemId({ conversation, life }: Pick<ConversationKey, 'conversation' | 'life'>, callId: string, nth = 0): string {
  const hash = createHash('sha256').update(JSON.stringify([conversation, life, callId, nth]));
  return `mem_${hash.digest('hex').slice(0, HASH_CHARACTERS)}`;
}
