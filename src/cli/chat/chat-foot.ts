/**
 * The foot of the chat's screen: the line to type on, or, while an answer is awaited, one row that moves, says what it waits
 * for and shows what is typed meanwhile.
 *
 * The row is at most as wide as the screen less one, so that clearing it is clearing one row, at 20 columns too.
 */
import type { WriteStream } from 'node:tty';
import type { LineEditor } from './chat-line-editor.js';
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
