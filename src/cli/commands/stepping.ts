import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { onConversation, runs } from './command.js';
import type { CliContext } from '../session/context.js';
import { parseCount } from '../args/values.js';

export function modeCommand(program: Command, context: CliContext): void {
  onConversation(program, 'mode', 'whether a conversation goes on by itself, or waits for each step; without a mode it is shown')
    .addArgument(new Argument('[mode]', 'auto drains the queue; stepping lets what is under way end').choices(['auto', 'stepping']))
    .action(runs(context, async () => (await import('../actions/stepping.js')).mode));
}

export function stepCommand(program: Command, context: CliContext): void {
  onConversation(program, 'step', 'have a conversation in stepping mode do one thing, and say what it was')
    .option('--count <count>', 'so many steps, or until there is nothing to do', parseCount, 1)
    .action(runs(context, async () => (await import('../actions/stepping.js')).step));
}

export function breakCommand(program: Command, context: CliContext): void {
  onConversation(program, 'break', 'stop a conversation before something; what is named is added, and without options they are shown')
    .option('--tool <name>', 'before a tool of this name runs; may be said again', withOneMore)
    .option('--event <type>', 'before an event of this type is taken: message, reset, or one of your own; may be said again', withOneMore)
    .option('--on-error', 'when a model call, a tool or a turn fails')
    .option('--cost <usd>', 'once, when it has cost so much, in US dollars', parseUsd)
    .option('--none', 'take away those that there are')
    .action(runs(context, async () => (await import('../actions/stepping.js')).breakAt));
}

function withOneMore(name: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), name];
}

function parseUsd(text: string): number {
  const usd = Number(text.replace(/^\$/, ''));
  if (text.trim() !== '' && Number.isFinite(usd) && usd >= 0) return usd;
  throw new InvalidArgumentError('write an amount in US dollars, such as 0.50');
}

export function queueCommand(program: Command, context: CliContext): void {
  onConversation(program, 'queue', 'what waits in a conversation, in its order; and change it by hand')
    .addOption(new Option('--drop <event>', 'take this one out, such as qevt_000003').conflicts(['move', 'clear']))
    .addOption(new Option('--move <event>', 'move this one, to the end or where --before says').conflicts('clear'))
    .option('--before <event>', 'of --move: the event that it goes before')
    .option('--clear', 'take all of them out')
    .option('-y, --yes', 'do not ask')
    .action(runs(context, async () => (await import('../actions/stepping.js')).queue));
}
