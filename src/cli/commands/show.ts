import type { Command } from 'commander';
import type { ShowOptions } from '../actions/show.js';
import type { CliContext } from '../session/context.js';
import { parseCount } from '../args/duration.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('show')
    .description('print what was said in a conversation')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('-f, --follow', 'go on with what is said from now on, until the conversation ends')
    .option('--turn <number>', 'only this turn')
    .option('--branch <number>', 'what a rewind has cut: 1 is the first', parseCount)
    .option('--raw', 'raw traces, one JSON a line: the active ones, which no compaction has archived')
    .option('--archived', 'with --raw: also those that compactions have archived')
    .action(async (id: string, options: ShowOptions) => {
      const { show } = await import('../actions/show.js');
      context.end(await show(context, id, options));
    });
}
