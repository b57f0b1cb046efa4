/** `perdura admin token`: the tokens in the file that PERDURA_AUTH names. A gateway that runs takes over what is written here. */
import { readFile, realpath } from 'node:fs/promises';
import { InvalidArgumentError, Option } from 'commander';
import writeFileAtomic from 'write-file-atomic';
import type { Config } from '../../config.js';
import { hashOf, idOf, isExpired, newToken, parseAuthFile, readAuthFile, type AuthFile } from '../../gateway/access/auth-file.js';
import { ROLES, SCOPES_PATTERN, TENANT_PATTERN, type Role } from '../../gateway/access/principal.js';
import { errorMessage } from '../../platform/errors.js';
import { decodeText } from '../../records/file-type.js';
import { parseMoment } from '../../records/time-in-words.js';
import { withLock } from '../lock.js';
import type { Answer, CommandRow } from '../session/command.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { renderTable, type Column } from '../views/table.js';

interface TokenWanted {
  readonly tenant?: string;
  readonly scope?: string;
  readonly memory?: readonly string[];
  readonly role: Role;
  readonly name?: string;
  /** A time, as ISO 8601 has it. */
  readonly expires?: string;
}

type TokenInFile = AuthFile['tokens'][number];

export const TOKENS: readonly CommandRow[] = [
  {
    name: 'admin token create',
    description: 'create a token and print it, once',
    options: [
      ['--scope <tenant>', 'whose conversations it sees; without it those of no tenant', readTenant],
      ['--tenant <tenant>', 'the same by its other name', readTenant],
      new Option('--role <role>', 'user talks; operator also decides and repairs; admin may do all').choices(ROLES).default('user'),
      ['--memory <scopes>', 'of a user: its scopes of memory, such as ada,ada-*', readScopes],
      ['--name <name>', 'what logs call it; letters, digits, . _ and -'],
      ['--expires <when>', 'such as 90d, 12h or 2027-01-31; without it never', readExpiry],
    ],
    help: `Examples:
  perdura admin token create --scope acme --role user --expires 90d    for a program or person of the tenant acme
  perdura admin token create --memory ada --name ada-laptop            for a person, with separate conversations and memory
  perdura admin token create --role admin --name ci                    of no tenant, with all rights
  perdura admin token revoke ci                                        it opens nothing from now on`,
    async run({ config }, { tenant: named, scope, memory, role, name, expires }: TokenWanted): Promise<Answer> {
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
        ...(memory !== undefined && { scopes: memory }),
        created: new Date().toISOString(),
        ...(expires !== undefined && { expires }),
      };
      const file = findFile(config());
      await change(file, (tokens) => [...tokens, row]);
      const where = memory === undefined ? '' : ` in ${memory.join(', ')}`;
      const whose = `${role}${tenant === undefined ? '' : ` of ${tenant}`}${where}${expires === undefined ? '' : ` until ${expires}`}`;
      return {
        data: { token, ...toShown(row) },
        text: token,
        notes: [`${row.name} opens as ${whose}; this is the only time that it is shown: ${file} keeps its hash`],
      };
    },
  },
  {
    name: 'admin token list',
    description: 'list tokens: name, role, tenant, expiry',
    async run({ config }): Promise<Answer> {
      const file = findFile(config());
      const rows = (await readTokens(file)).map(toShown);
      return {
        data: rows,
        draw: (look) => (rows.length === 0 ? [] : renderTable(rows, COLUMNS, look)),
        notes: rows.length === 0 ? [`there are no tokens in ${file}: \`perdura admin token create\` makes one`] : [],
      };
    },
  },
  {
    name: 'admin token revoke',
    description: 'revoke a token',
    args: [['<name>', 'its name, or its id in the list']],
    async run({ config }, which: string): Promise<Answer> {
      const file = findFile(config());
      let found: TokenInFile | undefined;
      await change(file, (tokens) => {
        found = tokens.find(({ name, hash }) => name === which || idOf(hash) === which);
        if (found === undefined)
          throw new CliError(`no token in ${file} is called ${which}: \`perdura admin token list\` shows them`, EXIT.notFound);
        return tokens.filter((one) => one !== found);
      });
      return {
        data: { revoked: found?.name },
        notes: [`${found?.name} opens nothing from now on; a gateway that runs sees it within a second`],
      };
    },
  },
  {
    name: 'admin token link',
    description: 'print a link that signs one browser in, once, within a minute',
    options: [['--url <url>', 'where the gateway is (default: the one that runs here)', readUrl]],
    async run({ config, output }, { url }: { readonly url?: string }): Promise<Answer> {
      const { createLink, openCounts, openEntrance, servedUrl } = await import('../gateway/serve.js');
      const log = (line: string): void => output.problem(line);
      const counts = await openCounts(config(), log);
      try {
        const { browsers } = await openEntrance(config(), { log, ...(counts && { sharedCounts: counts.shared }) });
        const link = await createLink(url ?? (await servedUrl(config())), browsers).catch((cause: unknown) => {
          throw new CliError(errorMessage(cause), EXIT.unreachable, { cause });
        });
        if (link !== undefined) return { data: { link }, text: link };
      } finally {
        await counts?.close();
      }
      throw new CliError(
        'PERDURA_AUTH is set and PERDURA_GATEWAY_TOKEN is not: only its tokens and users open, and they need no link',
        EXIT.usage,
      );
    },
  },
];

/** Takes those out of the file that this holds for; answers how many. */
export async function revokeTokens(file: string, isRevoked: (token: TokenInFile) => boolean): Promise<number> {
  let revoked = 0;
  await change(file, (tokens) => {
    const left = tokens.filter((token) => !isRevoked(token));
    revoked = tokens.length - left.length;
    return left;
  });
  return revoked;
}

function findFile({ authFile }: Config): string {
  if (authFile !== undefined) return authFile;
  throw new CliError('PERDURA_AUTH names no file for tokens: set it, such as PERDURA_AUTH=.perdura/auth.json', EXIT.usage);
}

async function readTokens(file: string): Promise<AuthFile['tokens']> {
  const { tokens } = await readAuthFile(file).catch((cause: unknown) => {
    throw new CliError(errorMessage(cause), EXIT.usage, { cause });
  });
  return tokens;
}

/** All else in the file stays as it was written. The result is checked before it is written. */
async function change(path: string, to: (tokens: readonly TokenInFile[]) => readonly object[]): Promise<void> {
  await withLock(`${path}.lock`, async () => {
    // A link to the file stays one.
    const file = await realpath(path).catch(() => path);
    const text = await readFile(file).then(decodeText, (error: NodeJS.ErrnoException) => {
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

function toShown({ name, hash, role, tenant, scopes, created, expires }: TokenInFile) {
  return {
    id: idOf(hash),
    name,
    role,
    ...(tenant !== undefined && { tenant }),
    ...(scopes !== undefined && { scopes }),
    created,
    ...(expires !== undefined && { expires, expired: isExpired({ expires }) }),
  };
}

const COLUMNS: readonly Column<ReturnType<typeof toShown>>[] = [
  { title: 'ID', cell: ({ id }) => id, rank: 1 },
  { title: 'NAME', cell: ({ name }) => name, rank: 0, least: 8 },
  { title: 'ROLE', cell: ({ role, scopes }) => (scopes === undefined ? role : `${role} in ${scopes.join(', ')}`), rank: 2 },
  { title: 'TENANT', cell: ({ tenant }) => tenant ?? '-', rank: 3, least: 6 },
  { title: 'CREATED', cell: ({ created }) => created.slice(0, 10), rank: 5 },
  {
    title: 'EXPIRES',
    cell: ({ expires, expired }) => (expires === undefined ? 'never' : `${expires.slice(0, 16)}${expired === true ? ', over' : ''}`),
    look: ({ expired }) => (expired === true ? 'red' : undefined),
    rank: 4,
  },
];

function readTenant(text: string): string {
  if (TENANT_PATTERN.test(text)) return text;
  throw new InvalidArgumentError('A tenant has up to 39 small letters, digits and -.');
}

function readScopes(text: string): readonly string[] {
  const scopes = text.split(',');
  if (scopes.every((one) => SCOPES_PATTERN.test(one))) return scopes;
  throw new InvalidArgumentError('Name scopes, or the beginnings of some, with commas between: ada,ada-*.');
}

function readUrl(text: string): string {
  const url = URL.parse(text);
  if (url !== null && ['http:', 'https:'].includes(url.protocol)) return url.href;
  throw new InvalidArgumentError('Write a URL, such as http://127.0.0.1:7280.');
}

const HOURS: Readonly<Record<string, number>> = { h: 1, d: 24 };
const MAX_HOURS = 24 * 3650;

function readExpiry(text: string): string {
  const [, count, unit = ''] = /^(\d{1,6})([hd])$/.exec(text) ?? [];
  const hours = Number(count) * (HOURS[unit] ?? NaN);
  const seconds = hours > 0 && hours <= MAX_HOURS ? Date.now() / 1000 + hours * 3600 : parseMoment(text);
  if (seconds === undefined || seconds * 1000 <= Date.now()) {
    throw new InvalidArgumentError('Write when it ends: 90d, 12h, or a date that is to come, such as 2027-01-31.');
  }
  return new Date(seconds * 1000).toISOString();
}
