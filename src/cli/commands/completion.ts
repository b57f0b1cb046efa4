import type { Command } from 'commander';
import { Argument } from 'commander';
import type { Shell } from '../completion.js';
import { completionScript, SHELLS } from '../completion.js';
import type { CliContext } from '../session/context.js';
import { EXIT } from '../terminal/exit.js';

export function register(program: Command, { output, end }: CliContext): void {
  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'which').choices(SHELLS))
    .action((shell: Shell) => {
      output.line(completionScript(program, shell));
      end(EXIT.ok);
    });
}
