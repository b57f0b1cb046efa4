/** Signing in at an MCP server from a terminal: the browser comes back to this machine (RFC 8252), and no gateway is needed. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { temporalConnection, variablesOf } from '../../config.js';
import { isTenant, TENANT_PATTERN } from '../../conversation/protocol/limits.js';
import { timeoutSignal, orUndefinedOnAbort } from '../../platform/promises.js';
import { qualifiedScope } from '../../records/identity.js';
import type { Answer, CommandFrame, CommandRow } from '../session/command.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { errorMessage } from '../../platform/errors.js';
import { toTerminalLine } from '../terminal/terminal-text.js';

const WAIT_MS = 10 * 60_000;

interface SignInOptions {
  readonly scope?: string;
  readonly tenant?: string;
}

export const MCP_SIGN_IN: CommandRow = {
  name: 'mcp sign-in',
  description: 'sign in at an MCP server of an agent, by a browser on this machine',
  args: [
    ['<agent>', 'the folder in the agents folder'],
    ['<server>', 'its name in mcp.json'],
  ],
  options: [
    ['--scope <scope>', 'whose sign-in it is; that of the agent without it'],
    ['--tenant <tenant>', 'the tenant of that scope'],
  ],
  run: signIn,
};

async function signIn({ config: readConfig, output }: CommandFrame, agent: string, name: string, wanted: SignInOptions): Promise<Answer> {
  const config = readConfig();
  const { scope = agent, tenant } = wanted;
  if (tenant !== undefined && !isTenant(tenant)) throw new CliError(`--tenant: a tenant must match ${TENANT_PATTERN.source}`, EXIT.usage);
  if (config.secrets === undefined) {
    const how = 'set it, the same for workers and gateways, to what `openssl rand -hex 32` prints, and start them again';
    throw new CliError(`cannot sign in: PERDURA_SECRET is not set, and tokens are only kept sealed with a key of it; ${how}`, EXIT.usage);
  }
  const [agents, user, stores, settings, ins, { journeyOptions }, { beginSignIn, finishSignIn }] = await Promise.all([
    import('../../agents/load-agent.js'),
    import('../../extensions/user-config.js'),
    import('../../stores/open.js'),
    import('../../tools/mcp/server-config.js'),
    import('../../tools/mcp/sign-in/sign-ins.js'),
    import('../../tools/mcp/sign-in/visits.js'),
    import('../../tools/mcp/sign-in/journey.js'),
  ]);
  const extensions = await user.loadUserConfig(config.cwd);
  const who = { agent, scope: qualifiedScope(tenant, scope), namespace: (await temporalConnection(config)).namespace };
  const folder = agents.agentsFolder(config, extensions.agentsDir);
  const { servers } = await agents.loadAgent(folder, agent, who.scope, user.sharedServers(extensions, config.cwd));
  const found = servers.find((one) => one.name === name);
  if (found === undefined)
    throw new CliError(`agent ${agent} has no MCP server ${name}; perdura mcp tools ${agent} lists them`, EXIT.notFound);
  const server = settings.expandServer(found, variablesOf(config));
  if (!ins.maySignIn(server))
    throw new CliError(
      `the MCP server ${name} is not one at which people sign in: that is one with "url", and without a header for that`,
      EXIT.usage,
    );
  const store = stores.openStore(config, { log: (line) => output.problem(line) });
  const listener = createServer();
  try {
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const redirect = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/callback`;
    const { secrets, fetchAllow } = config;
    const journey = journeyOptions(server, who, { store: store.signIns, secrets: secrets.all, fetchAllow, redirect });
    let id = '';
    const location = await beginSignIn(journey, (state) => (id = state));
    output.say(
      `sign in at ${toTerminalLine(location.host, 200)}, for ${ins.describeOwner(server, who)}, by a browser on this machine:\n${location.href}`,
    );
    const answer = await waitForBrowser(listener, id);
    if (answer === undefined) throw new CliError('no browser came back from there within ten minutes; nothing was changed', EXIT.failed);
    await finishSignIn(journey, id, answer);
    return {
      data: { agent, server: name, scope: who.scope },
      draw: () => [[{ text: `signed in at ${toTerminalLine(new URL(server.url).host, 200)} for ${ins.describeOwner(server, who)}` }]],
      notes: ['a call that waits for this goes on once it is approved'],
    };
  } catch (error) {
    throw error instanceof CliError ? error : new CliError(errorMessage(error), EXIT.failed, { cause: error });
  } finally {
    listener.close();
    listener.closeAllConnections();
    await store.close();
  }
}

/** What else comes to that port changes nothing. */
async function waitForBrowser(listener: Server, id: string): Promise<URLSearchParams | undefined> {
  return orUndefinedOnAbort(
    timeoutSignal(WAIT_MS),
    new Promise<URLSearchParams>((resolve) => {
      listener.on('request', (request, response) => {
        const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
        const isOurs = request.method === 'GET' && pathname === '/callback' && searchParams.get('state') === id;
        const page = isOurs ? 'The terminal says what came of it. This page can be closed.' : 'Nothing is here.';
        response.writeHead(isOurs ? 200 : 404, { 'content-type': 'text/plain; charset=utf-8', 'referrer-policy': 'no-referrer' });
        response.end(page, () => (isOurs ? resolve(searchParams) : undefined));
      });
    }),
  );
}
