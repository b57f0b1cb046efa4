/**
 * The line that a person types on, at the foot of a terminal. It shares the screen with the answer: while one is drawn the
 * line is hidden, and what is typed meanwhile appears when it comes back.
 */
import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';
import type { ReadStream, WriteStream } from 'node:tty';

export interface LineEditor {
  show(): void;
  hide(): void;
  /** What stands on the line, shown or not. */
  typed(): string;
  close(): void;
}

export interface LineEditorEvents {
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
