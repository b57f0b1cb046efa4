/** `perdura send`: a message to a conversation that runs, from a script or another terminal. */
import { loadConfig } from '../config.js';
import { connectClient } from './connect.js';
import { CliError, EXIT } from './exit.js';
import { onInterrupt } from './interrupts.js';
import type { Output } from './output.js';
import { readStandardInput } from './standard-input.js';
import { answerExitCode, explainEnd } from './turn-end.js';
import { untilEnd, wholeAnswer } from './whole-answer.js';

export interface SendOptions {
  readonly signal?: boolean;
  readonly id?: string;
  readonly wait: boolean;
}

export async function send(id: string, message: string, options: SendOptions, output: Output): Promise<number> {
  const text = message === '-' ? await readStandardInput() : message;
  if (text.trim() === '') throw new CliError(`cannot send to ${id}: the message is empty`, EXIT.usage);
  const isAwaited = options.wait && options.signal !== true;
  const client = await connectClient(loadConfig(), output, { needsWorker: isAwaited });
  const leave = new AbortController();
  const stopListening = onInterrupt(() => leave.abort(new CliError('stopped waiting; the conversation goes on', EXIT.interrupted)));
  try {
    if (!isAwaited) {
      const { messageId } = await client.message(id, { id: options.id, text });
      output.line(messageId);
      return EXIT.ok;
    }
    const { signal } = leave;
    const result = await untilEnd(client, id, await client.send(id, { id: options.id, text }, { signal }), signal);
    const answer = await wholeAnswer(client, id, result);
    if (answer !== '') output.line(answer);
    explainEnd(result, output);
    return answerExitCode(result);
  } catch (error) {
    throw leave.signal.aborted ? leave.signal.reason : error;
  } finally {
    stopListening();
    await client.close();
  }
}
