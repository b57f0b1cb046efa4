/** `perdura mcp tools`: an agent's MCP servers, whether they answer, and whether their tools run. */
import type { ServerReport } from '../../tools/mcp/server-tools.js';
import type { CliContext } from '../session/context.js';
import type { Drawn } from '../terminal/drawn.js';
import { EXIT } from '../terminal/exit.js';
import { toTerminalJson, toTerminalLine } from '../terminal/terminal-text.js';
import { stateOf, withServers, type ToolState } from '../session/with-servers.js';

const LOOKS = { accepted: 'green', changed: 'red', new: 'dim' } as const satisfies Record<ToolState, string>;
const WIDTH = 100;

export function listServerTools(context: CliContext, agent: string): Promise<number> {
  return withServers(context, agent, async ({ reports }) => {
    const { output } = context;
    const told = reports.map(toTold);
    switch (context.globals().output) {
      case 'json':
        output.line(toTerminalJson({ agent, servers: told }, 2));
        break;
      case 'jsonl':
        for (const one of told) output.line(toTerminalJson(one));
        break;
      case 'text':
        for (const line of reports.flatMap((report) => renderServer(report, output.width() ?? WIDTH))) output.draw(line);
        if (reports.length === 0) output.note(`agent ${agent} has no MCP servers: they stand in mcp.json beside its agent.json`);
        if (told.some(({ tools }) => tools.some(({ state }) => state === 'changed')))
          output.note(`what has changed does not run; perdura mcp accept ${agent} shows how, and accepts it`);
    }
    return Promise.resolve(reports.every(({ state }) => state.kind === 'up') ? EXIT.ok : EXIT.failed);
  });
}

function toTold({ server, state, tools, leftOut }: ServerReport) {
  return {
    server: server.name,
    type: server.type,
    state: state.kind,
    ...(state.kind === 'down' && { reason: state.reason }),
    tools: tools.map((tool) => ({ name: tool.name, tool: tool.live.tool, state: stateOf(tool), description: tool.live.description })),
    leftOut: leftOut.map(({ tool, reason }) => ({ tool, reason })),
  };
}

function renderServer({ server, state, tools, leftOut }: ServerReport, width: number): Drawn[] {
  const place = server.type === 'http' ? withoutKeys(server.url) : [server.command, ...server.args].join(' ');
  const head: Drawn = [
    { text: toTerminalLine(server.name, 40), look: 'bold' },
    { text: `  ${state.kind}  `, look: state.kind === 'up' ? 'green' : 'red' },
    // As it stands in the file: with the names of variables, not with what they hold.
    { text: toTerminalLine(place, Math.max(20, width - 50)), look: 'dim' },
  ];
  return [
    head,
    ...(state.kind === 'down' ? [[{ text: `  ${toTerminalLine(state.reason, 400)}`, look: 'red' as const }]] : []),
    ...tools.map((tool): Drawn => {
      const known = stateOf(tool);
      const room = Math.max(10, width - tool.name.length - 15);
      return [
        { text: `  ${known.padEnd(8)} `, look: LOOKS[known] },
        { text: `${tool.name}  ` },
        { text: toTerminalLine(tool.live.description, room), look: 'dim' },
      ];
    }),
    ...leftOut.map(({ tool, reason }): Drawn => [
      { text: '  left out ', look: 'red' },
      { text: toTerminalLine(`${tool}: ${reason}`, Math.max(20, width - 12)) },
    ]),
  ];
}

/** Some put a key into the address. */
function withoutKeys(url: string): string {
  return url.replace(/\/\/[^/@]*@/, '//***@').replace(/\?.*$/, '?***');
}
