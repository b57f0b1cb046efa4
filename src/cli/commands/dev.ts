import type { Command } from 'commander';
import { InvalidArgumentError } from 'commander';
import type { CliContext } from '../session/context.js';
import type { DevOptions } from '../dev.js';

export function register(program: Command, { output, config, closed, end }: CliContext): void {
  program
    .command('dev')
    .description('run a Temporal server and a worker until Ctrl+C')
    .option('--port <port>', 'of the server (default: 7233)', readPort)
    .option('--ui-port <port>', 'of its page (default: port + 1000)', readPort)
    .option('--db-filename <path>', 'its database (default: .perdura/temporal.db)')
    .action(async (options: DevOptions) => {
      const { dev } = await import('../dev.js');
      const { port, uiPort, dbFilename } = options;
      end(await dev(config(), { port, uiPort, dbFilename }, output, closed));
    });
}

function readPort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port > 0 && port < 65_536) return port;
  throw new InvalidArgumentError('A port is a number from 1 to 65535.');
}
