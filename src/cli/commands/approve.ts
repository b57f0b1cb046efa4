import type { Command } from 'commander';
import type { ApproveOptions } from '../actions/decide.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('approve')
    .description('let a call run that waits for leave')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .argument('[call]', 'which call, as `perdura approvals` shows it; may be left out when only one waits')
    .option('--note <text>', 'for the model, which reads it with the result')
    .option('--input <json>', "other arguments in place of the model's: JSON, @FILE or - for stdin")
    .action(async (id: string, call: string | undefined, options: ApproveOptions) => {
      const { approve } = await import('../actions/decide.js');
      context.end(await approve(context, id, call, options));
    });
}
