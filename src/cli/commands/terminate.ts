import type { Command } from 'commander';
import type { TerminateOptions } from '../actions/control.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('terminate')
    .description('end a conversation from outside, at once')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--reason <text>', 'why, for its history')
    .option('-y, --yes', 'do not ask')
    .action(async (id: string, options: TerminateOptions) => {
      const { terminate } = await import('../actions/control.js');
      context.end(await terminate(context, id, options));
    });
}
