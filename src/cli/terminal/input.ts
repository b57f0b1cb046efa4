/** What comes from the person: answers to questions, Ctrl+C, and what is piped in. */
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Input, Signals, Surroundings } from '../session/context.js';
import { decodeText } from '../../records/file-type.js';

export type Person = Pick<Surroundings, 'input' | 'stderr'>;

/** Whether a person at the terminal can see a question and answer it. */
export function canAsk({ input, stderr }: Person): boolean {
  return input.isTTY === true && stderr.isTTY === true;
}

/** Undefined: left with Ctrl+C. */
export async function confirm({ input, stderr }: Person, message: string, initialValue = false): Promise<boolean | undefined> {
  const prompts = await import('@clack/prompts');
  const answer = await prompts.confirm({ message, initialValue, input, output: stderr });
  return prompts.isCancel(answer) ? undefined : answer;
}

/**
 * Calls `handle` once per Ctrl+C, or once per signal. Under `npm start` one Ctrl+C arrives twice, from the terminal and
 * from npm, which passes it on: what comes within 100 ms is the same one. Returns the way to stop listening.
 */
export function onInterrupt(signals: Signals, handle: () => void, now: () => number = Date.now): () => void {
  let last = -Infinity;
  const listener = (): void => {
    const at = now();
    if (at - last < 100) return;
    last = at;
    handle();
  };
  signals.on('SIGINT', listener);
  return () => void signals.off('SIGINT', listener);
}

/** The terminal was closed, or the system asks us to end. */
export function onTermination(signals: Signals, handle: (exitCode: number) => void): () => void {
  const hangup = (): void => handle(129);
  const terminate = (): void => handle(143);
  signals.on('SIGHUP', hangup);
  signals.on('SIGTERM', terminate);
  return () => {
    signals.off('SIGHUP', hangup);
    signals.off('SIGTERM', terminate);
  };
}

/** Milliseconds that a pipe has to end, or to say something, before a conversation is started for it. */
const END_PATIENCE_MS = 500;

/** Whether it ends with nothing but blanks in it. One that is open and silent after a while may still speak. Its text stays in it. */
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

/** All that comes, as text. */
export async function readAll(input: Readable): Promise<string> {
  return decodeText(await buffer(input));
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
  if (!isSilent) return readAll(input);
  input.destroy();
  return '';
}
