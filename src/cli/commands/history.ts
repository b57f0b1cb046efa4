import type { Command } from 'commander';
import type { GrepWanted, HistoryWanted } from '../actions/history.js';
import type { CliContext } from '../session/context.js';
import { parseCount } from '../args/duration.js';
import { onScope } from './memory.js';

export function register(program: Command, context: CliContext): void {
  const history = program.command('history').description('HISTORY: what earlier conversations of a scope were about, newest first');
  onScope(history.command('show').description('print its entries'))
    .option('--limit <count>', 'at most so many', parseCount, 20)
    .action(async (scope: string | undefined, options: HistoryWanted) => {
      const { showHistory } = await import('../actions/history.js');
      context.end(await showHistory(context, { ...options, scope }));
    });
  onScope(
    history
      .command('grep')
      .description('search it, as an agent does with search_history')
      .argument('<text>', 'words that all stand in an entry, in upper or lower case; "in quotation marks" as they stand there'),
  )
    .option('--limit <count>', 'at most so many, up to 50', parseCount, 10)
    .option('--since <date>', 'entries of this ISO date or time (UTC) and later')
    .action(async (text: string, scope: string | undefined, options: GrepWanted) => {
      const { grepHistory } = await import('../actions/history.js');
      context.end(await grepHistory(context, text, { ...options, scope }));
    });
}
