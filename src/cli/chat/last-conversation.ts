/** Which conversation `-c` goes on with: the one of this folder that was spoken in last. */
import { mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { ID_PATTERN } from '../../conversation/protocol/contract.js';
import type { Person } from '../terminal/ask.js';
import { CliError, EXIT } from '../terminal/exit.js';
import type { PerduraClient } from '../../client.js';
import { toTerminalLine } from '../terminal/terminal-text.js';

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

/** `-r` without an id: which conversation to go on with. */

const MOST = 50;

/** Asks the person at the terminal. */
export async function pickConversation(client: PerduraClient, { input, stderr }: Person): Promise<string> {
  const columns = stderr.columns || 80;
  const open = (await client.list({ limit: MOST })).filter((one) => one.running);
  if (open.length === 0) throw new CliError('there is no conversation to go on with; leave out -r to begin one', EXIT.notFound);
  const { select, isCancel } = await import('@clack/prompts');
  const chosen = await select({
    message: toTerminalLine('Which conversation?', Math.max(columns - 4, 10)),
    maxItems: 10,
    input,
    output: stderr,
    options: open.map((one) => ({ value: one.id, label: labelOf(one, Math.max(columns - 18, 10)) })),
  });
  if (isCancel(chosen)) throw new CliError('none chosen', EXIT.interrupted);
  return chosen;
}

/** One row, whatever the title holds. */
function labelOf(
  one: { readonly id: string; readonly agent: string | null; readonly title: string | null; readonly startedAt: Date },
  columns: number,
): string {
  const when = one.startedAt.toISOString().slice(0, 16).replace('T', ' ');
  return toTerminalLine(`${one.title ?? one.id}  ${one.agent ?? ''}  ${when}`, columns);
}
