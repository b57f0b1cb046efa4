import { Option, type Command } from 'commander';
import { onConversation, runs } from './command.js';
import type { CliContext } from '../session/context.js';

export function approvalsCommand(program: Command, context: CliContext): void {
  program
    .command('approvals')
    .description('list what waits for a person: approvals and questions, those of sub-agents too')
    .argument('[id]', 'only of this conversation, or the beginning of its id; shown whole')
    .option('--full', 'with all of their arguments, and how to decide')
    .action(runs(context, async () => (await import('../actions/approvals.js')).approvals));
}

export function approveCommand(program: Command, context: CliContext): void {
  onConversation(program, 'approve', 'approve a call, which then runs')
    .argument('[call]', 'which call, as `perdura approvals` shows it; may be left out when only one waits')
    .option('--note <text>', 'for the model, which reads it with the result')
    .option('--input <json>', "other arguments in place of the model's: JSON, @FILE or - for stdin")
    .addOption(
      new Option('--always [where]', 'let this very call run without asking from now on: in this conversation, or wherever its agent works')
        .choices(['conversation', 'agent'])
        .preset('conversation'),
    )
    .option('--yes', 'save what --always shows without being asked')
    .action(runs(context, async () => (await import('../actions/approvals.js')).approve));
}

export function denyCommand(program: Command, context: CliContext): void {
  onConversation(program, 'deny', 'deny a call, or leave a question without an answer')
    .argument('[call]', 'which call, as `perdura approvals` shows it; may be left out when only one waits')
    .option('--note <text>', 'why, for the model, which reads it in place of a result')
    .action(runs(context, async () => (await import('../actions/approvals.js')).deny));
}

export function answerCommand(program: Command, context: CliContext): void {
  onConversation(program, 'answer', 'answer a question of the agent')
    .argument('<words...>', 'the answer, or - for stdin; which call, such as turn_0001/c1, may stand before it')
    .action(runs(context, async () => (await import('../actions/approvals.js')).answer));
}
