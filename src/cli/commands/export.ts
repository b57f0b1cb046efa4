import type { Command } from 'commander';
import { Option } from 'commander';
import type { ExportOptions } from '../actions/export.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('export')
    .description('print a whole conversation, to read, to keep or to replay')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .addOption(
      new Option(
        '--format <format>',
        "md to read (the default), json or jsonl to process, history: Temporal's own of every run, for replay, seed: a folder of raw traces and memory, which `perdura import` reads",
      ).choices(['md', 'jsonl', 'json', 'history', 'seed']),
    )
    .option('--out <dir>', 'where --format seed writes its folder; nothing there is overwritten (default: the id, in this folder)')
    .action(async (id: string, options: ExportOptions) => {
      const { exportConversation } = await import('../actions/export.js');
      context.end(await exportConversation(context, id, options));
    });
}
