import type { Command } from 'commander';
import type { ApprovalsOptions } from '../actions/approvals.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('approvals')
    .description('list what waits for a person: calls that need leave, and questions; of sub-agents too')
    .argument('[id]', 'only of this conversation, or the beginning of its id; shown whole')
    .option('--full', 'with all of their arguments, and how to decide')
    .action(async (id: string | undefined, options: ApprovalsOptions) => {
      const { approvals } = await import('../actions/approvals.js');
      context.end(await approvals(context, id, options));
    });
}
