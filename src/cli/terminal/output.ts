/** The two streams of a command: data on stdout, everything else on stderr. Whatever is written passes `toTerminalText`. */
import type { Writable } from 'node:stream';
import pc from 'picocolors';
import type { ColorWish } from '../args/global-options.js';
import type { TextPen } from './markdown.js';
import { toTerminalLine, toTerminalText, wrapWords, type StyledLine } from './terminal-text.js';

/** All but `text` are whole lines, and begin on a new line. */
export interface Output {
  /** Data as it comes. */
  text(text: string): void;
  /** Ends the line that `text` has begun, if any. */
  endText(): void;
  /** Data. */
  line(text: string): void;
  /** Data for people, with its looks. */
  draw(line: StyledLine): void;
  /** Beside the data, dim. */
  note(text: string): void;
  /** Beside the data. */
  say(text: string): void;
  /** What of the `temporal` program shows or does the same: only with `--explain`. */
  explain(command: string): void;
  problem(text: string): void;
  /** One thing found, started or fetched, with its reason. */
  report(what: string, text: string): void;
  /** Cells of a line on the screen that takes the data; undefined when that is no screen. */
  width(): number | undefined;
  /** True when the data go to a terminal that may be given colours and movements of the cursor. */
  isColoredTerminal(): boolean;
  /** From now on `text` is drawn by a pen; what the pen is given has passed `toTerminalText`. */
  drawTextWith(pen: TextPen): void;
  /** Something else stands at the foot of the screen and makes room for each write. Returns the way to end that. */
  shareScreen(foot: { readonly hide: () => void; readonly show: () => void }): () => void;
}

/** To be let go of when nothing more is written: the streams stay as they were found. */
export interface OpenOutput extends Output {
  letGo(): void;
}

export interface TerminalStream extends Writable {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

/** Read at each write: options are read after the first problem may have been written. */
export interface OutputStyle {
  readonly color: () => ColorWish;
  /** Data and problems only. */
  readonly isQuiet: () => boolean;
  readonly explains?: () => boolean;
  /** How a person starts this program: words beside the data say `perdura …` for it. */
  readonly program?: () => string;
}

const HINT = /`perdura(?=[ `])/g;

/** Narrower screens cut what they cannot show. */
const MIN_WIDTH = 20;

const PLAIN_STYLE: OutputStyle = { color: () => 'auto', isQuiet: () => false };

/** `onClosed` is called when the reader of a stream is gone (`| head -1`). */
export function createOutput(
  stdout: TerminalStream,
  stderr: TerminalStream,
  onClosed: () => void,
  style: OutputStyle = PLAIN_STYLE,
): OpenOutput {
  const palettes = { colored: pc.createColors(true), plain: pc.createColors(false) };
  const chooseColors = (stream: TerminalStream): typeof palettes.plain => {
    const wish = style.color();
    return wish === 'always' || (wish === 'auto' && stream.isTTY === true) ? palettes.colored : palettes.plain;
  };
  const closed = new Set<Writable>();
  let foot: Parameters<Output['shareScreen']>[0] | undefined;
  let pen: TextPen | undefined;
  let isInLine = false;
  let program: string | undefined;
  const listening = [stdout, stderr].map((stream) => {
    const onError = (): void => {
      closed.add(stream);
      onClosed();
    };
    stream.on('error', onError);
    return () => stream.off('error', onError);
  });
  const write = (stream: Writable, text: string): void => {
    if (!closed.has(stream)) stream.write(text);
  };
  const text = (piece: string): void => {
    if (piece === '') return;
    foot?.hide();
    const safe = toTerminalText(piece);
    write(stdout, pen === undefined ? safe : pen.add(safe));
    isInLine = pen === undefined ? !piece.endsWith('\n') : pen.isInLine();
  };
  const endText = (): void => {
    if (pen === undefined) return isInLine ? text('\n') : undefined;
    const rest = pen.end();
    if (rest === '') return;
    foot?.hide();
    write(stdout, rest);
    isInLine = false;
  };
  const line = (stream: Writable, whole: string): void => {
    endText();
    foot?.hide();
    write(stream, `${whole}\n`);
    foot?.show();
  };
  const beside = (whole: string): void => {
    if (!style.isQuiet()) line(stderr, whole);
  };
  /** As it may be written, cut between words where a screen shows it. */
  const fitted = (whole: string, stream: TerminalStream = stderr): string => {
    const safe = toTerminalText(whole.replace(HINT, () => `\`${(program ??= style.program?.() ?? 'perdura')}`));
    return stream.isTTY === true ? wrapWords(safe, Math.max((stream.columns ?? 80) - 1, MIN_WIDTH)) : safe;
  };
  return {
    letGo() {
      for (const stop of listening) stop();
    },
    text,
    endText() {
      endText();
      foot?.show();
    },
    line: (whole) => line(stdout, toTerminalText(whole)),
    draw(drawn) {
      const colors = chooseColors(stdout);
      const whole = drawn.map(({ text: piece, style }) => (style === undefined ? toTerminalText : colors[style])(toTerminalText(piece)));
      line(stdout, stdout.isTTY === true ? wrapWords(whole.join(''), Math.max(stdout.columns ?? 80, MIN_WIDTH)) : whole.join(''));
    },
    note: (whole) => beside(chooseColors(stderr).dim(fitted(whole))),
    say: (whole) => beside(fitted(whole)),
    explain(command) {
      if (style.explains?.() === true) beside(chooseColors(stderr).dim(toTerminalText(command)));
    },
    problem: (whole) => line(stderr, chooseColors(stderr).red(fitted(whole))),
    report: (what, whole) =>
      beside(fitted(`  ✔ ${toTerminalLine(what, 40).padEnd(9)}  ${whole}`).replace('✔', chooseColors(stderr).green('✔'))),
    width: () => (stdout.isTTY === true ? (stdout.columns ?? 80) : undefined),
    isColoredTerminal: () => stdout.isTTY === true && chooseColors(stdout) === palettes.colored,
    drawTextWith(other) {
      pen = other;
    },
    shareScreen(other) {
      foot = other;
      return () => {
        foot = undefined;
      };
    },
  };
}
