import { type Command, Option, Argument } from 'commander';
import type { CliContext } from '../session/context.js';
import type { DevOptions } from '../dev.js';
import { parsePort } from '../args/values.js';
import { runs } from './command.js';
import { type Shell, completionScript, SHELLS } from '../completion.js';
import { EXIT } from '../terminal/exit.js';

export function devCommand(program: Command, context: CliContext): void {
  program
    .command('dev')
    .description('run a Temporal server and a worker until Ctrl+C')
    .option('--no-worker', 'the server alone, for a project that runs a worker of its own (createWorker)')
    .option('--port <port>', 'of the server (default: 7233)', parsePort)
    .option('--ui-port <port>', 'of its page (default: port + 1000)', parsePort)
    .option('--db-filename <path>', 'its database (default: .perdura/temporal.db)')
    .action(async (options: DevOptions) => {
      const { dev } = await import('../dev.js');
      const { port, uiPort, dbFilename, worker } = options;
      context.end(await dev({ port, uiPort, dbFilename, worker }, context));
    });
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
    .description('check Temporal, the store, models, agents and packages, and say how to fix what is missing')
    .option('--report', 'to be pasted: without the name of the home folder')
    .action(async (options: { readonly report?: boolean }) => {
      const { doctor } = await import('../doctor/doctor.js');
      end(await doctor(config(), { ...options, format: globals().output }, output));
    });
}

export function webhooksCommand(program: Command, context: CliContext): void {
  const webhooks = program.command('webhooks').description('events that workers post to an address of yours (docs/reference/protocols.md)');
  webhooks
    .command('test')
    .description('post one signed event, `webhook.test`, from here, and print the response')
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
