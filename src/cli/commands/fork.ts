import type { Command } from 'commander';
import type { ForkOptions } from '../actions/lineage.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('fork')
    .description('start a conversation that begins with the turns of another one, up to one of them')
    .argument('<id>', 'the conversation, or the beginning of its id: running, ended, or long out of Temporal')
    .requiredOption('--at <turn>', 'the last turn that both share: its number, of a branch too')
    .option('--id <id>', 'of the new conversation (default: one is made)')
    .option('--title <text>', 'of the new conversation (default: that of the old one)')
    .option('--agent <name>', 'who answers in it (default: as before)')
    .option('--scope <name>', 'whose long-term memory it has, where Temporal does not know it any more')
    .addHelpText('after', NOTHING_AGAIN)
    .action(async (id: string, options: ForkOptions) => {
      const { fork } = await import('../actions/lineage.js');
      context.end(await fork(context, id, options));
    });
}

const NOTHING_AGAIN = `
No model is asked and no tool is run again, and nothing is copied: what was said is read where it lies. So the old conversation
cannot be deleted before the new one. Both have the same long-term memory. The old one goes on as if nothing had happened.`;
