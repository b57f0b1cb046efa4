/** The commands and their options. Each command's own code is loaded when it runs, so that `--help` is instant. */
import { Command, CommanderError, type Argument, type OutputConfiguration } from 'commander';
import { loadConfig, readColorWish, trusting, withTemporalEnv } from '../config.js';
import { packageVersion } from '../platform/version.js';
import { approvalsCommand, approveCommand, denyCommand, answerCommand } from './commands/approvals.js';
import {
  budgetCommand,
  modelCommand,
  renameCommand,
  stopCommand,
  closeCommand,
  cancelCommand,
  terminateCommand,
  modeCommand,
  stepCommand,
  breakCommand,
  queueCommand,
} from './commands/control.js';
import { chatCommand, newCommand, sendCommand, dispatchCommand, withdrawCommand } from './commands/conversation.js';
import {
  listCommand,
  showCommand,
  inspectCommand,
  contextCommand,
  usageCommand,
  watchCommand,
  debugCommand,
} from './commands/inspection.js';
import { retryCommand, editCommand, rewindCommand, forkCommand, resumeCommand, deleteCommand } from './commands/lineage.js';
import { acpCommand } from './commands/acp.js';
import { serveCommand, tokenCommand } from './commands/gateway.js';
import { initCommand } from './commands/init.js';
import { mcpCommand } from './commands/mcp.js';
import { memoryCommand, historyCommand, searchCommand } from './commands/memory.js';
import {
  devCommand,
  workerCommand,
  setupCommand,
  doctorCommand,
  completionCommand,
  completeCommand,
  trustCommand,
  webhooksCommand,
} from './commands/services.js';
import { exportCommand, importCommand, healCommand } from './commands/transfer.js';
import { endProcessWith, processArguments, processSurroundings } from './process.js';
import type { CliContext } from './session/context.js';
import type { Surroundings } from './session/surroundings.js';
import { EXIT, exitCodeOf } from './terminal/exit.js';
import { addGlobalOptions, readGlobalOptions, type GlobalOptions } from './args/global-options.js';
import { createOutput } from './terminal/output.js';
import { enterFolder } from './trust/folder-trust.js';
import { errorMessage } from '../platform/errors.js';

/** As `--help` lists them, each group under its heading. */
const COMMANDS: readonly (readonly [heading: string, ...commands: ((program: Command, context: CliContext) => void)[]])[] = [
  ['Talk', chatCommand, sendCommand, newCommand, listCommand, showCommand, retryCommand, editCommand, renameCommand],
  ['Decide', approvalsCommand, approveCommand, denyCommand, answerCommand, budgetCommand, modelCommand],
  ['Look inside', inspectCommand, watchCommand, contextCommand, usageCommand, searchCommand, memoryCommand, historyCommand],
  ['Stop and end', stopCommand, withdrawCommand, closeCommand, cancelCommand, terminateCommand, deleteCommand],
  ['Fork and go back', forkCommand, rewindCommand, resumeCommand],
  ['Step by step', debugCommand, modeCommand, stepCommand, breakCommand, queueCommand, dispatchCommand],
  ['Move and repair', exportCommand, importCommand, healCommand],
  [
    'Run',
    initCommand,
    devCommand,
    workerCommand,
    serveCommand,
    tokenCommand,
    setupCommand,
    doctorCommand,
    trustCommand,
    webhooksCommand,
    mcpCommand,
    acpCommand,
    completionCommand,
    completeCommand,
  ],
];

/** They use nothing of the folder. */
const OUTSIDE = new Set(['init', 'trust', 'completion']);

export { endProcessWith };

/** Runs one command and answers its exit code. Never throws: every error is said on stderr. Leaves nothing behind in its surroundings. */
export async function main(args: readonly string[], given: Surroundings = processSurroundings()): Promise<number> {
  let surroundings = given;
  let exitCode: number = EXIT.ok;
  let globals: GlobalOptions | undefined;
  // `| head -1`: who no longer reads is no longer written to, and a chat ends.
  const closed = new AbortController();
  const output = createOutput(given.stdout, given.stderr, () => closed.abort(), {
    color: () => (globals === undefined || globals.color === 'auto' ? (readColorWish(given.env) ?? 'auto') : globals.color),
    isQuiet: () => globals?.quiet === true,
    explains: () => globals?.explain === true,
  });
  const context: CliContext = {
    get surroundings() {
      return surroundings;
    },
    trustFolder: () => (surroundings = { ...surroundings, env: trusting(surroundings.env) }),
    output,
    closed: closed.signal,
    end: (code) => (exitCode = code),
    globals: () => {
      if (globals === undefined) throw new Error('the global options are known once a command runs');
      return globals;
    },
    config: () => withTemporalEnv(loadConfig(surroundings.env, surroundings.cwd), context.globals().temporal),
  };
  const program = createProgram(context, async (command) => {
    globals = readGlobalOptions(program, command);
    if (!OUTSIDE.has(command.name())) await enterFolder(context);
  });
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    else {
      output.problem(errorMessage(error));
      exitCode = exitCodeOf(error);
    }
  } finally {
    output.letGo();
  }
  return exitCode;
}

function createProgram(context: CliContext, begin: (command: Command) => Promise<void>): Command {
  const program = new Command('perdura')
    .description('Durable conversations with AI agents.')
    .version(packageVersion(), '-V, --version')
    .exitOverride()
    .configureOutput(writingTo(context.surroundings))
    .showSuggestionAfterError()
    .helpCommand(false)
    // What stands after a command's name is the command's: `list -q` is a query.
    .enablePositionalOptions()
    .usage('[command] [options]    (without a command: chat)')
    .configureHelp({ subcommandTerm: (command) => [command.name(), ...command.registeredArguments.map(argumentTerm)].join(' ') })
    .addHelpText('after', AFTERWORD)
    .hook('preAction', (_program, command) => begin(command));
  for (const [heading, ...commands] of COMMANDS) {
    program.commandsGroup(`${heading}:`);
    for (const add of commands) add(program, context);
  }
  addGlobalOptions(program, { isHidden: true });
  for (const command of program.commands.flatMap(leavesOf)) addGlobalOptions(command, { isHidden: false });
  return program;
}

/** Help and refused arguments. */
function writingTo({ stdout, stderr }: Surroundings): OutputConfiguration {
  return {
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(text),
    getOutHelpWidth: () => (stdout.isTTY === true ? (stdout.columns ?? 80) : 80),
    getErrHelpWidth: () => (stderr.isTTY === true ? (stderr.columns ?? 80) : 80),
  };
}

/** Every command by its whole name with its arguments, under the headings of `--help`: for the page that lists them, and for its test. */
export function listCommands(): { heading: string; commands: { name: string; usage: string; description: string }[] }[] {
  const program = createProgram({ surroundings: processSurroundings() } as CliContext, () => Promise.resolve());
  return COMMANDS.map(([heading]) => ({
    heading,
    commands: program.commands
      .filter((command) => command.helpGroup() === `${heading}:` && command.name() !== 'complete')
      .flatMap((command) => leavesOf(command))
      .map((command) => {
        const name = [command.parent === program ? '' : (command.parent?.name() ?? ''), command.name()].filter(Boolean).join(' ');
        const usage = [name, ...command.registeredArguments.map(argumentTerm)].join(' ');
        return { name, usage, description: command.description() };
      }),
  }));
}

function argumentTerm(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** `perdura memory` is only the name of a group: its commands are what runs. */
function leavesOf(command: Command): readonly Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}

const AFTERWORD = `
Examples:
  perdura -p "what does this folder hold?"   one answer on stdout; what is piped in is read too
  perdura chat -c                            go on with the last conversation
  perdura show ID --turn 3 -o json           what was said in one turn, for a program

Every command takes --address, --namespace, --profile, --output, --color, --quiet and
more: perdura COMMAND --help. Data goes to stdout, everything else to stderr.
Exit codes: 0 ok, 1 failed, 2 usage, 3 something needed cannot be reached,
4 not found, 124 timed out, 130 interrupted.`;

if (require.main === module) void main(processArguments()).then(endProcessWith);
