/** Conversations for other programs over stdin and stdout (MCP, ACP), and the MCP servers of agents: what they offer, and whether it runs. */
import { randomUUID } from 'node:crypto';
import { Readable, Writable } from 'node:stream';
import { Argument, InvalidArgumentError } from 'commander';
import { temporalConnection, variablesOf } from '../../config.js';
import { errorMessage } from '../../platform/errors.js';
import { ACP_PACKAGE, loadOptional, MCP_SERVER_PACKAGE, packageVersion } from '../../platform/optional-package.js';
import { createSeal } from '../../platform/seal.js';
import type { Store } from '../../stores/store.js';
import type { ToolState } from '../../tools/mcp/server-tool.js';
import type { ServerReport, ToolReport } from '../../tools/mcp/server-tools.js';
import type { Answer, CommandFrame, CommandRow } from '../session/command.js';
import type { CliContext } from '../session/context.js';
import { withSlowNotice } from '../session/with-progress.js';
import { canAsk, confirm, type Person } from '../terminal/input.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';

const LOOKS = { accepted: 'green', added: 'yellow', changed: 'red', new: 'dim' } as const satisfies Record<ToolState, string>;
const WIDTH = 100;
const NOBODY_TO_ASK = 'nothing was accepted: there is no person to ask here; --yes accepts what is shown, --hash what was looked at before';

export const MCP: readonly CommandRow[] = [
  {
    name: 'mcp serve',
    description: 'serve conversations to an MCP client over stdin and stdout, until stdin ends',
    isDefault: true,
    run: serveMcp,
  },
  {
    name: 'mcp tools',
    description: 'list the tools that an agent has from its MCP servers, and whether they run',
    args: [new Argument('[agent]', 'the folder in the agents folder').default('default')],
    run: (frame, agent: string) =>
      withServers(frame, agent, ({ reports }) => {
        const servers = reports.map(toRow);
        const isWaiting = servers.some(({ tools }) => tools.some(({ state }) => state === 'added' || state === 'changed'));
        return Promise.resolve({
          data: { agent, servers },
          draw: ({ width = WIDTH }) => reports.flatMap((report) => renderServer(report, width)),
          notes: [
            ...(reports.length === 0 ? [`agent ${agent} has no MCP servers: they stand in mcp.json beside its agent.json`] : []),
            ...(isWaiting ? [`what was added or changed is not offered; perdura mcp accept ${agent} shows how, and accepts it`] : []),
          ],
          exitCode: reports.every(({ server, state }) => server === undefined || state.kind === 'up') ? EXIT.ok : EXIT.failed,
        });
      }),
  },
  {
    name: 'mcp accept',
    description: 'accept what MCP servers say about their tools now, after it was shown how it differs from before',
    args: [
      ['<agent>', 'the folder in the agents folder'],
      ['[what]', 'a server, SERVER/TOOL, or the name of a tool; without it, all that was added or has changed'],
    ],
    options: [
      ['-y, --yes', 'without asking'],
      ['--hash <hash>', 'without asking, where the tool that is named has this hash, as `mcp tools -o json` shows it', readHash],
    ],
    help: `Examples:
  perdura mcp accept default                        all that was added or has changed, one after the other
  perdura mcp accept default github                 of one server
  perdura mcp accept default mcp__github__search    one tool, by the name that its agent knows it by; or github/search
  perdura mcp accept default github/search --hash … in a script: what a person has looked at before, and nothing else`,
    run: (frame, agent: string, what: string | undefined, { yes = false, hash }: AcceptOptions) =>
      withServers(frame, agent, (servers) => accept(frame, servers, { agent, what, yes, hash })),
  },
  {
    name: 'acp',
    description: 'serve conversations to an editor (Agent Client Protocol) over stdin and stdout, until stdin ends',
    options: [['--agent <name>', 'whom new sessions talk to; the one called default without it']],
    run: serveAcp,
  },
];

/** Who began it, over whose stdin and stdout it is served. */
const PERSON = { name: 'stdio', role: 'admin' } as const;

/** Stdout belongs to the protocol, so what is for people goes to stderr. */
async function serveMcp(frame: CommandFrame): Promise<number> {
  const { client, output, signal, surroundings } = await frame.open({
    needsWorker: true,
    serves: true,
    whenInterrupted: 'stopped serving',
  });
  const { createMcpServer } = await import('../../gateway/mcp/server.js');
  const { serveStdio, StdioServerTransport } = await loadOptional(
    [MCP_SERVER_PACKAGE],
    () => import('@modelcontextprotocol/server/stdio'),
  ).catch((cause: unknown) => {
    throw new Error(`cannot serve MCP: ${errorMessage(cause)}`, { cause });
  });
  const seal = createSeal([randomUUID()], 'mcp-call');
  const { input, stdout } = surroundings;
  const ended = new Promise<void>((resolve) => {
    input.once('end', resolve);
    input.once('close', resolve);
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  const serving = serveStdio(({ era }) => createMcpServer({ client, version: packageVersion(), era, principal: PERSON, seal }), {
    transport: new StdioServerTransport(input, stdout),
  });
  output.note('serving MCP over stdin and stdout');
  await ended;
  await serving.close();
  return EXIT.ok;
}

async function serveAcp(frame: CommandFrame, { agent }: { readonly agent?: string }): Promise<number> {
  const { client, output, signal, surroundings } = await frame.open({
    needsWorker: true,
    serves: true,
    whenInterrupted: 'stopped serving',
  });
  const { ndJsonStream } = await loadOptional([ACP_PACKAGE], () => import('@agentclientprotocol/sdk')).catch((cause: unknown) => {
    throw new Error(`cannot serve ACP: ${errorMessage(cause)}`, { cause });
  });
  const [{ createAcpAgent }, { createConversations }, { openSessionServers }] = await Promise.all([
    import('../../gateway/acp/agent.js'),
    import('../../gateway/core/conversations.js'),
    import('../../tools/mcp/session-servers.js'),
  ]);
  const opened = new Set<{ close(): Promise<void> }>();
  const log = (line: string): void => output.problem(line);
  const app = await createAcpAgent({
    conversations: createConversations(client, log),
    version: packageVersion(),
    log,
    ...(agent !== undefined && { agent }),
    openServers: (servers, folder) => {
      const here = openSessionServers(servers, folder, { variables: variablesOf(frame.config()), version: packageVersion(), log });
      opened.add(here);
      return here;
    },
  });
  const input = Readable.toWeb(surroundings.input) as ReadableStream<Uint8Array>;
  const connection = app.connect(ndJsonStream(Writable.toWeb(surroundings.stdout) as WritableStream<Uint8Array>, input));
  output.note('serving the Agent Client Protocol over stdin and stdout');
  signal.addEventListener('abort', () => connection.close(), { once: true });
  await connection.closed;
  await Promise.all([...opened].map((servers) => servers.close()));
  return EXIT.ok;
}

interface AskedServers {
  readonly namespace: string;
  readonly store: Store;
  readonly reports: readonly ServerReport[];
}

/** They answer to this process as they would to a worker. */
async function withServers(context: CliContext, agent: string, work: (servers: AskedServers) => Promise<Answer>): Promise<Answer> {
  const config = context.config();
  const [{ agentsFolder, loadAgent }, { loadUserConfig, sharedServers }, { openStore }, { inspectServers }, { createSignIns }] =
    await Promise.all([
      import('../../agents/load-agent.js'),
      import('../../extensions/user-config.js'),
      import('../../stores/open.js'),
      import('../../tools/mcp/server-tools.js'),
      import('../../tools/mcp/sign-in/sign-ins.js'),
    ]);
  const user = await loadUserConfig(config.cwd);
  const { servers } = await loadAgent(agentsFolder(config, user.agentsDir), agent, agent, sharedServers(user, config.cwd));
  const { namespace } = await temporalConnection(config);
  const store = openStore(config, { log: (line) => context.output.problem(line) });
  const { secrets, publicUrl, fetchAllow } = config;
  const signIns = createSignIns({ store: store.signIns, secrets: secrets?.all, publicUrl, fetchAllow });
  try {
    const names = servers.map(({ name }) => name).join(', ');
    const asking = inspectServers(
      { agent, namespace, servers, scope: agent },
      // What goes wrong with a server stands in its report.
      { pins: store.pins, variables: variablesOf(config), version: packageVersion(), log: () => undefined, signIns },
    );
    const reports = await withSlowNotice(context.output, `asking the MCP servers ${names}`, asking);
    return await work({ namespace, store, reports });
  } finally {
    await store.close();
  }
}

interface AcceptOptions {
  readonly yes?: boolean;
  readonly hash?: string;
}

interface AcceptWanted {
  readonly agent: string;
  readonly what: string | undefined;
  readonly yes: boolean;
  readonly hash: string | undefined;
}

/** A person looks at what a server says about its tools now, and takes it. */
async function accept(
  { output, surroundings, globals }: CliContext,
  { namespace, store, reports }: AskedServers,
  { agent, what, yes, hash }: AcceptWanted,
): Promise<Answer> {
  if (hash !== undefined && (yes || what === undefined || reports.some(({ name }) => name === what)))
    throw new CliError('--hash goes with the name of one tool, and without --yes', EXIT.usage);
  const isAsked = !yes && hash === undefined;
  const asks = isAsked && canAsk(surroundings);
  const isText = globals().output === 'text';
  const wanted = chooseTools(reports, what);
  const problems = reports.flatMap(({ name, state }) =>
    state.kind === 'down' ? [`MCP server ${toTerminalLine(name, 100)} does not answer: ${toTerminalLine(state.reason, 400)}`] : [],
  );
  for (const problem of problems) output.problem(problem);
  if (wanted.length === 0) {
    const isKnown =
      what === undefined || reports.some((report) => report.name === what || report.tools.some((tool) => isNamed(tool, what)));
    if (isKnown) return { data: { agent, accepted: [], changed: [] }, notes: ['nothing has changed since it was accepted'] };
    throw new CliError(`agent ${agent} has no server or tool ${what} that answers; perdura mcp tools ${agent} lists them`, EXIT.notFound);
  }
  const { createTwoFilesPatch } = await import('diff');
  const accepted: string[] = [];
  for (const tool of wanted) {
    const names = [`${tool.name} as accepted`, `${tool.name} as it is now`] as const;
    const patch = createTwoFilesPatch(...names, tool.pin?.text ?? '', tool.now.text, '', '', { context: 2 });
    if (isText) for (const line of renderPatch(patch)) output.draw(line);
    if (isAsked && !asks) continue;
    if (asks && !(await confirmed(surroundings, tool.name))) continue;
    if (hash !== undefined && hash !== tool.now.hash) continue;
    // What was shown, whatever the server says by now.
    await store.pins.accept({ namespace, agent }, [tool.now]);
    accepted.push(tool.name);
    if (isText) output.say(`accepted ${tool.name}: it is offered from the next turn on`);
  }
  const isWhole = accepted.length === wanted.length;
  return {
    data: { agent, accepted, changed: wanted.map(({ name }) => name).filter((name) => !accepted.includes(name)) },
    problems: isWhole || yes || asks ? [] : [hash === undefined ? NOBODY_TO_ASK : 'nothing was accepted: the tool has another hash'],
    exitCode: isWhole ? EXIT.ok : isAsked && !asks ? EXIT.usage : EXIT.failed,
  };
}

function toRow({ name: serverName, server, state, tools, leftOut }: ServerReport) {
  return {
    server: serverName,
    ...(server && { type: server.type }),
    state: state.kind,
    ...(state.kind === 'down' && { reason: state.reason }),
    tools: tools.map(({ name, live, state: known, now }) => ({
      ...{ name, tool: live.tool, state: known, hash: now.hash, description: live.description },
    })),
    leftOut: leftOut.map(({ tool, reason }) => ({ tool, reason })),
  };
}

function renderServer({ name, server, state, tools, leftOut }: ServerReport, width: number): StyledLine[] {
  const head: StyledLine = [
    { text: toTerminalLine(name, 40), style: 'bold' },
    { text: server === undefined ? '  ' : `  ${state.kind}  `, style: state.kind === 'up' ? 'green' : 'red' },
    { text: toTerminalLine(describePlace(server), Math.max(20, width - 50)), style: 'dim' },
  ];
  return [
    head,
    ...(state.kind === 'down' ? [[{ text: `  ${toTerminalLine(state.reason, 400)}`, style: 'red' as const }]] : []),
    ...tools.map((tool): StyledLine => {
      const known = tool.state;
      const room = Math.max(10, width - tool.name.length - 15);
      return [
        { text: `  ${known.padEnd(8)} `, style: LOOKS[known] },
        { text: `${tool.name}  ` },
        { text: toTerminalLine(tool.live.description, room), style: 'dim' },
      ];
    }),
    ...leftOut.map(({ tool, reason }): StyledLine => [
      { text: '  left out ', style: 'red' },
      { text: toTerminalLine(`${tool}: ${reason}`, Math.max(20, width - 12)) },
    ]),
  ];
}

/** As it stands in the file: with the names of variables, not with what they hold. */
function describePlace(server: ServerReport['server']): string {
  if (server === undefined) return 'not named here; as a worker has seen it';
  return server.type === 'http' ? withoutKeys(server.url) : [server.command, ...server.args].join(' ');
}

/** Some put a key into the address. */
function withoutKeys(url: string): string {
  return url.replace(/\/\/[^/@]*@/, '//***@').replace(/\?.*$/, '?***');
}

/** All that was added or has changed, or what is named; also what no worker has seen yet, when it is named. */
function chooseTools(reports: readonly ServerReport[], what: string | undefined): ToolReport[] {
  return reports.flatMap(({ name, tools }) =>
    tools.filter((tool) => {
      const { state } = tool;
      if (what === undefined) return state === 'added' || state === 'changed';
      return (what === name || isNamed(tool, what)) && state !== 'accepted';
    }),
  );
}

function isNamed({ name, live }: ToolReport, what: string): boolean {
  return what === name || what === `${live.server}/${live.tool}`;
}

function renderPatch(patch: string): StyledLine[] {
  return patch
    .split('\n')
    .slice(1)
    .map((line): StyledLine => {
      const style = line.startsWith('+') ? 'green' : line.startsWith('-') ? 'red' : 'dim';
      return [{ text: line, style }];
    });
}

async function confirmed(person: Person, name: string): Promise<boolean> {
  const answer = await confirm(person, `Accept ${name} as it is now?`);
  if (answer === undefined) throw new CliError('the rest was not accepted', EXIT.interrupted);
  return answer;
}

function readHash(hash: string): string {
  if (/^[0-9a-f]{64}$/.test(hash)) return hash;
  throw new InvalidArgumentError('A hash has 64 hexadecimal digits, as `perdura mcp tools -o json` shows it.');
}
