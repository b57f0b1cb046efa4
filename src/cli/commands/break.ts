import { InvalidArgumentError, type Command } from 'commander';
import type { BreakOptions } from '../actions/stepping.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('break')
    .description('stop a conversation before something; what is named is added, and without options they are shown')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--tool <name>', 'before a tool of this name runs; may be said again', withOneMore)
    .option('--event <type>', 'before an event of this type is taken: message, reset, or one of your own; may be said again', withOneMore)
    .option('--on-error', 'when a model call, a tool or a turn fails')
    .option('--cost <usd>', 'once, when it has cost so much, in US dollars', parseUsd)
    .option('--none', 'take away those that there are')
    .action(async (id: string, options: BreakOptions) => {
      const { breakAt } = await import('../actions/stepping.js');
      context.end(await breakAt(context, id, options));
    });
}

function withOneMore(name: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), name];
}

function parseUsd(text: string): number {
  const usd = Number(text.replace(/^\$/, ''));
  if (text.trim() !== '' && Number.isFinite(usd) && usd >= 0) return usd;
  throw new InvalidArgumentError('write an amount in US dollars, such as 0.50');
}
