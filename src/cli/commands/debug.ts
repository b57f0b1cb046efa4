import type { Command } from 'commander';
import type { DebugOptions } from '../debug/debug.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('debug')
    .description('a conversation on a whole screen: step, pause, look; one that has ended, event by event')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--at <turn>', 'its past, from where this turn began')
    .action(async (id: string, options: DebugOptions) => {
      const { debug } = await import('../debug/debug.js');
      context.end(await debug(context, id, options));
    });
}
