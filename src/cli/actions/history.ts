/** `perdura history show` and `grep`: what earlier conversations of a scope were about. */
import { memoryWorkflowId } from '../../conversation/protocol/memory-contract.js';
import type { HistoryEntry } from '../../records/memory/documents.js';
import { parseMoment } from '../../records/time.js';
import { MAX_QUERY, MAX_MATCHES, searchHistory, queryTerms } from '../../memory/documents/search-history.js';
import type { CliContext } from '../session/context.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { renderHistory, renderMatches } from '../views/memory-document.js';
import { print, withMemory, type ScopeWanted } from '../session/with-memory.js';

export interface HistoryWanted extends ScopeWanted {
  readonly limit: number;
}

export function showHistory(context: CliContext, wanted: HistoryWanted): Promise<number> {
  return withMemory(context, wanted, {}, async (desk) => {
    const { memory, look, withSlowNotice } = desk;
    const { scope } = memory;
    // One more than is shown, to know whether there are more.
    const found = await withSlowNotice(`reading the HISTORY of ${scope}`, firstOf(memory.history(), wanted.limit + 1));
    const entries = found.slice(0, wanted.limit);
    const more = found.length > entries.length;
    print(desk, {
      data: { scope, entries, more },
      records: entries,
      lines: renderHistory(entries, look),
      notes: [
        ...(entries.length === 0 ? [`HISTORY of ${scope} is empty`] : []),
        ...(more ? [`the newest ${entries.length} of more; --limit shows more`] : []),
      ],
      temporal: showing(scope),
    });
    return EXIT.ok;
  });
}

export interface GrepWanted extends HistoryWanted {
  readonly since?: string;
}

export function grepHistory(context: CliContext, query: string, wanted: GrepWanted): Promise<number> {
  const words = queryTerms(query);
  if (words.length === 0) throw new CliError('there is no word to look for', EXIT.usage);
  if (query.length > MAX_QUERY) throw new CliError(`that is too long: at most ${MAX_QUERY} characters are looked for`, EXIT.usage);
  if (wanted.limit > MAX_MATCHES) throw new CliError(`--limit is at most ${MAX_MATCHES} here`, EXIT.usage);
  const after = wanted.since === undefined ? undefined : parseMoment(wanted.since);
  if (wanted.since !== undefined && after === undefined) {
    throw new CliError(`${JSON.stringify(wanted.since)} is no date: write 2026-02-27 or 2026-02-27T14:30, in UTC`, EXIT.usage);
  }
  return withMemory(context, wanted, {}, async (desk) => {
    const { memory, look, signal, withSlowNotice } = desk;
    const { scope } = memory;
    const search = async () => searchHistory(await memory.history(), { query, limit: wanted.limit, after, signal });
    const { matches, more } = await withSlowNotice(`searching the HISTORY of ${scope}`, search());
    print(desk, {
      data: { scope, matches, more },
      records: matches,
      lines: renderMatches(matches, words, look),
      notes: [
        ...(matches.length === 0 ? [`no entry in the HISTORY of ${scope} has all these words`] : []),
        ...(more ? [`the newest ${matches.length} of more; --limit shows more`] : []),
      ],
      temporal: showing(scope),
    });
    return EXIT.ok;
  });
}

async function firstOf(entries: Promise<AsyncIterable<HistoryEntry>>, most: number): Promise<HistoryEntry[]> {
  const found: HistoryEntry[] = [];
  for await (const entry of await entries) if (found.push(entry) === most) break;
  return found;
}

function showing(scope: string): readonly string[] {
  return ['workflow', 'show', '-w', memoryWorkflowId(scope)];
}
