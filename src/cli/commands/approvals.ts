import type { Command } from 'commander';
import type { ApprovalsOptions, ApproveOptions } from '../actions/approvals.js';
import type { CliContext } from '../session/context.js';

export function approvalsCommand(program: Command, context: CliContext): void {
  program
    .command('approvals')
    .description('list what waits for a person: calls that need leave, and questions; of sub-agents too')
    .argument('[id]', 'only of this conversation, or the beginning of its id; shown whole')
    .option('--full', 'with all of their arguments, and how to decide')
    .action(async (id: string | undefined, options: ApprovalsOptions) => {
      const { approvals } = await import('../actions/approvals.js');
      context.end(await approvals(context, id, options));
    });
}

export function approveCommand(program: Command, context: CliContext): void {
  program
    .command('approve')
    .description('let a call run that waits for leave')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .argument('[call]', 'which call, as `perdura approvals` shows it; may be left out when only one waits')
    .option('--note <text>', 'for the model, which reads it with the result')
    .option('--input <json>', "other arguments in place of the model's: JSON, @FILE or - for stdin")
    .action(async (id: string, call: string | undefined, options: ApproveOptions) => {
      const { approve } = await import('../actions/approvals.js');
      context.end(await approve(context, id, call, options));
    });
}

export function denyCommand(program: Command, context: CliContext): void {
  program
    .command('deny')
    .description('refuse a call that waits for leave, or leave a question without an answer')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .argument('[call]', 'which call, as `perdura approvals` shows it; may be left out when only one waits')
    .option('--note <text>', 'why, for the model, which reads it in place of a result')
    .action(async (id: string, call: string | undefined, options: { readonly note?: string }) => {
      const { deny } = await import('../actions/approvals.js');
      context.end(await deny(context, id, call, options));
    });
}

export function answerCommand(program: Command, context: CliContext): void {
  program
    .command('answer')
    .description('answer a question of the agent')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .argument('<words...>', 'the answer, or - for stdin; which call, such as turn_0001/c1, may stand before it')
    .action(async (id: string, words: string[]) => {
      const { answer } = await import('../actions/approvals.js');
      context.end(await answer(context, id, words));
    });
}
