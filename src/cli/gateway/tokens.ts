/** `perdura token …`: the tokens in the file that PERDURA_AUTH names. A gateway that runs takes over what is written here. */
import { readFile, realpath } from 'node:fs/promises';
import writeFileAtomic from 'write-file-atomic';
import { hashOf, idOf, isExpired, newToken, parseAuthFile, readAuthFile, type AuthFile } from '../../gateway/access/auth-file.js';
import type { Role } from '../../gateway/access/principal.js';
import { DEFAULT_PORT } from '../../gateway/serve.js';
import { withLock } from '../services/lock.js';
import type { CliContext } from '../session/context.js';
import { printFound } from '../session/print-found.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { loadMeasure, renderTable, type Column } from '../views/table.js';
import { openEntrance } from './open-entrance.js';
import { linkOf } from './link.js';
import { errorMessage } from '../../platform/errors.js';

export interface TokenWanted {
  readonly tenant?: string;
  readonly scope?: string;
  readonly role: Role;
  readonly name?: string;
  /** A time, as ISO 8601 has it. */
  readonly expires?: string;
}

export async function createToken(context: CliContext, { tenant: named, scope, role, name, expires }: TokenWanted): Promise<number> {
  if (named !== undefined && scope !== undefined && named !== scope) {
    throw new CliError('--scope and --tenant name the same thing: give one of them', EXIT.usage);
  }
  const tenant = named ?? scope;
  const token = newToken();
  const hash = hashOf(token);
  const row = {
    name: name ?? `${tenant ?? 'token'}-${idOf(hash).slice(0, 6)}`,
    hash,
    role,
    ...(tenant !== undefined && { tenant }),
    created: new Date().toISOString(),
    ...(expires !== undefined && { expires }),
  };
  const file = fileOf(context);
  await change(file, (tokens) => [...tokens, row]);
  const { output } = context;
  if (context.globals().output === 'text') {
    output.line(token);
    output.note(`${row.name} opens as ${inWords(row)}; this is the only time that it is shown: ${file} keeps its hash`);
  } else {
    output.line(toTerminalJson({ token, ...shown(row) }));
  }
  return EXIT.ok;
}

export async function listTokens(context: CliContext): Promise<number> {
  const file = fileOf(context);
  const { tokens } = await read(file);
  const rows = tokens.map(shown);
  await printFound(context.output, context.globals().output, {
    whole: rows,
    rows,
    draw: async () => {
      const { output } = context;
      if (rows.length === 0) output.note(`there are no tokens in ${file}: \`perdura token create\` makes one`);
      else for (const line of renderTable(rows, COLUMNS, { width: output.width(), measure: await loadMeasure() })) output.draw(line);
    },
  });
  return EXIT.ok;
}

export async function revokeToken(context: CliContext, which: string): Promise<number> {
  const file = fileOf(context);
  let found: TokenInFile | undefined;
  await change(file, (tokens) => {
    found = tokens.find(({ name, hash }) => name === which || idOf(hash) === which);
    if (found === undefined) throw new CliError(`no token in ${file} is called ${which}: \`perdura token list\` shows them`, EXIT.notFound);
    return tokens.filter((one) => one !== found);
  });
  const { output } = context;
  if (context.globals().output === 'text')
    output.note(`${found?.name} opens nothing from now on; a gateway that runs sees it within a second`);
  else output.line(toTerminalJson({ revoked: found?.name }));
  return EXIT.ok;
}

/** For a browser, when the minute of the link that `perdura serve` has printed is over. */
export async function printLink(context: CliContext, { url }: { readonly url?: string }): Promise<number> {
  const { browsers } = await openEntrance(context.config());
  const link = linkOf(url ?? `http://127.0.0.1:${DEFAULT_PORT}`, browsers);
  if (link === undefined) {
    throw new CliError(
      'PERDURA_AUTH is set and PERDURA_GATEWAY_TOKEN is not: only its tokens and users open, and they need no link',
      EXIT.usage,
    );
  }
  if (context.globals().output === 'text') context.output.line(link);
  else context.output.line(toTerminalJson({ link }));
  return EXIT.ok;
}

type TokenInFile = AuthFile['tokens'][number];

function fileOf(context: CliContext): string {
  const { authFile } = context.config();
  if (authFile !== undefined) return authFile;
  throw new CliError('PERDURA_AUTH names no file for tokens: set it, such as PERDURA_AUTH=.perdura/auth.json', EXIT.usage);
}

async function read(file: string): Promise<AuthFile> {
  return await readAuthFile(file).catch((cause: unknown) => {
    throw new CliError(errorMessage(cause), EXIT.usage, { cause });
  });
}

/** All else in the file stays as it was written. What comes of it is checked before it is kept. */
async function change(path: string, to: (tokens: readonly TokenInFile[]) => readonly object[]): Promise<void> {
  await withLock(`${path}.lock`, async () => {
    // A link to the file stays one.
    const file = await realpath(path).catch(() => path);
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '{}';
      throw new CliError(`cannot read ${path}, which PERDURA_AUTH names: ${errorMessage(error)}`, EXIT.usage, { cause: error });
    });
    const { tokens } = checked(() => parseAuthFile(text, path));
    const after = `${JSON.stringify({ ...(JSON.parse(text) as object), tokens: to(tokens) }, null, 2)}\n`;
    checked(() => parseAuthFile(after, path));
    await writeFileAtomic(file, after, { mode: 0o600 });
  });
}

function checked<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw new CliError(errorMessage(cause), EXIT.usage, { cause });
  }
}

function shown({ name, hash, role, tenant, created, expires }: TokenInFile) {
  return {
    id: idOf(hash),
    name,
    role,
    ...(tenant !== undefined && { tenant }),
    created,
    ...(expires !== undefined && { expires, expired: isExpired({ expires }) }),
  };
}

function inWords({ role, tenant, expires }: Pick<TokenInFile, 'role' | 'tenant' | 'expires'>): string {
  const of = tenant === undefined ? '' : ` of ${tenant}`;
  return `${role}${of}${expires === undefined ? '' : ` until ${expires}`}`;
}

const COLUMNS: readonly Column<ReturnType<typeof shown>>[] = [
  { title: 'ID', cell: ({ id }) => id, rank: 1 },
  { title: 'NAME', cell: ({ name }) => name, rank: 0, least: 8 },
  { title: 'ROLE', cell: ({ role }) => role, rank: 2 },
  { title: 'TENANT', cell: ({ tenant }) => tenant ?? '-', rank: 3, least: 6 },
  { title: 'CREATED', cell: ({ created }) => created.slice(0, 10), rank: 5 },
  {
    title: 'EXPIRES',
    cell: ({ expires, expired }) => (expires === undefined ? 'never' : `${expires.slice(0, 16)}${expired === true ? ', over' : ''}`),
    look: ({ expired }) => (expired === true ? 'red' : undefined),
    rank: 4,
  },
];
