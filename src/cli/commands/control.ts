import { type Command, Argument, InvalidArgumentError, Option } from 'commander';
import { parseAmount, parseTokens, parseCount } from '../args/values.js';
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
  onConversation(program, 'close', 'close a conversation: it takes no new messages, and ends after its queue')
    .option('--wait', 'until it has ended')
    .option('--no-memory', 'nothing of it goes to long-term memory, and nothing is waited for there')
    .action(runs(context, async () => (await import('../actions/control.js')).close));
}

export function cancelCommand(program: Command, context: CliContext): void {
  onConversation(program, 'cancel', 'end a conversation now, without its queue').action(
    runs(context, async () => (await import('../actions/control.js')).cancel),
  );
}

export function terminateCommand(program: Command, context: CliContext): void {
  onConversation(program, 'terminate', 'terminate the workflow at once, without cleanup')
    .option('--reason <text>', 'why, for its history')
    .option('-y, --yes', 'do not ask')
    .action(runs(context, async () => (await import('../actions/control.js')).terminate));
}

export function modeCommand(program: Command, context: CliContext): void {
  onConversation(program, 'mode', 'show or set the mode: auto runs by itself, stepping waits for each step')
    .addArgument(new Argument('[mode]', 'auto drains the queue; stepping lets what is under way end').choices(['auto', 'stepping']))
    .action(runs(context, async () => (await import('../actions/stepping.js')).mode));
}

export function stepCommand(program: Command, context: CliContext): void {
  onConversation(program, 'step', 'do one step in stepping mode, and say what it was')
    .option('--count <count>', 'so many steps, or until there is nothing to do', parseCount, 1)
    .addOption(new Option('--into', 'the next step of a sub-agent that holds, before the conversation’s own').conflicts('over'))
    .option('--over', 'sub-agents go on until they have reported, wait for a person or stop at a breakpoint; then all hold again')
    .addHelpText('after', STEP)
    .action(runs(context, async () => (await import('../actions/stepping.js')).step));
}

const STEP = `
Sub-agents have the mode and the breakpoints of the conversation that started them, and one that stops at a breakpoint stops all of them.
Without --into or --over a step is the conversation's own next thing, and with none, the next thing of the first sub-agent that holds;
\`perdura step CHILD\` steps a certain one. \`perdura mode\`, \`inspect\` and \`debug\` show which of them hold.`;

export function breakCommand(program: Command, context: CliContext): void {
  onConversation(program, 'break', 'add a breakpoint; without options, show them')
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
  onConversation(program, 'queue', 'show the queue of a conversation, and change it')
    .addOption(new Option('--drop <event>', 'take this one out, such as qevt_000003').conflicts(['move', 'clear']))
    .addOption(new Option('--move <event>', 'move this one, to the end or where --before says').conflicts('clear'))
    .option('--before <event>', 'of --move: the event that it goes before')
    .option('--clear', 'take all of them out')
    .option('-y, --yes', 'do not ask')
    .action(runs(context, async () => (await import('../actions/stepping.js')).queue));
}
