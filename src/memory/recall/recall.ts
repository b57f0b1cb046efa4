/**
 * Finding what was said in a scope. Each hit is read from the store before it is answered, and what was forgotten meanwhile is taken out:
 * an index, however old, can only fail to find.
 */
import type { Trust } from '../../records/memory/documents.js';
import type { Entry } from '../../records/message.js';
import { slotsOf } from '../../records/slots.js';
import { createAnalyzer, speakerIn } from '../../search/analysis.js';
import { marksIn, type Mark } from '../../search/marks.js';
import { search, type Hit } from '../../search/rank.js';
import type { Kind } from '../../search/passage-table.js';
import { textHash } from '../../search/search-index.js';
import { BOUNDS } from '../../search/weights.js';
import type { ConversationKey, ScopeKey, Store } from '../../stores/store.js';
import { redactor } from '../documents/forgetting.js';
import { documentTexts, textOfEntry, type NamedText, type Source } from './indexed-texts.js';
import { episodesOf, itemsOf, slotsThatCount } from './life-texts.js';
import { addressIn, addressOfDocument, lifeMark, readLine, type Beside } from './lines.js';
import { fillVectors, MAX_FILLED, unfilledIn } from './fill-vectors.js';
import type { PaidEmbedder, Payer } from './paid-embedder.js';
import { ScopeIndex } from './scope-index.js';

/** What a search looks for. */
export interface RecallQuery {
  /** Of a longer one the first BOUNDS.questionCharacters are read. */
  readonly question: string;
  /** DEFAULT_HITS without it; at most MAX_HITS. */
  readonly limit?: number | undefined;
  /** Epoch seconds: said then or later. */
  readonly after?: number | undefined;
  /** Epoch seconds: said before. */
  readonly before?: number | undefined;
  /** One conversation alone: its id, or the first part of an address in it. */
  readonly conversation?: string | undefined;
  readonly kinds?: readonly Kind[] | undefined;
  /** The asker's clock. */
  readonly now: Date;
  /** The turn that asks: its question is not its answer. */
  readonly except?: { readonly conversation: string; readonly life: string; readonly turn: string };
  /** Whose budget a vector of the question counts to; absent: nobody's. */
  readonly payer?: Payer | undefined;
  /** Milliseconds that an embedder may take for the question; QUESTION_MS without it. */
  readonly embedMs?: number;
  /** Told what a reader should know of how it was found: that the embedder did not answer. */
  readonly onNote?: (note: string) => void;
}

/** Something that a search has found, or that stands beside it. */
export interface Recalled {
  /** By which `open` finds it: `3f2a9c1d52b0/12`, `fact/sem_0003`. */
  readonly address: string;
  readonly kind: Kind;
  /** Epoch seconds; 0 for a line of MEMORY.md that nothing dates. */
  readonly ts: number;
  readonly conversation?: string;
  /** `turn_0007`. */
  readonly turn?: string;
  /** The name in the text, where it names one (`Anna: …`); else `user`, `assistant`, `application`, the tool, or the kind. */
  readonly speaker: string;
  /** `tool:…`: what it says is data, and no instruction. */
  readonly trust: Trust;
  /** Verbatim; of a long text the passage. */
  readonly text: string;
  /** There is more of it, before or after. */
  readonly isPart?: true;
  /** Where the words of the question stand in `text`, in UTF-16 units. */
  readonly marks: readonly Mark[];
  readonly score: number;
  /** From 0 to 1: how much of the question its own words are. */
  readonly confidence: number;
}

export interface Recall {
  /** Best first. */
  search(key: ScopeKey, query: RecallQuery): Promise<readonly Recalled[]>;
  /** What was said at an address and around it, in its order; empty where nothing is there, or no longer. */
  open(key: ScopeKey, address: string, around?: number): Promise<readonly Recalled[]>;
  /**
   * Makes vectors of a bounded part of what has none: what `payer` has said first. How many were made; 0 where none is missing, and without
   * an embedder. Throws where it or the store does not answer.
   */
  fill(payer: Payer, signal: AbortSignal): Promise<number>;
  /** Bytes of the indexes that are in memory. */
  bytes(): number;
}

export interface RecallOptions {
  readonly store: Store;
  /** Of the indexes that are kept in memory, together. */
  readonly cacheBytes?: number;
  /** Searches by meaning too. */
  readonly embedder?: PaidEmbedder | undefined;
  readonly log?: (line: string) => void;
}

export const DEFAULT_HITS = 20;
export const MAX_HITS = 50;
export const DEFAULT_AROUND = 3;
export const MAX_AROUND = 20;

const CACHE_BYTES = 256 * 1024 * 1024;
/** Slots that are looked at on each side for one message that can be read: tools' calls and notices lie between. */
const SLOTS_FOR_ONE = 6;
const SHORT_QUESTION = 8;
const BY_WORDS_ALONE = 'found by words alone: the embedder did not answer';
/** Milliseconds that an embedder may take for a question: its vector is not worth more waiting. */
const QUESTION_MS = 3_000;
/** Those of an episode that are shown with it. */
const EPISODE_SLOTS = 2 * MAX_AROUND;

export function createRecall({ store, cacheBytes = CACHE_BYTES, embedder, log }: RecallOptions): Recall {
  /** The longest unused first. */
  const scopes = new Map<string, { readonly scope: ScopeIndex; bytes: number }>();
  const turns = new Map<string, Promise<unknown>>();
  const analyzer = createAnalyzer();
  /** Scopes whose index alone is larger than all may be: it is read for each search, one at a time. */
  const tooLarge = new Set<string>();
  let lastLarge: Promise<unknown> = Promise.resolve();
  let total = 0;

  const forget = (name: string): void => {
    total -= scopes.get(name)?.bytes ?? 0;
    scopes.delete(name);
  };

  /** Searches of one scope come one after the other. */
  const inTurn = async <T>(key: ScopeKey, work: (scope: ScopeIndex) => Promise<T> | T): Promise<T> => {
    const name = JSON.stringify([key.namespace, key.scope]);
    const isLarge = tooLarge.has(name);
    const before = Promise.all([turns.get(name), isLarge && lastLarge]);
    const mine = before.then(async () => {
      const scope = scopes.get(name)?.scope ?? new ScopeIndex(store, key, log, embedder?.name);
      try {
        const done = await work(scope);
        const bytes = scope.bytes();
        if (bytes > cacheBytes && !tooLarge.has(name)) {
          tooLarge.add(name);
          log?.(tooLargeWarning(key, bytes, cacheBytes));
        }
        forget(name);
        scopes.set(name, { scope, bytes });
        total += bytes;
        return done;
      } catch (error) {
        // Half updated: the next search begins from what is written down.
        forget(name);
        throw error;
      } finally {
        for (const oldest of scopes.keys()) {
          if (total <= cacheBytes) break;
          forget(oldest);
        }
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
  const vectorOf = async (
    text: string,
    key: ScopeKey,
    { payer, embedMs = QUESTION_MS, onNote }: RecallQuery,
  ): Promise<Float32Array | undefined> => {
    if (!embedder || text.trim() === '') return undefined;
    try {
      const [vector] = await embedder.embed([text], { of: key, payer, totalMs: embedMs });
      return vector;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
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
        return unfilledIn(index.index, scope, { first: payer.key, most: MAX_FILLED, has: (text) => index.hasVector(text) });
      });
      if (wanted.length === 0) return 0;
      const filled = await fillVectors({ store, scope, embedder, payer, signal }, wanted);
      await inTurn(scope, (index) => {
        index.addVectors(filled);
        if (!signal.aborted) index.leaveOut(wanted.map(({ hash }) => hash));
      });
      return filled.length;
    },

    async search(key, query) {
      const { question, limit = DEFAULT_HITS, now, conversation, after, before, kinds, except } = query;
      const most = Math.max(1, Math.min(limit, MAX_HITS));
      const asked = question.slice(0, BOUNDS.questionCharacters).toWellFormed();
      const at = now.getTime() / 1000;
      const vector = await vectorOf(asked, key, query);
      const hits = await inTurn(key, async (scope) => {
        if (vector) scope.expectSize(vector.length);
        await scope.update();
        const likeness = vector && (await scope.likeness(vector));
        const lines = conversation === undefined ? undefined : (line: string) => isOf(key, line, conversation);
        // Some may be gone by the time they are read.
        const found = search(scope.index, {
          question: asked,
          now: at,
          limit: Math.min(BOUNDS.hits, most + 10),
          ...(after !== undefined && { after }),
          ...(before !== undefined && { before }),
          ...(kinds && { kinds }),
          ...(lines && { lines }),
          ...(likeness && { likeness }),
        });
        await scope
          .write({ isKept: !tooLarge.has(JSON.stringify([key.namespace, key.scope])) })
          .catch((error: unknown) => log?.(error instanceof Error ? error.message : String(error)));
        return found;
      });
      const found = (await readHits(store, key, hits)).filter((one) => !(except && isIn(one, except)) && !asksTheSame(one.text, asked));
      const read = found.slice(0, most);
      return read.map((one) => ({ ...one, marks: marksIn(one.text, asked, { now: at, analyzer }) }));
    },

    async open(key, address, around = DEFAULT_AROUND) {
      const reach = Math.max(0, Math.min(around, MAX_AROUND));
      const [, mark = '', place = ''] = /^([0-9a-f]{12})\/([\w-]{1,100})$/.exec(address) ?? [];
      if (mark === '') return (await readDocuments(store, key)).filter((one) => one.address === address);
      const { lives } = await store.scopes.marks(key);
      const life = lives.find((one) => lifeMark(one.key) === mark)?.key;
      if (life === undefined) return [];
      if (/^\d{1,9}$/.test(place)) return readAround(store, life, Number(place), reach);
      return place.startsWith('ep_') ? readEpisode(store, life, place) : readItem(store, life, place);
    },
  };
}

function tooLargeWarning({ scope }: ScopeKey, bytes: number, cacheBytes: number): string {
  return (
    `the search index of ${scope} takes ${megabytes(bytes)} MB, and all of them together may take ${megabytes(cacheBytes)}: ` +
    `each search reads it anew, which takes seconds; set PERDURA_SEARCH_CACHE_BYTES to ${2 * bytes} or more`
  );
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

function isOf(scope: ScopeKey, line: string, conversation: string): boolean {
  const of = readLine(scope, line);
  return of !== undefined && (of.key.conversation === conversation || lifeMark(of.key) === conversation);
}

function isIn({ address, turn }: Recalled, except: NonNullable<RecallQuery['except']>): boolean {
  return turn === except.turn && address.startsWith(`${lifeMark(except)}/`);
}

/** The same question, asked before: what stands beside it may be the answer, it is none. */
function asksTheSame(text: string, question: string): boolean {
  const asked = lettersOf(question);
  return (
    /[?？؟]\s*$/u.test(question) && asked.length > SHORT_QUESTION && text.length < 2 * question.length && lettersOf(text).endsWith(asked)
  );
}

function lettersOf(text: string): string {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
}

type Redact = (text: string) => string;

async function redactorOf(store: Store, key: ScopeKey): Promise<Redact> {
  return redactor(await store.documents.forgotten(key), key.scope);
}

/** Without their marks. */
async function readHits(store: Store, key: ScopeKey, hits: readonly Hit[]): Promise<Recalled[]> {
  const redact = await redactorOf(store, key);
  const documents = hits.some(({ line }) => !line.startsWith('[')) ? await documentTexts(store, key) : [];
  const beside = new Map<string, Promise<readonly NamedText[]>>();
  const textsOf = async (of: ConversationKey, what: Beside): Promise<readonly NamedText[]> => {
    const name = JSON.stringify([of.conversation, of.life, what]);
    const known = beside.get(name) ?? (what === 'episode' ? episodesOf(store, of) : itemsOf(store, of));
    beside.set(name, known);
    return known;
  };
  const read = async (hit: Hit): Promise<Recalled | undefined> => {
    const of = readLine(key, hit.line);
    if (of?.beside === undefined && of !== undefined) return readMessage(store, of.key, hit, redact);
    const texts = of?.beside === undefined ? documents : await textsOf(of.key, of.beside);
    const text = texts.find(({ line, at }) => line === hit.line && at === hit.at);
    const shown = text && toRecalled(text, of?.key, redact, hit);
    return shown && textHash(shown.text) === hit.hash ? shown : undefined;
  };
  return (await Promise.all(hits.map(read))).flatMap((one) => one ?? []);
}

async function readMessage(store: Store, key: ConversationKey, hit: Hit, redact: Redact): Promise<Recalled | undefined> {
  const [entry] = await store.entries.read(key, [hit.at]);
  const told = entry && (await textOfEntry(store, key, entry));
  if (!entry || !told) return undefined;
  const whole = redact(told.text);
  const text = whole.slice(hit.start, hit.end);
  // Forgotten since it was indexed, or another text by now.
  if (textHash(text) !== hit.hash) return undefined;
  return ofEntry(key, entry, told, {
    text,
    score: hit.score,
    confidence: hit.confidence,
    isPart: text.length < whole.length,
    speaker: hit.speaker,
  });
}

function ofEntry(
  key: ConversationKey,
  entry: Entry,
  { kind, speaker, trust }: Source,
  shown: Pick<Recalled, 'text' | 'score' | 'confidence'> & { readonly isPart: boolean; readonly speaker: string | undefined },
): Recalled {
  return {
    address: addressIn(key, entry.slot),
    kind,
    ts: entry.ts,
    conversation: key.conversation,
    turn: entry.turn,
    // A tool's text may name anybody.
    speaker: kind === 'tool' ? speaker : (shown.speaker ?? speaker),
    trust,
    text: shown.text,
    ...(shown.isPart && { isPart: true }),
    marks: [],
    score: shown.score,
    confidence: shown.confidence,
  };
}

async function readAround(store: Store, key: ConversationKey, slot: number, reach: number): Promise<Recalled[]> {
  const first = Math.max(1, slot - reach * SLOTS_FOR_ONE);
  const slots = Array.from({ length: slot + reach * SLOTS_FOR_ONE - first + 1 }, (_, i) => first + i);
  const found = await readSlots(store, key, slots);
  const at = found.findIndex(({ address }) => address === addressIn(key, slot));
  return at < 0 ? [] : found.slice(Math.max(0, at - reach), at + reach + 1);
}

async function readSlots(store: Store, key: ConversationKey, slots: readonly number[]): Promise<Recalled[]> {
  const [entries, isThere, redact] = await Promise.all([
    store.entries.read(key, slots),
    slotsThatCount(store, key),
    redactorOf(store, key),
  ]);
  const read = entries.map(async (entry): Promise<Recalled | undefined> => {
    const told = entry && isThere(entry.slot) ? await textOfEntry(store, key, entry) : undefined;
    if (!entry || !told) return undefined;
    return ofEntry(key, entry, told, { text: redact(told.text), score: 0, confidence: 0, isPart: false, speaker: speakerIn(told.text) });
  });
  return (await Promise.all(read)).flatMap((one) => one ?? []);
}

/** The summary, then what it stands for. */
async function readEpisode(store: Store, key: ConversationKey, id: string): Promise<Recalled[]> {
  const episode = (await episodesOf(store, key)).find(({ name }) => name === id);
  if (!episode) return [];
  const redact = await redactorOf(store, key);
  return [
    toRecalled(episode, key, redact, wholeOf(episode)),
    ...(await readSlots(store, key, slotsOf(episode.slots).slice(0, EPISODE_SLOTS))),
  ];
}

async function readItem(store: Store, key: ConversationKey, id: string): Promise<Recalled[]> {
  const text = (await itemsOf(store, key)).find(({ name }) => name === id);
  return text ? [toRecalled(text, key, await redactorOf(store, key), wholeOf(text))] : [];
}

async function readDocuments(store: Store, key: ScopeKey): Promise<Recalled[]> {
  const redact = await redactorOf(store, key);
  return (await documentTexts(store, key)).map((text) => toRecalled(text, undefined, redact, wholeOf(text)));
}

type Part = Pick<Hit, 'start' | 'end' | 'score' | 'confidence'>;

function wholeOf({ text }: NamedText): Part {
  return { start: 0, end: text.length, score: 0, confidence: 0 };
}

function toRecalled(text: NamedText, of: ConversationKey | undefined, redact: Redact, { start, end, score, confidence }: Part): Recalled {
  const { kind, name, ts, conversation, turn, speaker, trust } = text;
  const whole = redact(text.text);
  const shown = whole.slice(start, end);
  return {
    address: of ? addressIn(of, name) : addressOfDocument(kind, name),
    kind,
    ts,
    ...(conversation !== undefined && { conversation }),
    ...(turn !== undefined && { turn }),
    speaker,
    trust,
    text: shown,
    ...(shown.length < whole.length && { isPart: true }),
    marks: [],
    score,
    confidence,
  };
}
