/**
 * A search through the head of a scope's index and its sealed parts, which need not fit into memory: each counts first, then each ranks
 * (search/indexes-rank-as-one).
 */
import { setImmediate as nextTick } from 'node:timers/promises';
import { selectBest, planFor, search } from '../../search/rank.js';
import { addCounts, countIn, rankIn, type Counts, type Hit, type Occurrences, type Query } from '../../search/scan.js';
import { sumFacts, type SearchIndex } from '../../search/search-index.js';
import type { Segments } from './segments.js';

/** Of a sealed part. */
interface Counted {
  readonly counts: Counts;
  readonly isEmpty: boolean;
  /** Absent: it is read again to be ranked. */
  readonly index?: SearchIndex;
  readonly occurrences?: Occurrences;
}

/** `heldBytes`: of parts that do not stay in memory, so many are held until the search ends, so that they are read once. */
export async function searchParts(head: SearchIndex, segments: Segments, query: Query, heldBytes: number): Promise<Hit[]> {
  if (segments.count === 0) return search(head, query);
  const facts = sumFacts([head.facts(), ...segments.facts()]);
  const plan = planFor(facts, query, head.analyzer);
  if (!plan) return [];
  const ofHead = countIn(head, plan, facts);
  const counted: Counted[] = [];
  let held = 0;
  for await (const { index, isKept, bytes } of segments.each()) {
    const { counts, occurrences, isEmpty } = countIn(index, plan, facts);
    if (!isKept) held += bytes;
    const isHeld = isKept || held <= heldBytes;
    counted.push({ counts, isEmpty, ...(isHeld && { index, occurrences }) });
  }
  const scan = { query, plan, all: { ...facts, ...[ofHead, ...counted].map(({ counts }) => counts).reduce(addCounts) } };
  const found = [rankIn(head, scan, ofHead.occurrences)];
  for (const [i, { isEmpty, index: known, occurrences }] of counted.entries()) {
    // Without a word of the question only vectors find something.
    if (isEmpty && query.likeness === undefined) continue;
    const index = known ?? (await segments.at(i));
    if (index) found.push(rankIn(index, scan, occurrences));
    await nextTick();
  }
  return selectBest(found, query);
}
