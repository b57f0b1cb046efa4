/** `perdura -p`: one message, one answer on stdout. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { readMessage } from '../../conversation/protocol/message.js';
import type { ChatSession } from './chat-session.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { onInterrupt } from '../terminal/interrupts.js';
import { withProgress } from '../session/with-progress.js';
import { text as allOf } from 'node:stream/consumers';
import type { Input, Signals } from '../session/surroundings.js';
import { readPipedInput } from '../terminal/standard-input.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { answerExitCode, explainEnd } from '../session/turn-end.js';
import { wholeAnswer } from '../../client/whole-answer.js';
import { errorMessage } from '../../platform/errors.js';

export async function printOneAnswer(
  session: ChatSession,
  options: {
    readonly text: string;
    readonly format: 'text' | 'json' | 'stream-json';
    readonly leave: AbortController;
    readonly signals: Signals;
    /** The conversation is open afterwards, as it was before. */
    readonly keep: boolean;
  },
): Promise<number> {
  const { client, output, id } = session;
  const { text } = options;
  let presses = 0;
  const stopListening = onInterrupt(options.signals, () => {
    presses += 1;
    if (presses > 1) return options.leave.abort(new CliError('left', EXIT.interrupted));
    client.interrupt(id, 'Ctrl+C').catch((error: unknown) => output.problem(`cannot stop the answer: ${errorMessage(error)}`));
  });
  const drawn = new AbortController();
  try {
    session.noteSpoken();
    const { signal } = options.leave;
    const messageId = randomUUID();
    const live = options.format === 'stream-json' ? streamEvents(session, messageId, AbortSignal.any([signal, drawn.signal])) : undefined;
    const result = await withProgress(session, client.send(id, { id: messageId, text }, { signal }));
    const answer = await wholeAnswer(client, id, result);
    await live?.caughtUp();
    if (options.format === 'text') {
      if (answer !== '') output.line(answer);
    } else {
      const kind = options.format === 'stream-json' ? { kind: 'result' } : {};
      output.line(toTerminalJson({ ...kind, conversation: id, ...result, text: answer }));
    }
    explainEnd(result, output);
    return answerExitCode(result);
  } finally {
    drawn.abort();
    stopListening();
    // Also where the answer is not waited for any more: its queue is run out first.
    if (!options.keep) await closeUnremembered(session);
  }
}

/** What was asked once is no session to be remembered, and no person waits for its end. */
async function closeUnremembered({ client, output, id }: ChatSession): Promise<void> {
  await client.closeConversation(id, { memory: false }).catch((error: unknown) => {
    output.note(`(${id} could not be closed: ${errorMessage(error)}; \`perdura close ${id} --no-memory\` does that)`);
  });
}

/** How long the feed is waited for once the result is there. */
const FEED_PATIENCE = 1000;

/** Each live event of our message's turn on a line of its own, as it comes. The result comes also where the feed does not. */
function streamEvents({ client, output, id }: ChatSession, messageId: string, signal: AbortSignal): { caughtUp(): Promise<void> } {
  output.line(toTerminalJson({ kind: 'conversation', conversation: id, messageId }));
  const following = (async () => {
    let turn: string | undefined;
    // From the oldest: our message may be written before we read.
    for await (const { event } of client.watch(id, { after: '0', signal })) {
      if (event.kind === 'message' && event.messageId === messageId) turn = event.turn;
      if (turn === undefined || !('turn' in event) || event.turn !== turn) continue;
      // Its result follows, with the whole answer.
      if (event.kind === 'turn-finished') return;
      output.line(toTerminalJson({ ...event, conversation: id }));
    }
  })().catch((error: unknown) => {
    if (!signal.aborted) output.note(`(live events are not available: ${errorMessage(error)})`);
  });
  return { caughtUp: () => Promise.race([following, sleep(FEED_PATIENCE, undefined, { ref: false })]) };
}

/** The words given, then what was piped in, as in `perdura -p "what is this?" < file`. Refused before a conversation is started for it. */
export async function readOneMessage(input: Input, message: string | undefined): Promise<string> {
  const given = message === undefined ? await allOf(input) : [message, await readPipedInput(input)].filter(Boolean).join('\n\n');
  if (given.trim() === '') throw new CliError('-p needs a message, as its value or on stdin', EXIT.usage);
  const text = given.trim();
  const checked = readMessage(text);
  if (!checked.ok) throw new CliError(`cannot send this with -p: ${checked.reason}`, EXIT.usage);
  return text;
}
