/** The two streams of a command: data on stdout, everything else on stderr. Whatever is written passes `toTerminalText`. */
import type { Writable } from 'node:stream';
import pc from 'picocolors';
import { toTerminalText } from './terminal-text.js';

/** All but `text` are whole lines, and begin on a line of their own. */
export interface Output {
  /** Data as it comes. */
  text(text: string): void;
  /** Ends the line that `text` has begun, if any. */
  endText(): void;
  /** Data. */
  line(text: string): void;
  /** Beside the data, dim. */
  note(text: string): void;
  /** Beside the data. */
  say(text: string): void;
  problem(text: string): void;
  /** One thing found, started or fetched, with its reason. */
  report(what: string, text: string): void;
  /** Something else stands at the foot of the screen and makes room for each write. Returns the way to end that. */
  shareScreen(foot: { readonly hide: () => void; readonly show: () => void }): () => void;
}

export interface TerminalStream extends Writable {
  readonly isTTY?: boolean;
}

/** `onClosed` is told when the reader of a stream is gone (`| head -1`). */
export function createOutput(stdout: TerminalStream, stderr: TerminalStream, onClosed: () => void): Output {
  const colors = pc.createColors(pc.isColorSupported && stderr.isTTY === true);
  const closed = new Set<Writable>();
  let foot: Parameters<Output['shareScreen']>[0] | undefined;
  let isInLine = false;
  for (const stream of [stdout, stderr]) {
    stream.on('error', () => {
      closed.add(stream);
      onClosed();
    });
  }
  const write = (stream: Writable, text: string): void => {
    if (!closed.has(stream)) stream.write(text);
  };
  const text = (piece: string): void => {
    if (piece === '') return;
    foot?.hide();
    write(stdout, toTerminalText(piece));
    isInLine = !piece.endsWith('\n');
  };
  const endText = (): void => {
    if (isInLine) text('\n');
  };
  const line = (stream: Writable, whole: string): void => {
    endText();
    foot?.hide();
    write(stream, `${whole}\n`);
    foot?.show();
  };
  return {
    text,
    endText() {
      endText();
      foot?.show();
    },
    line: (whole) => line(stdout, toTerminalText(whole)),
    note: (whole) => line(stderr, colors.dim(toTerminalText(whole))),
    say: (whole) => line(stderr, toTerminalText(whole)),
    problem: (whole) => line(stderr, colors.red(toTerminalText(whole))),
    report: (what, whole) => line(stderr, `  ${colors.green('✔')} ${toTerminalText(what).padEnd(9)}  ${toTerminalText(whole)}`),
    shareScreen(other) {
      foot = other;
      return () => {
        foot = undefined;
      };
    },
  };
}
