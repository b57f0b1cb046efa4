import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('deny')
    .description('refuse a call that waits for leave, or leave a question without an answer')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .argument('[call]', 'which call, as `perdura approvals` shows it; may be left out when only one waits')
    .option('--note <text>', 'why, for the model, which reads it in place of a result')
    .action(async (id: string, call: string | undefined, options: { readonly note?: string }) => {
      const { deny } = await import('../actions/decide.js');
      context.end(await deny(context, id, call, options));
    });
}
