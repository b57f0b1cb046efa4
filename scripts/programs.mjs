import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * Runs a program to its end; `{ code, output }`, code 127 when it is not there. With `show` its output goes to the screen.
 * `signal` kills it.
 */
export function runProgram(program, args, { cwd, env, show = false, input = 'ignore', signal } = {}) {
  return new Promise((done) => {
    const stdio = [input, show ? 2 : 'pipe', show ? 2 : 'pipe'];
    const child = spawn(program, args, { cwd, env: env ?? process.env, stdio, signal, killSignal: 'SIGKILL' });
    let output = '';
    child.stdout?.on('data', (chunk) => (output += chunk));
    child.stderr?.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => (error.name === 'AbortError' ? undefined : done({ code: 127, output: error.message })));
    child.on('close', (code, signal) => done({ code: code ?? 1, signal, output }));
  });
}

/** Full path of a program on PATH, or undefined. */
export function findOnPath(name, path = process.env.PATH ?? '') {
  return path
    .split(delimiter)
    .filter((dir) => dir !== '')
    .map((dir) => join(dir, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return statSync(file).isFile();
      } catch {
        return false;
      }
    });
}
