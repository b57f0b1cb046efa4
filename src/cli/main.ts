/** The commands and their options. Each command's own code is loaded when it runs, so that `--help` is instant. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError, Option } from 'commander';
import type { ChatOptions } from './chat.js';
import { CliError, EXIT, exitCodeOf, messageOf } from './exit.js';
import type { Output } from './output.js';
import { createOutput } from './output.js';
import type { SendOptions } from './send.js';
import type { ShowFormat } from './show.js';

/** Runs one command and answers its exit code. Never throws: every error is said on stderr. */
export async function main(args: readonly string[]): Promise<number> {
  // `| head -1`: who no longer reads is no longer written to, and a chat ends.
  const closed = new AbortController();
  const output = createOutput(process.stdout, process.stderr, () => closed.abort());
  let exitCode: number = EXIT.ok;
  const program = createProgram(output, closed.signal, (code) => (exitCode = code));
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

function createProgram(output: Output, closed: AbortSignal, end: (exitCode: number) => void): Command {
  const program = new Command('perdura')
    .description('Durable conversations with AI agents.')
    .version(readVersion(), '-V, --version')
    .exitOverride()
    .showSuggestionAfterError()
    .helpCommand(false)
    .addHelpText('after', EXIT_CODES);

  program
    .command('chat', { isDefault: true })
    .description('talk with an agent; lines may also be piped in')
    .argument('[words...]', 'what to say first')
    .option('-c, --continue', 'go on with the last conversation of this folder')
    .addOption(new Option('-r, --resume <id>', 'go on with this conversation').conflicts('continue'))
    .option('--agent <name>', 'agent of a new conversation')
    .option('--model <provider/name>', 'model of a new conversation')
    .option('-p, --print [message]', 'print one answer and end; stdin is taken too')
    .addOption(new Option('--output-format <format>', 'of -p').choices(['text', 'json']).default('text'))
    .option('--start-services', 'find or start Temporal and a worker first, as npm start does')
    .action(async (words: string[], options: ChatOptions, command: Command) => {
      refuseStrayWords(words, options, program, command);
      const { chat } = await import('./chat.js');
      end(await chat(words, options, output, closed));
    });

  program
    .command('worker')
    .description('take work from the task queue until Ctrl+C')
    .action(async () => {
      const { worker } = await import('./worker.js');
      end(await worker(output));
    });

  program
    .command('send')
    .description('send a message to a running conversation and print its answer')
    .argument('<id>', 'the conversation')
    .argument('<message>', 'the message, or - for stdin')
    .option('--signal', 'by signal: do not wait, print the id of the message')
    .option('--id <key>', 'id of the message: the same id twice is one message')
    .option('--no-wait', 'the same as --signal')
    .action(async (id: string, message: string, options: SendOptions) => {
      const { send } = await import('./send.js');
      end(await send(id, message, options, output));
    });

  program
    .command('show')
    .description('print what was said in a conversation')
    .argument('<id>', 'the conversation')
    .addOption(new Option('-o, --output <format>', 'how').choices(['text', 'json', 'jsonl']).default('text'))
    .action(async (id: string, options: { readonly output: ShowFormat }) => {
      const { show } = await import('./show.js');
      end(await show(id, options.output, output));
    });

  return program;
}

const EXIT_CODES = `
Data goes to stdout, everything else to stderr.
Exit codes: 0 ok, 1 failed, 2 usage, 3 something needed cannot be reached, 4 not found, 130 interrupted.`;

/** `perdura shwo conv_1` is a slip, not a message that costs money: without the word \`chat\` the first word must be a command. */
function refuseStrayWords(words: readonly string[], options: ChatOptions, program: Command, command: Command): void {
  const isNamed = program.args[0] === command.name();
  if (isNamed || options.print !== undefined || words.length === 0) return;
  throw new CliError(
    `there is no command ${words[0]}; \`perdura --help\` lists all, and \`perdura chat\` or -p takes words to say`,
    EXIT.usage,
  );
}

function readVersion(): string {
  const { version } = JSON.parse(readFileSync(join(__dirname, '..', '..', 'package.json'), 'utf8')) as { version: string };
  return version;
}

/** For executables: all that was opened is closed by now, and what a library still holds does not keep a person waiting. */
export function endProcessWith(exitCode: number): void {
  process.exitCode = exitCode;
  setTimeout(() => process.exit(exitCode), 2000).unref();
}

if (require.main === module) void main(process.argv.slice(2)).then(endProcessWith);
