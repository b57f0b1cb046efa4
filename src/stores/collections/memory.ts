/**
 * What is remembered beyond the entries: episodes of a conversation, facts of a scope, vectors of texts. A fact that was replaced stays,
 * marked. A removed one is gone; its number and its batches, without its words, stay in another collection, so that neither comes again.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Replacement } from '../../records/episodes.js';
import {
  byAge,
  bySalience,
  compactionRecordSchema,
  episodeLinksSchema,
  foldedFact,
  itemNumber,
  readEpisodicItem,
  readSemanticItem,
  semanticId,
  type SemanticItem,
} from '../../records/memory/items.js';
import { decodeJson } from '../codecs.js';
import { addOnce, type OpenCollection, type RecordCodec } from './collection.js';
import type { ConversationKey, Facts, ScopeKey } from '../store.js';
import type { EpisodeRecord, Episodes, FactRecord, FactSource, StoredVector, Vectors } from '../memory-ports.js';

const identify = ({ id }: { readonly id: string }): string => id;

export const EPISODES: RecordCodec<EpisodeRecord> = { identify, encode: encodeEpisode, decode: decodeEpisode };

export function createEpisodes(open: OpenCollection): Episodes {
  const openEpisodes = (key: ConversationKey) => open({ name: 'episodes', key }, EPISODES);
  return {
    add: (key, episode) => addOnce(openEpisodes(key), identify, `add episode ${episode.id} of ${key.conversation}`, episode),

    async list(key, { session, limit = Infinity } = {}) {
      const { items, skipped } = await openEpisodes(key).read(`read the episodes of ${key.conversation}`);
      const episodes = items.filter((episode) => session === undefined || episode.session === session);
      return { episodes: episodes.sort(byAge).slice(0, limit), skipped };
    },

    remove: (key, id) =>
      openEpisodes(key).change(`remove episode ${id} of ${key.conversation}`, (episodes) =>
        episodes.some((episode) => episode.id === id) ? episodes.filter((episode) => episode.id !== id) : undefined,
      ),
  };
}

/** Without its words: what was removed leaves none. */
type Removed = Pick<StoredFact, 'id' | 'namespace' | 'batches'>;

export const FACTS: RecordCodec<StoredFact> = { identify, encode: encodeFact, decode: decodeFact };
export const REMOVED: RecordCodec<Removed> = {
  identify,
  encode: ({ id, namespace, batches }) => JSON.stringify({ id, namespace, batches, v: 1 }),
  decode(text) {
    const { id, namespace, batches } = (decodeJson(text) ?? {}) as { readonly [field in keyof Removed]?: unknown };
    if (typeof id !== 'string' || !Array.isArray(batches)) return undefined;
    return { id, namespace: typeof namespace === 'string' ? namespace : null, batches: batches.map(String) };
  },
};

export function createFacts(open: OpenCollection): Facts {
  const openFacts = (key: ScopeKey) => open({ name: 'facts', key }, FACTS);
  const openRemoved = (key: ScopeKey) => open({ name: 'removed-facts', key }, REMOVED);
  /** Before they go: a crash in between leaves a fact that is removed again by the repeated call. */
  const noteRemoved = (key: ScopeKey, attempt: string, gone: readonly Removed[]): Promise<void> =>
    openRemoved(key).change(attempt, (removed) => {
      const fresh = gone.filter(({ id }) => !removed.some((known) => known.id === id));
      return fresh.length === 0 ? undefined : [...removed, ...fresh.map(({ id, namespace, batches }) => ({ id, namespace, batches }))];
    });
  return {
    async add(key, batch, facts, source, replaced = []) {
      if (facts.length + replaced.length === 0) return [];
      const attempt = `add ${facts.length} facts to ${key.scope}`;
      let added: readonly StoredFact[] = [];
      await openFacts(key).change(attempt, async (before, taken) => {
        const { items: gone } = await openRemoved(key).read(attempt, 'refuse');
        const isKnown = [...before, ...gone].some((fact) => isOfScope(key, fact) && isIn(batch, fact));
        const highest = Math.max(0, ...[...before, ...gone].map(({ id }) => itemNumber(id)), ...taken.map(itemNumber));
        const brought = { namespace: key.namespace, batch, source };
        const after = isKnown ? before : withReplaced(before, withFacts(before, highest, facts, brought), replaced, brought);
        added = after.filter((fact) => isOfScope(key, fact) && fact.batches.includes(batch));
        return isKnown ? undefined : after;
      });
      return added.map(toRecord).sort((a, b) => itemNumber(a.id) - itemNumber(b.id));
    },

    async list(key, { limit = Infinity, all = false } = {}) {
      const { items, skipped } = await openFacts(key).read(`read the facts of ${key.scope}`);
      const facts = items.filter((fact) => isOfScope(key, fact) && (all || !fact.replaced)).map(toRecord);
      return { facts: facts.sort(bySalience).slice(0, limit), skipped };
    },

    async remove(key, ids) {
      if (ids.length === 0) return;
      const attempt = `remove ${ids.length} facts of ${key.scope}`;
      await openFacts(key).change(attempt, async (before) => {
        const gone = before.filter((fact) => isOfScope(key, fact) && ids.includes(fact.id));
        if (gone.length === 0) return undefined;
        await noteRemoved(key, attempt, gone);
        return before.filter((fact) => !gone.includes(fact));
      });
    },

    async undo(key, batch) {
      const attempt = `undo what ${batch} brought to ${key.scope}`;
      await openFacts(key).change(attempt, async (before) => {
        const gone = before.filter((fact) => isOfScope(key, fact) && fact.batches[0] === batch);
        const isTouched = (fact: StoredFact): boolean => isOfScope(key, fact) && isIn(batch, fact);
        // Also of a batch that has only replaced: a late attempt brings nothing of it.
        await noteRemoved(key, attempt, [...gone, { id: `undone ${batch}`, namespace: key.namespace, batches: [batch] }]);
        if (!before.some(isTouched)) return undefined;
        return before.flatMap((fact) => (gone.includes(fact) ? [] : [isTouched(fact) ? withoutBatch(fact, batch) : fact]));
      });
    },
  };
}

function withFacts(
  before: readonly StoredFact[],
  highest: number,
  facts: readonly Omit<SemanticItem, 'id'>[],
  { namespace, batch, source }: { readonly namespace: string; readonly batch: string; readonly source: FactSource },
): StoredFact[] {
  const after = [...before];
  // One that was replaced and is learned again is a new fact.
  const places = new Map(before.flatMap((fact, at) => (fact.replaced ? [] : [[foldWords(fact.namespace ?? namespace, fact.fact), at]])));
  let last = highest;
  for (const fact of facts) {
    const words = foldWords(namespace, fact.fact);
    const place = places.get(words);
    const known = place === undefined ? undefined : after[place];
    if (place === undefined || known === undefined) {
      places.set(words, after.length);
      last += 1;
      after.push({ ...fact, id: semanticId(last), namespace, batches: [batch], source });
    } else {
      after[place] = {
        ...known,
        salience: Math.max(known.salience, fact.salience),
        confidence: Math.max(known.confidence, fact.confidence),
        batches: known.batches.includes(batch) ? known.batches : [...known.batches, batch],
      };
    }
  }
  return after;
}

/** Marks those of `before` that count no longer. A replacement that is not there leaves it without anything. */
function withReplaced(
  before: readonly StoredFact[],
  after: readonly StoredFact[],
  replaced: readonly Replacement[],
  { namespace, batch }: { readonly namespace: string; readonly batch: string },
): readonly StoredFact[] {
  if (replaced.length === 0) return after;
  const counted = new Set(before.filter((fact) => !fact.replaced).map(({ id }) => id));
  const wordsIn = (fact: StoredFact): string => foldWords(fact.namespace ?? namespace, fact.fact);
  const current = new Map(after.flatMap((fact) => (fact.replaced ? [] : [[wordsIn(fact), fact.id]])));
  const gone = new Map(replaced.map((one) => [current.get(foldWords(namespace, one.fact)), one]));
  return after.map((fact) => {
    const one = counted.has(fact.id) ? gone.get(fact.id) : undefined;
    const by = one === undefined || one.by === null ? null : (current.get(foldWords(namespace, one.by)) ?? null);
    return one && by !== fact.id ? { ...fact, replaced: { by, batch, ts: one.ts } } : fact;
  });
}

function withoutBatch({ replaced, ...fact }: StoredFact, batch: string): StoredFact {
  const batches = fact.batches.filter((one) => one !== batch);
  return { ...fact, batches, ...(replaced && replaced.batch !== batch && { replaced }) };
}

function isIn(batch: string, { batches, replaced }: Pick<StoredFact, 'batches' | 'replaced'>): boolean {
  return batches.includes(batch) || replaced?.batch === batch;
}

function foldWords(namespace: string, fact: string): string {
  return `${namespace}/${createHash('sha256').update(foldedFact(fact)).digest('hex')}`;
}

/** One folder serves one server as a rule, so that its namespaces share a file and its numbers. */
function isOfScope({ namespace }: ScopeKey, fact: Pick<StoredFact, 'namespace'>): boolean {
  return fact.namespace === null || fact.namespace === namespace;
}

function toRecord({ id, ts, fact, tags, confidence, salience, batches, source, replaced }: StoredFact): FactRecord {
  const record = { id, ts, fact, tags, confidence, salience, batch: batches[0] ?? null, source };
  return replaced ? { ...record, replaced: { by: replaced.by, ts: replaced.ts } } : record;
}

/** A fact as it is stored: with all batches that brought it, oldest first. */
interface StoredFact extends SemanticItem {
  /** null: of whichever namespace reads it. */
  readonly namespace: string | null;
  readonly batches: readonly string[];
  readonly source: FactSource | null;
  /** Absent: it counts. Else by which fact, in which batch, and when it was replaced. */
  readonly replaced?: z.output<typeof replacedSchema>;
}

const replacedSchema = z.object({ by: z.string().nullable(), batch: z.string(), ts: z.number().nonnegative() });
const besideEpisode = z.object({ v: z.literal(1), session: z.int(), epoch: z.int(), slots: z.array(z.tuple([z.int(), z.int()])) });
/** A record with the seed's fields alone is a fact too: a person may have written it, or brought it from elsewhere. */
const besideFact = z.object({
  v: z.literal(1).default(1),
  namespace: z.string().nullable().default(null),
  batches: z.array(z.string()).default([]),
  source: z
    .object({ conversation: z.string(), turn_ids: z.array(z.string()), tools: z.array(z.string()).optional() })
    .nullable()
    .default(null),
});

function encodeEpisode({ id, ts, turn_ids, summary, tags, salience, session, epoch, slots, made, ...links }: EpisodeRecord): string {
  const beside = { session, epoch, slots, ...(made && { made }), ...episodeLinksSchema.parse(links) };
  return JSON.stringify({ id, ts, turn_ids, summary, tags, salience, ...beside, v: 1 });
}

function decodeEpisode(text: string): EpisodeRecord | undefined {
  const value = decodeJson(text);
  const [item, beside] = [readEpisodicItem(value), besideEpisode.safeParse(value).data];
  if (!item || !beside) return undefined;
  const { session, epoch, slots } = beside;
  // One that cannot be read takes nothing of the episode with it.
  const made = compactionRecordSchema.safeParse((value as { readonly made?: unknown }).made).data;
  return { ...item, session, epoch, slots, ...(made && { made }), ...episodeLinksSchema.safeParse(value).data };
}

function encodeFact({ id, ts, fact, tags, confidence, salience, namespace, batches, source, replaced }: StoredFact): string {
  return JSON.stringify({ id, ts, fact, tags, confidence, salience, namespace, batches, source, ...(replaced && { replaced }), v: 1 });
}

function decodeFact(text: string): StoredFact | undefined {
  const value = decodeJson(text);
  const [item, beside] = [readSemanticItem(value), besideFact.safeParse(value).data];
  if (!item || !beside) return undefined;
  const { namespace, batches, source } = beside;
  const replaced = replacedSchema.safeParse((value as { readonly replaced?: unknown }).replaced).data;
  return { ...item, namespace, batches, source, ...(replaced && { replaced }) };
}

// The vectors of a life's texts as JSON, each once per model, size and text.

const MAX_BASE64 = 16_384;

const schema = z.object({
  v: z.literal(1),
  model: z.string().min(1).max(200),
  text: z.int().min(0).max(0xffffffff),
  values: z.base64().min(4).max(MAX_BASE64),
});

export const VECTORS: RecordCodec<StoredVector> = {
  identify: ({ model, text, values }) => JSON.stringify([model, values.length, text]),
  encode: ({ model, text, values }) =>
    JSON.stringify({ v: 1, model, text, values: Buffer.from(values.buffer, values.byteOffset, values.length).toString('base64') }),
  decode(line) {
    const read = schema.safeParse(decodeJson(line)).data;
    if (read === undefined) return undefined;
    const bytes = Buffer.from(read.values, 'base64');
    return { model: read.model, text: read.text, values: new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length).slice() };
  },
};

export function createVectors(open: OpenCollection): Vectors {
  const vectorsIn = (key: ConversationKey) => open({ name: 'vectors', key }, VECTORS);
  return {
    async add(key, vectors) {
      if (vectors.length === 0) return;
      await addOnce(vectorsIn(key), VECTORS.identify, `write ${vectors.length} vectors of ${key.conversation}`, ...vectors);
    },

    async read(key, model) {
      const { items } = await vectorsIn(key).read(`read vectors of ${key.conversation}`);
      return items.filter((vector) => vector.model === model);
    },

    async keep(key, listTexts) {
      const vectors = vectorsIn(key);
      const attempt = `take away vectors of ${key.conversation}`;
      const { items } = await vectors.read(attempt);
      if (items.length === 0) return;
      const texts = await listTexts();
      const gone = items.filter(({ text }) => !texts.has(text)).map(VECTORS.identify);
      if (gone.length > 0) await vectors.change(attempt, () => [], gone);
    },
  };
}
