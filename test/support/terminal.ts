/** A command in a terminal of its own, so wide that no line is broken: typed into and read as a person does. */
import { spawn } from 'node:child_process';
import { dieWithUs } from './reaper.js';
import { screenText } from './screen-text.js';
import { waitFor } from './wait-for.js';

export interface Terminal {
  screen(): string;
  /** Waits until that stands on the screen; `after`: how many characters of it are old. */
  shows(text: string | RegExp, after?: number): Promise<void>;
  type(line: string): void;
  /** `/exit`, and until the command has ended; its exit code. */
  end(): Promise<number | null>;
  hangUp(): void;
}

export function openTerminal(command: string, { cwd, env }: { readonly cwd: string; readonly env: NodeJS.ProcessEnv }): Terminal {
  const wide = `stty cols 1000 rows 50; ${command}`;
  const args = process.platform === 'darwin' ? ['-q', '/dev/null', 'sh', '-c', wide] : ['-qfec', wide, '/dev/null'];
  const child = spawn('script', args, { cwd, env });
  const spare = dieWithUs(child.pid ?? 0);
  let written = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (written += piece));
  const ended = new Promise<number | null>((resolve) =>
    child.once('close', (code) => {
      spare();
      resolve(code);
    }),
  );
  const screen = (): string => screenText(written);
  return {
    screen,
    async shows(text, after = 0) {
      await waitFor(
        () => screen().slice(after),
        (seen) => (typeof text === 'string' ? seen.includes(text) : text.test(seen)),
      );
    },
    type: (line) => void child.stdin.write(`${line}\r`),
    end() {
      child.stdin.write('/exit\r');
      return ended;
    },
    hangUp: () => void child.kill('SIGKILL'),
  };
}
