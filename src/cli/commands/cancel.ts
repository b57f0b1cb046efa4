import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('cancel')
    .description('ask a conversation to end now, without its queue')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .action(async (id: string) => {
      const { cancel } = await import('../actions/control.js');
      context.end(await cancel(context, id));
    });
}
