/**
 * Finding the messages of a scope. Each hit is read from the store before it is answered, and what was forgotten meanwhile is taken out:
 * an index, however old, can only fail to find. What is forgotten or deleted leaves what is written of the index too (`dropIndex`).
 */
import { createAnalyzer } from '../../search/analysis.js';
import { marksIn } from '../../search/question.js';
import type { Kind } from '../../search/passage-table.js';
import type { Media } from '../../records/message.js';
import { BOUNDS } from '../../search/weights.js';
import type { ScopeKey, Store } from '../../stores/store.js';
import { embedMissing, MAX_FILLED, keepLifeVectors, megabytes } from './scope-vectors.js';
import { lifeMark, readLine } from './indexed-texts.js';
import type { PaidEmbedder, Payer } from './paid-embedder.js';
import { filesAt, openAt, readHits, type Recalled } from './recalled.js';
import { ScopeIndex } from './scope-index.js';
import { PartLost, HEAD } from './segments.js';
import { errorMessage } from '../../platform/errors.js';

/** What a search looks for. */
export interface RecallQuery {
  /** Of a longer one the first BOUNDS.questionCharacters are read. */
  readonly question: string;
  /** DEFAULT_HITS without it; at most MAX_HITS. */
  readonly limit?: number | undefined;
  /** Epoch seconds: messages of that time or later. */
  readonly after?: number | undefined;
  /** Epoch seconds: messages before it. */
  readonly before?: number | undefined;
  /** One conversation alone: its id, or the first part of an address in it. */
  readonly conversation?: string | undefined;
  readonly kinds?: readonly Kind[] | undefined;
  /** The asker's clock. */
  readonly now: Date;
  /** The turn that asks: its question is not its answer. */
  readonly except?: { readonly conversation: string; readonly life: string; readonly turn: string };
  /** Whose budget a vector of the question counts to; absent: to none, as with a person's search. */
  readonly payer?: Payer | undefined;
  /** Milliseconds that an embedder may take for the question; QUESTION_MS without it. */
  readonly embedMs?: number;
  /** Told what a reader should know of how it was found: that the embedder did not answer. */
  readonly onNote?: (note: string) => void;
}

export interface Recall {
  /** Best first. */
  search(key: ScopeKey, query: RecallQuery): Promise<readonly Recalled[]>;
  /** The messages at an address and around it, in their order; empty where nothing is there, or no longer. */
  open(key: ScopeKey, address: string, around?: number): Promise<readonly Recalled[]>;
  /** What came with the message at an address. */
  files(key: ScopeKey, address: string): Promise<Media>;
  /**
   * Makes vectors of a bounded part of what has none: those of `payer` first. How many were made; 0 where none is missing, and without
   * an embedder. Throws where it or the store does not answer.
   */
  fill(payer: Payer, signal: AbortSignal): Promise<number>;
  /** Bytes of the indexes that are in memory. */
  bytes(): number;
}

export interface RecallOptions {
  readonly store: Store;
  /** Of the indexes in memory, together. */
  readonly cacheBytes?: number;
  /** Messages that are sealed as a part of an index; for tests. */
  readonly sealed?: number;
  /** Searches by meaning too. */
  readonly embedder?: PaidEmbedder | undefined;
  readonly log?: (line: string) => void;
}

export const DEFAULT_HITS = 20;
export const MAX_HITS = 50;

const CACHE_BYTES = 256 * 1024 * 1024;
const SHORT_QUESTION = 8;
const BY_WORDS_ALONE = 'found by words alone: the embedder did not answer';
const WITHOUT_VECTORS = 'found by words alone: the vectors of this scope do not fit into PERDURA_SEARCH_CACHE_BYTES';
/** Another process may replace what is written down, once and again. */
const ATTEMPTS = 3;
/** Milliseconds that an embedder may take for a question: its vector is not worth more waiting. */
const QUESTION_MS = 3_000;

export function createRecall({ store, cacheBytes = CACHE_BYTES, sealed, embedder, log }: RecallOptions): Recall {
  /** The longest unused first. */
  const scopes = new Map<string, { readonly scope: ScopeIndex; bytes: number }>();
  const turns = new Map<string, Promise<unknown>>();
  const analyzer = createAnalyzer();
  /** Scopes of which even what is not sealed is larger than all may be: it is read for each search, one at a time. */
  const tooLarge = new Set<string>();
  const warned = new Set<string>();
  let lastLarge: Promise<unknown> = Promise.resolve();
  let total = 0;

  const forget = (name: string): void => {
    total -= scopes.get(name)?.bytes ?? 0;
    scopes.delete(name);
  };

  const recount = (name: string, scope: ScopeIndex): void => {
    const bytes = scope.bytes();
    total += bytes - (scopes.get(name)?.bytes ?? 0);
    scopes.set(name, { scope, bytes });
  };

  /** As the one that was used last. */
  const keep = (name: string, scope: ScopeIndex): void => {
    forget(name);
    recount(name, scope);
  };

  /** Whether so many bytes more fit in, after those that were not used for longest went. */
  const makeRoom = (name: string, scope: ScopeIndex, more: number): boolean => {
    keep(name, scope);
    for (const oldest of scopes.keys()) {
      if (total + more <= cacheBytes || oldest === name) break;
      forget(oldest);
    }
    return total + more <= cacheBytes;
  };

  /** Sealed parts of the longest unused go first, then its head. */
  const holdLimit = (name: string): void => {
    for (const [oldest, { scope }] of [...scopes]) {
      while (total > cacheBytes && scope.evict()) recount(oldest, scope);
      if (total <= cacheBytes) break;
      if (oldest === name) tooLarge.add(name);
      forget(oldest);
    }
  };

  const warnOfSize = (name: string, key: ScopeKey, bytes: number): void => {
    if (bytes <= cacheBytes || warned.has(name)) return;
    warned.add(name);
    log?.(tooLargeWarning(key, bytes, cacheBytes));
  };

  const open = (name: string, key: ScopeKey, lost: ReadonlySet<string>): ScopeIndex => {
    const scope: ScopeIndex = new ScopeIndex({
      ...{ store, key, cacheBytes, sealed, lost, log },
      model: embedder?.name,
      makeRoom: (more) => makeRoom(name, scope, more),
    });
    return scope;
  };

  /** Searches of one scope come one after the other. */
  const inTurn = async <T>(key: ScopeKey, work: (scope: ScopeIndex) => Promise<T> | T): Promise<T> => {
    const name = scopeName(key);
    const isLarge = tooLarge.has(name);
    const before = Promise.all([turns.get(name), isLarge && lastLarge]);
    const mine = before.then(async () => {
      try {
        const lost = new Set<string>();
        for (let attempt = 1; ; attempt += 1) {
          const scope = scopes.get(name)?.scope ?? open(name, key, lost);
          try {
            const done = await work(scope);
            warnOfSize(name, key, scope.allBytes());
            if (scope.isOutdated) forget(name);
            else keep(name, scope);
            return done;
          } catch (error) {
            // Half updated: the next one begins from what is written down.
            forget(name);
            if (!(error instanceof PartLost) || attempt === ATTEMPTS) throw error;
            if (error.part !== undefined) lost.add(error.part);
          }
        }
      } finally {
        holdLimit(name);
      }
    });
    const settled = mine.then(
      () => undefined,
      () => undefined,
    );
    turns.set(name, settled);
    if (isLarge) lastLarge = settled;
    void settled.then(() => (turns.get(name) === settled ? turns.delete(name) : undefined));
    return mine;
  };

  /** Undefined without an embedder, and where it does not answer. */
  const embedQuestion = async (
    text: string,
    key: ScopeKey,
    { payer, embedMs = QUESTION_MS, onNote }: RecallQuery,
  ): Promise<Float32Array | undefined> => {
    if (!embedder || text.trim() === '') return undefined;
    try {
      const [vector] = await embedder.embed([text], { of: key, payer, totalMs: embedMs });
      return vector;
    } catch (error) {
      const why = errorMessage(error);
      log?.(`searched ${key.scope} by words alone: ${why}`);
      onNote?.(BY_WORDS_ALONE);
      return undefined;
    }
  };

  return {
    bytes: () => total,

    async fill(payer, signal) {
      if (!embedder) return 0;
      const scope: ScopeKey = { namespace: payer.key.namespace, scope: payer.key.scope };
      const wanted = await inTurn(scope, async (index) => {
        await index.update();
        return index.missingVectors(payer.key, MAX_FILLED);
      });
      if (wanted.length === 0) return 0;
      const filled = await embedMissing({ store, scope, embedder, payer, signal }, wanted);
      await inTurn(scope, (index) => {
        index.addVectors(filled);
        if (!signal.aborted) index.leaveOut(wanted.map(({ hash }) => hash));
      });
      return filled.length;
    },

    async search(key, query) {
      const { question, limit = DEFAULT_HITS, now, conversation, after, before, kinds, except } = query;
      const most = Math.max(1, Math.min(limit, MAX_HITS));
      const text = question.slice(0, BOUNDS.questionCharacters).toWellFormed();
      const at = now.getTime() / 1000;
      const vector = await embedQuestion(text, key, query);
      const hits = await inTurn(key, async (scope) => {
        if (vector) scope.expectSize(vector.length);
        await scope.update();
        if (vector && scope.isByWordsAlone) query.onNote?.(WITHOUT_VECTORS);
        const lines = conversation === undefined ? undefined : (line: string) => isInConversation(key, line, conversation);
        // Some may be gone by the time they are read.
        const found = await scope.search(
          {
            question: text,
            now: at,
            limit: Math.min(BOUNDS.hits, most + 10),
            ...(after !== undefined && { after }),
            ...(before !== undefined && { before }),
            ...(kinds && { kinds }),
            ...(lines && { lines }),
          },
          vector,
        );
        await scope.write({ isKept: !tooLarge.has(scopeName(key)) });
        return found;
      });
      const found = (await readHits(store, key, hits)).filter((one) => !(except && isIn(one, except)) && !asksTheSame(one.text, text));
      const read = found.slice(0, most);
      return read.map((one) => ({ ...one, marks: marksIn(one.text, text, { now: at, analyzer }) }));
    },

    async open(key, address, around) {
      const known = scopes.get(scopeName(key))?.scope.lives() ?? [];
      return openAt(store, key, address, { around, known });
    },

    files: (key, address) => filesAt(store, key, address, scopes.get(scopeName(key))?.scope.lives() ?? []),
  };
}

function scopeName({ namespace, scope }: ScopeKey): string {
  return JSON.stringify([namespace, scope]);
}

function tooLargeWarning({ scope }: ScopeKey, bytes: number, cacheBytes: number): string {
  return (
    `the search index of ${scope} takes ${megabytes(bytes)} MB, and all of them together may take ${megabytes(cacheBytes)}: ` +
    `what does not fit in is read from the store for each search, which takes longer; set PERDURA_SEARCH_CACHE_BYTES to ${2 * bytes} or more`
  );
}

function isInConversation(scope: ScopeKey, line: string, conversation: string): boolean {
  const of = readLine(scope, line);
  return of !== undefined && (of.key.conversation === conversation || lifeMark(of.key) === conversation);
}

function isIn({ address, turn }: Recalled, except: NonNullable<RecallQuery['except']>): boolean {
  return turn === except.turn && address.startsWith(`${lifeMark(except)}/`);
}

/** An earlier time that the same question came up: the text beside it may be the answer, the question is none. */
function asksTheSame(text: string, question: string): boolean {
  const letters = onlyLetters(question);
  return (
    /[?？؟]\s*$/u.test(question) &&
    letters.length > SHORT_QUESTION &&
    text.length < 2 * question.length &&
    onlyLetters(text).endsWith(letters)
  );
}

function onlyLetters(text: string): string {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
}

/** The next search makes it anew. Idempotent. A worker that has it in memory still takes it out by itself, at its next search. */
export async function dropIndex({ scopes }: Pick<Store, 'scopes'>, key: ScopeKey): Promise<void> {
  await scopes.removeIndex(key, await scopes.indexParts(key));
}

/** After a life was deleted. A large index is not made anew for one life: it is taken out of its parts. Idempotent. */
export async function dropDeleted(store: Store, key: ScopeKey): Promise<void> {
  const parts = await store.scopes.indexParts(key);
  if (parts.every((part) => part === HEAD)) return dropIndex(store, key);
  const index = new ScopeIndex({ store, key, cacheBytes: Infinity });
  const isWritten = await index.update().then(
    () => index.write({ isKept: true }),
    (error: unknown) => {
      if (error instanceof PartLost) return false;
      throw error;
    },
  );
  if (!isWritten) await dropIndex(store, key);
}

/** Of what was forgotten; those of what was deleted go with their life. Idempotent. */
export async function dropVectors(store: Store, key: ScopeKey): Promise<void> {
  const { lives } = await store.scopes.marks(key);
  for (const life of lives) await keepLifeVectors(store, life.key);
}
