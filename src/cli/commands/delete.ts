import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('delete')
    .description('remove a conversation that has ended, from the store and from Temporal')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('-y, --yes', 'do not ask')
    .addHelpText('after', STAYS)
    .action(async (id: string, options: { readonly yes?: boolean }) => {
      const { remove } = await import('../actions/lineage.js');
      context.end(await remove(context, id, options));
    });
}

const STAYS = `
All lives of it go: what was said, its traces, its summaries and long texts, and its runs in Temporal. What its scope has learnt from it
stays (perdura memory forget). One that runs is not deleted, nor one whose turns a fork reads: delete the fork first.`;
