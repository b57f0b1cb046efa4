import type { Command } from 'commander';
import { onConversation, runs } from './command.js';
import { parseAmount, parseDuration, parseTokens } from '../args/values.js';
import type { CliContext } from '../session/context.js';

export function rewindCommand(program: Command, context: CliContext): void {
  onConversation(program, 'rewind', 'rewind a conversation to the end of an earlier turn')
    .requiredOption('--to <turn>', 'the last turn that stays: its number')
    .addHelpText('after', KEPT)
    .action(runs(context, async () => (await import('../actions/lineage.js')).rewind));
}

const KEPT = `
A turn that runs is stopped first; messages that wait are answered after it. What is cut is kept as a branch (show --branch, fork --at).
What tools have done is not undone, what was paid stays paid, and numbers of turns go on. Facts that long-term memory has learnt stay.`;

export function retryCommand(program: Command, context: CliContext): void {
  onConversation(program, 'retry', 'answer the last turn again; the old answer is kept as a branch')
    .option('--timeout <duration>', 'wait no longer than 30s, 5m, …; then exit code 124, and it is answered all the same', parseDuration)
    .addHelpText('after', AGAIN)
    .action(runs(context, async () => (await import('../actions/answer-again.js')).retry));
}

export function editCommand(program: Command, context: CliContext): void {
  onConversation(program, 'edit', 'replace the message of a turn; that turn and all later ones are kept as a branch')
    .argument('<message>', 'the message in its place, or - for stdin')
    .option('--turn <turn>', 'its number (default: the last)')
    .option('--timeout <duration>', 'wait no longer than 30s, 5m, …; then exit code 124, and it is answered all the same', parseDuration)
    .addHelpText('after', AGAIN)
    .action(runs(context, async () => (await import('../actions/answer-again.js')).edit));
}

const AGAIN = `
A turn that runs is stopped first. What tools have done is not undone: they may run again. Pictures of the old message stay with it.
\`perdura show ID --branch N\` shows what was there before, and \`perdura fork ID --at\` one of its turns goes on from it.`;

export function forkCommand(program: Command, context: CliContext): void {
  program
    .command('fork')
    .description('start a conversation that begins with the turns of another one, up to one of them')
    .argument('<id>', 'the conversation, or the beginning of its id: running, ended, or long out of Temporal')
    .requiredOption('--at <turn>', 'the last turn that both share: its number, of a branch too')
    .option('--id <id>', 'of the new conversation (default: one is made)')
    .option('--title <text>', 'of the new conversation (default: that of the old one)')
    .option('--agent <name>', 'who answers in it (default: as before)')
    .option('--scope <name>', 'whose long-term memory it has, where Temporal does not know it any more')
    .option('--budget <usd>', 'what it may cost in all, in US dollars (default: what is left of the old one’s)', parseAmount)
    .option('--budget-tokens <count>', 'how many tokens it may use in all (default: what is left)', parseTokens)
    .addHelpText('after', NOTHING_AGAIN)
    .action(runs(context, async () => (await import('../actions/lineage.js')).fork));
}

const NOTHING_AGAIN = `
No model is asked and no tool is run again, and nothing is copied: what was said is read where it lies. So the old conversation
cannot be deleted before the new one. Both have the same long-term memory. The old one goes on as if nothing had happened.`;

export function resumeCommand(program: Command, context: CliContext): void {
  onConversation(program, 'resume', 'resume a conversation that has ended: closed, terminated or failed')
    .option('--title <text>', 'a new one (default: as before)')
    .option('--agent <name>', 'who answers from now on (default: as before)')
    .option('--scope <name>', 'whose long-term memory it has, where Temporal does not know it any more')
    .option('--budget <usd>', 'what it may cost in all, in US dollars (default: what is left of the old one’s)', parseAmount)
    .option('--budget-tokens <count>', 'how many tokens it may use in all (default: what is left)', parseTokens)
    .action(runs(context, async () => (await import('../actions/lineage.js')).resume));
}

export function deleteCommand(program: Command, context: CliContext): void {
  onConversation(program, 'delete', 'remove a conversation that has ended, from the store and from Temporal')
    .option('-y, --yes', 'do not ask')
    .addHelpText('after', STAYS)
    .action(runs(context, async () => (await import('../actions/lineage.js')).remove));
}

const STAYS = `
All lives of it and of its sub-agents go: what was said, traces, summaries and long texts, what HISTORY has of it word for word, and its
runs in Temporal. It cannot be resumed, forked or healed afterwards, and what memory still owed it is dropped. What its scope has learnt
from it stays (perdura memory forget). One that runs is not deleted, nor one whose turns a fork reads: delete the fork first. Cut short,
the same command again does the rest.`;
