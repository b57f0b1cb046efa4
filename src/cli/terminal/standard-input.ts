import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Input } from '../session/context.js';

/** Milliseconds that a pipe has to end, or to say something, before a conversation is started for it. */
const END_PATIENCE_MS = 500;

/** Whether it ends with nothing but blanks in it. One that is open and silent after a while may still speak. Whatever it has said stays in it. */
export function endsEmpty(input: Readable, patienceMs = END_PATIENCE_MS): Promise<boolean> {
  const read: Buffer[] = [];
  return new Promise((resolve) => {
    const settle = (isEmpty: boolean): void => {
      clearTimeout(timer);
      input.off('readable', look).off('end', onEnd).off('error', onEnd);
      // At once: a stream that has ended already gives nothing back after its end.
      if (!isEmpty && read.length > 0) input.unshift(Buffer.concat(read));
      resolve(isEmpty);
    };
    const onEnd = (): void => settle(true);
    const look = (): void => {
      for (let chunk = input.read() as Buffer | null; chunk !== null; chunk = input.read() as Buffer | null) read.push(Buffer.from(chunk));
      if (Buffer.concat(read).toString('utf8').trim() !== '') settle(false);
    };
    const timer = setTimeout(() => settle(false), patienceMs);
    input.on('readable', look).on('end', onEnd).on('error', onEnd);
  });
}

/**
 * What was piped in beside a message that was already given: nothing at a terminal, and nothing when a pipe stays open
 * but silent for three seconds, as some programs that call us leave it.
 */
export async function readPipedInput(input: Input, patience = 3000): Promise<string> {
  if (input.isTTY === true) return '';
  const isSilent = await new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => resolve(true), patience);
    const speaks = (): void => {
      clearTimeout(timer);
      resolve(false);
    };
    input.once('readable', speaks).once('end', speaks).once('error', speaks);
  });
  if (!isSilent) return text(input);
  input.destroy();
  return '';
}
