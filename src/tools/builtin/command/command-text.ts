/** What a model is told of a command that ended: how, then what it wrote. Bounded, and without what steers a terminal. */
import { plainOutput } from '../../hidden-text.js';
import type { CommandReport, KeptOutput } from './command-supervisor.js';

type Ended = Extract<CommandReport, { kind: 'ended' }>;

export interface CommandLine {
  readonly program: string;
  readonly timeoutMs: number;
}

export function commandText(ended: Ended, line: CommandLine): string {
  const [stdout, stderr] = [outputText(ended.stdout), outputText(ended.stderr)];
  return [
    `[${howItEnded(ended, line)}]`,
    ...(ended.leftBehind.length > 0 ? [`[${leftBehind(ended)}]`] : []),
    ...(stdout === '' && stderr === '' ? ['[it wrote nothing]'] : []),
    ...(stdout === '' ? [] : [stdout]),
    ...(stderr === '' ? [] : [`[standard error]\n${stderr}`]),
  ].join('\n');
}

function howItEnded({ why, code, signal, ms }: Ended, { program, timeoutMs }: CommandLine): string {
  const name = plainOutput(program).replaceAll('\n', ' ').slice(0, 100);
  const after = `after ${(ms / 1000).toFixed(1)} s`;
  switch (why) {
    case 'itself':
      return signal === null ? `${name} ended with exit code ${code} ${after}` : `${name} was ended by ${signal} ${after}`;
    case 'time':
      return `${name} was stopped at its limit of ${timeoutMs / 1000} s, with all that it had started; give timeoutMs for a longer one`;
    case 'stopped':
      return `${name} was stopped ${after}, with all that it had started`;
    case 'output':
      return `${name} was stopped ${after}, since it wrote too much; send its output to a file, or through head`;
    case 'memory':
      return `${name} was stopped ${after}, since it took too much memory`;
    case 'processes':
      return `${name} was stopped ${after}, since it started too many processes`;
    default:
      throw new Error(`no such end: ${why satisfies never}`);
  }
}

/** A name is what a program calls itself. */
function leftBehind({ leftBehind: names, alive }: Ended): string {
  const shown = [...new Set(names.map((name) => plainOutput(name).replaceAll('\n', ' ').slice(0, 40)))].join(', ');
  const killed = `what it had left running was ended with it: ${shown}; nothing goes on in the background`;
  return alive === 0 ? killed : `${alive} processes that it had left running could not be ended: ${shown}; tell the person`;
}

function outputText({ head, tail, bytes }: KeptOutput): string {
  const [first, last] = [Buffer.from(head, 'base64'), Buffer.from(tail, 'base64')];
  if (bytes === 0) return '';
  if (isBinary(first)) return `[${bytes} bytes that are not text; they begin with ${first.subarray(0, 16).toString('hex')}]`;
  const left = bytes - first.length - last.length;
  if (left === 0) return plainOutput(decode(Buffer.concat([first, last]))).replace(/\n$/, '');
  // Cut between characters: what is left of one at the border is not shown.
  const begin = plainOutput(new TextDecoder().decode(first, { stream: true }));
  const end = plainOutput(decode(last.subarray(last.findIndex((byte) => (byte & 0xc0) !== 0x80))));
  return `${begin}\n[… ${left} bytes in the middle are not shown …]\n${end.replace(/\n$/, '')}`;
}

function isBinary(bytes: Buffer): boolean {
  const start = bytes.subarray(0, 8 * 1024);
  if (start.includes(0)) return true;
  const text = decode(start);
  return (text.match(/\ufffd/g) ?? []).length > text.length / 10;
}

function decode(bytes: Buffer): string {
  return new TextDecoder().decode(bytes);
}
