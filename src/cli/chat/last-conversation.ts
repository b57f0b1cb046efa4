/** Which conversation `-c` goes on with: the one of this folder that was spoken in last. */
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';
import { CliError, EXIT } from '../terminal/exit.js';

export function readLastConversation(cwd: string): string {
  const id = readFile(fileOf(cwd));
  if (id !== undefined && ID_PATTERN.test(id)) return id;
  throw new CliError('cannot go on with the last conversation: there is none in this folder; leave out -c to begin one', EXIT.notFound);
}

export function rememberLastConversation(cwd: string, id: string): void {
  mkdirSync(dirname(fileOf(cwd)), { recursive: true });
  writeFileAtomic.sync(fileOf(cwd), `${id}\n`);
}

function fileOf(cwd: string): string {
  return join(cwd, '.perdura', 'last-conversation');
}

function readFile(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}
