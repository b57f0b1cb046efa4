import type { Command } from 'commander';
import { parseAmount, parseTokens } from '../args/values.js';
import { onConversation, runs } from './command.js';
import type { CliContext } from '../session/context.js';

export function budgetCommand(program: Command, context: CliContext): void {
  onConversation(program, 'budget', 'show or set what a conversation may use in all, sub-agents included')
    .option('--max-cost <usd>', 'at most so many US dollars', parseAmount)
    .option('--max-tokens <count>', 'at most so many tokens, of prompts and answers together', parseTokens)
    .option('--none', 'no limit any more')
    .action(runs(context, async () => (await import('../actions/control.js')).budget));
}

export function modelCommand(program: Command, context: CliContext): void {
  onConversation(program, 'model', 'show or change the model that answers in a conversation')
    .argument('[model]', 'provider/name, or "default" for the one of its agent')
    .addHelpText('after', MODEL)
    .action(runs(context, async () => (await import('../actions/control.js')).model));
}

const MODEL = `
It answers from the next call on, with its own limits and price; a call that runs goes on with the old one. Sub-agents keep theirs. Where
the worker has no such provider, the next turn fails and names those that there are; the conversation stays as it is.`;

export function renameCommand(program: Command, context: CliContext): void {
  onConversation(program, 'rename', 'give a conversation another title')
    .argument('<title>', 'what lists call it')
    .action(runs(context, async () => (await import('../actions/control.js')).rename));
}

export function stopCommand(program: Command, context: CliContext): void {
  onConversation(program, 'stop', 'stop the running turn of a conversation; the conversation goes on')
    .option('--reason <text>', 'why, for its history')
    .action(runs(context, async () => (await import('../actions/control.js')).stop));
}

export function closeCommand(program: Command, context: CliContext): void {
  onConversation(program, 'close', 'end a conversation in good order: no new messages, the queue is run out')
    .option('--wait', 'until it has ended')
    .action(runs(context, async () => (await import('../actions/control.js')).close));
}

export function cancelCommand(program: Command, context: CliContext): void {
  onConversation(program, 'cancel', 'ask a conversation to end now, without its queue').action(
    runs(context, async () => (await import('../actions/control.js')).cancel),
  );
}

export function terminateCommand(program: Command, context: CliContext): void {
  onConversation(program, 'terminate', 'end a conversation from outside, at once')
    .option('--reason <text>', 'why, for its history')
    .option('-y, --yes', 'do not ask')
    .action(runs(context, async () => (await import('../actions/control.js')).terminate));
}
