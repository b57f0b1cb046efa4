import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';

export function register(program: Command, { output, config, end }: CliContext): void {
  program
    .command('setup')
    .description('register search attributes and set the retention of the namespace that TEMPORAL_* names')
    .action(async () => {
      const { setup } = await import('../setup.js');
      end(await setup(config(), output));
    });
}
