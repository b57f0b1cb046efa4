/**
 * What is remembered beyond the entries: episodes of a conversation, facts of a scope. A fact that was replaced stays, marked. A removed
 * one is gone; its number and its batches, without its words, stay in a collection of their own, so that neither comes again.
 */
import type { Replacement } from '../../records/episodes.js';
import { byAge, bySalience, itemNumber, semanticId, type SemanticItem } from '../../records/memory/items.js';
import { decodeEpisode, decodeFact, encodeEpisode, encodeFact, factHash, type KeptFact } from '../codecs/memory-codec.js';
import { decodeJson } from '../codecs/entry-codec.js';
import { addOnce, type OpenCollection, type RecordCodec } from './collection.js';
import type { ConversationKey, EpisodeRecord, Episodes, FactRecord, Facts, FactSource, ScopeKey } from '../store.js';

const idOf = ({ id }: { readonly id: string }): string => id;

const EPISODES: RecordCodec<EpisodeRecord> = { idOf, encode: encodeEpisode, decode: decodeEpisode };

export function createEpisodes(open: OpenCollection): Episodes {
  const of = (key: ConversationKey) => open({ name: 'episodes', key }, EPISODES);
  return {
    add: (key, episode) => addOnce(of(key), idOf, `add episode ${episode.id} of ${key.conversation}`, episode),

    async list(key, { session, limit = Infinity } = {}) {
      const { items, skipped } = await of(key).read(`read the episodes of ${key.conversation}`);
      const episodes = items.filter((episode) => session === undefined || episode.session === session);
      return { episodes: episodes.sort(byAge).slice(0, limit), skipped };
    },

    remove: (key, id) =>
      of(key).change(`remove episode ${id} of ${key.conversation}`, (episodes) =>
        episodes.some((episode) => episode.id === id) ? episodes.filter((episode) => episode.id !== id) : undefined,
      ),
  };
}

/** Without its words: what was removed is not kept. */
type Removed = Pick<KeptFact, 'id' | 'namespace' | 'batches'>;

const FACTS: RecordCodec<KeptFact> = { idOf, encode: encodeFact, decode: decodeFact };
const REMOVED: RecordCodec<Removed> = {
  idOf,
  encode: ({ id, namespace, batches }) => JSON.stringify({ id, namespace, batches, v: 1 }),
  decode(text) {
    const { id, namespace, batches } = (decodeJson(text) ?? {}) as { readonly [field in keyof Removed]?: unknown };
    if (typeof id !== 'string' || !Array.isArray(batches)) return undefined;
    return { id, namespace: typeof namespace === 'string' ? namespace : null, batches: batches.map(String) };
  },
};

export function createFacts(open: OpenCollection): Facts {
  const of = (key: ScopeKey) => open({ name: 'facts', key }, FACTS);
  const removedOf = (key: ScopeKey) => open({ name: 'removed-facts', key }, REMOVED);
  /** Before they go: a crash in between leaves a fact that is removed again by the repeated call. */
  const noteRemoved = (key: ScopeKey, attempt: string, gone: readonly Removed[]): Promise<void> =>
    removedOf(key).change(attempt, (removed) => {
      const fresh = gone.filter(({ id }) => !removed.some((known) => known.id === id));
      return fresh.length === 0 ? undefined : [...removed, ...fresh.map(({ id, namespace, batches }) => ({ id, namespace, batches }))];
    });
  return {
    async add(key, batch, facts, source, replaced = []) {
      if (facts.length + replaced.length === 0) return [];
      const attempt = `add ${facts.length} facts to ${key.scope}`;
      let added: readonly KeptFact[] = [];
      await of(key).change(attempt, async (before, taken) => {
        const { items: gone } = await removedOf(key).read(attempt, 'refuse');
        const isKnown = [...before, ...gone].some((fact) => isOf(key, fact) && isIn(batch, fact));
        const highest = Math.max(0, ...[...before, ...gone].map(({ id }) => itemNumber(id)), ...taken.map(itemNumber));
        const brought = { namespace: key.namespace, batch, source };
        const after = isKnown ? before : withReplaced(before, withFacts(before, highest, facts, brought), replaced, brought);
        added = after.filter((fact) => isOf(key, fact) && fact.batches.includes(batch));
        return isKnown ? undefined : after;
      });
      return added.map(toRecord).sort((a, b) => itemNumber(a.id) - itemNumber(b.id));
    },

    async list(key, { limit = Infinity, all = false } = {}) {
      const { items, skipped } = await of(key).read(`read the facts of ${key.scope}`);
      const facts = items.filter((fact) => isOf(key, fact) && (all || !fact.replaced)).map(toRecord);
      return { facts: facts.sort(bySalience).slice(0, limit), skipped };
    },

    async remove(key, ids) {
      if (ids.length === 0) return;
      const attempt = `remove ${ids.length} facts of ${key.scope}`;
      await of(key).change(attempt, async (before) => {
        const gone = before.filter((fact) => isOf(key, fact) && ids.includes(fact.id));
        if (gone.length === 0) return undefined;
        await noteRemoved(key, attempt, gone);
        return before.filter((fact) => !gone.includes(fact));
      });
    },

    async undo(key, batch) {
      const attempt = `undo what ${batch} brought to ${key.scope}`;
      await of(key).change(attempt, async (before) => {
        const gone = before.filter((fact) => isOf(key, fact) && fact.batches[0] === batch);
        const isTouched = (fact: KeptFact): boolean => isOf(key, fact) && isIn(batch, fact);
        // Also of a batch that has only replaced: a late attempt brings nothing of it.
        await noteRemoved(key, attempt, [...gone, { id: `undone ${batch}`, namespace: key.namespace, batches: [batch] }]);
        if (!before.some(isTouched)) return undefined;
        return before.flatMap((fact) => (gone.includes(fact) ? [] : [isTouched(fact) ? withoutBatch(fact, batch) : fact]));
      });
    },
  };
}

function withFacts(
  before: readonly KeptFact[],
  highest: number,
  facts: readonly Omit<SemanticItem, 'id'>[],
  { namespace, batch, source }: { readonly namespace: string; readonly batch: string; readonly source: FactSource },
): KeptFact[] {
  const after = [...before];
  // One that was replaced and is learned again is a new fact.
  const places = new Map(before.flatMap((fact, at) => (fact.replaced ? [] : [[wordsOf(fact.namespace ?? namespace, fact.fact), at]])));
  let last = highest;
  for (const fact of facts) {
    const words = wordsOf(namespace, fact.fact);
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

/** Marks those of `before` that count no longer. What should stand in the place of one, and is not there, leaves it without anything. */
function withReplaced(
  before: readonly KeptFact[],
  after: readonly KeptFact[],
  replaced: readonly Replacement[],
  { namespace, batch }: { readonly namespace: string; readonly batch: string },
): readonly KeptFact[] {
  if (replaced.length === 0) return after;
  const counted = new Set(before.filter((fact) => !fact.replaced).map(({ id }) => id));
  const wordsIn = (fact: KeptFact): string => wordsOf(fact.namespace ?? namespace, fact.fact);
  const current = new Map(after.flatMap((fact) => (fact.replaced ? [] : [[wordsIn(fact), fact.id]])));
  const gone = new Map(replaced.map((one) => [current.get(wordsOf(namespace, one.fact)), one]));
  return after.map((fact) => {
    const one = counted.has(fact.id) ? gone.get(fact.id) : undefined;
    const by = one === undefined || one.by === null ? null : (current.get(wordsOf(namespace, one.by)) ?? null);
    return one && by !== fact.id ? { ...fact, replaced: { by, batch, ts: one.ts } } : fact;
  });
}

function withoutBatch({ replaced, ...fact }: KeptFact, batch: string): KeptFact {
  const batches = fact.batches.filter((one) => one !== batch);
  return { ...fact, batches, ...(replaced && replaced.batch !== batch && { replaced }) };
}

function isIn(batch: string, { batches, replaced }: Pick<KeptFact, 'batches' | 'replaced'>): boolean {
  return batches.includes(batch) || replaced?.batch === batch;
}

function wordsOf(namespace: string, fact: string): string {
  return `${namespace}/${factHash(fact)}`;
}

/** One folder serves one server as a rule, so that its namespaces share a file and its numbers. */
function isOf({ namespace }: ScopeKey, fact: Pick<KeptFact, 'namespace'>): boolean {
  return fact.namespace === null || fact.namespace === namespace;
}

function toRecord({ id, ts, fact, tags, confidence, salience, batches, source, replaced }: KeptFact): FactRecord {
  const record = { id, ts, fact, tags, confidence, salience, batch: batches[0] ?? null, source };
  return replaced ? { ...record, replaced: { by: replaced.by, ts: replaced.ts } } : record;
}
