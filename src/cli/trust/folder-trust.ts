/**
 * The door before everything that a folder brings: nothing of it runs, and no address of it is used, before a person has trusted
 * exactly that. Every command passes here before its code, the worker's process too.
 */
import { existsSync, realpathSync } from 'node:fs';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { withLock } from '../lock.js';
import type { Answer } from '../session/command.js';
import type { CliContext, Surroundings } from '../session/context.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { canAsk, confirm } from '../terminal/input.js';
import { toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { EVALS, folderContents, OWN_DATABASE, type FolderItem } from './folder-contents.js';
import { isTrustedByEnvironment, trustFile, type Config } from '../../config.js';

type State = 'trusted' | 'new' | 'changed';

interface Looked {
  readonly folder: string;
  readonly items: readonly (FolderItem & { readonly state: State })[];
}

const LOOKS = { trusted: 'green', new: 'yellow', changed: 'red' } as const satisfies Record<State, string>;
const SHOWN = 300;
const QUESTION = 'Trust what is listed here?';

/** Returns when the folder may be used. Throws `CliError` where no person has trusted it. `runsEvals`: what only `perdura eval` runs counts too. */
export async function enterFolder(context: CliContext, { runsEvals = false } = {}): Promise<void> {
  if (context.globals().trust) context.trustFolder();
  const { surroundings } = context;
  const { env } = surroundings;
  if (isTrustedByEnvironment(env)) return;
  const looked = await look(surroundings);
  const open = looked.items.filter(({ name, state }) => state !== 'trusted' && (runsEvals || name !== EVALS.name));
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
  const shown = looked.items.filter((item) => item.state === 'trusted' || open.includes(item));
  await rememberTrust(trustFile(env), looked.folder, shown);
}

/** A folder whose conversations begin here needs no trust for them later. */
export async function rememberOwnDatabase({ cwd: folder, env }: Pick<Config, 'cwd' | 'env'>): Promise<void> {
  await rememberMade({ cwd: folder, env }, OWN_DATABASE);
}

/** Evals that were recorded here into a folder that had none. To be called before the first is written. */
export async function rememberOwnEvals(config: Pick<Config, 'cwd' | 'env'>): Promise<void> {
  await rememberMade(config, EVALS);
}

async function rememberMade({ cwd: folder, env }: Pick<Config, 'cwd' | 'env'>, item: Pick<FolderItem, 'name' | 'sha256'>): Promise<void> {
  if (existsSync(join(folder, item.name))) return;
  // Without a home that can be written to the next start asks, which is no reason not to start.
  await rememberTrust(trustFile(env), realpathSync(folder), [item], { add: true }).catch(() => undefined);
}

export interface TrustOptions {
  readonly show?: boolean;
  readonly revoke?: boolean;
  readonly yes?: boolean;
}

/** `perdura trust`: what the folder would run or redirect; trusts it, or takes that back. */
export async function trust(context: CliContext, { show = false, revoke = false, yes = false }: TrustOptions): Promise<Answer> {
  const { output, surroundings } = context;
  const file = trustFile(surroundings.env);
  const isText = context.globals().output === 'text';
  if ([show, revoke, yes].filter(Boolean).length > 1) throw new CliError('--show, --revoke and --yes exclude each other', EXIT.usage);
  const { folder, items } = await look(surroundings);
  if (revoke) {
    const revoked = await forgetTrust(file, folder);
    return { data: { folder, revoked }, text: revoked ? `${folder} is not trusted any more` : `${folder} was not trusted` };
  }
  if (isText) for (const line of toLines({ folder, items }, output.width() ?? SHOWN)) output.draw(line);
  const isOpen = items.some(({ state }) => state !== 'trusted');
  if (!isOpen || show) return { data: { folder, trusted: !isOpen, items } };
  if (!yes && !canAsk(surroundings)) throw new CliError('no person can be asked here; --yes trusts what is shown', EXIT.usage);
  if (!yes && !(await confirm(surroundings, QUESTION))) throw new CliError('the folder is not trusted', EXIT.failed);
  // What was shown, whatever is there by now.
  await rememberTrust(file, folder, items);
  return {
    data: { folder, trusted: true, items: items.map((item) => ({ ...item, state: 'trusted' })) },
    say: `remembered in ${file}; what changes is asked again`,
  };
}

async function look({ cwd, env }: Surroundings): Promise<Looked> {
  const folder = realpathSync(cwd);
  const known = await readTrust(trustFile(env), folder);
  const compare = ({ name, sha256 }: FolderItem): State =>
    !Object.hasOwn(known, name) ? 'new' : known[name] === sha256 ? 'trusted' : 'changed';
  return { folder, items: folderContents(folder, env).map((item) => ({ ...item, state: compare(item) })) };
}

function toLines({ folder, items }: Looked, width: number): StyledLine[] {
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

const trustSchema = z.object({
  v: z.literal(1),
  /** By the real path of a folder: the SHA-256 of each thing in it, by its name. */
  folders: z.record(z.string(), z.object({ items: z.record(z.string(), z.string()), at: z.string() })),
});

type Trusted = z.output<typeof trustSchema>;
type Known = Readonly<Record<string, string>>;

/** Nothing is trusted where the file is not there or cannot be understood. */
export async function readTrust(file: string, folder: string): Promise<Known> {
  const { folders } = await readAll(file);
  return Object.hasOwn(folders, folder) ? (folders[folder]?.items ?? {}) : {};
}

/** Exactly these from now on; with `add`, these too. */
export async function rememberTrust(
  file: string,
  folder: string,
  items: readonly Pick<FolderItem, 'name' | 'sha256'>[],
  { add = false }: { readonly add?: boolean } = {},
): Promise<void> {
  await change(file, ({ folders, ...rest }) => {
    const before = add && Object.hasOwn(folders, folder) ? folders[folder]?.items : {};
    const all = { ...before, ...Object.fromEntries(items.map(({ name, sha256 }) => [name, sha256])) };
    return { ...rest, folders: { ...folders, [folder]: { items: all, at: new Date().toISOString() } } };
  });
}

/** False where there was nothing to forget. */
async function forgetTrust(file: string, folder: string): Promise<boolean> {
  let was = false;
  await change(file, ({ folders, ...rest }) => {
    was = Object.hasOwn(folders, folder);
    return { ...rest, folders: Object.fromEntries(Object.entries(folders).filter(([name]) => name !== folder)) };
  });
  return was;
}

async function readAll(file: string): Promise<Trusted> {
  try {
    return trustSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return { v: 1, folders: {} };
  }
}

async function change(file: string, to: (all: Trusted) => Trusted): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await withLock(`${file}.lock`, async () => {
    const fresh = `${file}.${process.pid}`;
    await writeFile(fresh, `${JSON.stringify(to(await readAll(file)), null, 2)}\n`, { mode: 0o600 });
    await chmod(fresh, 0o600);
    await rename(fresh, file);
  });
}
