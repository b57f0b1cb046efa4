/** `perdura serve`: conversations over HTTP until Ctrl+C. */
import { agentNames, agentsFolder } from '../../agents/agents-folder.js';
import type { Config } from '../../config.js';
import type { SharedCounts } from '../../gateway/access/limits.js';
import { packageVersion } from '../../platform/version.js';
import type { CliContext } from '../session/context.js';
import { withClient } from '../session/with-client.js';
import { findEventLink, hasWorker, openNamespace } from '../services/temporal-connection.js';
import { onTermination } from '../terminal/interrupts.js';
import { CliError, EXIT } from '../terminal/exit.js';
import type { Output } from '../terminal/output.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { findingsHere } from '../doctor/findings-here.js';
import type { Store } from '../../stores/store.js';
import { linkOf } from './link.js';
import { tenantKeyOf } from './tenant-names.js';
import { openEntrance, type OpenedEntrance } from './open-entrance.js';
import { errorMessage } from '../../platform/errors.js';
import { AgentConfigError, loadAgent } from '../../agents/load-agent.js';
import { loadUserConfig, sharedServers } from '../../extensions/user-config.js';
import type { AgentDescription } from '../../gateway/context.js';
import { formatQuantity } from '../../records/quantities.js';
import { qualifiedScope } from '../../records/scope.js';
import type { McpServer } from '../../tools/mcp/server-config.js';
import { toServerTool } from '../../tools/mcp/pins.js';

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
}

export function serveGatewayCommand(context: CliContext, wanted: ServeWanted): Promise<number> {
  return withClient(context, { needsWorker: true }, async ({ client, config, temporal, output, globals, signal, surroundings }) => {
    const { serveGateway } = await import('../../gateway/serve.js');
    const log = (line: string): void => output.problem(line);
    const counts = await openCounts(config, log);
    const sharedCounts = counts?.shared;
    const entrance = await openEntrance(config, { log, ...(sharedCounts !== undefined && { sharedCounts }) });
    const probe = await openNamespace(temporal);
    let opened: Promise<Store> | undefined;
    const store = (): Promise<Store> => (opened ??= import('../../stores/open.js').then(({ openStore }) => openStore(config, { log })));
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
      ...(wanted.basePath !== undefined && { basePath: wanted.basePath }),
      authenticate: entrance.authenticate,
      browsers: entrance.browsers,
      agents: (tenant) => agentNames(config, tenant),
      describeAgent: (name, tenant) => describeAgent({ config, namespace: temporal.namespace, store }, name, tenant),
      findings: () => findingsHere(config),
      temporalLink: await findEventLink(temporal),
      tenantKey: await tenantKeyOf(config),
      version: packageVersion(),
      log,
      ...(wanted.accessLog && { accessLog: (line) => output.note(line) }),
      checks: {
        temporal: () => client.list({ limit: 1 }),
        store: () => client.scope('default').text(),
        worker: async () => {
          if (!(await hasWorker(probe, temporal.namespace, config.taskQueue))) throw new Error('no worker');
        },
      },
    }).catch((error: unknown) => {
      throw new CliError(`cannot listen on ${wanted.host}:${wanted.port}: ${errorMessage(error)}; --port names another`, EXIT.usage);
    });
    let stopListening = (): void => undefined;
    try {
      announce(output, surroundings.stderr.isTTY === true, globals.output, `${served.url}${wanted.basePath ?? ''}`, entrance, config);
      if (!isLoopback(wanted.host)) {
        output.problem(
          `${wanted.host} is reached from other machines, in the clear: put a proxy that speaks TLS before it (docs/operations/deploying.md)`,
        );
      }
      await new Promise<void>((resolve) => {
        stopListening = onTermination(surroundings.signals, () => resolve());
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      return EXIT.ok;
    } finally {
      stopListening();
      await served.close();
      await probe.close();
      await (await opened)?.close();
      await counts?.close();
    }
  });
}

/** A token that lasts is shown on a screen, and never written where output is kept. */
function announce(
  output: Output,
  isScreen: boolean,
  format: string,
  url: string,
  { own, auth, browsers }: OpenedEntrance,
  { authFile }: Config,
): void {
  const link = linkOf(url, browsers);
  const signIn = auth?.oidc === undefined ? undefined : `${url}/auth/login`;
  if (format !== 'text') {
    const names = { ...(own && { token: own.where }), ...(authFile !== undefined && { auth: authFile }) };
    output.line(toTerminalJson({ url, ...names, ...(link !== undefined && { link }), ...(signIn !== undefined && { signIn }) }));
    return;
  }
  const lines = [
    `serving ${url}`,
    ...(own?.from === 'file' ? [...(isScreen ? [`token   ${own.token}`] : []), `token   kept in ${own.where}`] : []),
    ...(own?.from === 'PERDURA_GATEWAY_TOKEN' ? ['token   PERDURA_GATEWAY_TOKEN'] : []),
    ...(authFile === undefined ? [] : [`tokens  of PERDURA_AUTH: ${authFile}`]),
    ...(signIn === undefined ? [] : [`sign in ${signIn}`]),
    ...(link === undefined ? [] : [`browser ${link}`, '        opens once, within a minute; `perdura token link` prints another']),
  ];
  output.say(lines.join('\n'));
}

/** Where gateways of one store count together. One that does not answer keeps nobody out: each gateway counts alone then. */
async function openCounts(
  { redisUrl, taskQueue }: Config,
  log: (line: string) => void,
): Promise<{ readonly shared: SharedCounts; readonly close: () => Promise<void> } | undefined> {
  if (redisUrl === undefined) return undefined;
  const { openRedisLink } = await import('../../stores/redis/link.js');
  const { redis, close } = openRedisLink({ url: redisUrl, commandTimeoutMs: 500, log });
  redis.connect().catch(() => undefined);
  return { shared: { client: redis, prefix: `perdura:gateway:${taskQueue}` }, close };
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}

/** What agents are made of, for those who look at them over HTTP: read as a worker of this folder reads them; nothing is started. */

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
  const own = await loadUserConfig(config.cwd);
  const scope = tenant === undefined ? name : qualifiedScope(tenant, name);
  const folder = agentsFolder(config, own.agentsDir);
  const agent = await loadAgent(folder, name, scope, sharedServers(own, config.cwd)).catch((error: unknown) => {
    if (error instanceof AgentConfigError && error.kind !== 'bad-config') return undefined;
    throw error;
  });
  if (agent === undefined) return undefined;
  const [{ builtinToolsWith }, { toolSettings }, { createToolRegistry }] = await Promise.all([
    import('../../tools/builtin/index.js'),
    import('../../worker.js'),
    import('../../tools/registry.js'),
  ]);
  const ownTools = own.tools ?? [];
  const registry = createToolRegistry([...builtinToolsWith(toolSettings(config, folder)), ...ownTools]);
  const wanted = agent.config.tools?.filter((one) => registry.find(one) !== undefined);
  const named = new Set(ownTools.map((tool) => tool.name));
  const pins = await (await store()).pins.list({ namespace, agent: name }).catch(() => []);
  const servers = agent.servers.map((server) => {
    const accepted = pins.filter((pin) => pin.server === server.name);
    return {
      ...shownServer(server),
      pins: accepted.map((pin) => ({
        tool: pin.tool,
        hash: pin.hash,
        description: toServerTool(pin)?.description ?? null,
        inputSchema: toServerTool(pin)?.inputSchema ?? null,
      })),
    };
  });
  return {
    name,
    config: agent.config,
    tools: registry.describe(wanted).map((tool) => ({ ...tool, from: named.has(tool.name) ? 'perdura.config' : 'built in' })),
    servers,
    system: agent.system,
  };
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
