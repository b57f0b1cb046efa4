/**
 * Finding what was said in a scope. Each hit is read from the store before it is answered, and what was forgotten meanwhile is taken out:
 * an index, however old, can only fail to find.
 */
import { search, type Hit } from '../../search/rank.js';
import type { Kind } from '../../search/passage-table.js';
import { textHash } from '../../search/search-index.js';
import { BOUNDS } from '../../search/weights.js';
import type { ConversationKey, ScopeKey, Store } from '../../stores/store.js';
import { redactor } from '../documents/forgetting.js';
import { documentTexts, textOfEntry, type DocumentText } from './indexed-texts.js';
import { keyOfLine, ScopeIndex } from './scope-index.js';

export interface RecallQuery {
  readonly question: string;
  /** 20 without it; at most 50. */
  readonly limit?: number;
  /** Epoch seconds. */
  readonly after?: number;
  readonly before?: number;
  /** One conversation alone. */
  readonly conversation?: string;
  readonly kinds?: readonly Kind[];
  /** The asker's clock. */
  readonly now: Date;
}

export interface Recalled {
  /** Where it stands: `chat-1/3f2a9c1d/12`, `fact/sem_0003`. */
  readonly address: string;
  readonly kind: Kind;
  /** Epoch seconds; 0 for a line of MEMORY.md, which has no time. */
  readonly ts: number;
  readonly conversation?: string;
  /** `turn_0007`. */
  readonly turn?: string;
  /** Of a tool's result: what it says is not to be trusted. */
  readonly tool?: string;
  /** Verbatim: the passage. */
  readonly text: string;
  readonly score: number;
}

export interface Recall {
  search(key: ScopeKey, query: RecallQuery): Promise<readonly Recalled[]>;
  /** What was said at an address and around it, in its order; empty where nothing is there, or no longer. */
  open(key: ScopeKey, address: string, around?: number): Promise<readonly Recalled[]>;
  /** Bytes of the indexes that are in memory. */
  bytes(): number;
}

export interface RecallOptions {
  readonly store: Store;
  /** Indexes that are kept in memory, together. */
  readonly cacheBytes?: number;
  readonly log?: (line: string) => void;
}

const CACHE_BYTES = 256 * 1024 * 1024;
const MAX_HITS = 50;
const LIFE_CHARACTERS = 8;
const MAX_AROUND = 20;

export function createRecall({ store, cacheBytes = CACHE_BYTES, log }: RecallOptions): Recall {
  /** The longest unused first. */
  const scopes = new Map<string, ScopeIndex>();
  const turns = new Map<string, Promise<unknown>>();
  const bytes = (): number => [...scopes.values()].reduce((sum, { index }) => sum + index.bytes(), 0);

  const inTurn = async <T>(key: ScopeKey, work: (scope: ScopeIndex) => Promise<T> | T): Promise<T> => {
    const name = JSON.stringify([key.namespace, key.scope]);
    const before = turns.get(name) ?? Promise.resolve();
    const mine = before.then(async () => {
      const scope = scopes.get(name) ?? new ScopeIndex(store, key);
      scopes.delete(name);
      scopes.set(name, scope);
      try {
        return await work(scope);
      } catch (error) {
        // Half updated: the next search begins from what is written down.
        scopes.delete(name);
        throw error;
      } finally {
        for (const oldest of scopes.keys()) if (bytes() > cacheBytes) scopes.delete(oldest);
      }
    });
    const settled = mine.then(
      () => undefined,
      () => undefined,
    );
    turns.set(name, settled);
    void settled.then(() => (turns.get(name) === settled ? turns.delete(name) : undefined));
    return mine;
  };

  return {
    bytes,

    async search(key, { question, limit = 20, now, conversation, ...rest }) {
      const most = Math.min(limit, MAX_HITS);
      const hits = await inTurn(key, async (scope) => {
        await scope.update();
        const lines = conversation === undefined ? undefined : (line: string) => keyOfLine(key, line)?.conversation === conversation;
        // Some may be gone by the time they are read.
        const found = search(scope.index, {
          ...rest,
          question,
          now: now.getTime() / 1000,
          limit: Math.min(BOUNDS.hits, most + 10),
          ...(lines && { lines }),
        });
        await scope.write().catch((error: unknown) => log?.(error instanceof Error ? error.message : String(error)));
        return found;
      });
      return (await readHits(store, key, hits)).slice(0, most);
    },

    async open(key, address, around = 3) {
      const at = await lifeAt(store, key, address);
      if (!at) return (await readDocuments(store, key)).filter((one) => one.address === address);
      const reach = Math.max(0, Math.min(around, MAX_AROUND));
      const slots = Array.from({ length: 2 * reach + 1 }, (_, i) => at.slot - reach + i).filter((slot) => slot > 0);
      return readSlots(store, at.key, slots);
    },
  };
}

async function readHits(store: Store, key: ScopeKey, hits: readonly Hit[]): Promise<Recalled[]> {
  const redact = redactor(await store.documents.forgotten(key), key.scope);
  const documents = hits.some(({ line }) => !line.startsWith('[')) ? await documentTexts(store, key) : [];
  const read = async (hit: Hit): Promise<Recalled | undefined> => {
    const of = keyOfLine(key, hit.line);
    if (!of) {
      const text = documents.find(({ line, at }) => line === hit.line && at === hit.at);
      return text && toRecalled(text, redact, hit);
    }
    const [entry] = await store.entries.read(of, [hit.at]);
    const told = entry && (await textOfEntry(store, of, entry));
    if (!entry || !told) return undefined;
    const text = redact(told.text).slice(hit.start, hit.end);
    // Forgotten since it was indexed, or another text by now.
    if (textHash(text) !== hit.hash) return undefined;
    const { kind, tool } = told;
    return {
      address: addressOf(of, hit.at),
      kind,
      ts: entry.ts,
      conversation: of.conversation,
      turn: entry.turn,
      ...(tool !== undefined && { tool }),
      text,
      score: hit.score,
    };
  };
  return (await Promise.all(hits.map(read))).flatMap((one) => one ?? []);
}

async function readSlots(store: Store, key: ConversationKey, slots: readonly number[]): Promise<Recalled[]> {
  const [entries, cuts, tombstones] = await Promise.all([
    store.entries.read(key, slots),
    store.lives.cuts(key),
    store.documents.forgotten(key),
  ]);
  const redact = redactor(tombstones, key.scope);
  const isCut = (slot: number): boolean => cuts.some((cut) => cut.slots.some(([first, last]) => slot >= first && slot <= last));
  const read = entries.map(async (entry): Promise<Recalled | undefined> => {
    const told = entry && !isCut(entry.slot) ? await textOfEntry(store, key, entry) : undefined;
    if (!entry || !told) return undefined;
    const { kind, tool, text } = told;
    return {
      address: addressOf(key, entry.slot),
      kind,
      ts: entry.ts,
      conversation: key.conversation,
      turn: entry.turn,
      ...(tool !== undefined && { tool }),
      text: redact(text),
      score: 0,
    };
  });
  return (await Promise.all(read)).flatMap((one) => one ?? []);
}

async function readDocuments(store: Store, key: ScopeKey): Promise<Recalled[]> {
  const redact = redactor(await store.documents.forgotten(key), key.scope);
  return (await documentTexts(store, key)).map((text) => toRecalled(text, redact, { start: 0, end: text.text.length, score: 0 }));
}

function toRecalled(
  { kind, name, ts, text }: DocumentText,
  redact: (text: string) => string,
  { start, end, score }: Pick<Hit, 'start' | 'end' | 'score'>,
): Recalled {
  return { address: `${kind}/${name}`, kind, ts, text: redact(text).slice(start, end), score };
}

/** The beginning of a life's id tells it from others of its conversation. */
function addressOf({ conversation, life }: ConversationKey, slot: number): string {
  return `${conversation}/${life.slice(0, LIFE_CHARACTERS)}/${slot}`;
}

async function lifeAt(
  store: Store,
  key: ScopeKey,
  address: string,
): Promise<{ readonly key: ConversationKey; readonly slot: number } | undefined> {
  const [, conversation = '', life = '', slot = ''] = /^(.{1,200})\/([^/]{1,8})\/(\d{1,9})$/.exec(address) ?? [];
  if (slot === '') return undefined;
  const { lives } = await store.scopes.marks(key);
  const found = lives.find(({ key: one }) => one.conversation === conversation && one.life.slice(0, LIFE_CHARACTERS) === life);
  return found && { key: found.key, slot: Number(slot) };
}
