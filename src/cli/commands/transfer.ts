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
    .description('start a conversation that goes on from what `perdura export --format seed` wrote, or another program in the same layout')
    .argument('<dir>', 'the folder')
    .option('--id <id>', 'the new conversation; it must not be running')
    .option('--agent <name>', 'its agent')
    .option('--tenant <name>', 'whose it is, where several share the installation')
    .option('--scope <name>', 'whose long-term memory takes the facts (default: one of its own, named as the conversation)')
    .addHelpText('after', HONESTY)
    .action(runs(context, async () => (await import('../actions/transfer.js')).importConversation));
}

const HONESTY = `
The conversation goes on: its model sees the imported turns as if they were said here, summaries stand for the turns that were
archived, and fork and rewind take it back to any of them. Thinking goes to no model, because another account's may be refused.
The facts go to its scope, which numbers them anew. Import into a scope that others use only what you trust: what the files name
as words of the person counts as such.`;

export function healCommand(program: Command, context: CliContext): void {
  onConversation(program, 'heal', "rebuild what the store has lost of a conversation, from Temporal's history").action(
    runs(context, async () => (await import('../actions/heal.js')).heal),
  );
}
