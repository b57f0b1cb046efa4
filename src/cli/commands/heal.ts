import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('heal')
    .description("write again what the store has lost of a conversation, from Temporal's history")
    .argument('<id>', 'the conversation, or the beginning of its id')
    .action(async (id: string) => {
      const { heal } = await import('../actions/heal.js');
      context.end(await heal(context, id));
    });
}
