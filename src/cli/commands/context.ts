import type { Command } from 'commander';
import { Option } from 'commander';
import type { ContextOptions } from '../actions/context.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('context')
    .description('draw what the next model call sees, and how much still fits')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .addOption(new Option('--compact', 'make memory of the older turns now, and draw what is left').conflicts(['undo', 'truncate', 'why']))
    .addOption(new Option('--undo', 'take the last compaction back').conflicts(['truncate', 'why']))
    .addOption(new Option('--truncate', 'leave the oldest out of the prompt, down to the hard threshold').conflicts('why'))
    .option('--why <turn>', 'why it forgot this turn: what took it out of the prompt, and what stands for it')
    .action(async (id: string, options: ContextOptions) => {
      const { context: draw } = await import('../actions/context.js');
      context.end(await draw(context, id, options));
    });
}
