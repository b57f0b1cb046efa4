/** `perdura retry` and `edit`: a turn answered anew, and a turn asked in other words. */
import type { AnsweredAgain } from '../../client.js';
import type { CliContext } from '../session/context.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { findRunning } from '../args/find-conversation.js';
import { readText, turnName } from '../args/values.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { answerExitCode, explainEnd } from '../session/turn-end.js';
import { wholeAnswer } from '../../client/whole-answer.js';
import { withProgress } from '../session/with-progress.js';
import { formatCount, formatDuration } from '../views/quantities.js';
import { withClient, type CommandSession, temporalCommand } from '../session/with-client.js';
import { timeoutSignal } from '../../platform/promises.js';

export interface AgainOptions {
  /** Milliseconds. */
  readonly timeout?: number;
}

export interface EditOptions extends AgainOptions {
  readonly turn?: string;
}

export function retry(context: CliContext, given: string, options: AgainOptions): Promise<number> {
  return again(context, given, options, (desk, id, signal) => desk.client.retry(id, { signal }));
}

export async function edit(
  context: CliContext,
  given: string,
  message: string,
  { turn: wanted, ...options }: EditOptions,
): Promise<number> {
  const turn = wanted === undefined ? undefined : turnName(wanted);
  const text = await readText(context.surroundings, message);
  if (text.trim() === '') throw new CliError(`cannot edit ${turn ?? 'the last turn'} of ${given}: the message is empty`, EXIT.usage);
  return again(context, given, options, (desk, id, signal) => desk.client.edit(id, text, { turn, signal }));
}

function again(
  context: CliContext,
  given: string,
  { timeout }: AgainOptions,
  ask: (desk: CommandSession, id: string, signal: AbortSignal) => Promise<AnsweredAgain>,
): Promise<number> {
  const whenInterrupted = 'stopped waiting; the conversation goes on';
  return withClient(context, { needsWorker: true, whenInterrupted }, async (desk) => {
    const { client, output, globals, temporal, signal } = desk;
    const id = await findRunning(desk, given);
    const limit = timeout === undefined ? undefined : timeoutSignal(timeout);
    const patience = limit === undefined ? signal : AbortSignal.any([signal, limit]);
    const asked = withProgress({ client, output, id }, ask(desk, id, patience)).catch((error: unknown) => {
      if (limit?.aborted !== true || signal.aborted) throw error;
      throw new CliError(
        `no answer from ${id} within ${formatDuration(timeout ?? 0)}; \`perdura show ${id}\` has it once it is there`,
        EXIT.timedOut,
      );
    });
    const result = await desk.withSlowNotice(`waiting for the answer of ${id}`, asked);
    const answer = await wholeAnswer(client, id, result);
    if (globals.output !== 'text') output.line(toTerminalJson({ conversation: id, ...result, text: answer }));
    else if (answer !== '') output.line(answer);
    explainEnd(result, output);
    if (globals.output === 'text') {
      output.note(keptInWords(id, result));
      output.explain(temporalCommand(temporal, ['workflow', 'show', '-w', id]));
    }
    return answerExitCode(result);
  });
}

/** Where what was there before is now. */
export function keptInWords(id: string, { cut, branch }: Pick<AnsweredAgain, 'cut' | 'branch'>): string {
  if (branch === null) return 'there was nothing to keep of what was there before';
  const what = cut === 1 ? 'the old turn is' : `the ${formatCount(cut)} old turns are`;
  return `${what} kept: \`perdura show ${id} --branch ${branch}\``;
}
