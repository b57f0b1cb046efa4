import type { Command } from 'commander';
import type { ImportOptions } from '../actions/import.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('import')
    .description('start a conversation that keeps what `perdura export --format seed` wrote, or another program in the same layout')
    .argument('<dir>', 'the folder')
    .option('--id <id>', 'the new conversation; it must not be running')
    .option('--agent <name>', 'its agent')
    .option('--scope <name>', 'whose long-term memory takes the facts (default: one of its own, named as the conversation)')
    .addHelpText('after', HONESTY)
    .action(async (dir: string, options: ImportOptions) => {
      const { importConversation } = await import('../actions/import.js');
      context.end(await importConversation(context, dir, options));
    });
}

const HONESTY = `
What was said and its summaries are kept beside the new conversation, as an earlier life of it: show, memory list and export
tell them, but they are not in what its model is shown, and its own turns begin at 1. The facts go to its scope, which numbers
them anew, and its model is told them: import into a scope that others use only what you trust.`;
