import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('stop')
    .description('stop the running turn of a conversation; the conversation goes on')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--reason <text>', 'why, for its history')
    .action(async (id: string, options: { readonly reason?: string }) => {
      const { stop } = await import('../actions/control.js');
      context.end(await stop(context, id, options));
    });
}
