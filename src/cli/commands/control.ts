import type { Command } from 'commander';
import { parseAmount, parseTokens } from '../args/values.js';
import type { CliContext } from '../session/context.js';
import type { TerminateOptions, BudgetOptions } from '../actions/control.js';

export function budgetCommand(program: Command, context: CliContext): void {
  program
    .command('budget')
    .description('show or set what a conversation may use in all, sub-agents included')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--max-cost <usd>', 'at most so many US dollars', parseAmount)
    .option('--max-tokens <count>', 'at most so many tokens, of prompts and answers together', parseTokens)
    .option('--none', 'no limit any more')
    .action(async (id: string, options: BudgetOptions) => {
      const { budget } = await import('../actions/control.js');
      context.end(await budget(context, id, options));
    });
}

export function renameCommand(program: Command, context: CliContext): void {
  program
    .command('rename')
    .description('give a conversation another title')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .argument('<title>', 'what lists call it')
    .action(async (id: string, title: string) => {
      const { rename } = await import('../actions/control.js');
      context.end(await rename(context, id, title));
    });
}

export function stopCommand(program: Command, context: CliContext): void {
  program
    .command('stop')
    .description('stop the running turn of a conversation; the conversation goes on')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--reason <text>', 'why, for its history')
    .action(async (id: string, options: { readonly reason?: string }) => {
      const { stop } = await import('../actions/control.js');
      context.end(await stop(context, id, options));
    });
}

export function closeCommand(program: Command, context: CliContext): void {
  program
    .command('close')
    .description('end a conversation in good order: no new messages, the queue is run out')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--wait', 'until it has ended')
    .action(async (id: string, options: { readonly wait?: boolean }) => {
      const { close } = await import('../actions/control.js');
      context.end(await close(context, id, options));
    });
}

export function cancelCommand(program: Command, context: CliContext): void {
  program
    .command('cancel')
    .description('ask a conversation to end now, without its queue')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .action(async (id: string) => {
      const { cancel } = await import('../actions/control.js');
      context.end(await cancel(context, id));
    });
}

export function terminateCommand(program: Command, context: CliContext): void {
  program
    .command('terminate')
    .description('end a conversation from outside, at once')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--reason <text>', 'why, for its history')
    .option('-y, --yes', 'do not ask')
    .action(async (id: string, options: TerminateOptions) => {
      const { terminate } = await import('../actions/control.js');
      context.end(await terminate(context, id, options));
    });
}
