/**
 * `semantic.jsonl` in the scope's folder: what it knows, the seed's fields first. A removed fact leaves the file; its number and
 * its batches, without its words, are kept in `semantic_removed.jsonl`, so that neither comes again.
 */
import { join } from 'node:path';
import { bySalience, itemNumber, semanticId, type SemanticItem } from '../../records/memory/items.js';
import { decodeJson } from '../codecs/entry-codec.js';
import { toUnavailable } from './errors.js';
import { changeList, readList, type ListFile } from './lists.js';
import { scopeDir } from './paths.js';
import { decodeFact, encodeFact, factHash, type KeptFact } from '../codecs/memory-codec.js';
import type { FactRecord, Facts, FactSource, ScopeKey } from '../store.js';

export function createFileFacts(dir: string): Facts {
  return {
    async add(key, batch, facts, source) {
      if (facts.length === 0) return [];
      const file = factsFile(dir, key);
      let added: readonly KeptFact[] = [];
      await inWords(file.path, `add ${facts.length} facts to ${key.scope}`, () =>
        changeList(file, async (before) => {
          const { items: gone } = await readList(removedFile(dir, key));
          const isKnown = [...before, ...gone].some((fact) => isOf(key, fact) && fact.batches.includes(batch));
          const highest = Math.max(0, ...[...before, ...gone].map(({ id }) => itemNumber(id)));
          const after = isKnown ? before : withFacts(before, highest, facts, { namespace: key.namespace, batch, source });
          added = after.filter((fact) => isOf(key, fact) && fact.batches.includes(batch));
          return isKnown ? undefined : after;
        }),
      );
      return added.map(toRecord).sort((a, b) => itemNumber(a.id) - itemNumber(b.id));
    },

    async list(key, { limit = Infinity } = {}) {
      const file = factsFile(dir, key);
      const { items, skipped } = await inWords(file.path, `read the facts of ${key.scope}`, () => readList(file));
      const facts = items.filter((fact) => isOf(key, fact)).map(toRecord);
      return { facts: facts.sort(bySalience).slice(0, limit), skipped };
    },

    async remove(key, ids) {
      const file = factsFile(dir, key);
      await inWords(file.path, `remove ${ids.length} facts of ${key.scope}`, () =>
        changeList(file, async (before) => {
          const gone = before.filter((fact) => isOf(key, fact) && ids.includes(fact.id));
          if (gone.length === 0) return undefined;
          // First what must be remembered: a crash in between leaves a fact that is removed again by the repeated call.
          await changeList(removedFile(dir, key), (removed) => [
            ...removed,
            ...gone.map(({ id, namespace, batches }) => ({ id, namespace, batches })),
          ]);
          return before.filter((fact) => !gone.includes(fact));
        }),
      );
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
  const places = new Map(before.map((fact, at) => [wordsOf(fact.namespace ?? namespace, fact.fact), at]));
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

function wordsOf(namespace: string, fact: string): string {
  return `${namespace}/${factHash(fact)}`;
}

/** One folder serves one server as a rule, so that its namespaces share a file and its numbers. */
function isOf({ namespace }: ScopeKey, fact: Pick<KeptFact, 'namespace'>): boolean {
  return fact.namespace === null || fact.namespace === namespace;
}

function toRecord({ id, ts, fact, tags, confidence, salience, batches, source }: KeptFact): FactRecord {
  return { id, ts, fact, tags, confidence, salience, batch: batches[0] ?? null, source };
}

function factsFile(dir: string, key: ScopeKey): ListFile<KeptFact> {
  const folder = scopeDir(dir, key);
  return { path: join(folder, 'semantic.jsonl'), lock: join(folder, 'semantic.lock'), decode: decodeFact, encode: encodeFact };
}

/** Without its words: what was removed is not kept. */
type Removed = Pick<KeptFact, 'id' | 'namespace' | 'batches'>;

function removedFile(dir: string, key: ScopeKey): ListFile<Removed> {
  const folder = scopeDir(dir, key);
  return {
    path: join(folder, 'semantic_removed.jsonl'),
    lock: join(folder, 'semantic_removed.lock'),
    encode: ({ id, namespace, batches }) => JSON.stringify({ id, namespace, batches, v: 1 }),
    decode(line) {
      const { id, namespace, batches } = (decodeJson(line) ?? {}) as { readonly [field in keyof Removed]?: unknown };
      if (typeof id !== 'string' || !Array.isArray(batches)) return undefined;
      return { id, namespace: typeof namespace === 'string' ? namespace : null, batches: batches.map(String) };
    },
  };
}

async function inWords<T>(path: string, attempt: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toUnavailable(attempt, path, error);
  }
}
