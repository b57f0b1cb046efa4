/**
 * The foot of the chat's screen: the line to type on, or, while an answer is awaited, one row that moves, says what it waits
 * for and shows what is typed meanwhile.
 *
 * The row is at most as wide as the screen less one, so that clearing it is clearing one row, at 20 columns too.
 */
import type { WriteStream, ReadStream } from 'node:tty';
import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';
import { toTerminalText } from '../terminal/terminal-text.js';

export interface Foot {
  show(): void;
  hide(): void;
  /** Back to the line to type on, or away from it. */
  setWaiting(isWaiting: boolean): void;
  close(): void;
}

export interface FootOptions {
  readonly screen: WriteStream;
  readonly editor: Pick<LineEditor, 'show' | 'hide' | 'typed'>;
  /** What is awaited, in words. */
  readonly words: () => string;
  readonly widthOf: (text: string) => number;
  /** False where nothing may move: a dumb terminal. */
  readonly moves: boolean;
  readonly dim: (text: string) => string;
}

const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
const FRAME_MS = 120;

export function createFoot({ screen, editor, words, widthOf, moves, dim }: FootOptions): Foot {
  let isWaiting = false;
  let isShown = false;
  let frame = 0;

  const drawRow = (): void => {
    frame = (frame + 1) % FRAMES.length;
    screen.write(`\r\x1b[K${dim(footRow(`${FRAMES[frame] ?? ''} ${words()}`, editor.typed(), (screen.columns || 80) - 1, widthOf))}`);
  };
  const hideRow = (): void => {
    if (isShown) screen.write('\r\x1b[K');
    isShown = false;
  };
  const timer = setInterval(() => {
    if (isShown) drawRow();
  }, FRAME_MS).unref();

  return {
    show() {
      if (!isWaiting) return editor.show();
      if (!moves) return;
      isShown = true;
      drawRow();
    },
    hide() {
      hideRow();
      editor.hide();
    },
    setWaiting(now) {
      if (isWaiting === now) return;
      hideRow();
      editor.hide();
      isWaiting = now;
    },
    close() {
      clearInterval(timer);
      hideRow();
    },
  };
}

/** The typed line gets room first, by its end; the awaited event gets the rest. */
export function footRow(words: string, typed: string, columns: number, widthOf: (text: string) => number): string {
  const text = toTerminalText(typed).replace(/\s+/g, ' ');
  const tail = text === '' ? '' : `› ${fit(text, Math.max(columns - 12, 6), widthOf, 'end')}`;
  const room = columns - (tail === '' ? 0 : widthOf(tail) + 2);
  const head = fit(toTerminalText(words).replace(/\s+/g, ' '), room, widthOf, 'beginning');
  return tail === '' ? head : `${head}  ${tail}`;
}

/** As much of a text as fits, from one of its ends. */
export function fit(text: string, columns: number, widthOf: (text: string) => number, keep: 'beginning' | 'end'): string {
  if (widthOf(text) <= columns) return text;
  const parts = Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
  if (keep === 'end') parts.reverse();
  const shown: string[] = [];
  let used = 1;
  for (const part of parts) {
    used += widthOf(part);
    if (used > columns) break;
    shown.push(part);
  }
  return keep === 'end' ? `…${shown.reverse().join('')}` : `${shown.join('')}…`;
}

// The line that a person types on, at the foot of a terminal. It shares the screen with the answer: while one is drawn the
// line is hidden, and what is typed meanwhile appears when it comes back.

interface LineEditor {
  show(): void;
  hide(): void;
  /** What stands on the line, shown or not. */
  typed(): string;
  close(): void;
}

interface LineEditorEvents {
  /** One message; a pasted text of several lines is one. */
  readonly onLine: (text: string) => void;
  readonly onInterrupt: () => void;
  /** Ctrl+D, or the input has ended. */
  readonly onEnd: () => void;
  /** What Tab makes of the text before the cursor, as `readline` has it. */
  readonly complete: (line: string) => [completions: string[], replaced: string];
}

const PROMPT = '› ';
const PASTE_MODE_ON = '\x1b[?2004h';
const PASTE_MODE_OFF = '\x1b[?2004l';

export function openLineEditor(input: ReadStream, output: WriteStream, events: LineEditorEvents): LineEditor {
  let hidden = true;
  let pasting = false;
  let pasted: string[] = [];
  const screen = createScreen(output, () => hidden);
  // Raw mode for as long as we live: Ctrl+C is a key here, no signal that would reach the whole process group.
  const readline: Interface = createInterface({
    input,
    output: screen,
    terminal: true,
    prompt: PROMPT,
    historySize: 200,
    // A tab in a pasted text is a tab.
    completer: (line: string) => (pasting ? [['\t'], ''] : events.complete(line)),
  });
  const onKey = (_text: string | undefined, key: { name?: string } | undefined): void => {
    if (key?.name === 'paste-start') pasting = true;
    if (key?.name === 'paste-end') pasting = false;
  };
  input.on('keypress', onKey);
  // readline takes one code point; what people see as one character may be several.
  const onBackspace = (_text: string | undefined, key: { name?: string; ctrl?: boolean; meta?: boolean } | undefined): void => {
    if (key?.name !== 'backspace' || key.ctrl === true || key.meta === true) return;
    const last = Array.from(new Intl.Segmenter().segment(readline.line.slice(0, readline.cursor))).at(-1)?.segment ?? '';
    for (let n = Array.from(last).length; n > 1; n--) readline.write(null, { name: 'backspace' });
  };
  input.prependListener('keypress', onBackspace);
  // The terminal is gone (EIO); readline passes it on. An error without a listener would end the process before it cleaned up.
  input.on('error', () => events.onEnd());
  readline.on('error', () => events.onEnd());
  output.write(PASTE_MODE_ON);
  // Also when we end by an error: the terminal is handed back as it was.
  const restore = (): void => void output.write(PASTE_MODE_OFF);
  process.once('exit', restore);

  readline.on('line', (line) => {
    pasted.push(line);
    if (pasting) return;
    const text = pasted.join('\n');
    pasted = [];
    // The cursor stands on a fresh line now: nothing is there to be cleared.
    hidden = true;
    events.onLine(text);
  });
  readline.on('SIGINT', () => {
    pasted = [];
    // As in a shell: a line begun is thrown away.
    readline.write(null, { ctrl: true, name: 'e' });
    readline.write(null, { ctrl: true, name: 'u' });
    events.onInterrupt();
  });
  let closing = false;
  readline.on('close', () => {
    if (!closing) events.onEnd();
  });

  // A long line covers several rows, and the cursor may stand in any of them.
  const clearLine = (): void => {
    const { rows } = readline.getCursorPos();
    output.write(`${rows > 0 ? `\x1b[${rows}A` : ''}\r\x1b[J`);
  };

  return {
    show() {
      if (!hidden || closing) return;
      hidden = false;
      readline.prompt(true);
    },
    hide() {
      if (hidden) return;
      clearLine();
      hidden = true;
    },
    typed: () => [...pasted, readline.line].join(' '),
    close() {
      if (closing) return;
      closing = true;
      if (!hidden) clearLine();
      hidden = true;
      input.off('keypress', onKey);
      input.off('keypress', onBackspace);
      readline.close();
      process.off('exit', restore);
      restore();
    },
  };
}

/** What readline draws on: the terminal, or nothing while the line is hidden. */
function createScreen(output: WriteStream, isHidden: () => boolean): Writable & { isTTY: boolean } {
  const screen = new Writable({
    write(chunk: Buffer, _encoding, done) {
      // Done at once: a chunk that waits could be judged after the line was hidden.
      if (!isHidden()) output.write(chunk);
      done();
    },
  });
  output.on('resize', () => screen.emit('resize'));
  return Object.defineProperties(screen as Writable & { isTTY: boolean }, {
    isTTY: { value: true },
    columns: { get: () => output.columns },
    rows: { get: () => output.rows },
  });
}
