import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('answer')
    .description('answer a question of the agent')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .argument('<words...>', 'the answer, or - for stdin; which call, such as turn_0001/c1, may stand before it')
    .action(async (id: string, words: string[]) => {
      const { answer } = await import('../actions/decide.js');
      context.end(await answer(context, id, words));
    });
}
