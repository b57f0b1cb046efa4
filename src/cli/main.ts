/** The commands and their options. Each command's own code is loaded when it runs, so that `--help` is instant. */
import { Command, CommanderError } from 'commander';
import { loadConfig, readColorWish, withTemporalEnv } from '../config.js';
import { packageVersion } from '../version.js';
import * as breakAt from './commands/break.js';
import * as answer from './commands/answer.js';
import * as approvals from './commands/approvals.js';
import * as approve from './commands/approve.js';
import * as budget from './commands/budget.js';
import * as cancel from './commands/cancel.js';
import * as chat from './commands/chat.js';
import * as close from './commands/close.js';
import * as completion from './commands/completion.js';
import * as contextMeter from './commands/context.js';
import * as debug from './commands/debug.js';
import * as deleteConversation from './commands/delete.js';
import * as deny from './commands/deny.js';
import * as dev from './commands/dev.js';
import * as dispatch from './commands/dispatch.js';
import * as doctor from './commands/doctor.js';
import * as exportConversation from './commands/export.js';
import * as fork from './commands/fork.js';
import * as heal from './commands/heal.js';
import * as history from './commands/history.js';
import * as importConversation from './commands/import.js';
import * as inspect from './commands/inspect.js';
import * as list from './commands/list.js';
import * as mcp from './commands/mcp.js';
import * as memory from './commands/memory.js';
import * as mode from './commands/mode.js';
import * as newConversation from './commands/new.js';
import * as queue from './commands/queue.js';
import * as rename from './commands/rename.js';
import * as resume from './commands/resume.js';
import * as rewind from './commands/rewind.js';
import * as send from './commands/send.js';
import * as setup from './commands/setup.js';
import * as show from './commands/show.js';
import * as step from './commands/step.js';
import * as stop from './commands/stop.js';
import * as terminate from './commands/terminate.js';
import * as watch from './commands/watch.js';
import * as withdraw from './commands/withdraw.js';
import * as worker from './commands/worker.js';
import type { CliContext } from './session/context.js';
import { EXIT, exitCodeOf, messageOf } from './terminal/exit.js';
import type { GlobalOptions } from './args/global-options.js';
import { addGlobalOptions, readGlobalOptions } from './args/global-options.js';
import { createOutput } from './terminal/output.js';

/** In the order of `--help`. */
const COMMANDS = [
  chat,
  newConversation,
  send,
  dispatch,
  list,
  show,
  inspect,
  contextMeter,
  memory,
  history,
  watch,
  debug,
  mode,
  step,
  breakAt,
  queue,
  approvals,
  approve,
  deny,
  answer,
  withdraw,
  budget,
  rename,
  stop,
  rewind,
  fork,
  close,
  cancel,
  terminate,
  resume,
  deleteConversation,
  exportConversation,
  importConversation,
  heal,
  mcp,
  dev,
  worker,
  setup,
  doctor,
  completion,
] as const;

/** Runs one command and answers its exit code. Never throws: every error is said on stderr. */
export async function main(args: readonly string[]): Promise<number> {
  let exitCode: number = EXIT.ok;
  let globals: GlobalOptions | undefined;
  // `| head -1`: who no longer reads is no longer written to, and a chat ends.
  const closed = new AbortController();
  const output = createOutput(process.stdout, process.stderr, () => closed.abort(), {
    color: () => (globals === undefined || globals.color === 'auto' ? (readColorWish() ?? 'auto') : globals.color),
    isQuiet: () => globals?.quiet === true,
  });
  const context: CliContext = {
    output,
    closed: closed.signal,
    end: (code) => (exitCode = code),
    globals: () => {
      if (globals === undefined) throw new Error('the global options are known once a command runs');
      return globals;
    },
    config: () => withTemporalEnv(loadConfig(), context.globals().temporal),
  };
  const program = createProgram(context, (command) => (globals = readGlobalOptions(program, command)));
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    else {
      output.problem(messageOf(error));
      exitCode = exitCodeOf(error);
    }
  }
  return exitCode;
}

function createProgram(context: CliContext, begin: (command: Command) => void): Command {
  const program = new Command('perdura')
    .description('Durable conversations with AI agents.')
    .version(packageVersion(), '-V, --version')
    .exitOverride()
    .showSuggestionAfterError()
    .helpCommand(false)
    // What stands after a command's name is the command's: `list -q` is a query.
    .enablePositionalOptions()
    .addHelpText('after', EXIT_CODES)
    .hook('preAction', (_program, command) => begin(command));
  for (const { register } of COMMANDS) register(program, context);
  addGlobalOptions(program, { isHidden: true });
  for (const command of program.commands.flatMap(leavesOf)) addGlobalOptions(command, { isHidden: false });
  return program;
}

/** `perdura memory` is only the name of a group: its commands are what runs. */
function leavesOf(command: Command): readonly Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}

const EXIT_CODES = `
Every command takes --address, --namespace, --profile, --output, --color, --quiet and more: perdura COMMAND --help.
Data goes to stdout, everything else to stderr.
Exit codes: 0 ok, 1 failed, 2 usage, 3 something needed cannot be reached, 4 not found, 124 timed out, 130 interrupted.`;

/** For executables: all that was opened is closed by now, and what a library still holds does not keep a person waiting. */
export function endProcessWith(exitCode: number): void {
  process.exitCode = exitCode;
  setTimeout(() => process.exit(exitCode), 2000).unref();
}

if (require.main === module) void main(process.argv.slice(2)).then(endProcessWith);
