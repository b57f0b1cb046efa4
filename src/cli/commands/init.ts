import { type Command, Option } from 'commander';
import type { CliContext } from '../session/context.js';
import { runs } from './command.js';

export function initCommand(program: Command, context: CliContext): void {
  program
    .command('init')
    .description('make a project: an agent, a tool in TypeScript, a test of both')
    .argument('[dir]', 'its folder, which is made if it is not there (default: this one)')
    .option('--name <name>', 'of the package (default: the name of the folder)')
    .option('--force', 'overwrite files that are there')
    .option('--no-install', 'write the files and install no packages')
    .addOption(new Option('--folder <dir>', 'in place of a folder that was not named').hideHelp())
    .action(runs(context, async () => (await import('../init/init.js')).init));
}
