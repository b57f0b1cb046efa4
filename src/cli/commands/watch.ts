import type { Command } from 'commander';
import type { WatchOptions } from '../actions/watch.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('watch')
    .description('draw the turns of a conversation as they happen; -o jsonl prints the events')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--from-start', 'begin with the oldest event that is kept')
    .action(async (id: string, options: WatchOptions) => {
      const { watch } = await import('../actions/watch.js');
      context.end(await watch(context, id, options));
    });
}
