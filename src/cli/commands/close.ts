import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('close')
    .description('end a conversation in good order: no new messages, the queue is run out')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--wait', 'until it has ended')
    .action(async (id: string, options: { readonly wait?: boolean }) => {
      const { close } = await import('../actions/control.js');
      context.end(await close(context, id, options));
    });
}
