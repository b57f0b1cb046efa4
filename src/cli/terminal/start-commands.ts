/** What a person types to start what is missing: in a clone, and in a project that has installed the package. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export interface StartCommands {
  readonly isClone: boolean;
  /** All of it, with a chat. */
  readonly chat: string;
  /** A Temporal server, a worker and the page. */
  readonly up: string;
  readonly worker: string;
}

/** The package has no `scripts`. */
export function startCommands(packageRoot: string = join(__dirname, '..', '..', '..')): StartCommands {
  const isClone = existsSync(join(packageRoot, 'scripts', 'start.mjs'));
  const program = isClone ? 'bin/perdura' : 'npx perdura';
  return { isClone, chat: isClone ? 'npm start' : `${program} chat --start-services`, up: `${program} up`, worker: `${program} worker` };
}
