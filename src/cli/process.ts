/** The process as surroundings of a command: the one place where the CLI meets its streams, its environment and its folder. */
import { loadEnvironment } from '../config.js';
import type { Surroundings } from './session/context.js';

export function processSurroundings(): Surroundings {
  const { stdin: input, stdout, stderr } = process;
  // A reader may be gone before the last of what was written has reached it, after the command has ended.
  for (const stream of [stdout, stderr]) stream.on('error', () => undefined);
  return { input, stdout, stderr, env: loadEnvironment(), cwd: process.cwd(), signals: process };
}

export function processArguments(): readonly string[] {
  return process.argv.slice(2);
}

/** For executables: all that was opened is closed by now, and what a library still holds does not keep a person waiting. */
export function endProcessWith(exitCode: number): void {
  process.exitCode = exitCode;
  setTimeout(() => process.exit(exitCode), 2000).unref();
}
