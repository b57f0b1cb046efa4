import { InvalidArgumentError, Option, type Command } from 'commander';
import type { CareWanted } from '../actions/memory.js';
import type { ReviewWanted } from '../actions/memory-decide.js';
import type { DiffWanted } from '../actions/memory-document.js';
import { onConversation, runs } from './command.js';
import type { CliContext } from '../session/context.js';
import { parseCount } from '../args/values.js';
import type { ScopeWanted } from '../session/with-memory.js';
import type { GrepWanted, HistoryWanted } from '../actions/history.js';
import type { SearchWanted } from '../actions/search.js';

type Of = Pick<ScopeWanted, 'of'>;

const DATES = `
A DATE is 2026-02-27 or 2026-02-27T14:30, in UTC unless a zone stands behind it. A day as --from is its beginning, else its end.`;

export function memoryCommand(program: Command, context: CliContext): void {
  const memory = program.command('memory').description('what is remembered beyond what was said word for word');
  onConversation(memory, 'list', "list a conversation's summaries of older turns (episodic), and the facts of its scope (semantic)")
    .addOption(new Option('--episodic', 'only summaries, with the turns that each stands for').conflicts('semantic'))
    .option('--semantic', 'only facts, with where they were learnt')
    .option('--all', 'also facts that were replaced, and by what')
    .action(runs(context, async () => (await import('../actions/memory.js')).listMemory));
  onConversation(memory, 'items', 'list what is in its memory channel: long results of tools, and what the agent or your code has stored')
    .option('--show <item>', 'print the content of this one')
    .action(runs(context, async () => (await import('../actions/memory.js')).memoryItems));
  onScope(memory.command('show').description('print MEMORY.md, which is part of every system prompt of the scope')).action(
    async (scope: string | undefined, { of }: Of) => {
      const { showMemory } = await import('../actions/memory-document.js');
      context.end(await showMemory(context, { scope, of }));
    },
  );
  onScope(memory.command('blame').description('show the source of each line of MEMORY.md: trust, turns, time')).action(
    async (scope: string | undefined, { of }: Of) => {
      const { blameMemory } = await import('../actions/memory-document.js');
      context.end(await blameMemory(context, { scope, of }));
    },
  );
  onScope(memory.command('diff').description('show what has changed in MEMORY.md: by the last change, or between two versions'))
    .option('--from <version>', 'a version (or its beginning) or a date')
    .option('--to <version>', 'the same; without it, now')
    .addHelpText('after', DATES)
    .action(async (scope: string | undefined, options: DiffWanted) => {
      const { diffOfMemory } = await import('../actions/memory-document.js');
      context.end(await diffOfMemory(context, { ...options, scope }));
    });
  onScope(memory.command('at').description('print MEMORY.md as it was then').argument('<date>', 'an ISO date, or date and time'))
    .addHelpText('after', DATES)
    .action(async (date: string, scope: string | undefined, { of }: Of) => {
      const { memoryAt } = await import('../actions/memory-document.js');
      context.end(await memoryAt(context, date, { scope, of }));
    });
  onScope(memory.command('log').description('list the changes of MEMORY.md, newest first, with their cause'))
    .option('--limit <count>', 'at most so many', parseCount, 20)
    .action(async (scope: string | undefined, { of, limit }: Of & { readonly limit: number }) => {
      const { logOfMemory } = await import('../actions/memory-document.js');
      context.end(await logOfMemory(context, { scope, of }, { limit }));
    });
  onScope(memory.command('review').description('decide on lines that only a tool has said; on a terminal it asks'))
    .option('--accept <ids...>', 'these are true: they become lines of MEMORY.md')
    .option('--reject <ids...>', 'these are not')
    .action(async (scope: string | undefined, options: ReviewWanted) => {
      const { reviewMemory } = await import('../actions/memory-decide.js');
      context.end(await reviewMemory(context, { ...options, scope }));
    });
  withOf(memory.command('forget').description('remove every line and fact that says this, and prevent its return'))
    .argument('<text>', 'what is to be forgotten, in its own words')
    .option('--scope <scope>', 'whose memory (default: "default")')
    .option('-y, --yes', 'do not ask')
    .action(runs(context, async () => (await import('../actions/memory-decide.js')).forgetInMemory));
  onScope(memory.command('care').description('merge duplicates and prune stale lines, now'))
    .option('--agent <name>', 'whose model and limits; without it, those of the agent that is called as the scope')
    .action(async (scope: string | undefined, options: CareWanted) => {
      const { careForMemory } = await import('../actions/memory.js');
      context.end(await careForMemory(context, { ...options, scope }));
    });
}

export function searchCommand(program: Command, context: CliContext): void {
  withOf(
    program
      .command('search')
      .description('find what was ever said or remembered, by a whole question; or print what stands around an address that it gave')
      .argument('[question]', 'in your own words; names and times ("last May", "2026-02") count'),
  )
    .option('--scope <scope>', 'whose memory (default: "default")')
    .option('--after <date>', 'said on this ISO date or time (UTC) and later')
    .option('--before <date>', 'said before this ISO time (UTC), or up to the end of this ISO date')
    .addOption(new Option('--kind <kind>', `only these; several times for several: ${SEARCHED_KINDS.join(', ')}`).argParser(addKind))
    .option('--in <conversation>', 'said in this conversation')
    .option('--limit <count>', 'at most so many, up to 50', parseCount, 10)
    .option('--open <address>', 'print what was said there and around it')
    .action(async (question: string | undefined, options: SearchWanted) => {
      const { openFound, searchMemory } = await import('../actions/search.js');
      context.end(
        await (options.open === undefined ? searchMemory(context, question, options) : openFound(context, options.open, options)),
      );
    });
}

/** As `search` takes them; loading them from where they are loads the stemmers. */
const SEARCHED_KINDS = ['user', 'assistant', 'tool', 'history', 'memory', 'fact', 'episode', 'item'];

/** One value each time: a list would swallow the question behind it. */
function addKind(kind: string, before: readonly string[] = []): readonly string[] {
  if (!SEARCHED_KINDS.includes(kind)) throw new InvalidArgumentError(`write one of ${SEARCHED_KINDS.join(', ')}.`);
  return [...before, kind];
}

/** For commands on the memory of a scope, which is named or that of a conversation. */
export function onScope(command: Command): Command {
  return withOf(command.argument('[scope]', 'whose memory (default: "default")'));
}

function withOf(command: Command): Command {
  return command.option('--of <conversation>', 'the scope of this conversation');
}

export function historyCommand(program: Command, context: CliContext): void {
  const history = program.command('history').description('HISTORY: what earlier conversations of a scope were about, newest first');
  onScope(history.command('show').description('print the entries of HISTORY'))
    .option('--limit <count>', 'at most so many', parseCount, 20)
    .action(async (scope: string | undefined, options: HistoryWanted) => {
      const { showHistory } = await import('../actions/history.js');
      context.end(await showHistory(context, { ...options, scope }));
    });
  onScope(
    history
      .command('grep')
      .description('search HISTORY, as an agent does with search_history')
      .argument('<text>', 'words that all stand in an entry, in upper or lower case; "in quotation marks" as they stand there'),
  )
    .option('--limit <count>', 'at most so many, up to 50', parseCount, 10)
    .option('--since <date>', 'entries of this ISO date or time (UTC) and later')
    .action(async (text: string, scope: string | undefined, options: GrepWanted) => {
      const { grepHistory } = await import('../actions/history.js');
      context.end(await grepHistory(context, text, { ...options, scope }));
    });
}
