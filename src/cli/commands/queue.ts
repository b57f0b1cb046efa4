import { Option, type Command } from 'commander';
import type { QueueOptions } from '../actions/stepping.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('queue')
    .description('what waits in a conversation, in its order; and change it by hand')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .addOption(new Option('--drop <event>', 'take this one out, such as qevt_000003').conflicts(['move', 'clear']))
    .addOption(new Option('--move <event>', 'move this one, to the end or where --before says').conflicts('clear'))
    .option('--before <event>', 'of --move: the event that it goes before')
    .option('--clear', 'take all of them out')
    .option('-y, --yes', 'do not ask')
    .action(async (id: string, options: QueueOptions) => {
      const { queue } = await import('../actions/stepping.js');
      context.end(await queue(context, id, options));
    });
}
