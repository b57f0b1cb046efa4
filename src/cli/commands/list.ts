import type { Command } from 'commander';
import { Option } from 'commander';
import type { ListOptions } from '../actions/list.js';
import type { CliContext } from '../session/context.js';
import { parseCount } from '../args/duration.js';

const STATUSES = ['running', 'waiting', 'failed', 'ended', 'canceled', 'terminated', 'timed-out'];

export function register(program: Command, context: CliContext): void {
  program
    .command('list')
    .description('list conversations, latest first')
    .option('-q, --query <query>', "a query of Temporal's visibility, as in: AgentName = 'default' AND AgentTurns > 10")
    .option('--limit <count>', 'at most so many', parseCount, 20)
    .addOption(new Option('--status <status>', 'only these').choices(STATUSES))
    .action(async (options: ListOptions) => {
      const { list } = await import('../actions/list.js');
      context.end(await list(context, options));
    });
}
