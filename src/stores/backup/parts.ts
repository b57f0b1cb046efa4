/**
 * A store as parts, each read and written by itself, while others write to it.
 *
 * - What an archive has of a life is read from there: a copy is whole without it.
 * - Of a life the entries are read first, then its ledger, then long texts: an effect may be there whose entries came later, which healing
 *   finds; entries without their effect, for which a model would be paid again, are not, and what entries refer to is.
 * - Not copied, because it is made again or ends by itself: live events, indexes for search, leases, and files that no message has used yet.
 * - What the store has stays: a part that is restored adds what is missing, so that the same one again changes nothing.
 *
 * @rule backup/what-is-there-stays: Restoring replaces nothing and brings back nothing that was deleted. (test: test/stores/backup.test.ts)
 */
import { createHash } from 'node:crypto';
import { NO_MEMORY_VERSION, type HistoryEntry, type MemoryChange } from '../../records/memory/documents.js';
import { withoutSuperseding } from '../../records/memory/history-text.js';
import type { Entry } from '../../records/message.js';
import type { Beginning, Claim, Cut, SlotRange } from '../../records/slots.js';
import { readTenant } from '../../records/identity.js';
import { decodeJson, isEntry } from '../codecs.js';
import { BUDGET } from '../collections/budgets.js';
import { addOnce, type Place, type RecordCodec } from '../collections/collection.js';
import { ITEMS } from '../collections/items.js';
import { BEGINNINGS, CLAIMS, CUTS, DELETED, ENDS, FORKS } from '../collections/lives.js';
import { PINNED, SIGN_INS } from '../collections/mcp-servers.js';
import { EPISODES, FACTS, REMOVED, VECTORS } from '../collections/memory.js';
import { FORGOTTEN, PROPOSALS } from '../collections/proposals.js';
import { KEPT_FILES } from '../collections/uploads.js';
import type { ConversationKey, ScopeKey, Store } from '../store.js';
import type { LedgerRecord, NamedPlace } from '../whole-ports.js';

/** What is read and written in one piece. Namespaces are left out: a backup is of one. */
export type Part =
  | { readonly kind: 'life'; readonly scope: string; readonly conversation: string; readonly life: string }
  | { readonly kind: 'scope'; readonly scope: string }
  | { readonly kind: NamedPlace['kind']; readonly name: string };

export type PartRecord =
  | { readonly kind: 'entries'; readonly entries: readonly Entry[] }
  | { readonly kind: 'archived'; readonly slots: readonly SlotRange[]; readonly move: number }
  | { readonly kind: 'ledger'; readonly ledger: readonly LedgerRecord[] }
  | { readonly kind: 'body'; readonly text: string }
  | { readonly kind: 'files'; readonly files: Readonly<Record<string, number>> }
  | { readonly kind: 'records'; readonly collection: string; readonly records: readonly string[] }
  | { readonly kind: 'change'; readonly change: MemoryChange; readonly text: string }
  | { readonly kind: 'history'; readonly entries: readonly HistoryEntry[] };

type Codec = RecordCodec<object>;
// Each is used with what it has decoded itself.
const codec = <Item extends object>(of: RecordCodec<Item>): Codec => of as unknown as Codec;

/** Collections of a life that are copied record by record. */
const COPIED_OF_LIFE = {
  lineage: codec<Beginning>(BEGINNINGS),
  forks: codec(FORKS),
  cuts: codec<Cut>(CUTS),
  claims: codec<Claim>(CLAIMS),
  'turn-ends': codec(ENDS),
  episodes: codec(EPISODES),
  items: codec(ITEMS),
  budget: codec(BUDGET),
  vectors: codec(VECTORS),
} as const;

/** Of a scope. */
const COPIED_OF_SCOPE = {
  proposals: codec(PROPOSALS),
  forgotten: codec(FORGOTTEN),
  facts: codec(FACTS),
  'removed-facts': codec(REMOVED),
} as const;

const COPIED_BY_NAME = { deleted: codec(DELETED), pins: codec(PINNED), 'sign-ins': codec(SIGN_INS) } as const;

const ENTRIES_AT_ONCE = 200;
const RECORDS_AT_ONCE = 200;

export function namePart(part: Part): string {
  if (part.kind === 'life') return `life ${part.conversation} ${part.life}`;
  return part.kind === 'scope' ? `scope ${part.scope}` : `${part.kind} ${part.name}`;
}

/** Of a namespace; what memory shares before the conversations that it is of. */
export async function* listParts(store: Store, namespace: string): AsyncIterable<Part> {
  // What was deleted first: a life that is deleted meanwhile is then at least marked.
  for await (const { kind, key } of store.contents.named(namespace)) {
    const name = 'conversation' in key ? key.conversation : 'agent' in key ? key.agent : key.owner;
    yield { kind, name };
  }
  for (const scope of await store.scopes.list(namespace)) {
    yield { kind: 'scope', scope };
    for (const { conversation, life } of await store.scopes.lives({ namespace, scope })) yield { kind: 'life', scope, conversation, life };
  }
}

/** `skipped`: told how many records could not be read. */
export async function* readPart(
  store: Store,
  namespace: string,
  part: Part,
  skipped: (records: number) => void,
): AsyncIterable<PartRecord> {
  if (part.kind === 'life') yield* readLife(store, { namespace, ...part }, skipped);
  else if (part.kind === 'scope') yield* readScope(store, { namespace, scope: part.scope }, skipped);
  else yield* readCollection(store, toNamed(namespace, part), COPIED_BY_NAME[part.kind], skipped);
}

/** Whether it was deleted, so that nothing of it is to come back. */
export async function isGone(store: Store, namespace: string, part: Part): Promise<boolean> {
  if (part.kind !== 'life') return false;
  return (await store.lives.deleted({ namespace, conversation: part.conversation })).some(({ life }) => life === part.life);
}

function toNamed(namespace: string, { kind, name }: Extract<Part, { readonly name: string }>): Place {
  if (kind === 'deleted') return { name: kind, key: { namespace, conversation: name } };
  return kind === 'pins' ? { name: kind, key: { namespace, agent: name } } : { name: kind, key: { namespace, owner: name } };
}

async function* readLife(store: Store, key: ConversationKey, skipped: (records: number) => void): AsyncIterable<PartRecord> {
  const { contents, archived } = store;
  const { entries, bodies } = archived.through(contents);
  for (let after = 0, last = 1; after < last; after += ENTRIES_AT_ONCE) {
    const page = await entries.page(key, after, ENTRIES_AT_ONCE);
    last = page.last;
    if (page.skipped > 0) skipped(page.skipped);
    if (page.entries.length > 0) yield { kind: 'entries', entries: page.entries };
  }
  const slots = await store.entries.archived(key);
  if (slots.length > 0) yield { kind: 'archived', slots, move: Math.max(0, await contents.lastMove(key)) };
  for (const [name, codec] of Object.entries(COPIED_OF_LIFE))
    yield* readCollection(store, { name: name as keyof typeof COPIED_OF_LIFE, key }, codec, skipped);
  const owner = { namespace: key.namespace, tenant: readTenant(key.scope) ?? '' };
  const kept = await contents.open({ name: 'kept-files', key: owner }, KEPT_FILES).read(attemptTo(key), 'skip', [`life:${key.life}`]);
  for (const one of kept.items) if (one.kind === 'life') yield { kind: 'files', files: one.files };
  let ledger: LedgerRecord[] = [];
  for await (const record of contents.ledger(key)) {
    ledger.push(record.kind === 'committed' ? { ...record, result: await archived.openResult(key, record.id, record.result) } : record);
    if (ledger.length < RECORDS_AT_ONCE) continue;
    yield { kind: 'ledger', ledger };
    ledger = [];
  }
  if (ledger.length > 0) yield { kind: 'ledger', ledger };
  const away = (await archived.index(key)).flatMap((object) => object.bodies.map((hash) => `sha256:${hash}`));
  for (const ref of new Set([...(await contents.bodyRefs(key)), ...away])) {
    const text = await bodies.get(key, ref);
    if (text === undefined) skipped(1);
    else yield { kind: 'body', text };
  }
}

function attemptTo({ conversation }: Pick<ConversationKey, 'conversation'>): string {
  return `read what ${conversation} has`;
}

async function* readScope(store: Store, key: ScopeKey, skipped: (records: number) => void): AsyncIterable<PartRecord> {
  const { documents } = store;
  const { changes, skipped: unread } = await documents.changes(key);
  if (unread > 0) skipped(unread);
  for (const change of changes) {
    const text = await documents.memoryText(key, change.version);
    if (text === undefined) skipped(1);
    else yield { kind: 'change', change, text };
  }
  // An edit by hand becomes a change when it is read.
  const { version, text } = await documents.memory(key);
  const last = changes.at(-1)?.version ?? NO_MEMORY_VERSION;
  if (version !== last) {
    const edited = (await documents.changes(key)).changes.find((change) => change.version === version);
    if (edited) yield { kind: 'change', change: edited, text };
  }
  const history: HistoryEntry[] = [];
  for await (const entry of documents.history(key)) history.push(entry);
  for (let at = history.length; at > 0; at -= RECORDS_AT_ONCE)
    yield { kind: 'history', entries: history.slice(Math.max(0, at - RECORDS_AT_ONCE), at).reverse() };
  // What is removed while they are read is then among both, and counts as removed.
  const facts = await readAll(store, { name: 'facts', key }, COPIED_OF_SCOPE.facts, skipped);
  for (const name of ['removed-facts', 'proposals', 'forgotten'] as const)
    yield* readCollection(store, { name, key }, COPIED_OF_SCOPE[name], skipped);
  yield* facts;
}

type Skipped = (records: number) => void;

async function* readCollection(store: Store, place: Place, codec: RecordCodec<object>, skipped: Skipped): AsyncIterable<PartRecord> {
  yield* await readAll(store, place, codec, skipped);
}

async function readAll(store: Store, place: Place, codec: RecordCodec<object>, skipped: Skipped): Promise<PartRecord[]> {
  const { items, skipped: unread } = await store.contents.open(place, codec).read('copy what is stored');
  if (unread > 0) skipped(unread);
  const chunks = Array.from({ length: Math.ceil(items.length / RECORDS_AT_ONCE) }, (_, i) =>
    items.slice(i * RECORDS_AT_ONCE, (i + 1) * RECORDS_AT_ONCE),
  );
  return chunks.map((chunk) => ({ kind: 'records', collection: place.name, records: chunk.map(codec.encode) }));
}

/** What became of the records of one part. */
export interface Restored {
  /** The store has others under their names, which stay. */
  different: number;
  /** Not as this program writes them. */
  unreadable: number;
  entries: number;
}

/** Records in the order in which they were read. */
export async function restorePart(store: Store, namespace: string, part: Part, records: AsyncIterable<PartRecord>): Promise<Restored> {
  const restored: Restored = { different: 0, unreadable: 0, entries: 0 };
  const memory = part.kind === 'scope' ? openMemory(store, { namespace, scope: part.scope }) : undefined;
  for await (const record of records) {
    if (record.kind === 'records') await restoreRecords(store, toPlace(namespace, part, record.collection), record.records, restored);
    else if (part.kind === 'life') await restoreOfLife(store, { namespace, ...part }, record, restored);
    else if (record.kind === 'change') await memory?.change(record, restored);
    else if (record.kind === 'history') await memory?.history(record.entries);
    else restored.unreadable += 1;
  }
  return restored;
}

interface Collected {
  readonly place: Place;
  readonly codec: RecordCodec<object>;
}

/** Undefined: of a newer program. */
function toPlace(namespace: string, part: Part, collection: string): Collected | undefined {
  if (part.kind === 'life' && Object.hasOwn(COPIED_OF_LIFE, collection)) {
    const name = collection as keyof typeof COPIED_OF_LIFE;
    return { place: { name, key: { namespace, ...part } }, codec: COPIED_OF_LIFE[name] };
  }
  if (part.kind === 'scope' && Object.hasOwn(COPIED_OF_SCOPE, collection)) {
    const name = collection as keyof typeof COPIED_OF_SCOPE;
    return { place: { name, key: { namespace, scope: part.scope } }, codec: COPIED_OF_SCOPE[name] };
  }
  if (part.kind === 'life' || part.kind === 'scope' || part.kind !== collection) return undefined;
  return { place: toNamed(namespace, part), codec: COPIED_BY_NAME[part.kind] };
}

async function restoreRecords(
  store: Store,
  collected: Collected | undefined,
  records: readonly string[],
  restored: Restored,
): Promise<void> {
  const decoded = collected ? records.flatMap((text) => collected.codec.decode(text) ?? []) : [];
  restored.unreadable += records.length - decoded.length;
  if (!collected || decoded.length === 0) return;
  const { place, codec } = collected;
  const attempt = `restore the ${place.name}`;
  const removed = place.name === 'facts' ? await readRemoved(store, place.key, attempt) : undefined;
  const items = removed ? decoded.filter((item) => !removed.has(codec.identify(item))) : decoded;
  const collection = store.contents.open(place, codec);
  const known = await collection.read(attempt, 'refuse');
  const texts = new Map(known.items.map((item) => [codec.identify(item), codec.encode(item)]));
  restored.different += items.filter((item) => (texts.get(codec.identify(item)) ?? codec.encode(item)) !== codec.encode(item)).length;
  // Its sums are of its records: of another state they would be wrong.
  if (place.name === 'budget' && known.items.length > 0) return;
  await addOnce(collection, codec.identify, attempt, ...items);
}

/** Ids of facts that must not come back. */
async function readRemoved(store: Store, key: ScopeKey, attempt: string): Promise<ReadonlySet<string>> {
  const codec = COPIED_OF_SCOPE['removed-facts'];
  const { items } = await store.contents.open({ name: 'removed-facts', key }, codec).read(attempt, 'refuse');
  return new Set(items.map(codec.identify));
}

async function restoreOfLife(store: Store, key: ConversationKey, record: PartRecord, restored: Restored): Promise<void> {
  switch (record.kind) {
    case 'entries': {
      const entries = record.entries.filter(isEntry);
      restored.unreadable += record.entries.length - entries.length;
      restored.entries += entries.length;
      await store.entries.append(key, entries);
      return;
    }
    case 'archived':
      return store.entries.archive(key, record.slots, record.move);
    case 'ledger':
      return store.contents.restoreLedger(key, record.ledger);
    case 'body':
      await store.bodies.put(key, record.text);
      return;
    case 'files':
      for (const [file, size] of Object.entries(record.files))
        await store.uploads.count(key, { file, size, limit: Infinity, maxFiles: Infinity });
      return;
    default:
      restored.unreadable += 1;
  }
}

/**
 * MEMORY.md is its changes, one after the other. What was redacted since has another version than it had; the words of the last one are as
 * they were.
 */
function openMemory(store: Store, key: ScopeKey) {
  const { documents } = store;
  /** The changes that the store has, by id; its version, and that of the last change that both have. */
  let state: { readonly versions: Map<string, string>; version: string; common: string } | undefined;
  let known: Set<string> | undefined;
  const read = async (): Promise<NonNullable<typeof state>> => {
    const { version } = await documents.memory(key);
    const { changes } = await documents.changes(key);
    return { versions: new Map(changes.map((change) => [change.id, change.version])), version, common: NO_MEMORY_VERSION };
  };
  return {
    async change({ change, text }: Extract<PartRecord, { readonly kind: 'change' }>, restored: Restored): Promise<void> {
      state ??= await read();
      const there = state.versions.get(change.id);
      if (there !== undefined) {
        state.common = there;
        return;
      }
      const { version: _, ...write } = change;
      // It went another way since: what is there stays.
      const answer = state.version === state.common && (await documents.writeMemory(key, { ...write, from: state.version, text }));
      if (answer === false || answer.status === 'conflict') restored.different += 1;
      else state.version = state.common = answer.version;
    },

    async history(entries: readonly HistoryEntry[]): Promise<void> {
      if (known === undefined) {
        known = new Set();
        for await (const entry of documents.history(key)) known.add(nameHistory(entry));
      }
      for (const entry of entries) {
        if (known.has(nameHistory(entry))) continue;
        // A person's has no id. What a summary supersedes is added again where that is restored.
        const id = entry.id === '' ? `restored/${nameHistory(entry)}` : entry.id;
        await documents.appendHistory(key, { ...entry, id, text: withoutSuperseding(entry.text) });
      }
    },
  };
}

function nameHistory({ ts, text }: HistoryEntry): string {
  return createHash('sha256').update(`${ts} ${text}`).digest('hex').slice(0, 16);
}

/** Whether a text from a file is a record. What it holds is checked where it is restored. */
export function readRecord(text: string): PartRecord | undefined {
  const value = decodeJson(text);
  return typeof value === 'object' && value !== null && 'kind' in value && typeof value.kind === 'string'
    ? (value as PartRecord)
    : undefined;
}
