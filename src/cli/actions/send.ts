/** `perdura send`: a message to a conversation that runs, from a script or another terminal. */
import { randomUUID } from 'node:crypto';
import type { Delivery, Enqueued, Message } from '../../conversation/protocol/contract.js';
import type { CliContext } from '../session/context.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { readJson, readJsonObject } from '../args/json-argument.js';
import { patiently } from '../chat/patiently.js';
import { readStandardInput } from '../terminal/standard-input.js';
import { temporalCommand } from '../session/temporal-command.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { answerExitCode, explainEnd } from '../session/turn-end.js';
import { formatDuration } from '../views/quantities.js';
import { untilEnd, wholeAnswer } from '../chat/whole-answer.js';
import { withClient } from '../session/with-client.js';

export interface SendOptions {
  readonly signal?: boolean;
  readonly id?: string;
  readonly wait: boolean;
  readonly enqueue?: boolean;
  readonly delivery?: Delivery;
  /** JSON, or where it is. */
  readonly payload?: string;
  readonly outputSchema?: string;
  readonly context?: string;
  /** Milliseconds. */
  readonly timeout?: number;
}

export async function send(context: CliContext, id: string, message: string, options: SendOptions): Promise<number> {
  const text = message === '-' ? await readStandardInput() : message;
  if (text.trim() === '' && options.payload === undefined) throw new CliError(`cannot send to ${id}: the message is empty`, EXIT.usage);
  if (options.enqueue === true && options.signal === true) {
    throw new CliError('--enqueue is an update with a receipt, --signal one without: choose one', EXIT.usage);
  }
  const isAwaited = options.wait && options.signal !== true && options.enqueue !== true;
  const own: Message & { readonly id: string } = { id: options.id ?? randomUUID(), text, ...(await beside(options)) };
  const whenInterrupted = 'stopped waiting; the conversation goes on';
  return withClient(context, { needsWorker: isAwaited, whenInterrupted }, async ({ client, output, globals, temporal, signal, slowly }) => {
    if (options.enqueue === true) {
      const receipt = await slowly(`sending to ${id}`, client.enqueue(id, own));
      if (globals.output !== 'text') output.line(toTerminalJson({ conversation: id, ...receipt }));
      else {
        output.line(receipt.messageId);
        output.note(receiptInWords(receipt));
      }
      return EXIT.ok;
    }
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
    const asked = { client, output, id };
    const ask = async (): Promise<number> => {
      const result = await untilEnd(client, id, await patiently(asked, client.send(id, own, { signal: patience })), patience);
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

/** What goes with the text. */
async function beside({ delivery, payload, outputSchema, context }: SendOptions): Promise<Omit<Message, 'text'>> {
  return {
    ...(delivery === undefined ? {} : { delivery }),
    ...(payload === undefined ? {} : { payload: await readJson('--payload', payload) }),
    ...(outputSchema === undefined ? {} : { output: await readJsonObject('--output-schema', outputSchema) }),
    ...(context === undefined ? {} : { context: await readJsonObject('--context', context) }),
  };
}

function receiptInWords({ turnId, acceptedAs, position }: Enqueued): string {
  if (acceptedAs === 'duplicate') return `known already${turnId === null ? '' : `, as ${turnId}`}`;
  const before = position === 0 ? 'nothing is before it' : `${position} before it`;
  return turnId === null ? 'it joins the running turn at its next tool border' : `it becomes ${turnId}; ${before}`;
}
