/** Questions to the person at the terminal. */
import type { Surroundings } from '../session/context.js';

export type Person = Pick<Surroundings, 'input' | 'stderr'>;

/** Whether somebody sits there who sees a question and can answer it. */
export function canAsk({ input, stderr }: Person): boolean {
  return input.isTTY === true && stderr.isTTY === true;
}

/** Undefined: left with Ctrl+C. */
export async function confirm({ input, stderr }: Person, message: string, initialValue = false): Promise<boolean | undefined> {
  const prompts = await import('@clack/prompts');
  const answer = await prompts.confirm({ message, initialValue, input, output: stderr });
  return prompts.isCancel(answer) ? undefined : answer;
}
