import type { Command } from 'commander';
import { Option } from 'commander';
import type { CliContext } from '../session/context.js';

export function register(program: Command, { output, config, end }: CliContext): void {
  program
    .command('worker')
    .description('take work from the task queue until Ctrl+C')
    .addOption(new Option('--when-told', 'only once the parent process says so').hideHelp())
    .action(async (options: { readonly whenTold?: boolean }) => {
      const { worker } = await import('../worker.js');
      end(await worker(config(), output, options));
    });
}
