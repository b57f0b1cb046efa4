import { type Command, Option } from 'commander';
import { onConversation, runs } from './command.js';
import type { CliContext } from '../session/context.js';
import { parseChunks, parseCount } from '../args/values.js';
import { SPENDING_GROUPS } from '../../records/spending.js';

const STATUSES = ['running', 'waiting', 'failed', 'ended', 'canceled', 'terminated', 'timed-out'];

export function listCommand(program: Command, context: CliContext): void {
  program
    .command('list')
    .description('list conversations, latest first')
    .option('-q, --query <query>', "a query of Temporal's visibility, as in: AgentName = 'default' AND AgentTurns > 10")
    .option('--limit <count>', 'at most so many', parseCount, 20)
    .option('--tenant <name>', "only this tenant's")
    .addOption(new Option('--status <status>', 'only these').choices(STATUSES))
    .action(runs(context, async () => (await import('../actions/list.js')).list));
}

export function showCommand(program: Command, context: CliContext): void {
  onConversation(program, 'show', 'print what was said in a conversation')
    .option('-f, --follow', 'go on with what is said from now on, until the conversation ends')
    .option('--turn <number>', 'only this turn')
    .option('--branch <number>', 'what a rewind has cut: 1 is the first', parseCount)
    .option('--raw', 'raw traces, one JSON a line: the active ones, which no compaction has archived')
    .addOption(new Option('--tools', 'the calls of tools, each beside its result').conflicts(['raw', 'follow']))
    .option('--archived', 'with --raw: also those that compactions have archived')
    .action(runs(context, async () => (await import('../actions/show.js')).show));
}

export function inspectCommand(program: Command, context: CliContext): void {
  onConversation(program, 'inspect', 'show the state of a conversation: phase, context, queue, cost, running effects')
    .option('--turns <count>', 'how many of the last turns', parseCount, 5)
    .action(runs(context, async () => (await import('../actions/inspect.js')).inspect));
}

export function contextCommand(program: Command, context: CliContext): void {
  onConversation(program, 'context', 'show what the next model call sees, and how much still fits')
    .addOption(new Option('--compact', 'make memory of the older turns now, and draw what is left').conflicts(['undo', 'truncate', 'why']))
    .addOption(new Option('--undo', 'take the last compaction back').conflicts(['truncate', 'why']))
    .addOption(new Option('--truncate', 'leave the oldest out of the prompt, down to the hard threshold').conflicts('why'))
    .addOption(
      new Option('--chunks [ids]', 'list the messages of it; with --compact or --truncate: these alone, such as chunk_3,chunk_4')
        .conflicts(['undo', 'why'])
        .argParser(parseChunks),
    )
    .option('--why <turn>', 'why it forgot this turn: what took it out of the prompt, and what stands for it')
    .action(runs(context, async () => (await import('../actions/context.js')).context));
}

export function usageCommand(program: Command, context: CliContext): void {
  program
    .command('usage')
    .description('show what all conversations have spent, failed and late calls included')
    .addOption(new Option('--by <what>', 'one line for each').choices(SPENDING_GROUPS).default('model'))
    .option('--tenant <name>', "only this tenant's")
    .option('--since <date>', 'calls of this ISO date or time (UTC) and later')
    .addHelpText('after', SPENT)
    .action(runs(context, async () => (await import('../actions/usage.js')).usage));
}

const SPENT = `
From the store. A cost is by the prices of the day of the call; "not known", and "+ ?" beside a sum, is of models whose price we do not know.
What a deleted conversation has spent goes with it.`;

export function watchCommand(program: Command, context: CliContext): void {
  onConversation(program, 'watch', 'draw the turns of a conversation as they happen; -o jsonl prints the events')
    .option('--from-start', 'begin with the oldest event that is kept')
    .action(runs(context, async () => (await import('../actions/watch.js')).watch));
}

export function debugCommand(program: Command, context: CliContext): void {
  onConversation(program, 'debug', 'debug a conversation on a whole screen; after its end, event by event')
    .option('--at <turn>', 'its past, from where this turn began')
    .action(runs(context, async () => (await import('../debug/debug.js')).debug));
}
