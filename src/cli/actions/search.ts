/** `perdura search`: what was ever said or remembered in a scope, by a question. */
import { memoryWorkflowId } from '../../conversation/protocol/memory-contract.js';
import { parseMoment } from '../../records/time.js';
import type { Recalled } from '../../client.js';
import type { CliContext } from '../session/context.js';
import { findConversation } from '../args/find-conversation.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { print, withMemory, type ScopeWanted } from '../session/with-memory.js';
import { renderFound } from '../views/search.js';

export interface SearchWanted extends ScopeWanted {
  readonly after?: string;
  readonly before?: string;
  readonly kind?: readonly Recalled['kind'][];
  readonly in?: string;
  readonly limit: number;
  readonly open?: string;
}

const MAX_QUESTION = 100_000;
const MAX_HITS = 50;

export function searchMemory(context: CliContext, question: string | undefined, wanted: SearchWanted): Promise<number> {
  if (question === undefined || question.trim() === '') throw new CliError('write what to look for, as a question', EXIT.usage);
  if (question.length > MAX_QUESTION) throw new CliError(`that is too long: at most ${MAX_QUESTION} characters`, EXIT.usage);
  if (wanted.limit > MAX_HITS) throw new CliError(`--limit is at most ${MAX_HITS} here`, EXIT.usage);
  const after = readMoment('--after', wanted.after, 'beginning');
  const before = readMoment('--before', wanted.before, 'end');
  return withMemory(context, wanted, {}, async (desk) => {
    const { memory, look, withSlowNotice } = desk;
    const { scope } = memory;
    const conversation = wanted.in === undefined ? undefined : await findConversation(desk, wanted.in);
    const began = performance.now();
    const notes: string[] = [];
    const onNote = (note: string): unknown => notes.push(note);
    const search = memory.search(question, { after, before, conversation, kinds: wanted.kind, limit: wanted.limit, onNote });
    const hits = await withSlowNotice(`searching what was said in ${scope}`, search);
    const ms = Math.round(performance.now() - began);
    print(desk, {
      data: { scope, hits, ms, ...(notes.length > 0 && { notes }) },
      records: hits,
      lines: renderFound(hits, look),
      notes: [
        ...notes,
        hits.length === 0
          ? `nothing that was said in ${scope} fits; ask in other words, or with fewer options`
          : `best first, in ${ms} ms; \`perdura search --scope ${scope} --open ADDRESS\` prints what stands around one`,
      ],
      temporal: ['workflow', 'show', '-w', memoryWorkflowId(scope)],
    });
    return EXIT.ok;
  });
}

export function openFound(context: CliContext, address: string, wanted: ScopeWanted): Promise<number> {
  return withMemory(context, wanted, {}, async (desk) => {
    const { memory, look, withSlowNotice } = desk;
    const { scope } = memory;
    const hits = await withSlowNotice(`reading what was said in ${scope}`, memory.open(address));
    if (hits.length === 0) {
      throw new CliError(
        `nothing stands at ${JSON.stringify(address.slice(0, 120))} in ${scope}, or it was forgotten, deleted or rewound`,
        EXIT.notFound,
      );
    }
    print(desk, {
      data: { scope, hits },
      records: hits,
      lines: renderFound(hits, look, Infinity),
      temporal: ['workflow', 'show', '-w', memoryWorkflowId(scope)],
    });
    return EXIT.ok;
  });
}

function readMoment(option: string, text: string | undefined, ofDay: 'beginning' | 'end'): number | undefined {
  const at = text === undefined ? undefined : parseMoment(text, ofDay);
  if (text === undefined || at !== undefined) return at;
  throw new CliError(`${option} ${JSON.stringify(text)} is no date: write 2026-02-27 or 2026-02-27T14:30, in UTC`, EXIT.usage);
}
