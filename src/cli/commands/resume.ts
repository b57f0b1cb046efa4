import type { Command } from 'commander';
import type { LifeOptions } from '../actions/lineage.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('resume')
    .description('go on with a conversation that has ended: closed, terminated or failed')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--title <text>', 'a new one (default: as before)')
    .option('--agent <name>', 'who answers from now on (default: as before)')
    .option('--scope <name>', 'whose long-term memory it has, where Temporal does not know it any more')
    .action(async (id: string, options: LifeOptions) => {
      const { resume } = await import('../actions/lineage.js');
      context.end(await resume(context, id, options));
    });
}
