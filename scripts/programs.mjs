import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { Missing, report } from './report.mjs';

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

/** From Debian's packages where we may install, else the ways to get it. Answers what `look` finds then. */
export async function installWithApt(name, { title, ways, look }) {
  const needed = `The tests need ${name}, and`;
  if (process.getuid?.() !== 0 || !existsSync('/etc/debian_version') || findOnPath('apt-get') === undefined)
    throw new Missing(`${needed} it is not on PATH.\n\n${ways}`);
  report(title, `installing ${name} with apt-get, since it is not on PATH …`);
  const install = () =>
    // RUNLEVEL=1 keeps the package from starting a server of its own.
    runProgram('apt-get', ['install', '-y', '--no-install-recommends', name], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
    });
  let result = await install();
  if (result.code !== 0) {
    await runProgram('apt-get', ['update']);
    result = await install();
  }
  const installed = look();
  if (installed === undefined)
    throw new Missing(`${result.output.trim()}\n\n${needed} apt-get could not install it (code ${result.code}).\n\n${ways}`);
  return installed;
}
