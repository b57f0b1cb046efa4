/** `perdura -p`: one message, one answer on stdout. */
import type { ChatSession } from './chat-session.js';
import { CliError, EXIT, messageOf } from './exit.js';
import { onInterrupt } from './interrupts.js';
import { readPipedInput, readStandardInput } from './standard-input.js';
import { toTerminalJson } from './terminal-text.js';
import { answerExitCode, explainEnd } from './turn-end.js';
import { untilEnd, wholeAnswer } from './whole-answer.js';

export async function printOneAnswer(
  session: ChatSession,
  options: { readonly message?: string; readonly format: 'text' | 'json'; readonly leave: AbortController },
): Promise<number> {
  const { client, output, id } = session;
  const text = await messageText(options.message);
  let presses = 0;
  const stopListening = onInterrupt(() => {
    presses += 1;
    if (presses > 1) return options.leave.abort(new CliError('left', EXIT.interrupted));
    client.interrupt(id, 'Ctrl+C').catch((error: unknown) => output.problem(`cannot stop the answer: ${messageOf(error)}`));
  });
  try {
    session.noteSpoken();
    const { signal } = options.leave;
    const result = await untilEnd(client, id, await client.send(id, { text }, { signal }), signal);
    const answer = await wholeAnswer(client, id, result);
    if (options.format === 'json') output.line(toTerminalJson({ conversation: id, ...result, text: answer }));
    else if (answer !== '') output.line(answer);
    explainEnd(result, output);
    return answerExitCode(result);
  } finally {
    stopListening();
  }
}

/** The words given, then what was piped in, as in `perdura -p "what is this?" < file`. */
async function messageText(message: string | undefined): Promise<string> {
  const given = message === undefined ? await readStandardInput() : [message, await readPipedInput()].filter(Boolean).join('\n\n');
  if (given.trim() === '') throw new CliError('-p needs a message, as its value or on stdin', EXIT.usage);
  return given.trim();
}
