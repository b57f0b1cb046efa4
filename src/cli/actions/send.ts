/** `perdura send`: a message to a conversation that runs, from a script or another terminal. */
import { randomUUID } from 'node:crypto';
import type { CliContext } from '../context.js';
import { CliError, EXIT } from '../exit.js';
import { readStandardInput } from '../standard-input.js';
import { temporalCommand } from '../temporal-command.js';
import { toTerminalJson } from '../terminal-text.js';
import { answerExitCode, explainEnd } from '../turn-end.js';
import { formatDuration } from '../views/quantities.js';
import { untilEnd, wholeAnswer } from '../whole-answer.js';
import { withClient } from '../with-client.js';

export interface SendOptions {
  readonly signal?: boolean;
  readonly id?: string;
  readonly wait: boolean;
  /** Milliseconds. */
  readonly timeout?: number;
}

export async function send(context: CliContext, id: string, message: string, options: SendOptions): Promise<number> {
  const text = message === '-' ? await readStandardInput() : message;
  if (text.trim() === '') throw new CliError(`cannot send to ${id}: the message is empty`, EXIT.usage);
  const isAwaited = options.wait && options.signal !== true;
  const own = { id: options.id ?? randomUUID(), text };
  const whenInterrupted = 'stopped waiting; the conversation goes on';
  return withClient(context, { needsWorker: isAwaited, whenInterrupted }, async ({ client, output, globals, temporal, signal, slowly }) => {
    if (!isAwaited) {
      const { messageId } = await slowly(`sending to ${id}`, client.message(id, own));
      output.line(globals.output === 'text' ? messageId : toTerminalJson({ conversation: id, messageId }));
      if (globals.output === 'text') {
        const input = text.length > 200 ? '…' : JSON.stringify(own);
        output.note(temporalCommand(temporal, ['workflow', 'signal', '--name', 'message', '-w', id, '--input', input]));
      }
      return EXIT.ok;
    }
    const limit = options.timeout === undefined ? undefined : AbortSignal.timeout(options.timeout);
    const patience = limit === undefined ? signal : AbortSignal.any([signal, limit]);
    const ask = async (): Promise<number> => {
      const result = await untilEnd(client, id, await client.send(id, own, { signal: patience }), patience);
      const answer = await wholeAnswer(client, id, result);
      if (globals.output !== 'text') output.line(toTerminalJson({ conversation: id, messageId: own.id, ...result, text: answer }));
      else if (answer !== '') output.line(answer);
      explainEnd(result, output);
      if (globals.output === 'text') output.note(temporalCommand(temporal, ['workflow', 'show', '-w', id]));
      return answerExitCode(result);
    };
    return slowly(`waiting for the answer of ${id}`, ask()).catch((error: unknown) => {
      if (limit?.aborted !== true || signal.aborted) throw error;
      const again = `perdura send ${id} … --id ${own.id}`;
      throw new CliError(
        `no answer from ${id} within ${formatDuration(options.timeout ?? 0)}; the message stays sent, and \`${again}\` waits again`,
        EXIT.timedOut,
      );
    });
  });
}
