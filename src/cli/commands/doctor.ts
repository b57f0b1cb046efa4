import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';

export function register(program: Command, { output, config, globals, end }: CliContext): void {
  program
    .command('doctor')
    .description('say whether all that is needed is there, and what mends what is not')
    .option('--report', 'to be pasted: without the name of the home folder')
    .action(async (options: { readonly report?: boolean }) => {
      const { doctor } = await import('../doctor/doctor.js');
      end(await doctor(config(), { ...options, format: globals().output }, output));
    });
}
