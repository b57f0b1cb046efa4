import { Argument, type Command } from 'commander';
import type { ControlMode } from '../../conversation/protocol/stepping.js';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('mode')
    .description('whether a conversation goes on by itself, or waits for each step; without a mode it is shown')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .addArgument(new Argument('[mode]', 'auto drains the queue; stepping lets what is under way end').choices(['auto', 'stepping']))
    .action(async (id: string, wanted: ControlMode | undefined) => {
      const { mode } = await import('../actions/stepping.js');
      context.end(await mode(context, id, wanted));
    });
}
