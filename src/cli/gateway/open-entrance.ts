/** Who may open the gateway of this folder, by its settings. */
import { join } from 'node:path';
import { variablesOf, type Config } from '../../config.js';
import { watchAuthFile, type AuthFile } from '../../gateway/access/auth-file.js';
import { createEntrance, type Browsers, type Entrance } from '../../gateway/access/entrance.js';
import { createLimits, type SharedCounts } from '../../gateway/access/limits.js';
import { loadJose, loadOpenidClient } from '../../gateway/access/provider.js';
import { keptToken } from '../../gateway/access/tokens.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { errorMessage } from '../../platform/errors.js';

export interface OpenedEntrance extends Entrance {
  /** The one token that opens, where there is one, and where it is kept. */
  readonly own?: { readonly token: string; readonly from: 'PERDURA_GATEWAY_TOKEN' | 'file'; readonly where: string };
  /** What `PERDURA_AUTH` has named when this was opened. */
  readonly auth?: AuthFile;
}

export interface EntranceWanted {
  readonly sharedCounts?: SharedCounts;
  readonly log?: (line: string) => void;
}

/** Of all letters that `openssl rand -hex 32` prints, half. */
const MIN_KEY = 32;

/** Throws `CliError` where a setting cannot be used. */
export async function openEntrance(config: Config, { sharedCounts, log = () => undefined }: EntranceWanted = {}): Promise<OpenedEntrance> {
  const variables = variablesOf(config);
  const source = config.authFile === undefined ? undefined : watchAuthFile(config.authFile, log);
  const auth = await source?.current().catch((cause: unknown) => {
    throw new CliError(errorMessage(cause), EXIT.usage, { cause });
  });
  if (auth !== undefined) await checkProvider(auth, variables);
  const own = await ownToken(config);
  // Beside PERDURA_AUTH the kept token opens nothing: it only seals what this machine's gateways give away.
  const secret = sessionKey(auth, variables) ?? own?.token ?? (await keptToken(tokenFile(config)));
  const entrance = createEntrance({
    secret,
    variables,
    createLimiter: createLimits(sharedCounts),
    log,
    ...(own !== undefined && { token: own.token }),
    ...(source !== undefined && { auth: source }),
  });
  return { ...entrance, ...(own !== undefined && { own }), ...(auth !== undefined && { auth }) };
}

async function ownToken(config: Config): Promise<OpenedEntrance['own']> {
  if (config.gatewayToken !== undefined) {
    return { token: config.gatewayToken, from: 'PERDURA_GATEWAY_TOKEN', where: 'PERDURA_GATEWAY_TOKEN' };
  }
  if (config.authFile !== undefined) return undefined;
  const where = tokenFile(config);
  return { token: await keptToken(where), from: 'file', where };
}

function tokenFile({ cwd }: Config): string {
  return join(cwd, '.perdura', 'token');
}

function sessionKey(auth: AuthFile | undefined, variables: Readonly<Record<string, string | undefined>>): string | undefined {
  const name = auth?.session.keyEnv;
  if (name === undefined) return undefined;
  const key = variables[name] ?? '';
  if (key.length >= MIN_KEY) return key;
  const message = `${name}, which session.keyEnv of PERDURA_AUTH names, must have ${MIN_KEY} characters or more: \`openssl rand -hex 32\` prints some`;
  throw new CliError(message, EXIT.usage);
}

/** What a user's first request would find missing is better found at the start. */
async function checkProvider({ jwt, oidc }: AuthFile, variables: Readonly<Record<string, string | undefined>>): Promise<void> {
  const cannot = (cause: unknown): never => {
    throw new CliError(`cannot check tokens of an identity provider: ${errorMessage(cause)}`, EXIT.usage, { cause });
  };
  if (jwt !== undefined) await loadJose().catch(cannot);
  if (oidc !== undefined || (jwt !== undefined && jwt.jwksUri === undefined)) await loadOpenidClient().catch(cannot);
  const secret = oidc?.clientSecretEnv;
  if (secret !== undefined && variables[secret] === undefined) {
    throw new CliError(`${secret}, which oidc.clientSecretEnv of PERDURA_AUTH names, is not set`, EXIT.usage);
  }
}

/** A link that lets a browser in: its code opens once, within a minute, and stands where no server and no log sees it. Undefined where the gateway's token does not open. */
export function createLink(served: string, browsers: Browsers): string | undefined {
  const code = browsers.createCode();
  if (code === undefined) return undefined;
  const url = new URL(served);
  // "All addresses" is none that a browser can open.
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = '127.0.0.1';
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  url.hash = `code=${code}`;
  return url.href;
}
