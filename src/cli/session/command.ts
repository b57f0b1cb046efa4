/**
 * The frame of every command. A row says what the command is called, what it takes and what it does; connecting, Ctrl+C, `-o json`,
 * `--explain` and closing are here, once.
 */
import { Argument, Option, type Command } from 'commander';
import type { PerduraClient } from '../../client.js';
import { wholeAnswer } from '../../client/reading.js';
import { temporalConnection, type Config, type TemporalConnection } from '../../config.js';
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { orAborted, timeoutSignal } from '../../platform/promises.js';
import type { GlobalOptions } from '../args/global-options.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { onInterrupt } from '../terminal/input.js';
import type { Output } from '../terminal/output.js';
import { toTerminalJson, type StyledLine } from '../terminal/terminal-text.js';
import { formatDuration } from '../views/quantities.js';
import { loadMeasure, type Look } from '../views/table.js';
import { openClient, temporalCommand } from './connect.js';
import type { CliContext, Surroundings } from './context.js';
import { answerExitCode, endProblems, withProgress, withSlowNotice } from './with-progress.js';

export interface CommandRow {
  /** With the groups that it is in: `admin token create`. */
  readonly name: string;
  readonly description: string;
  readonly args?: readonly (Argument | readonly [usage: string, meaning: string])[];
  readonly options?: readonly (Option | OptionRow)[];
  /** Below the options of its help. */
  readonly help?: string;
  readonly isHidden?: boolean;
  /** It runs where only the group is named. */
  readonly isDefault?: boolean;
  /** Gets the arguments, then the options, then commander's command; their types are as `args` and `options` parse them. */
  run(frame: CommandFrame, ...given: never[]): Promise<Answer | number>;
}

export type OptionRow =
  | readonly [flags: string, meaning: string]
  | readonly [flags: string, meaning: string, parse: (text: string, before: never) => unknown, value?: unknown];

/** The first argument of commands on one conversation. */
export const CONVERSATION = ['<id>', "the conversation, or the beginning of its id; TENANT/ID is a tenant's"] as const;

export interface CommandFrame extends CliContext {
  /** Connects; from then on Ctrl+C ends the command. Checks that need no server come before. */
  readonly open: (options?: OpenOptions) => Promise<CommandSession>;
}

export interface OpenOptions {
  /** Warns when no worker takes work. */
  readonly needsWorker?: boolean;
  /** It serves programs: what only a worker answers fails after a while without one. A person waits, and ends that by hand. */
  readonly serves?: boolean;
  /** The message on Ctrl+C. */
  readonly whenInterrupted?: string;
}

export interface CommandSession {
  readonly client: PerduraClient;
  readonly config: Config;
  readonly temporal: TemporalConnection;
  readonly output: Output;
  readonly surroundings: Surroundings;
  readonly globals: GlobalOptions;
  /** Aborted by Ctrl+C, and when the reader of the output is gone. */
  readonly signal: AbortSignal;
  /** Tells what `work` is when it takes more than a second. */
  readonly withSlowNotice: <T>(what: string, work: Promise<T>) => Promise<T>;
}

export interface Answer {
  /** `-o json`. */
  readonly data: unknown;
  /** For people, on stdout, as it is. */
  readonly text?: string;
  /** For people, on stdout. */
  readonly draw?: (look: Look) => readonly StyledLine[] | Promise<readonly StyledLine[]>;
  /** For people, beside the data. */
  readonly say?: string;
  /** For people, beside the data, dim. */
  readonly notes?: readonly string[];
  /** For people and programs, on stderr. */
  readonly problems?: readonly string[];
  /** `--explain`: what of the `temporal` program shows or does the same. */
  readonly temporal?: readonly string[];
  readonly exitCode?: number;
}

/** Adds a row to the program; groups that it names are made. */
export function addCommand(program: Command, context: CliContext, row: CommandRow, groups: Readonly<Record<string, string>>): void {
  const words = row.name.split(' ');
  const name = words.pop() ?? '';
  let parent = program;
  for (const [at, word] of words.entries()) {
    const group = words.slice(0, at + 1).join(' ');
    parent = parent.commands.find((one) => one.name() === word) ?? parent.command(word).description(groups[group] ?? '');
  }
  const command = parent.command(name, { hidden: row.isHidden === true, isDefault: row.isDefault === true }).description(row.description);
  for (const one of row.args ?? []) {
    if (one instanceof Argument) command.addArgument(one);
    else command.argument(one[0], one[1]);
  }
  for (const one of row.options ?? []) command.addOption(one instanceof Option ? one : toOption(one));
  if (row.help !== undefined) command.addHelpText('after', `\n${row.help}`);
  command.action(async (...given: unknown[]) => context.end(await runCommand(context, row, given as never[])));
}

function toOption([flags, meaning, parse, value]: OptionRow): Option {
  const option = new Option(flags, meaning);
  if (parse !== undefined) option.argParser(parse as (text: string, before: unknown) => unknown);
  return value === undefined ? option : option.default(value);
}

async function runCommand(context: CliContext, row: CommandRow, given: never[]): Promise<number> {
  const { output, surroundings } = context;
  const leave = new AbortController();
  const ends: (() => unknown)[] = [];
  let session: CommandSession | undefined;
  const open = async ({
    needsWorker = false,
    serves = false,
    whenInterrupted = 'interrupted',
  }: OpenOptions = {}): Promise<CommandSession> => {
    const config = context.config();
    ends.push(onInterrupt(surroundings.signals, () => leave.abort(new CliError(whenInterrupted, EXIT.interrupted))));
    const onClosed = (): void => leave.abort(new CliError('the reader is gone', EXIT.ok));
    context.closed.addEventListener('abort', onClosed, { once: true });
    ends.push(() => context.closed.removeEventListener('abort', onClosed));
    const temporal = await temporalConnection(config);
    const connecting = openClient(surroundings, config, output, { needsWorker, serves });
    const client = await withSlowNotice(output, `connecting to Temporal at ${temporal.connectionOptions.address}`, connecting);
    ends.push(() => client.close());
    leave.signal.throwIfAborted();
    session = {
      ...{ client, config, temporal, output, surroundings, globals: context.globals(), signal: leave.signal },
      withSlowNotice: (what, slow) => withSlowNotice(output, what, slow),
    };
    return session;
  };
  const run = async (): Promise<number> => {
    const answer = await row.run({ ...context, open }, ...given);
    return typeof answer === 'number' ? answer : printAnswer(context, answer, session);
  };
  try {
    return await orAborted(leave.signal, run());
  } catch (error) {
    if (session !== undefined && context.closed.aborted) return EXIT.ok;
    throw leave.signal.aborted ? leave.signal.reason : error;
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

async function printAnswer({ output, globals }: CliContext, answer: Answer, session: CommandSession | undefined): Promise<number> {
  if (globals().output === 'json') output.line(toTerminalJson(answer.data, 2));
  else {
    if (answer.text !== undefined) output.line(answer.text);
    if (answer.draw !== undefined) for (const line of await answer.draw(await lookOn(output, globals()))) output.draw(line);
    if (answer.say !== undefined) output.say(answer.say);
    for (const note of answer.notes ?? []) output.note(note);
  }
  for (const problem of answer.problems ?? []) output.problem(problem);
  if (globals().output === 'text' && answer.temporal !== undefined && session !== undefined)
    output.explain(temporalCommand(session.temporal, answer.temporal));
  return answer.exitCode ?? EXIT.ok;
}

/** How lines for people are drawn on this screen, at this moment. */
export async function lookOn(output: Output, { timeFormat }: GlobalOptions): Promise<Look> {
  return { width: output.width(), timeFormat, now: Date.now(), measure: await loadMeasure() };
}

/** The answer of a turn, waited for no longer than `timeout` milliseconds; `late` is what a person can do then. */
export async function awaitAnswer<Result extends TurnResult>(
  session: CommandSession,
  id: string,
  ask: (signal: AbortSignal) => Promise<Result>,
  { timeout, late }: { readonly timeout?: number; readonly late: string },
): Promise<Answer & { readonly data: Result & { readonly conversation: string } }> {
  const { client, output, signal } = session;
  const limit = timeout === undefined ? undefined : timeoutSignal(timeout);
  const asking = ask(limit === undefined ? signal : AbortSignal.any([signal, limit]));
  const answering = withProgress({ client, output, id }, asking).catch((error: unknown) => {
    if (limit?.aborted !== true || signal.aborted) throw error;
    throw new CliError(`no answer from ${id} within ${formatDuration(timeout ?? 0)}; ${late}`, EXIT.timedOut);
  });
  const result = await session.withSlowNotice(`waiting for the answer of ${id}`, answering);
  const text = await wholeAnswer(client, id, result);
  return {
    data: { conversation: id, ...result, text },
    ...(text !== '' && { text }),
    problems: endProblems(result),
    temporal: ['workflow', 'show', '-w', id],
    exitCode: answerExitCode(result),
  };
}
