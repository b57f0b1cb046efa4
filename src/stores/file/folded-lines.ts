/** A file of lines that grows at its end, held as what its lines come to. Many may read it; who writes holds a lock of the caller's. */
import { open, readFile } from 'node:fs/promises';
import { isAbsent, isForeign } from './errors.js';
import { readNewLines, UNREAD } from './lines.js';
import { replaceFile } from './lists.js';
import { createTurns } from './lock.js';

export interface FoldedLines<State> {
  /** Fresh, also when another process has written. `skipped` counts unreadable lines; 1 for something else in the file's place. */
  read(): Promise<{ readonly state: State; readonly skipped: number }>;
  /** On the disk once it resolves. To be called after `read`, which shows whether a torn line is to be ended. */
  append(...lines: readonly string[]): Promise<void>;
  /** Writes anew what `change` makes of each line. */
  rewrite(change: (line: string) => string): Promise<void>;
}

export interface Folding<State> {
  readonly path: string;
  readonly empty: () => State;
  /** False for a line that it cannot read. */
  readonly fold: (state: State, line: string) => boolean;
}

export function foldLines<State>({ path, empty, fold }: Folding<State>): FoldedLines<State> {
  const inTurn = createTurns();
  let state = empty();
  let skipped = 0;
  let reading = UNREAD;

  const forget = (): void => {
    state = empty();
    skipped = 0;
  };
  const take = (line: string): void => {
    if (!fold(state, line)) skipped += 1;
  };

  return {
    read: () =>
      inTurn(async () => {
        try {
          reading = await readNewLines(path, reading, take, forget);
          return { state, skipped };
        } catch (error) {
          forget();
          reading = UNREAD;
          if (isForeign(error)) return { state, skipped: 1 };
          throw error;
        }
      }),

    append: (...lines) =>
      inTurn(async () => {
        const torn = reading.size > reading.end;
        const file = await open(path, 'a');
        try {
          await file.appendFile((torn ? '\n' : '') + lines.map((line) => `${line}\n`).join(''));
          await file.datasync();
        } finally {
          await file.close();
        }
      }),

    rewrite: (change) =>
      inTurn(async () => {
        const before = await readFile(path, 'utf8').catch((error: unknown) => {
          if (isAbsent(error)) return '';
          throw error;
        });
        const after = before
          .split('\n')
          .map((line) => (line === '' ? '' : change(line)))
          .join('\n');
        if (after !== before) await replaceFile(path, after);
      }),
  };
}
