/** A chat without a screen: lines that are piped in, each answered in its turn; and `perdura -p`, one message and one answer on stdout. */
import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { answerAgain, queueLine, resetNow } from './chat-actions.js';
import { readChatLine, explainRefusal, type ChatControls } from './chat-commands.js';
import type { ChatSession } from './chat-session.js';
import type { Input, Signals } from '../session/context.js';
import { answerExitCode, endProblems, withProgress } from '../session/with-progress.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { onInterrupt, readAll, readPipedInput } from '../terminal/input.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { wholeAnswer } from '../../client/reading.js';
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { readMessage } from '../../conversation/protocol/message.js';
import { errorMessage } from '../../platform/errors.js';
import { withoutMark } from '../../records/file-type.js';
import { turnNumber } from '../../records/identity.js';

/** Answers the exit code: that of the last answer that was not a good one. */
export async function chatInLines(
  session: ChatSession,
  options: { readonly input: Readable; readonly firstMessage?: string; readonly leave: AbortController; readonly signals: Signals },
): Promise<number> {
  const { client, output, id } = session;
  const { signal } = options.leave;
  let exitCode: number = EXIT.ok;
  let presses = 0;
  const stopListening = onInterrupt(options.signals, () => {
    presses += 1;
    exitCode = EXIT.interrupted;
    if (presses > 1) return options.leave.abort(new CliError('left', EXIT.interrupted));
    output.note('(stopping; Ctrl+C again leaves)');
    client.interrupt(id, 'Ctrl+C').catch((error: unknown) => output.problem(`cannot stop the answer: ${errorMessage(error)}`));
  });

  const print = async (result: TurnResult): Promise<void> => {
    seen.push(result);
    const text = await wholeAnswer(client, id, result);
    if (text !== '') output.line(text);
    for (const problem of endProblems(result)) output.problem(problem);
    exitCode = answerExitCode(result) || exitCode;
  };
  const seen: TurnResult[] = [];
  /** Stepped, a line that waited for its answer would wait for the steps behind it. */
  let isStepped = session.isStepped;
  let stepped: readonly string[] = isStepped ? session.openTurns : [];
  const answers = async (): Promise<void> => {
    if (stepped.length === 0) return;
    const { turns } = await client.status(id);
    const isDone = (turn: string): boolean => !isStepped || turnNumber(turn) <= turns;
    const [done, open] = [stepped.filter(isDone), stepped.filter((turn) => !isDone(turn))];
    stepped = open;
    for (const turn of done) await print(await withProgress(session, client.turn(id, turn, { signal })));
  };
  const say = async (text: string): Promise<void> => {
    session.noteSpoken();
    if (isStepped) {
      stepped = [...stepped, await queueLine(session, text)];
      return output.note('(queued: it is taken by /step, or by /mode auto)');
    }
    await print(await withProgress(session, client.send(id, { text }, { signal })));
  };
  let isLeft = false;
  const controls: ChatControls = {
    session,
    seen,
    answer: output.line,
    send: say,
    async again(edit) {
      session.noteSpoken();
      if (isStepped) throw new CliError('this waits for each step: `perdura rewind` takes a turn back, then say it again', EXIT.usage);
      await print(await withProgress(session, answerAgain(session, { ...edit, signal })));
    },
    async reset() {
      const { reply, how } = await withProgress(session, resetNow(session));
      output.line(reply);
      if (how !== undefined) output.note(`(${how})`);
    },
    async stepped(mode) {
      if (mode !== '') isStepped = mode === 'stepping';
      await answers();
    },
    leave: () => (isLeft = true),
  };

  try {
    for (const turn of isStepped ? [] : session.openTurns) await print(await withProgress(session, client.turn(id, turn, { signal })));
    if (options.firstMessage !== undefined) await say(options.firstMessage);
    for await (const text of createInterface({ input: options.input, crlfDelay: Infinity, signal })) {
      if (signal.aborted) break;
      const line = readChatLine(withoutMark(text));
      if (line.kind === 'message') await say(line.text);
      else if (line.kind === 'unknown-command' || line.kind === 'stray-words') throw new CliError(explainRefusal(line), EXIT.usage);
      else if (line.kind === 'command') await line.command.run(controls, line.argument);
      if (isLeft) break;
    }
    return exitCode;
  } finally {
    stopListening();
  }
}

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
    for (const problem of endProblems(result)) output.problem(problem);
    return answerExitCode(result);
  } finally {
    drawn.abort();
    stopListening();
    // Also where the answer is not waited for any more: its queue is run out first.
    if (!options.keep) await closeUnremembered(session);
  }
}

/** One question is no session to be remembered, and no person waits for its end. */
async function closeUnremembered({ client, output, id }: ChatSession): Promise<void> {
  await client.closeConversation(id, { memory: false }).catch((error: unknown) => {
    output.note(`(${id} could not be closed: ${errorMessage(error)}; \`perdura end ${id} --no-memory\` does that)`);
  });
}

/** How long the feed is waited for once the result is there. */
const FEED_PATIENCE = 1000;

/** Each live event of our message's turn a line each, as it comes. The result comes also where the feed does not. */
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
  const given = message === undefined ? await readAll(input) : [message, await readPipedInput(input)].filter(Boolean).join('\n\n');
  if (given.trim() === '') throw new CliError('-p needs a message, as its value or on stdin', EXIT.usage);
  const text = given.trim();
  const checked = readMessage(text);
  if (!checked.ok) throw new CliError(`cannot send this with -p: ${checked.reason}`, EXIT.usage);
  return text;
}
