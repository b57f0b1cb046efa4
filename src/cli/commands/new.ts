import { Option, type Command } from 'commander';
import type { NewOptions } from '../actions/new.js';
import { parseAmount, parseTokens } from '../args/amount.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('new')
    .description('start a conversation and print its id')
    .option('--agent <name>', 'its agent')
    .option('--title <text>', 'what lists call it')
    .option('--model <provider/name>', "a model other than the agent's")
    .option('--scope <name>', 'whose long-term memory it uses')
    .addOption(new Option('--mode <mode>', 'stepping: it waits for each `perdura step`').choices(['auto', 'stepping']))
    .option('--budget <usd>', 'what it may cost in all, in US dollars', parseAmount)
    .option('--budget-tokens <count>', 'how many tokens it may use in all', parseTokens)
    .option('--context <json>', 'values that tools see and the model never does: JSON, @FILE or - for stdin')
    .option('--id <id>', 'its id; one that runs already is left as it is')
    .action(async (options: NewOptions) => {
      const { newConversation } = await import('../actions/new.js');
      context.end(await newConversation(context, options));
    });
}
