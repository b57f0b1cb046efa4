import { type Command, Option } from 'commander';
import { onConversation, runs } from './command.js';
import type { CliContext } from '../session/context.js';

export function exportCommand(program: Command, context: CliContext): void {
  onConversation(program, 'export', 'print a whole conversation, to read, to keep or to replay')
    .addOption(
      new Option(
        '--format <format>',
        "md to read (the default), json or jsonl to process, history: Temporal's own of every run, for replay, seed: a folder of raw traces and memory, which `perdura import` reads",
      ).choices(['md', 'jsonl', 'json', 'history', 'seed']),
    )
    .option('--out <dir>', 'where --format seed writes its folder; nothing there is overwritten (default: the id, in this folder)')
    .action(runs(context, async () => (await import('../actions/transfer.js')).exportConversation));
}

export function importCommand(program: Command, context: CliContext): void {
  program
    .command('import')
    .description('start a conversation that keeps what `perdura export --format seed` wrote, or another program in the same layout')
    .argument('<dir>', 'the folder')
    .option('--id <id>', 'the new conversation; it must not be running')
    .option('--agent <name>', 'its agent')
    .option('--scope <name>', 'whose long-term memory takes the facts (default: one of its own, named as the conversation)')
    .addHelpText('after', HONESTY)
    .action(runs(context, async () => (await import('../actions/transfer.js')).importConversation));
}

const HONESTY = `
What was said and its summaries are kept beside the new conversation, as an earlier life of it: show, memory list and export
tell them, but they are not in what its model is shown, and its own turns begin at 1. The facts go to its scope, which numbers
them anew, and its model is told them: import into a scope that others use only what you trust.`;

export function healCommand(program: Command, context: CliContext): void {
  onConversation(program, 'heal', "write again what the store has lost of a conversation, from Temporal's history").action(
    runs(context, async () => (await import('../actions/heal.js')).heal),
  );
}
