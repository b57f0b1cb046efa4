/**
 * The chat of a person at a terminal.
 *
 * 1. Ctrl+C: the first stops the answer, the second leaves, however long after; a line in between starts the count again.
 * 2. What is said while an answer comes is sent at once and waits in the conversation's own queue.
 * 3. Leaving stops waiting, never the conversation.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ReadStream, WriteStream } from 'node:tty';
import type { TurnResult } from '../conversation/contract.js';
import type { AnswerView } from './answer-view.js';
import { createAnswerView } from './answer-view.js';
import { helpText, readChatLine } from './chat-commands.js';
import { openLineEditor } from './chat-line-editor.js';
import type { ChatSession } from './chat-session.js';
import { messageOf } from './exit.js';
import { untilEnd, wholeAnswer } from './whole-answer.js';

/** How long the feed is waited for once the result is there. */
const FEED_PATIENCE = 500;

/** Runs until the person leaves or `leave` is aborted. */
export async function chatInTerminal(
  session: ChatSession,
  options: { readonly input: ReadStream; readonly screen: WriteStream; readonly firstMessage?: string; readonly leave: AbortSignal },
): Promise<void> {
  const { client, output, id } = session;
  const left = new AbortController();
  const stop = AbortSignal.any([left.signal, options.leave]);
  const ours = new Set<string>();
  let waitingFor = 0;
  let presses = 0;

  const view = createAnswerView(output, {
    width: options.screen.columns || 80,
    from: session.openTurns[0],
    // The question of a turn that was running when we came is in the recap.
    isOurs: (messageId) => ours.has(messageId),
  });
  const showEditorIfIdle = (): void => {
    if (waitingFor === 0 && !stop.aborted) editor.show();
  };

  /** Waits for a result, draws it, and gives the line back. */
  const follow = async (result: Promise<TurnResult>): Promise<void> => {
    waitingFor += 1;
    editor.hide();
    try {
      const ended = await untilEnd(client, id, await result, stop);
      await feedCaughtUp(view, ended, stop);
      view.finish(ended, await wholeAnswer(client, id, ended));
    } catch (error) {
      if (!stop.aborted) output.problem(messageOf(error));
    } finally {
      waitingFor -= 1;
      showEditorIfIdle();
    }
  };

  const send = (text: string): void => {
    if (waitingFor > 0) output.note('(queued: it is taken after this answer)');
    session.noteSpoken();
    const messageId = randomUUID();
    ours.add(messageId);
    void follow(client.send(id, { id: messageId, text }, { signal: stop }));
  };

  const reset = async (): Promise<void> => {
    session.noteSpoken();
    try {
      const { reply, consolidation } = await client.reset(id);
      output.say(consolidation === 'raw-fallback' ? `${reply} (kept unsummarized: the summary will follow)` : reply);
    } catch (error) {
      output.problem(messageOf(error));
    }
  };

  const onLine = (text: string): void => {
    presses = 0;
    const line = readChatLine(text);
    switch (line.kind) {
      case 'nothing':
        return showEditorIfIdle();
      case 'message':
        return send(line.text);
      case 'unknown-command':
        return output.problem(`there is no ${line.name}; the nearest is ${line.nearest}, and /help lists all`);
      case 'command':
        if (line.name === '/exit') return left.abort();
        if (line.name === '/help') return output.say(helpText());
        return void reset();
    }
  };

  const onInterrupt = (): void => {
    presses += 1;
    if (presses > 1) return left.abort();
    if (waitingFor === 0) return output.note('(Ctrl+C again leaves)');
    view.hold();
    output.note('(stopping; Ctrl+C again leaves)');
    client.interrupt(id, 'Ctrl+C').catch((error: unknown) => output.problem(`cannot stop the answer: ${messageOf(error)}`));
  };

  const editor = openLineEditor(options.input, options.screen, { onLine, onInterrupt, onEnd: () => left.abort() });
  const unshare = output.shareScreen({ hide: editor.hide, show: showEditorIfIdle });
  const watching = watch(session, view, stop);
  try {
    for (const turn of session.openTurns) void follow(client.turn(id, turn, { signal: stop }));
    if (options.firstMessage === undefined) showEditorIfIdle();
    else send(options.firstMessage);
    await aborted(stop);
    if (waitingFor > 0) output.note('(the answer is not lost: it is there when you come back)');
  } finally {
    left.abort();
    unshare();
    editor.close();
    await watching;
  }
}

/** Draws what the feed tells. Without the feed answers still come, whole. */
async function watch(session: ChatSession, view: AnswerView, stop: AbortSignal): Promise<void> {
  const { client, id, output, openTurns } = session;
  // From its oldest event when a turn was running before we came: its answer is shown from the beginning.
  let after = openTurns.length > 0 ? '0' : undefined;
  let complained = false;
  while (!stop.aborted) {
    try {
      for await (const { cursor, event } of client.watch(id, { after, signal: stop })) {
        after = cursor;
        view.event(event);
      }
    } catch (error) {
      if (stop.aborted) return;
      if (!complained) output.note(`(live text is not available: ${messageOf(error)}; answers come whole)`);
      complained = true;
    }
    await sleep(1000, undefined, { signal: stop }).catch(() => {});
  }
}

async function feedCaughtUp(view: AnswerView, result: TurnResult, signal: AbortSignal): Promise<void> {
  if (result.turnId === null) return;
  for (const deadline = Date.now() + FEED_PATIENCE; !view.isFinished(result.turnId) && Date.now() < deadline;) {
    await sleep(10, undefined, { signal });
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
