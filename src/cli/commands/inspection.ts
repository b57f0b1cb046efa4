import { type Command, Option } from 'commander';
import type { ListOptions } from '../actions/list.js';
import type { CliContext } from '../session/context.js';
import { parseCount } from '../args/values.js';
import type { ShowOptions } from '../actions/show.js';
import type { ContextOptions } from '../actions/context.js';
import type { WatchOptions } from '../actions/watch.js';
import type { DebugOptions } from '../debug/debug.js';

const STATUSES = ['running', 'waiting', 'failed', 'ended', 'canceled', 'terminated', 'timed-out'];

export function listCommand(program: Command, context: CliContext): void {
  program
    .command('list')
    .description('list conversations, latest first')
    .option('-q, --query <query>', "a query of Temporal's visibility, as in: AgentName = 'default' AND AgentTurns > 10")
    .option('--limit <count>', 'at most so many', parseCount, 20)
    .addOption(new Option('--status <status>', 'only these').choices(STATUSES))
    .action(async (options: ListOptions) => {
      const { list } = await import('../actions/list.js');
      context.end(await list(context, options));
    });
}

export function showCommand(program: Command, context: CliContext): void {
  program
    .command('show')
    .description('print what was said in a conversation')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('-f, --follow', 'go on with what is said from now on, until the conversation ends')
    .option('--turn <number>', 'only this turn')
    .option('--branch <number>', 'what a rewind has cut: 1 is the first', parseCount)
    .option('--raw', 'raw traces, one JSON a line: the active ones, which no compaction has archived')
    .option('--archived', 'with --raw: also those that compactions have archived')
    .action(async (id: string, options: ShowOptions) => {
      const { show } = await import('../actions/show.js');
      context.end(await show(context, id, options));
    });
}

export function inspectCommand(program: Command, context: CliContext): void {
  program
    .command('inspect')
    .description('say how a conversation stands: phase, context, queue, cost, what is under way')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--turns <count>', 'how many of the last turns', parseCount, 5)
    .action(async (id: string, options: { readonly turns: number }) => {
      const { inspect } = await import('../actions/inspect.js');
      context.end(await inspect(context, id, options));
    });
}

export function contextCommand(program: Command, context: CliContext): void {
  program
    .command('context')
    .description('draw what the next model call sees, and how much still fits')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .addOption(new Option('--compact', 'make memory of the older turns now, and draw what is left').conflicts(['undo', 'truncate', 'why']))
    .addOption(new Option('--undo', 'take the last compaction back').conflicts(['truncate', 'why']))
    .addOption(new Option('--truncate', 'leave the oldest out of the prompt, down to the hard threshold').conflicts('why'))
    .option('--why <turn>', 'why it forgot this turn: what took it out of the prompt, and what stands for it')
    .action(async (id: string, options: ContextOptions) => {
      const { context: draw } = await import('../actions/context.js');
      context.end(await draw(context, id, options));
    });
}

export function watchCommand(program: Command, context: CliContext): void {
  program
    .command('watch')
    .description('draw the turns of a conversation as they happen; -o jsonl prints the events')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--from-start', 'begin with the oldest event that is kept')
    .action(async (id: string, options: WatchOptions) => {
      const { watch } = await import('../actions/watch.js');
      context.end(await watch(context, id, options));
    });
}

export function debugCommand(program: Command, context: CliContext): void {
  program
    .command('debug')
    .description('a conversation on a whole screen: step, pause, look; one that has ended, event by event')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .option('--at <turn>', 'its past, from where this turn began')
    .action(async (id: string, options: DebugOptions) => {
      const { debug } = await import('../debug/debug.js');
      context.end(await debug(context, id, options));
    });
}
