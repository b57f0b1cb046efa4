import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';
import { parseCount } from '../args/duration.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('inspect')
    .description('say how a conversation stands: phase, context, queue, cost, what is under way')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--turns <count>', 'how many of the last turns', parseCount, 5)
    .action(async (id: string, options: { readonly turns: number }) => {
      const { inspect } = await import('../actions/inspect.js');
      context.end(await inspect(context, id, options));
    });
}
