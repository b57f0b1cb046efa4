import type { Command } from 'commander';
import type { BudgetOptions } from '../actions/budget.js';
import { parseAmount, parseTokens } from '../args/amount.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('budget')
    .description('show or set what a conversation may use in all, sub-agents included')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--max-cost <usd>', 'at most so many US dollars', parseAmount)
    .option('--max-tokens <count>', 'at most so many tokens, of prompts and answers together', parseTokens)
    .option('--none', 'no limit any more')
    .action(async (id: string, options: BudgetOptions) => {
      const { budget } = await import('../actions/budget.js');
      context.end(await budget(context, id, options));
    });
}
