import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseCount, parsePort } from '../args/values.js';
import { runs } from './command.js';
import type { CliContext } from '../session/context.js';
import { parseMoment } from '../../records/time.js';
import { parseProxy } from '../../gateway/access/proxies.js';
import { ROLES, TENANT_PATTERN } from '../../gateway/access/principal.js';

/** A file is read whole when a model is asked. */
const MAX_ATTACHMENT_MIB = 64;

const SERVE_EXAMPLES = `
Examples:
  perdura serve                                           on this machine alone, with a token that it prints
  perdura serve --host 0.0.0.0 --allow-host my.example    for others, behind a proxy that speaks TLS
    --trusted-proxy 10.0.0.0/8                            whose X-Forwarded-For, -Proto and -Host count

Without PERDURA_AUTH one token opens, with all rights. With it (docs/reference/protocols.md) those in its file do, and users of
its identity provider; the one token then opens only where PERDURA_GATEWAY_TOKEN is set.`;

export function serveCommand(program: Command, context: CliContext): void {
  program
    .command('serve')
    .description('serve conversations over HTTP until Ctrl+C; /openapi.json describes them')
    .option('--host <address>', 'where to listen', '127.0.0.1')
    .option('--port <port>', 'a port; 0: any that is free', readAnyPort, 7280)
    .option('--allow-host <name>', 'a name by which it is reached, beside loopback; more than once', collected, [])
    .option('--allow-origin <origin>', 'pages of this origin may ask, such as https://app.example; more than once', collected, [])
    .option('--trusted-proxy <range>', 'addresses whose X-Forwarded-* count, such as 10.0.0.0/8; more than once', collectedProxies, [])
    .option('--base-path <path>', 'where it is behind a proxy, such as /perdura')
    .option('--requests-per-minute <n>', 'of one token', parseCount, 1_200)
    .option('--open-per-token <n>', 'requests and streams of one token at once', parseCount, 2_000)
    .option('--max-attachment <mib>', 'largest file of POST /v1/attachments, in MiB', parseMebibytes, 10)
    .option('--access-log', 'a line for each request on stderr')
    .addHelpText('after', SERVE_EXAMPLES)
    .action(runs(context, async () => (await import('../gateway/serve.js')).serveGatewayCommand));
}

const TOKEN_EXAMPLES = `
Examples:
  perdura token create --scope acme --role user --expires 90d    for a program or person of the tenant acme
  perdura token create --role admin --name ci                    of no tenant, with all rights
  perdura token revoke ci                                        it opens nothing from now on`;

export function tokenCommand(program: Command, context: CliContext): void {
  const token = program.command('token').description('create, list and revoke tokens for `perdura serve`, in the file of PERDURA_AUTH');
  token
    .command('create')
    .description('create a token and print it, once')
    .option('--scope <tenant>', 'whose conversations it sees; without it those of no tenant', readTenant)
    .option('--tenant <tenant>', 'the same by its other name', readTenant)
    .addOption(
      new Option('--role <role>', 'user talks; operator also decides and repairs; admin may do all').choices(ROLES).default('user'),
    )
    .option('--name <name>', 'what logs call it; letters, digits, . _ and -')
    .option('--expires <when>', 'such as 90d, 12h or 2027-01-31; without it never', readExpiry)
    .addHelpText('after', TOKEN_EXAMPLES)
    .action(runs(context, async () => (await import('../gateway/tokens.js')).createToken));
  token
    .command('list')
    .description('list tokens: name, role, tenant, expiry')
    .action(runs(context, async () => (await import('../gateway/tokens.js')).listTokens));
  token
    .command('revoke')
    .description('revoke a token')
    .argument('<name>', 'its name, or its id in the list')
    .action(runs(context, async () => (await import('../gateway/tokens.js')).revokeToken));
  token
    .command('link')
    .description('print a link that signs one browser in, once, within a minute')
    .option('--url <url>', 'where the gateway is (default: http://127.0.0.1:7280)', readUrl)
    .action(runs(context, async () => (await import('../gateway/tokens.js')).printLink));
}

function collected(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

function collectedProxies(value: string, before: readonly string[]): readonly string[] {
  try {
    parseProxy(value);
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}.`);
  }
  return collected(value, before);
}

function parseMebibytes(text: string): number {
  const mebibytes = parseCount(text);
  if (mebibytes <= MAX_ATTACHMENT_MIB) return mebibytes;
  throw new InvalidArgumentError(`A file may have ${MAX_ATTACHMENT_MIB} MiB.`);
}

function readAnyPort(text: string): number {
  return text === '0' ? 0 : parsePort(text);
}

function readTenant(text: string): string {
  if (TENANT_PATTERN.test(text)) return text;
  throw new InvalidArgumentError('A tenant has up to 39 small letters, digits and -.');
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
