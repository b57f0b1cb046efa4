/**
 * The door before everything that a folder brings: nothing of it runs, and no address of it is used, before a person has trusted
 * exactly that. Every command passes here before its own code, the worker's process too.
 */
import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { isTrustedByEnvironment, trustFile, type Config } from '../../config.js';
import type { CliContext } from '../session/context.js';
import type { Surroundings } from '../session/surroundings.js';
import { canAsk, confirm } from '../terminal/ask.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalJson, toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { folderContents, OWN_DATABASE, type FolderItem } from './folder-contents.js';
import { forgetTrust, readTrust, rememberTrust } from './trust-file.js';

type State = 'trusted' | 'new' | 'changed';

interface Looked {
  readonly folder: string;
  readonly items: readonly (FolderItem & { readonly state: State })[];
}

const LOOKS = { trusted: 'green', new: 'yellow', changed: 'red' } as const satisfies Record<State, string>;
const SHOWN = 300;
const QUESTION = 'Trust what is listed here?';

/** Returns when the folder may be used. Throws `CliError` where a person has not said so. */
export async function enterFolder(context: CliContext): Promise<void> {
  if (context.globals().trust) context.trustFolder();
  const { surroundings } = context;
  const { env } = surroundings;
  if (isTrustedByEnvironment(env)) return;
  const looked = await look(surroundings);
  const open = looked.items.filter(({ state }) => state !== 'trusted');
  if (open.length === 0) return;
  const names = open.map(({ name, state }) => (state === 'changed' ? `${name} (changed)` : name)).join(', ');
  if (!canAsk(surroundings)) {
    throw new CliError(
      `${looked.folder} is not trusted yet, and it would run or contact something: ${toTerminalLine(names, SHOWN)}. ` +
        'Run `perdura trust` there in a terminal, or add --trust (PERDURA_TRUST=1) if you know what is in it',
      EXIT.unreachable,
    );
  }
  const { output } = context;
  output.say(`\n${looked.folder} brings what runs on this machine, or says where your messages and keys go:\n`);
  for (const { name, says, state } of open) output.say(`  ${sentence({ name, says, state })}`);
  output.say('');
  if (!(await confirm(surroundings, QUESTION))) throw new CliError('the folder is not trusted: nothing of it was used', EXIT.unreachable);
  await rememberTrust(trustFile(env), looked.folder, looked.items);
}

/** A folder whose conversations begin here is not asked about them later. */
export async function rememberOwnDatabase({ cwd: folder, env }: Pick<Config, 'cwd' | 'env'>): Promise<void> {
  if (existsSync(join(folder, OWN_DATABASE.name))) return;
  // Without a home that can be written to the next start asks, which is no reason not to start.
  await rememberTrust(trustFile(env), realpathSync(folder), [OWN_DATABASE], { add: true }).catch(() => undefined);
}

export interface TrustOptions {
  readonly show?: boolean;
  readonly revoke?: boolean;
  readonly yes?: boolean;
}

/** `perdura trust`: what the folder would run or redirect; says yes to it, or takes that back. */
export async function trust(context: CliContext, { show = false, revoke = false, yes = false }: TrustOptions): Promise<number> {
  const { output, surroundings } = context;
  const file = trustFile(surroundings.env);
  const format = context.globals().output;
  if ([show, revoke, yes].filter(Boolean).length > 1) throw new CliError('--show, --revoke and --yes exclude each other', EXIT.usage);
  let looked = await look(surroundings);
  const { folder } = looked;
  if (revoke) {
    const was = await forgetTrust(file, folder);
    if (format !== 'text') output.line(toTerminalJson({ folder, revoked: was }, format === 'json' ? 2 : undefined));
    else output.line(was ? `${folder} is not trusted any more` : `${folder} was not trusted`);
    return EXIT.ok;
  }
  if (format === 'text') for (const line of linesOf(looked, output.width() ?? SHOWN)) output.draw(line);
  const isOpen = looked.items.some(({ state }) => state !== 'trusted');
  if (isOpen && !show) {
    if (!yes && !canAsk(surroundings)) throw new CliError('no person can be asked here; --yes says yes to what is shown', EXIT.usage);
    if (!yes && !(await confirm(surroundings, QUESTION))) throw new CliError('the folder is not trusted', EXIT.failed);
    // What was shown, whatever lies there by now.
    await rememberTrust(file, folder, looked.items);
    looked = { folder, items: looked.items.map((item) => ({ ...item, state: 'trusted' })) };
    if (format === 'text') output.say(`remembered in ${file}; what changes is asked again`);
  }
  if (format !== 'text') {
    const isTrusted = looked.items.every(({ state }) => state === 'trusted');
    output.line(toTerminalJson({ folder, trusted: isTrusted, items: looked.items }, format === 'json' ? 2 : undefined));
  }
  return EXIT.ok;
}

async function look({ cwd, env }: Surroundings): Promise<Looked> {
  const folder = realpathSync(cwd);
  const known = await readTrust(trustFile(env), folder);
  const stateOf = ({ name, sha256 }: FolderItem): State =>
    !Object.hasOwn(known, name) ? 'new' : known[name] === sha256 ? 'trusted' : 'changed';
  return { folder, items: folderContents(folder, env).map((item) => ({ ...item, state: stateOf(item) })) };
}

function linesOf({ folder, items }: Looked, width: number): StyledLine[] {
  if (items.length === 0) return [[{ text: `${folder} runs nothing of its own and names no addresses: there is nothing to trust` }]];
  return items.map(({ name, says, state }) => [
    { text: state.padEnd(9), style: LOOKS[state] },
    { text: toTerminalLine(name, 100) },
    { text: `  ${toTerminalLine(says, Math.max(40, width - 12 - name.length))}`, style: 'dim' },
  ]);
}

function sentence({ name, says, state }: { readonly name: string; readonly says: string; readonly state: State }): string {
  return `${toTerminalLine(name, 100)}${state === 'changed' ? ' (changed since you said yes)' : ''}: ${toTerminalLine(says, SHOWN)}`;
}
