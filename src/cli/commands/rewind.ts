import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('rewind')
    .description('take turns of a conversation back: it goes on from the end of an earlier one')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .requiredOption('--to <turn>', 'the last turn that stays: its number')
    .addHelpText('after', KEPT)
    .action(async (id: string, options: { readonly to: string }) => {
      const { rewind } = await import('../actions/lineage.js');
      context.end(await rewind(context, id, options));
    });
}

const KEPT = `
A turn that runs is stopped first; messages that wait are answered after it. What is cut is kept as a branch (show --branch, fork --at).
What tools have done is not undone, what was paid stays paid, and numbers of turns go on. Facts that long-term memory has learnt stay.`;
