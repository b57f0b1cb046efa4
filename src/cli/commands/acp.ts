import type { Command } from 'commander';
import type { CliContext } from '../session/context.js';
import { runs } from './command.js';

export function acpCommand(program: Command, context: CliContext): void {
  program
    .command('acp')
    .description('serve conversations to an editor (Agent Client Protocol) over stdin and stdout, until stdin ends')
    .option('--agent <name>', 'whom new sessions talk to; the one called default without it')
    .action(runs(context, async () => (await import('../gateway/acp.js')).serveAcp));
}
