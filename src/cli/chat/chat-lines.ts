/** The chat when lines are piped in: one message after another, each answer on stdout before the next line is taken. */
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { TurnResult } from '../../conversation/protocol/contract.js';
import { answerAgain, queueLine, resetNow } from './chat-actions.js';
import { readChatLine, refusalOf, type ChatControls } from './chat-commands.js';
import type { ChatSession } from './chat-session.js';
import { CliError, EXIT } from '../terminal/exit.js';
import type { Signals } from '../session/context.js';
import { onInterrupt } from '../terminal/interrupts.js';
import { withProgress } from '../session/with-progress.js';
import { answerExitCode, endProblems } from '../session/with-progress.js';
import { wholeAnswer } from '../../client/whole-answer.js';
import { turnNumber } from '../../records/identity.js';
import { errorMessage } from '../../platform/errors.js';

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
      const line = readChatLine(text);
      if (line.kind === 'message') await say(line.text);
      else if (line.kind === 'unknown-command' || line.kind === 'stray-words') throw new CliError(refusalOf(line), EXIT.usage);
      else if (line.kind === 'command') await line.command.run(controls, line.argument);
      if (isLeft) break;
    }
    return exitCode;
  } finally {
    stopListening();
  }
}
