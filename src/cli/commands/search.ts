/** What was ever written or remembered in a scope: found by a question, and in HISTORY, which tells what earlier conversations were about. */
import { InvalidArgumentError, Option } from 'commander';
import type { FoundInScope, Recalled, ScopeMemory, SearchOptions } from '../../client.js';
import { memoryWorkflowId } from '../../conversation/protocol/memory-contract.js';
import { MAX_MATCHES, MAX_QUERY, searchHistory, queryTerms, type HistoryMatch } from '../../memory/documents/search-history.js';
import type { HistoryEntry } from '../../records/memory/documents.js';
import { isoTime } from '../../records/memory/history-text.js';
import { parseMoment } from '../../records/time-in-words.js';
import { findConversation, OF_CONVERSATION, openScope, SCOPE, type ScopeWanted } from '../args/find-conversation.js';
import { parseCount } from '../args/values.js';
import type { Answer, CommandFrame, CommandRow } from '../session/command.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { textOfDrawn, type StyledLine, type StyledSpan } from '../terminal/terminal-text.js';
import { formatTime } from '../views/quantities.js';
import { renderByScope, renderFound } from '../views/memory.js';
import { drawLine, drawText, type Look } from '../views/table.js';

interface SearchWanted extends ScopeWanted {
  readonly after?: string;
  readonly before?: string;
  readonly kind?: readonly Recalled['kind'][];
  readonly in?: string;
  readonly limit: number;
  readonly open?: string;
}

interface HistoryWanted extends ScopeWanted {
  readonly limit: number;
  readonly since?: string;
}

const MAX_QUESTION = 100_000;
const MAX_HITS = 50;
/** As `search` takes them; loading them from where they are loads the stemmers. */
const SEARCHED_KINDS = ['user', 'assistant', 'tool', 'history', 'memory', 'fact', 'episode', 'item'];

export const SEARCH: readonly CommandRow[] = [
  {
    name: 'search',
    description: 'find what was ever said or remembered, by a whole question; or print what stands around an address that it gave',
    args: [['[question]', 'in your words; names and times ("last May", "2026-02") count']],
    options: [
      OF_CONVERSATION,
      ['--scope <scope>', 'whose memory (default: all; with --open: "default")'],
      ['--after <date>', 'said on this ISO date or time (UTC) and later'],
      ['--before <date>', 'said before this ISO time (UTC), or up to the end of this ISO date'],
      new Option('--kind <kind>', `only these; several times for several: ${SEARCHED_KINDS.join(', ')}`).argParser(addKind),
      ['--in <conversation>', 'said in this conversation'],
      ['--limit <count>', 'at most so many, up to 50', parseCount, 10],
      ['--open <address>', 'print what was said there and around it'],
    ],
    async run(frame, question: string | undefined, wanted: SearchWanted): Promise<Answer> {
      if (wanted.open !== undefined) return openAddress(frame, wanted.open, wanted);
      if (question === undefined || question.trim() === '') throw new CliError('write what to look for, as a question', EXIT.usage);
      if (question.length > MAX_QUESTION) throw new CliError(`that is too long: at most ${MAX_QUESTION} characters`, EXIT.usage);
      if (wanted.limit > MAX_HITS) throw new CliError(`--limit is at most ${MAX_HITS} here`, EXIT.usage);
      const after = readMoment('--after', wanted.after, 'beginning');
      const before = readMoment('--before', wanted.before, 'end');
      const session = await frame.open();
      const isAll = wanted.scope === undefined && wanted.of === undefined;
      const memory = isAll ? undefined : await openScope(session, wanted);
      const where = memory === undefined ? 'all scopes' : memory.scope;
      const conversation = wanted.in === undefined ? undefined : await findConversation(session, wanted.in);
      const began = performance.now();
      const notes: string[] = [];
      const onNote = (note: string): unknown => notes.push(note);
      const terms = { after, before, conversation, kinds: wanted.kind, limit: wanted.limit, onNote };
      const search = memory === undefined ? session.client.search(question, terms) : searchIn(memory, question, terms);
      const hits = await session.withSlowNotice(`searching what was said in ${where}`, search);
      const ms = Math.round(performance.now() - began);
      const scope = hits[0]?.scope ?? memory?.scope;
      return {
        data: { ...(memory && { scope: memory.scope }), hits, ms, ...(notes.length > 0 && { notes }) },
        draw: (look) => (isAll ? renderByScope(hits, look) : renderFound(hits, look)),
        notes: [
          ...notes,
          hits.length === 0
            ? `nothing that was said in ${where} fits; ask in other words, or with fewer options`
            : `best first, in ${ms} ms; \`perdura search --scope ${scope} --open ADDRESS\` prints what stands around one`,
        ],
        ...(scope !== undefined && { temporal: showWords(scope) }),
      };
    },
  },
  {
    name: 'history show',
    description: 'print the entries of HISTORY',
    args: [SCOPE],
    options: [OF_CONVERSATION, ['--limit <count>', 'at most so many', parseCount, 20]],
    async run(frame, given: string | undefined, { of, limit }: HistoryWanted): Promise<Answer> {
      const session = await frame.open();
      const memory = await openScope(session, { scope: given, of });
      const { scope } = memory;
      // One more than is shown, to know whether there are more.
      const found = await session.withSlowNotice(`reading the HISTORY of ${scope}`, takeFirst(memory.history(), limit + 1));
      const entries = found.slice(0, limit);
      const more = found.length > entries.length;
      return {
        data: { scope, entries, more },
        draw: (look) => renderHistory(entries, look),
        notes: [
          ...(entries.length === 0 ? [`HISTORY of ${scope} is empty`] : []),
          ...(more ? [`the newest ${entries.length} of more; --limit shows more`] : []),
        ],
        temporal: showWords(scope),
      };
    },
  },
  {
    name: 'history grep',
    description: 'search HISTORY, as an agent does with search_history',
    args: [['<text>', 'words that all stand in an entry, in upper or lower case; "in quotation marks" as they stand there'], SCOPE],
    options: [
      OF_CONVERSATION,
      ['--limit <count>', 'at most so many, up to 50', parseCount, 10],
      ['--since <date>', 'entries of this ISO date or time (UTC) and later'],
    ],
    async run(frame, query: string, given: string | undefined, { of, limit, since }: HistoryWanted): Promise<Answer> {
      const words = queryTerms(query);
      if (words.length === 0) throw new CliError('there is no word to look for', EXIT.usage);
      if (query.length > MAX_QUERY) throw new CliError(`that is too long: at most ${MAX_QUERY} characters are looked for`, EXIT.usage);
      if (limit > MAX_MATCHES) throw new CliError(`--limit is at most ${MAX_MATCHES} here`, EXIT.usage);
      const after = readMoment('--since', since, 'beginning');
      const session = await frame.open();
      const memory = await openScope(session, { scope: given, of });
      const { scope } = memory;
      const search = async () => searchHistory(await memory.history(), { query, limit, after, signal: session.signal });
      const { matches, more } = await session.withSlowNotice(`searching the HISTORY of ${scope}`, search());
      return {
        data: { scope, matches, more },
        draw: (look) => renderMatches(matches, words, look),
        notes: [
          ...(matches.length === 0 ? [`no entry in the HISTORY of ${scope} has all these words`] : []),
          ...(more ? [`the newest ${matches.length} of more; --limit shows more`] : []),
        ],
        temporal: showWords(scope),
      };
    },
  },
];

async function searchIn(memory: ScopeMemory, question: string, terms: SearchOptions): Promise<readonly FoundInScope[]> {
  return (await memory.search(question, terms)).map((hit) => ({ ...hit, scope: memory.scope }));
}

async function openAddress(frame: CommandFrame, address: string, wanted: ScopeWanted): Promise<Answer> {
  const session = await frame.open();
  const memory = await openScope(session, wanted);
  const { scope } = memory;
  const hits = await session.withSlowNotice(`reading what was said in ${scope}`, memory.open(address));
  if (hits.length === 0) {
    const shown = JSON.stringify(address.slice(0, 120));
    throw new CliError(`nothing stands at ${shown} in ${scope}, or it was forgotten, deleted or rewound`, EXIT.notFound);
  }
  return { data: { scope, hits }, draw: (look) => renderFound(hits, look, Infinity), temporal: showWords(scope) };
}

function readMoment(option: string, text: string | undefined, ofDay: 'beginning' | 'end'): number | undefined {
  const at = text === undefined ? undefined : parseMoment(text, ofDay);
  if (text === undefined || at !== undefined) return at;
  throw new CliError(`${option} ${JSON.stringify(text)} is no date: write 2026-02-27 or 2026-02-27T14:30, in UTC`, EXIT.usage);
}

/** One value each time: a list would swallow the question behind it. */
function addKind(kind: string, before: readonly string[] = []): readonly string[] {
  if (!SEARCHED_KINDS.includes(kind)) throw new InvalidArgumentError(`write one of ${SEARCHED_KINDS.join(', ')}.`);
  return [...before, kind];
}

async function takeFirst(entries: Promise<AsyncIterable<HistoryEntry>>, most: number): Promise<HistoryEntry[]> {
  const found: HistoryEntry[] = [];
  for await (const entry of await entries) if (found.push(entry) === most) break;
  return found;
}

function showWords(scope: string): readonly string[] {
  return ['workflow', 'show', '-w', memoryWorkflowId(scope)];
}

/** HISTORY for people: each entry below its time. */
export function renderHistory(entries: readonly HistoryEntry[], look: Look): StyledLine[] {
  return entries.flatMap((entry, at) => [...(at === 0 ? [] : [[]]), ...renderHeader(entry, look), ...renderText(entry.text, look)]);
}

/** `words` as `queryTerms` the query gives them. */
export function renderMatches(matches: readonly HistoryMatch[], words: readonly string[], look: Look): StyledLine[] {
  return matches.flatMap((match, at) => [
    ...(at === 0 ? [] : [[]]),
    ...renderHeader(match, look),
    ...renderText(match.excerpt, look).map((line) => marked(textOfDrawn(line), words)),
  ]);
}

function renderHeader({ ts, kind, id }: Pick<HistoryEntry, 'ts' | 'kind' | 'id'>, look: Look): StyledLine[] {
  const { timeFormat, now } = look;
  const ago = timeFormat === 'relative' ? [formatTime(Math.round(ts * 1000), timeFormat, now)] : [];
  const by = id === '' ? ['written by hand'] : kind === 'raw-fallback' ? ['not summarized'] : [];
  return drawText([isoTime(ts), ...ago, ...by].join(' · '), 0, look, kind === 'raw-fallback' ? 'yellow' : 'cyan');
}

function renderText(text: string, look: Look): StyledLine[] {
  return text.split(/\r?\n/).flatMap((line) => drawLine('  ', line, look));
}

/** What was looked for stands out, as far as lower case leaves each character in its place. */
function marked(text: string, words: readonly string[]): StyledLine {
  const lower = text.toLowerCase();
  if (lower.length !== text.length) return [{ text }];
  const pieces: StyledSpan[] = [];
  for (let at = 0; at < text.length;) {
    const next = words.flatMap((word) => {
      const found = lower.indexOf(word, at);
      return found === -1 ? [] : [{ found, length: word.length }];
    });
    const first = next.sort((a, b) => a.found - b.found || b.length - a.length)[0];
    if (first === undefined) {
      pieces.push({ text: text.slice(at) });
      break;
    }
    if (first.found > at) pieces.push({ text: text.slice(at, first.found) });
    pieces.push({ text: text.slice(first.found, first.found + first.length), style: 'bold' });
    at = first.found + first.length;
  }
  return pieces;
}
