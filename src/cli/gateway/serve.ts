/** The gateway of this folder: conversations over HTTP, and the page. */
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { agentNames, agentsFolder, AgentConfigError, loadAgent } from '../../agents/load-agent.js';
import { findingsHere } from '../doctor/doctor.js';
import { readSecrets, tenantKeyFrom } from '../args/find-conversation.js';
import { checkStore } from '../services/before-start.js';
import { findEventLink, hasWorker, isListening, openNamespace } from '../services/temporal-connection.js';
import type { CommandSession } from '../session/command.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { secretsInFolder, secretsOf, secretVariables, variablesOf, type Config } from '../../config.js';
import { loadUserConfig, sharedServers } from '../../extensions/user-config.js';
import { watchAuthFile, type AuthFile } from '../../gateway/access/auth-file.js';
import { createEntrance, type Browsers, type Entrance, keptToken } from '../../gateway/access/entrance.js';
import type { SharedCounts } from '../../gateway/access/limits.js';
import { loadJose, loadOpenidClient } from '../../gateway/access/provider.js';
import { recordSpentInFolder, recordSpentInRedis } from '../../gateway/access/spent.js';
import type { McpSignIn } from '../../gateway/access/mcp-sign-in.js';
import type { AddedCase, AgentDescription, AgentServer } from '../../gateway/context.js';
import { ClientError } from '../../client/errors.js';
import { ConfigError, errorMessage } from '../../platform/errors.js';
import { createKnownSecrets, type KnownSecrets } from '../../platform/known-secrets.js';
import { packageVersion } from '../../platform/optional-package.js';
import { formatQuantity } from '../../records/time-in-words.js';
import { qualifiedScope } from '../../records/identity.js';
import type { Store, ToolPin } from '../../stores/store.js';
import { toServerTool } from '../../tools/mcp/server-tool.js';
import type { McpServer } from '../../tools/mcp/server-config.js';

/** Where a gateway is by default. */
export const GATEWAY_URL = 'http://127.0.0.1:7280';

export interface ServeWanted {
  readonly host: string;
  readonly port: number;
  readonly allowHost: readonly string[];
  readonly allowOrigin: readonly string[];
  readonly trustedProxy: readonly string[];
  readonly basePath?: string;
  readonly requestsPerMinute: number;
  readonly openPerToken: number;
  readonly maxAttachment: number;
  readonly accessLog?: boolean;
  readonly joinEqualRequests?: boolean;
  /** Turns may become cases of datasets, in files of this folder: a person's project, not a server's. */
  readonly writesDatasets?: true;
}

export interface RunningGateway {
  readonly url: string;
  readonly entrance: OpenedEntrance;
  close(): Promise<void>;
}

/** Throws `CliError` where it cannot listen. */
export async function startGateway(
  { client, config, temporal, output }: Pick<CommandSession, 'client' | 'config' | 'temporal' | 'output'>,
  wanted: ServeWanted,
): Promise<RunningGateway> {
  const [{ serveGateway }, { notesInFolder, notesInRedis }] = await Promise.all([
    import('../../gateway/index.js'),
    import('../../gateway/core/repeated-requests.js'),
  ]);
  const secrets = createKnownSecrets([...secretsOf(config), ...secretVariables(variablesOf(config))]);
  const log = (line: string): void => output.problem(secrets.text(line));
  if (config.redisUrl !== undefined) await checkStore(config);
  const counts = await openCounts(config, log);
  const sharedCounts = counts?.shared;
  const entrance = await openEntrance(config, { log, ...(sharedCounts !== undefined && { sharedCounts }) });
  const { tenantKey } = entrance;
  secrets.add([tenantKey, ...secretsInFolder(config.cwd)]);
  const probe = await openNamespace(temporal);
  let opened: Promise<Store> | undefined;
  const store = (): Promise<Store> => (opened ??= import('../../stores/open.js').then(({ openStore }) => openStore(config, { log })));
  const release = async (): Promise<void> => {
    await probe.close();
    await (await opened)?.close();
    await counts?.close();
  };
  const served = await serveGateway({
    client,
    host: wanted.host,
    port: wanted.port,
    hosts: wanted.allowHost,
    origins: wanted.allowOrigin,
    trustedProxies: wanted.trustedProxy,
    requestsPerMinute: wanted.requestsPerMinute,
    openPerToken: wanted.openPerToken,
    attachments: { maxBytes: wanted.maxAttachment * 1024 * 1024 },
    ...(sharedCounts !== undefined && { sharedCounts }),
    requestNotes: sharedCounts ? notesInRedis(sharedCounts) : notesInFolder(join(config.cwd, '.perdura', 'requests')),
    joinEqualRequests: wanted.joinEqualRequests,
    ...(wanted.basePath !== undefined && { basePath: wanted.basePath }),
    authenticate: entrance.authenticate,
    browsers: entrance.browsers,
    agents: (tenant) => agentNames(config, tenant),
    describeAgent: (name, tenant) => describeAgent({ config, namespace: temporal.namespace, store }, name, tenant),
    findings: () => findingsHere(config),
    ...(wanted.writesDatasets && {
      addToDataset: (seen, id, turn, to) => addToDataset({ client: seen, store, secrets, config }, id, turn, to),
    }),
    ...(config.secrets !== undefined && {
      mcpSignIn: await openMcpSignIn({ config, namespace: temporal.namespace, store }, config.secrets.all),
    }),
    temporalLink: await findEventLink(temporal),
    tenantKey,
    secrets: entrance.secrets,
    version: packageVersion(),
    log,
    redact: secrets.redact,
    ...(wanted.accessLog && { accessLog: (line) => output.note(line) }),
    checks: {
      temporal: () => client.list({ limit: 1 }),
      store: () => client.scope('default').text(),
      worker: async () => {
        if (!(await hasWorker(probe, temporal.namespace, config.taskQueue))) throw new Error('no worker');
      },
    },
  }).catch(async (error: unknown) => {
    await release();
    throw new CliError(`cannot listen on ${wanted.host}:${wanted.port}: ${errorMessage(error)}; --port names another`, EXIT.usage);
  });
  const url = `${served.url}${wanted.basePath ?? ''}`;
  // Only a link needs it.
  await mkdir(join(config.cwd, '.perdura'), { recursive: true })
    .then(() => writeFileAtomic(urlFile(config), url, { mode: 0o600 }))
    .catch(() => undefined);
  return {
    url,
    entrance,
    async close() {
      if ((await readUrl(config)) === url) await rm(urlFile(config), { force: true });
      await served.close();
      await release();
    },
  };
}

function urlFile({ cwd }: Config): string {
  return join(cwd, '.perdura', 'gateway-url');
}

async function readUrl(config: Config): Promise<string | undefined> {
  const text = await readFile(urlFile(config), 'utf8').catch(() => '');
  return URL.canParse(text) ? text : undefined;
}

/** Where the gateway of this folder is: one that runs, else where one is by default. */
export async function servedUrl(config: Config): Promise<string> {
  const url = await readUrl(config);
  if (url === undefined) return GATEWAY_URL;
  const { hostname, port, protocol } = new URL(url);
  return (await isListening(`${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`)) ? url : GATEWAY_URL;
}

/** A token that lasts, and a link, are shown on a screen, and never written where output is stored: there it names the command for a link. */
export async function announceGateway(
  { output, surroundings, globals }: Pick<CommandSession, 'output' | 'surroundings' | 'globals'>,
  { url, entrance: { token, auth, browsers } }: RunningGateway,
  { authFile }: Config,
): Promise<void> {
  const isText = globals.output === 'text';
  const isScreen = (isText ? surroundings.stderr : surroundings.stdout).isTTY === true;
  const linkCommand = `perdura admin token link${url === GATEWAY_URL ? '' : ` --url ${url}`}`;
  // Where none can be made, the log says why.
  const link = isScreen && token ? await createLink(url, browsers).catch(() => undefined) : undefined;
  const signIn = auth?.oidc === undefined ? undefined : `${url}/auth/login`;
  if (!isText) {
    const names = { ...(token && { token: token.where }), ...(authFile !== undefined && { auth: authFile }) };
    const enter = link !== undefined ? { link } : token && { linkCommand };
    output.line(toTerminalJson({ url, ...names, ...enter, ...(signIn !== undefined && { signIn }) }));
    return;
  }
  const lines = [
    `serving ${url}`,
    ...(token?.from === 'file' ? [...(isScreen ? [`token   ${token.token}`] : []), `token   kept in ${token.where}`] : []),
    ...(token?.from === 'PERDURA_GATEWAY_TOKEN' ? ['token   PERDURA_GATEWAY_TOKEN'] : []),
    ...(authFile === undefined ? [] : [`tokens  of PERDURA_AUTH: ${authFile}`]),
    ...(signIn === undefined ? [] : [`sign in ${signIn}`]),
    ...(link === undefined ? [] : [`browser ${link}`, `        opens once, within a minute; \`${linkCommand}\` prints another`]),
    ...(link !== undefined || token === undefined ? [] : [`browser \`${linkCommand}\` prints a link that lets one browser in`]),
  ];
  output.say(lines.join('\n'));
}

/**
 * Where gateways of one store count together, and write down which codes were used and who has signed out. While it does not answer, each of
 * them counts alone, and no browser comes in.
 */
export async function openCounts(
  { redisUrl, taskQueue }: Config,
  log: (line: string) => void,
): Promise<{ readonly shared: SharedCounts; readonly close: () => Promise<void> } | undefined> {
  if (redisUrl === undefined) return undefined;
  const { openRedisLink } = await import('../../stores/redis/link.js');
  const { redis, connect, close } = openRedisLink({ url: redisUrl, log });
  void connect();
  return { shared: { client: redis, prefix: `perdura:gateway:${taskQueue}` }, close };
}

/** Throws `ClientError` where the project cannot take it. */
async function addToDataset(
  {
    client,
    store,
    secrets,
    config,
  }: Pick<CommandSession, 'client' | 'config'> & Pick<KnownAgents, 'store'> & { readonly secrets: KnownSecrets },
  id: string,
  turn: string,
  { name, labels }: { readonly name: string; readonly labels: readonly string[] },
): Promise<AddedCase> {
  const [{ takeConversation, toCase }, { addCase }] = await Promise.all([
    import('../../evals/from-conversation.js'),
    import('../../evals/dataset.js'),
  ]);
  try {
    const taken = await takeConversation({ client, store: await store(), secrets }, id, { withMemory: false });
    const one = toCase(taken, { turn, labels });
    const { cases, isNew, labels: all } = await addCase(config.cwd, name, one);
    return { id: one.id, name, cases, isNew, labels: all };
  } catch (error) {
    if (error instanceof ConfigError) throw new ClientError('invalid', error.message, { cause: error });
    throw error;
  }
}

// What agents are made of, for clients over HTTP: read as a worker of this folder reads them; nothing is started.

interface KnownAgents {
  readonly config: Config;
  readonly namespace: string;
  readonly store: () => Promise<Store>;
}

/** Undefined where there is no such agent, or the tenant may not use it. */
async function describeAgent(
  { config, namespace, store }: KnownAgents,
  name: string,
  tenant?: string,
): Promise<AgentDescription | undefined> {
  const user = await loadUserConfig(config.cwd);
  const scope = tenant === undefined ? name : qualifiedScope(tenant, name);
  const folder = agentsFolder(config, user.agentsDir);
  const agent = await loadAgent(folder, name, scope, sharedServers(user, config.cwd)).catch((error: unknown) => {
    if (error instanceof AgentConfigError && error.kind !== 'bad-config') return undefined;
    throw error;
  });
  if (agent === undefined) return undefined;
  const [{ builtinToolsWith }, { toolSettings }, { createToolRegistry }] = await Promise.all([
    import('../../tools/builtin/index.js'),
    import('../../worker.js'),
    import('../../tools/tool.js'),
  ]);
  const userTools = user.tools ?? [];
  const registry = createToolRegistry([...builtinToolsWith(toolSettings(config, folder)), ...userTools]);
  const wanted = agent.config.tools?.filter((one) => registry.find(one) !== undefined);
  const named = new Set(userTools.map((tool) => tool.name));
  const pins = await (await store()).pins.list({ namespace, agent: name }).catch(() => undefined);
  const shown = (of: McpServer, some: readonly ToolPin[] = []): AgentServer['pins'] =>
    some.flatMap((pin) => {
      const { description = null, inputSchema = null } = toServerTool(pin) ?? {};
      return pin.server === of.name ? [{ tool: pin.tool, hash: pin.hash, description, inputSchema }] : [];
    });
  const servers = agent.servers.map((server) => ({
    ...shownServer(server),
    pins: shown(server, pins?.accepted),
    waiting: shown(server, pins?.waiting),
  }));
  return {
    name,
    config: agent.config,
    tools: registry.describe(wanted).map((tool) => ({ ...tool, from: named.has(tool.name) ? 'perdura.config' : 'built in' })),
    servers,
    system: agent.system,
  };
}

/** By the settings of the agents in this folder, which are those of its workers. */
async function openMcpSignIn({ config, namespace, store }: KnownAgents, secrets: readonly [string, ...string[]]): Promise<McpSignIn> {
  const [{ createSignInVisits }, { expandServer }] = await Promise.all([
    import('../../tools/mcp/sign-in/visits.js'),
    import('../../tools/mcp/server-config.js'),
  ]);
  return createSignInVisits({
    secrets,
    store: (await store()).signIns,
    publicUrl: config.publicUrl,
    fetchAllow: config.fetchAllow,
    async findServer(ticket) {
      if (ticket.namespace !== namespace) return undefined;
      const user = await loadUserConfig(config.cwd);
      const { servers } = await loadAgent(
        agentsFolder(config, user.agentsDir),
        ticket.agent,
        ticket.scope,
        sharedServers(user, config.cwd),
      );
      const server = servers.find(({ name }) => name === ticket.server);
      return server && expandServer(server, variablesOf(config));
    },
  });
}

/** With the names of variables; what a file gives as a value or an argument may be a secret, and is not shown. */
function shownServer(server: McpServer): {
  readonly name: string;
  readonly type: string;
  readonly place: string;
  readonly variables: readonly string[];
} {
  const { name, type } = server;
  if (server.type === 'http') {
    const place = server.url.replace(/\/\/[^/@]*@/, '//***@').replace(/\?.*$/, '?***');
    return { name, type, place, variables: Object.keys(server.headers ?? {}) };
  }
  const place = server.args.length === 0 ? server.command : `${server.command} … (${formatQuantity(server.args.length, 'argument')})`;
  return { name, type, place, variables: Object.keys(server.env ?? {}) };
}

export interface OpenedEntrance extends Entrance {
  /** The one token that opens, where there is one, and where it is stored. */
  readonly token?: { readonly token: string; readonly from: 'PERDURA_GATEWAY_TOKEN' | 'file'; readonly where: string };
  readonly tenantKey: string;
  readonly secrets: readonly [string, ...string[]];
  /** What `PERDURA_AUTH` has named when this was opened. */
  readonly auth?: AuthFile;
}

interface EntranceWanted {
  readonly sharedCounts?: SharedCounts;
  readonly log?: (line: string) => void;
}

/** Throws `CliError` where a setting cannot be used. */
export async function openEntrance(config: Config, { sharedCounts, log = () => undefined }: EntranceWanted = {}): Promise<OpenedEntrance> {
  const variables = variablesOf(config);
  const source = config.authFile === undefined ? undefined : watchAuthFile(config.authFile, log);
  const auth = await source?.current().catch((cause: unknown) => {
    throw new CliError(errorMessage(cause), EXIT.usage, { cause });
  });
  if (auth !== undefined) await checkProvider(auth, variables);
  const token = await readToken(config);
  const secrets = await readSecrets(config);
  const entrance = createEntrance({
    secrets: secrets.all,
    variables,
    spent: sharedCounts ? recordSpentInRedis(sharedCounts, log) : recordSpentInFolder(join(config.cwd, '.perdura', 'spent'), log),
    log,
    ...(token !== undefined && { token: token.token }),
    ...(source !== undefined && { auth: source }),
  });
  return {
    ...entrance,
    tenantKey: tenantKeyFrom(secrets),
    secrets: secrets.all,
    ...(token !== undefined && { token }),
    ...(auth !== undefined && { auth }),
  };
}

async function readToken(config: Config): Promise<OpenedEntrance['token']> {
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

/** Checks at the start what a user's first request would find missing. */
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

/**
 * A link that lets a browser in: its code opens once, within a minute, and stands where no server and no log sees it. Undefined where the
 * gateway's token does not open.
 */
export async function createLink(served: string, browsers: Browsers): Promise<string | undefined> {
  const code = await browsers.createCode();
  if (code === undefined) return undefined;
  const url = new URL(served);
  // "All addresses" is none that a browser can open.
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = '127.0.0.1';
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  url.hash = `code=${code}`;
  return url.href;
}
