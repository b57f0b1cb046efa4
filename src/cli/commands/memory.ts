import type { Command } from 'commander';
import { Option } from 'commander';
import type { MemoryListOptions } from '../actions/memory-list.js';
import type { CliContext } from '../context.js';

export function register(program: Command, context: CliContext): void {
  const memory = program.command('memory').description('what is remembered beyond what was said word for word');
  memory
    .command('list')
    .description("list a conversation's summaries of older turns (episodic), and the facts of its scope (semantic)")
    .argument('<id>', 'the conversation, or the beginning of its id')
    .addOption(new Option('--episodic', 'only summaries, with the turns that each stands for').conflicts('semantic'))
    .option('--semantic', 'only facts, with where they were learnt')
    .action(async (id: string, options: MemoryListOptions) => {
      const { listMemory } = await import('../actions/memory-list.js');
      context.end(await listMemory(context, id, options));
    });
}
