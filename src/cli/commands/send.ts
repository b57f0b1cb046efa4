import type { Command } from 'commander';
import { Option } from 'commander';
import type { SendOptions } from '../actions/send.js';
import type { CliContext } from '../session/context.js';
import { parseDuration } from '../args/duration.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('send')
    .description('send a message to a running conversation and print its answer')
    .argument('<id>', 'the conversation')
    .argument('<message>', 'the message, or - for stdin')
    .option('--signal', 'by signal: do not wait, print the id of the message')
    .option('--id <key>', 'id of the message: the same id twice is one message')
    .option('--wait', 'for the answer (the default)', true)
    .option('--no-wait', 'the same as --signal')
    .option('--enqueue', 'do not wait: print a receipt, with the turn that the message becomes')
    .addOption(
      new Option(
        '--delivery <how>',
        'queue: after the running turn; steer: into it, at its next tool border; interrupt: in its place',
      ).choices(['queue', 'steer', 'interrupt']),
    )
    .option('--payload <json>', 'data for the model, shown after the text: JSON, @FILE or - for stdin')
    .option('--output-schema <json>', 'JSON Schema of the object that the answer must be: JSON or @FILE')
    .option('--context <json>', 'values that tools see and the model never does, from this turn on: JSON or @FILE')
    .option('--timeout <duration>', 'wait no longer than 30s, 5m, …; then exit code 124, and the message stays sent', parseDuration)
    .action(async (id: string, message: string, options: SendOptions) => {
      const { send } = await import('../actions/send.js');
      context.end(await send(context, id, message, options));
    });
}
