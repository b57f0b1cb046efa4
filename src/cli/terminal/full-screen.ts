/** A whole terminal for ourselves: another screen, keys as they are pressed, and everything as it was when we leave, however that is. */
import { emitKeypressEvents } from 'node:readline';
import type { ReadStream, WriteStream } from 'node:tty';
import pc from 'picocolors';
import { toTerminalText, type StyledLine } from './terminal-text.js';

export interface Key {
  /** `up`, `pagedown`, `return`, `escape`, `ctrl+c`, or the character itself. */
  readonly name: string;
  /** What was typed; '' where nothing can be. */
  readonly text: string;
}

export interface FullScreen {
  /** As many lines as there are rows. */
  draw(lines: readonly StyledLine[]): void;
  size(): { readonly width: number; readonly height: number };
  close(): void;
}

// The other screen, no cursor, no wrapping at the right edge; and back.
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l';
// A frame is shown at once, by terminals that know it. Each row is cleared before it is written: in the last column the cursor stays
// on the character that was just written, and clearing behind it would take that away.
const BEGIN_FRAME = '\x1b[?2026h\x1b[H';
const END_FRAME = '\x1b[?2026l';

export function openFullScreen(
  input: ReadStream,
  output: WriteStream,
  events: { readonly onKey: (key: Key) => void; readonly onResize: () => void; readonly onEnd: () => void; readonly isColored: boolean },
): FullScreen {
  const colors = pc.createColors(events.isColored);
  let isOpen = true;
  const leave = (): void => {
    if (!isOpen) return;
    isOpen = false;
    output.write(LEAVE);
    if (input.isTTY) input.setRawMode(false);
  };
  const onKey = (text: string | undefined, key: { name?: string; ctrl?: boolean; sequence?: string } | undefined): void => {
    const isTyped = text !== undefined && [...text].length === 1 && text >= ' ' && text !== '\x7f';
    const name = key?.ctrl === true ? `ctrl+${key.name ?? ''}` : isTyped ? text : (key?.name ?? '');
    events.onKey({ name, text: isTyped && key?.ctrl !== true ? text : '' });
  };
  emitKeypressEvents(input);
  input.on('keypress', onKey);
  input.on('error', events.onEnd);
  input.on('end', events.onEnd);
  output.on('resize', events.onResize);
  output.on('error', events.onEnd);
  // Also when an uncaught error ends the process.
  process.once('exit', leave);
  input.setRawMode(true);
  input.resume();
  output.write(ENTER);
  return {
    draw(lines) {
      if (!isOpen) return;
      const drawn = lines.map((line) => line.map(({ text, style }) => (style ? colors[style] : String)(oneLine(text))).join(''));
      output.write(`${BEGIN_FRAME}${drawn.map((line) => `\x1b[2K${line}`).join('\r\n')}${END_FRAME}`);
    },
    size: () => ({ width: output.columns || 80, height: output.rows || 24 }),
    close() {
      leave();
      process.off('exit', leave);
      input.off('keypress', onKey);
      input.off('error', events.onEnd);
      input.off('end', events.onEnd);
      output.off('resize', events.onResize);
      output.off('error', events.onEnd);
      input.pause();
    },
  };
}

/** Nothing that is drawn may move the cursor. */
function oneLine(text: string): string {
  return toTerminalText(text).replace(/[\n\t]/g, ' ');
}
