import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('rename')
    .description('give a conversation another title')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .argument('<title>', 'what lists call it')
    .action(async (id: string, title: string) => {
      const { rename } = await import('../actions/control.js');
      context.end(await rename(context, id, title));
    });
}
