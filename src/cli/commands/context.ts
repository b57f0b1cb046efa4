import type { Command } from 'commander';
import { Option } from 'commander';
import type { ContextOptions } from '../actions/context.js';
import type { CliContext } from '../context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('context')
    .description('draw what the next model call sees, and how much still fits')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .addOption(new Option('--compact', 'make memory of the older turns now, and draw what is left').conflicts('undo'))
    .option('--undo', 'take the last compaction back')
    .action(async (id: string, options: ContextOptions) => {
      const { context: draw } = await import('../actions/context.js');
      context.end(await draw(context, id, options));
    });
}
