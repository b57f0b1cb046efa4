import { type Command, InvalidArgumentError, Option, Argument } from 'commander';
import type { CliContext } from '../session/context.js';
import type { DevOptions } from '../dev.js';
import { parseCount } from '../args/values.js';
import { runs } from './command.js';
import { type Shell, completionScript, SHELLS } from '../completion.js';
import { EXIT } from '../terminal/exit.js';

export function devCommand(program: Command, { output, config, closed, end }: CliContext): void {
  program
    .command('dev')
    .description('run a Temporal server and a worker until Ctrl+C')
    .option('--no-worker', 'the server alone, for a project that runs a worker of its own (createWorker)')
    .option('--port <port>', 'of the server (default: 7233)', readPort)
    .option('--ui-port <port>', 'of its page (default: port + 1000)', readPort)
    .option('--db-filename <path>', 'its database (default: .perdura/temporal.db)')
    .action(async (options: DevOptions) => {
      const { dev } = await import('../dev.js');
      const { port, uiPort, dbFilename, worker } = options;
      end(await dev(config(), { port, uiPort, dbFilename, worker }, output, closed));
    });
}

function readPort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port > 0 && port < 65_536) return port;
  throw new InvalidArgumentError('A port is a number from 1 to 65535.');
}

export function workerCommand(program: Command, { output, config, end }: CliContext): void {
  program
    .command('worker')
    .description('take work from the task queue until Ctrl+C')
    .addOption(new Option('--await-begin', 'only once the parent process says so').hideHelp())
    .action(async (options: { readonly awaitBegin?: boolean }) => {
      const { worker } = await import('../worker.js');
      end(await worker(config(), output, options));
    });
}

export function setupCommand(program: Command, { output, config, end }: CliContext): void {
  program
    .command('setup')
    .description('register search attributes and set the retention of the namespace that TEMPORAL_* names')
    .action(async () => {
      const { setup } = await import('../setup.js');
      end(await setup(config(), output));
    });
}

export function doctorCommand(program: Command, { output, config, globals, end }: CliContext): void {
  program
    .command('doctor')
    .description('say whether all that is needed is there, and what mends what is not')
    .option('--report', 'to be pasted: without the name of the home folder')
    .action(async (options: { readonly report?: boolean }) => {
      const { doctor } = await import('../doctor/doctor.js');
      end(await doctor(config(), { ...options, format: globals().output }, output));
    });
}

const SERVE_EXAMPLES = `
Examples:
  perdura serve                                           on this machine alone, with a token that it prints
  perdura serve --host 0.0.0.0 --allow-host my.example    for others, behind a proxy that speaks TLS`;

export function serveCommand(program: Command, context: CliContext): void {
  program
    .command('serve')
    .description('serve conversations over HTTP until Ctrl+C; /openapi.json describes them')
    .option('--host <address>', 'where to listen', '127.0.0.1')
    .option('--port <port>', 'a port; 0: any that is free', readAnyPort, 7280)
    .option('--allow-host <name>', 'a name by which it is reached, beside loopback; more than once', collected, [])
    .option('--allow-origin <origin>', 'pages of this origin may ask, such as https://app.example; more than once', collected, [])
    .option('--base-path <path>', 'where it is behind a proxy, such as /perdura')
    .option('--requests-per-minute <n>', 'of one token', parseCount, 1_200)
    .option('--access-log', 'a line for each request on stderr')
    .addHelpText('after', SERVE_EXAMPLES)
    .action(runs(context, async () => (await import('../gateway/serve.js')).serveGatewayCommand));
}

function collected(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

function readAnyPort(text: string): number {
  return text === '0' ? 0 : readPort(text);
}

export function webhooksCommand(program: Command, context: CliContext): void {
  const webhooks = program.command('webhooks').description('events that workers post to an address of yours (docs/protocols.md)');
  webhooks
    .command('test')
    .description('post one signed event, `webhook.test`, from here, and say what came of it')
    .option('--scope <name>', 'whose endpoint', 'default')
    .option('--tenant <name>', 'whose endpoint, where there are tenants')
    .action(runs(context, async () => (await import('../actions/webhooks.js')).testWebhook));
}

export function trustCommand(program: Command, context: CliContext): void {
  program
    .command('trust')
    .description('trust what this folder runs and contacts: its .env, perdura.config.*, mcp.json, and what its agents run without asking')
    .option('--show', 'only list it, and whether it is trusted')
    .option('--revoke', 'forget that it was')
    .option('-y, --yes', 'without asking')
    .action(runs(context, async () => (await import('../trust/folder-trust.js')).trust));
}

export function completionCommand(program: Command, { output, end }: CliContext): void {
  program
    .command('completion')
    .description('print a script that completes commands, options, conversations, agents and models in a shell')
    .addArgument(new Argument('<shell>', 'which').choices(SHELLS))
    .action((shell: Shell) => {
      output.line(completionScript(program, shell));
      end(EXIT.ok);
    });
}

/** For the scripts that `completion` prints. */
export function completeCommand(program: Command, context: CliContext): void {
  program
    .command('complete', { hidden: true })
    .description('print what a shell completes')
    .addArgument(new Argument('<kind>', 'of what').choices(['conversations', 'agents', 'models']))
    .action(runs(context, async () => (await import('../actions/complete.js')).complete));
}
