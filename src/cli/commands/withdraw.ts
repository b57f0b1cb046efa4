import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';

export function register(program: Command, context: CliContext): void {
  program
    .command('withdraw')
    .description('take back a message that waits in the queue')
    .argument('<id>', 'the conversation, or the beginning of its id')
    .argument('<message-id>', 'the message, as `perdura send --signal` or `--enqueue` printed it')
    .action(async (id: string, messageId: string) => {
      const { withdraw } = await import('../actions/withdraw.js');
      context.end(await withdraw(context, id, messageId));
    });
}
