import type { Command } from 'commander';
import type { CliContext } from '../context.js';

export function register(program: Command, { output, config, end }: CliContext): void {
  program
    .command('worker')
    .description('take work from the task queue until Ctrl+C')
    .action(async () => {
      const { worker } = await import('../worker.js');
      end(await worker(config(), output));
    });
}
