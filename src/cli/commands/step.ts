import type { Command } from 'commander';
import type { StepOptions } from '../actions/stepping.js';
import type { CliContext } from '../session/context.js';
import { parseCount } from '../args/duration.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('step')
    .description('have a conversation in stepping mode do one thing, and say what it was')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--count <count>', 'so many steps, or until there is nothing to do', parseCount, 1)
    .action(async (id: string, options: StepOptions) => {
      const { step } = await import('../actions/stepping.js');
      context.end(await step(context, id, options));
    });
}
