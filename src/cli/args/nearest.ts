import type { Command } from 'commander';
import { CliError, EXIT } from '../terminal/exit.js';

/** Which known word a mistyped one was meant to be. */
export function nearest<Word extends string>(word: string, known: readonly [Word, ...Word[]]): Word {
  const ranked = known.map((name) => ({ name, distance: editDistance(word, name) }));
  return ranked.reduce((best, other) => (other.distance < best.distance ? other : best)).name;
}

/** The nearest one, or none when all are too far to be a slip of the fingers. */
export function nearestSlip(word: string, known: readonly string[]): string | undefined {
  const [first, ...others] = known;
  if (first === undefined) return undefined;
  const found = nearest(word, [first, ...others]);
  return editDistance(word, found) <= Math.max(1, Math.floor(found.length * 0.4)) ? found : undefined;
}

/** A swap of neighbours counts as one. */
function editDistance(a: string, b: string): number {
  const [left, right] = [[...a], [...b]];
  let before: number[] = [];
  let row = Array.from({ length: right.length + 1 }, (_, at) => at);
  for (const [i, letter] of left.entries()) {
    const next = [i + 1];
    for (const [j, other] of right.entries()) {
      const plain = Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, (row[j] ?? 0) + (letter === other ? 0 : 1));
      const isSwap = i > 0 && j > 0 && letter === right[j - 1] && left[i - 1] === other;
      next.push(isSwap ? Math.min(plain, (before[j - 1] ?? 0) + 1) : plain);
    }
    before = row;
    row = next;
  }
  return row[right.length] ?? 0;
}

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
