/** A search in all scopes of an installation, or of a tenant: what was found stands by scope, that with the best find first. */
import pLimit from 'p-limit';
import { errorMessage } from '../platform/errors.js';
import type { Recalled } from '../memory/recall/recalled.js';
import type { ScopeMemory, SearchOptions } from './memory.js';

/** Each reads an index; those of large scopes share one bound of memory (memory/recall). */
const AT_ONCE = 4;
const MAX_SCOPES = 200;
/** As a search in one scope: its module would load the stemmers. */
const HITS = 20;

/** A find, and where. Its address counts in that scope. */
export interface FoundInScope extends Recalled {
  readonly scope: string;
}

/** What the search needs of a client. */
export interface ScopesAccess {
  readonly scopes: () => Promise<readonly string[]>;
  readonly scope: (scope: string) => Pick<ScopeMemory, 'search'>;
}

/** The best of all, by how much of the question each is: scores of two scopes do not compare. A scope that fails is told by `onNote`. */
export async function searchScopes(
  { scopes, scope: open }: ScopesAccess,
  question: string,
  { limit = HITS, onNote, ...options }: SearchOptions = {},
): Promise<readonly FoundInScope[]> {
  const names = await scopes();
  if (names.length > MAX_SCOPES) onNote?.(`${MAX_SCOPES} of ${names.length} scopes were searched; name the one that you mean`);
  const few = pLimit(AT_ONCE);
  const notes = new Set<string>();
  const failures: unknown[] = [];
  const found = await Promise.all(
    names.slice(0, MAX_SCOPES).map((scope) =>
      few(async () => {
        try {
          const hits = await open(scope).search(question, { ...options, limit, onNote: (note) => notes.add(note) });
          return hits.map((hit) => ({ ...hit, scope }));
        } catch (error) {
          failures.push(error);
          notes.add(`${scope} could not be searched: ${errorMessage(error)}`);
          return [];
        }
      }),
    ),
  );
  if (failures.length > 0 && failures.length === found.length) throw failures[0];
  for (const note of notes) onNote?.(note);
  const best = new Set(
    found
      .flat()
      .sort((a, b) => b.confidence - a.confidence || b.score - a.score)
      .slice(0, limit),
  );
  const chosen = found.map((hits) => hits.filter((hit) => best.has(hit))).filter((hits) => hits.length > 0);
  const order = [...best];
  const rank = (hits: readonly FoundInScope[]): number => Math.min(...hits.map((hit) => order.indexOf(hit)));
  return chosen.sort((a, b) => rank(a) - rank(b)).flat();
}
