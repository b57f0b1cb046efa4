import type { Command } from 'commander';
import type { AcceptWanted } from '../mcp/tools.js';
import { runs } from './command.js';
import type { CliContext } from '../session/context.js';

const EXAMPLES = `
Examples:
  perdura mcp accept default                        all that has changed, one after the other
  perdura mcp accept default github                 of one server
  perdura mcp accept default mcp__github__search    one tool, by the name that its agent knows it by; or github/search`;

export function mcpCommand(program: Command, context: CliContext): void {
  const mcp = program.command('mcp').description('serve conversations to MCP clients; look at the MCP servers of agents');
  mcp
    .command('serve', { isDefault: true })
    .description('serve conversations to an MCP client over stdin and stdout, until stdin ends')
    .action(runs(context, async () => (await import('../mcp/serve.js')).serveMcp));
  mcp
    .command('tools')
    .description('list the tools that an agent has from its MCP servers, and whether they run')
    .argument('[agent]', 'the folder in the agents folder', 'default')
    .action(runs(context, async () => (await import('../mcp/tools.js')).listServerTools));
  mcp
    .command('accept')
    .description('accept what MCP servers say about their tools now, after it was shown how it differs from before')
    .argument('<agent>', 'the folder in the agents folder')
    .argument('[what]', 'a server, SERVER/TOOL, or the name of a tool; without it, all that has changed')
    .option('-y, --yes', 'without asking')
    .addHelpText('after', EXAMPLES)
    .action(async (agent: string, what: string | undefined, options: Pick<AcceptWanted, 'yes'>) => {
      const { acceptServerTools } = await import('../mcp/tools.js');
      context.end(await acceptServerTools(context, { ...options, agent, what }));
    });
}
