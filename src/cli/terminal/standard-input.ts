import type { ReadStream } from 'node:tty';
import { text } from 'node:stream/consumers';

/** All of stdin. */
export function readStandardInput(): Promise<string> {
  return text(process.stdin);
}

/**
 * What was piped in beside a message that was already given: nothing at a terminal, and nothing when a pipe stays open
 * but silent for three seconds, as some programs that call us leave it.
 */
export async function readPipedInput(patience = 3000): Promise<string> {
  const input: ReadStream = process.stdin;
  if (input.isTTY) return '';
  const isSilent = await new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => resolve(true), patience);
    const speaks = (): void => {
      clearTimeout(timer);
      resolve(false);
    };
    input.once('readable', speaks).once('end', speaks).once('error', speaks);
  });
  if (!isSilent) return readStandardInput();
  input.destroy();
  return '';
}
