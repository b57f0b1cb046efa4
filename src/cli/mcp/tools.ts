/** `perdura mcp tools`: an agent's MCP servers, whether they answer, and whether their tools run. */
import type { ServerReport, ToolReport } from '../../tools/mcp/server-tools.js';
import type { CliContext } from '../session/context.js';
import { canAsk, confirm, type Person } from '../terminal/ask.js';
import { EXIT, CliError } from '../terminal/exit.js';
import { toTerminalJson, toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { printFound } from '../session/print-found.js';
import { stateOf, withServers, type ToolState } from '../session/with-servers.js';
import { toPin } from '../../tools/mcp/pins.js';

const LOOKS = { accepted: 'green', changed: 'red', new: 'dim' } as const satisfies Record<ToolState, string>;
const WIDTH = 100;

export function listServerTools(context: CliContext, agent: string): Promise<number> {
  return withServers(context, agent, async ({ reports }) => {
    const { output } = context;
    const rows = reports.map(toRow);
    printFound(output, context.globals().output, {
      whole: { agent, servers: rows },
      rows,
      draw: () => {
        for (const line of reports.flatMap((report) => renderServer(report, output.width() ?? WIDTH))) output.draw(line);
        if (reports.length === 0) output.note(`agent ${agent} has no MCP servers: they stand in mcp.json beside its agent.json`);
        if (rows.some(({ tools }) => tools.some(({ state }) => state === 'changed')))
          output.note(`what has changed does not run; perdura mcp accept ${agent} shows how, and accepts it`);
      },
    });
    return Promise.resolve(reports.every(({ state }) => state.kind === 'up') ? EXIT.ok : EXIT.failed);
  });
}

function toRow({ server, state, tools, leftOut }: ServerReport) {
  return {
    server: server.name,
    type: server.type,
    state: state.kind,
    ...(state.kind === 'down' && { reason: state.reason }),
    tools: tools.map((tool) => ({ name: tool.name, tool: tool.live.tool, state: stateOf(tool), description: tool.live.description })),
    leftOut: leftOut.map(({ tool, reason }) => ({ tool, reason })),
  };
}

function renderServer({ server, state, tools, leftOut }: ServerReport, width: number): StyledLine[] {
  const place = server.type === 'http' ? withoutKeys(server.url) : [server.command, ...server.args].join(' ');
  const head: StyledLine = [
    { text: toTerminalLine(server.name, 40), style: 'bold' },
    { text: `  ${state.kind}  `, style: state.kind === 'up' ? 'green' : 'red' },
    // As it stands in the file: with the names of variables, not with what they hold.
    { text: toTerminalLine(place, Math.max(20, width - 50)), style: 'dim' },
  ];
  return [
    head,
    ...(state.kind === 'down' ? [[{ text: `  ${toTerminalLine(state.reason, 400)}`, style: 'red' as const }]] : []),
    ...tools.map((tool): StyledLine => {
      const known = stateOf(tool);
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

/** Some put a key into the address. */
function withoutKeys(url: string): string {
  return url.replace(/\/\/[^/@]*@/, '//***@').replace(/\?.*$/, '?***');
}

/** `perdura mcp accept`: a person looks at what a server says about its tools now, and takes it. */
export interface AcceptWanted {
  readonly agent: string;
  readonly what: string | undefined;
  readonly yes?: boolean;
}

export function acceptServerTools(context: CliContext, { agent, what, yes = false }: AcceptWanted): Promise<number> {
  const { output } = context;
  const format = context.globals().output;
  const isAsked = !yes && canAsk(context.surroundings);
  return withServers(context, agent, async ({ namespace, store, reports }) => {
    const wanted = meant(reports, what);
    for (const { server, state } of reports) {
      if (state.kind === 'down')
        output.problem(`MCP server ${toTerminalLine(server.name, 100)} does not answer: ${toTerminalLine(state.reason, 400)}`);
    }
    if (wanted.length === 0) {
      const isKnown =
        what === undefined || reports.some((report) => report.server.name === what || report.tools.some((tool) => isNamed(tool, what)));
      if (!isKnown)
        throw new CliError(
          `agent ${agent} has no server or tool ${what} that answers; perdura mcp tools ${agent} lists them`,
          EXIT.notFound,
        );
      output.note('nothing has changed since it was accepted');
      return EXIT.ok;
    }
    const { createTwoFilesPatch } = await import('diff');
    const accepted: string[] = [];
    for (const tool of wanted) {
      const { text } = toPin(tool.live);
      const patch = createTwoFilesPatch(`${tool.name} as accepted`, `${tool.name} as it is now`, tool.pin?.text ?? '', text, '', '', {
        context: 2,
      });
      if (format === 'text') for (const line of renderPatch(patch)) output.draw(line);
      if (!yes && !isAsked) continue;
      if (isAsked && !(await confirmed(context.surroundings, tool.name))) continue;
      // What was shown, whatever the server says by now.
      await store.pins.accept({ namespace, agent }, [toPin(tool.live)]);
      accepted.push(tool.name);
      if (format === 'text') output.say(`accepted ${tool.name}: it runs from the next call on`);
    }
    if (format !== 'text') {
      const data = { agent, accepted, changed: wanted.map(({ name }) => name).filter((name) => !accepted.includes(name)) };
      output.line(toTerminalJson(data, format === 'json' ? 2 : undefined));
    }
    if (accepted.length === wanted.length) return EXIT.ok;
    if (!yes && !isAsked) throw new CliError('nothing was accepted: no person can be asked here; --yes accepts what is shown', EXIT.usage);
    return EXIT.failed;
  });
}

/** All that has changed, or what is named; also of a tool that no person has seen yet, when it is named. */
function meant(reports: readonly ServerReport[], what: string | undefined): ToolReport[] {
  return reports.flatMap(({ server, tools }) =>
    tools.filter((tool) => {
      const state = stateOf(tool);
      if (what === undefined || what === server.name) return state === 'changed';
      return isNamed(tool, what) && state !== 'accepted';
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
