import type { Command } from 'commander';
import { CliError, EXIT } from '../terminal/exit.js';
import { nearestSlip } from './nearest.js';

/** `perdura shwo conv_1` is a slip, not a message that costs money: without the word `chat` the first word must be a command. */
export function refuseStrayWords(words: readonly string[], isPrint: boolean, program: Command, command: Command): void {
  const isNamed = program.args[0] === command.name();
  const word = words[0];
  if (isNamed || isPrint || word === undefined) return;
  const meant = nearestSlip(
    word,
    program.commands.map((one) => one.name()),
  );
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
  throw new CliError(
    `there is no command ${word}${hint === '' ? ';' : `${hint}`} \`perdura --help\` lists all, and \`perdura chat\` or -p takes words to say`,
    EXIT.usage,
  );
}
