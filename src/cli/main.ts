/** The program: its commands and its help. A command loads the code beyond its declaration when it runs, so that `help` is instant. */
import { Command, CommanderError, type Argument, type OutputConfiguration } from 'commander';
import { loadConfig, readColorWish, trusting, withTemporalEnv } from '../config.js';
import { errorMessage } from '../platform/errors.js';
import { packageVersion } from '../platform/optional-package.js';
import { addGlobalOptions, describeGlobalOptions, readGlobalOptions, type GlobalOptions } from './args/global-options.js';
import { ADMIN } from './commands/admin.js';
import { CAPACITY } from './commands/capacity.js';
import { ENCRYPTION, MEMORY_EDIT } from './commands/encryption.js';
import { CONTEXT } from './commands/context.js';
import { DATASETS } from './commands/changes/datasets.js';
import { DEBUG } from './commands/debug.js';
import { DECIDE } from './commands/decide.js';
import { END } from './commands/end.js';
import { ERASURE } from './commands/erasure.js';
import { EVAL } from './commands/changes/eval.js';
import { INSPECT } from './commands/inspect.js';
import { LINEAGE } from './commands/lineage.js';
import { LIST } from './commands/list.js';
import { MCP } from './commands/mcp.js';
import { MCP_SIGN_IN } from './commands/mcp-sign-in.js';
import { MEMORY } from './commands/memory.js';
import { MEMORY_DECIDE } from './commands/memory-decide.js';
import { PROJECT } from './commands/project.js';
import { REPORT } from './commands/changes/report.js';
import { RUN } from './commands/run.js';
import { SCHEDULE } from './commands/schedule.js';
import { SEARCH } from './commands/search.js';
import { SHOW, WATCH } from './commands/show.js';
import { STEPPING } from './commands/stepping.js';
import { STORED } from './commands/stored.js';
import { TALK } from './commands/talk.js';
import { TOKENS } from './commands/tokens.js';
import { TRANSFER } from './commands/transfer.js';
import { UPGRADE } from './commands/upgrade.js';
import { WHATIF } from './commands/changes/whatif.js';
import { programInHints } from './services/temporal-connection.js';
import { endProcessWith, processArguments, processSurroundings, type CliContext, type Surroundings } from './session/context.js';
import { addCommand, type CommandRow } from './session/command.js';
import { EXIT, toExitCode } from './terminal/exit.js';
import { createOutput } from './terminal/output.js';
import { enterFolder } from './trust/folder-trust.js';

/** As `help all` lists them, each group under its heading. */
const COMMANDS: readonly (readonly [heading: string, rows: readonly CommandRow[]])[] = [
  ['Run', RUN],
  ['Talk', [...TALK, ...SHOW, ...LIST]],
  ['Decide', DECIDE],
  ['At certain times', SCHEDULE],
  ['Remember', [...SEARCH, ...MEMORY, ...MEMORY_EDIT, ...MEMORY_DECIDE]],
  ['Stop and end', END],
  ['Answer again, branch, go back', LINEAGE],
  ['Try changes', [...WHATIF, ...REPORT, ...EVAL, ...DATASETS]],
  ['Debug', [...DEBUG, ...STEPPING, ...CONTEXT, ...INSPECT, ...WATCH]],
  ['Administer', [...UPGRADE, ...ADMIN, ...CAPACITY, ...ENCRYPTION, ...TOKENS, ...TRANSFER, ...STORED, ...ERASURE]],
  ['Set up and connect', [...PROJECT, ...MCP, MCP_SIGN_IN]],
];

/** Of words that only hold commands. */
const GROUPS: Readonly<Record<string, string>> = {
  admin: 'tokens, setup, repairs, keys, export and import, what was spent, erasure',
  'admin token': 'create, list and revoke tokens for `perdura serve`, in the file of PERDURA_AUTH',
  dataset: 'turns of conversations as cases of evals, in files of this folder',
  history: 'HISTORY: what earlier conversations of a scope were about, newest first',
  mcp: 'serve conversations to MCP clients; look at the MCP servers of agents',
  schedule: 'conversations that begin, or get a message, at certain times',
  webhooks: 'events that workers post to an address of yours (docs/reference/protocols.md)',
};

/** What people do, on one screen: the names, and what they are for. */
const FIRST_HELP: readonly (readonly [group: string, names: string, meaning: string])[] = [
  ['Run', 'up', 'Temporal, a worker and the page, until Ctrl+C'],
  ['', 'worker', 'a worker alone'],
  ['', 'serve', 'the page and HTTP alone'],
  ['Talk', 'chat [words...]', 'chat with an agent; -p prints one answer'],
  ['', 'send <id> <message>', 'send a message and print its answer'],
  ['', 'show <id>', 'print the messages of a conversation'],
  ['', 'list', 'list conversations, latest first'],
  ['', 'search <question>', 'find what was ever said or remembered'],
  ['Decide', 'approvals', 'list what waits for you'],
  ['', 'approve|deny|answer <id>', 'decide on a call, answer a question'],
  ['Memory', 'memory [scope]', 'what is remembered; review, forget'],
  ['End', 'stop|end|delete <id>', 'a turn; a conversation; all of it'],
  ['Redo', 'retry|edit <id>', 'answer a turn again, or another message'],
  ['', 'fork|rewind|resume <id>', 'branch off, go back, go on after the end'],
  ['More', 'debug <id>', 'step through it; queue, context, breakpoints'],
  ['', 'admin', 'tokens, setup, heal, export, import, usage'],
  ['', 'doctor', 'what is missing here, and how to fix it'],
];

/** They use nothing of the folder. */
const OUTSIDE = new Set(['init', 'trust', 'completion', 'help', 'report']);

export { endProcessWith };

/** Runs one command and answers its exit code. Never throws: every error is printed on stderr. Leaves nothing behind in its surroundings. */
export async function main(args: readonly string[], given: Surroundings = processSurroundings()): Promise<number> {
  let surroundings = given;
  let exitCode: number = EXIT.ok;
  let globals: GlobalOptions | undefined;
  // `| head -1`: a reader that is gone is no longer written to, and a chat ends.
  const closed = new AbortController();
  const output = createOutput(given.stdout, given.stderr, () => closed.abort(), {
    color: () => (globals === undefined || globals.color === 'auto' ? (readColorWish(given.env) ?? 'auto') : globals.color),
    isQuiet: () => globals?.quiet === true,
    explains: () => globals?.explain === true,
    program: () => programInHints(given.env['PATH'] ?? ''),
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
    if (command.opts<{ readonly awaitBegin?: boolean }>().awaitBegin === true) {
      const { awaitBegin } = await import('./worker.js');
      const { taskQueue } = await awaitBegin();
      surroundings = { ...surroundings, env: { ...surroundings.env, PERDURA_TASK_QUEUE: taskQueue } };
    }
    if (!OUTSIDE.has(command.name())) await enterFolder(context, { runsEvals: command.name() === 'eval' });
  });
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    else {
      output.problem(errorMessage(error));
      exitCode = toExitCode(error);
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
    // Options after a command's name are the command's: `list -q` is a query.
    .enablePositionalOptions()
    .configureHelp({ subcommandTerm: (command) => [command.name(), ...command.registeredArguments.map(argumentTerm)].join(' ') })
    .hook('preAction', (_program, command) => begin(command));
  const rows = [HELP, ...COMMANDS.flatMap(([, family]) => family)];
  for (const row of rows) addCommand(program, context, row, GROUPS);
  for (const command of [program, ...program.commands.flatMap(runnable)]) addGlobalOptions(command);
  // Of the program alone: commands have the help of their options.
  program.helpInformation = firstHelp;
  return program;
}

const HELP: CommandRow = {
  name: 'help',
  description: 'this; `help all` lists every command and the global options',
  args: [['[words...]', 'all, or a command']],
  isHidden: true,
  run({ output }, words: readonly string[], _options: object, command: Command) {
    const program = command.parent ?? command;
    const named = words.reduce<Command | undefined>((one, word) => one?.commands.find((child) => child.name() === word), program);
    if (words[0] === 'all') output.line(wholeHelp());
    else (named ?? program).outputHelp();
    return Promise.resolve(EXIT.ok);
  },
};

function firstHelp(): string {
  const lines = FIRST_HELP.map(([group, names, meaning]) => `${group.padEnd(7)} ${names.padEnd(25)} ${meaning}`);
  return [
    'Usage: perdura [command] [options]    (without a command: chat)',
    '',
    ...lines,
    '',
    '`perdura COMMAND --help` lists its options, `perdura help all` the other',
    'commands, the options of every command, and the exit codes.',
    '',
  ].join('\n');
}

function wholeHelp(): string {
  const groups = listCommands().map(
    ({ heading, commands }) =>
      `${heading}:\n${commands.map(({ usage, description }) => `  ${usage.padEnd(38)} ${description}`).join('\n')}`,
  );
  return `${groups.join('\n\n')}\n\nGlobal options, of every command:\n${describeGlobalOptions()}

Data goes to stdout, everything else to stderr.
Exit codes: 0 ok, 1 failed, 2 usage, 3 something needed cannot be reached, 4 not found, 124 timed out, 130 interrupted.`;
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

/** Every command by its whole name with its arguments, under the headings of `help all`: for the page that lists them, and for its test. */
export function listCommands(): { heading: string; commands: { name: string; usage: string; description: string }[] }[] {
  return COMMANDS.map(([heading, rows]) => ({
    heading,
    commands: rows
      .filter(({ isHidden }) => isHidden !== true)
      .map(({ name, args = [], description }) => {
        const terms = args.map((one) => (Array.isArray(one) ? String(one[0]) : argumentTerm(one as Argument)));
        return { name, usage: [name, ...terms].join(' '), description };
      }),
  }));
}

function argumentTerm(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** `perdura admin` is only the name of a group; `perdura memory` runs too. */
function runnable(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(runnable)];
}

if (require.main === module) void main(processArguments()).then(endProcessWith);
