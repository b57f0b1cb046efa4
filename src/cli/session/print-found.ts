/** What a command has found, in the form that `-o` asks for. */
import type { GlobalOptions } from '../args/global-options.js';
import type { Output } from '../terminal/output.js';
import { toTerminalJson } from '../terminal/terminal-text.js';

export interface Found<Drawn> {
  /** `-o json`. */
  readonly whole: unknown;
  /** `-o jsonl`: each on a line. */
  readonly rows: readonly unknown[];
  /** For people. */
  readonly draw: () => Drawn;
}

/** Undefined where nothing was drawn for people. */
export function printFound<Drawn>(output: Output, format: GlobalOptions['output'], { whole, rows, draw }: Found<Drawn>): Drawn | undefined {
  switch (format) {
    case 'json':
      output.line(toTerminalJson(whole, 2));
      return undefined;
    case 'jsonl':
      for (const row of rows) output.line(toTerminalJson(row));
      return undefined;
    case 'text':
      return draw();
  }
}
