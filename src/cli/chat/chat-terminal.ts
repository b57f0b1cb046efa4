/**
 * The chat of a person at a terminal.
 *
 * 1. Ctrl+C: the first stops the answer, the second leaves, however long after; a line in between starts the count again.
 * 2. A line typed while an answer comes is sent at once and waits in the conversation's queue.
 * 3. Leaving stops waiting, never the conversation.
 * 4. Colours, Markdown and the row that moves are for a terminal that can have them; any other gets the plain text.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ReadStream, WriteStream } from 'node:tty';
import pc from 'picocolors';
import type { FeedEvent, Status, TurnResult } from '../../conversation/protocol/contract.js';
import { createAnswerView, type AnswerView } from './answer-view.js';
import { answerAgain, resetNow } from './chat-actions.js';
import { completeChatLine, readChatLine, explainRefusal, type ChatControls, type ChatLine } from './chat-commands.js';
import { createFoot, openLineEditor } from './chat-foot.js';
import { createChatPeople } from './chat-people.js';
import type { WorkerChange } from '../services/worker-process.js';
import { recap, type ChatSession } from './chat-session.js';
import { toWords, trouble, waitingAfter, waitingForWorker, waitingOfStatus, type Waiting } from '../session/with-progress.js';
import { wholeAnswer } from '../../client/reading.js';
import { errorMessage } from '../../platform/errors.js';

/** How long the feed is waited for once the result is there. */
const FEED_PATIENCE = 500;

/** The feed brings earlier events so soon. */
const QUIET_MS = 300;

/** The status of a conversation that is silent for so long is read. */
const SILENCE = 3000;

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
  /** Of those, the ends of sessions: there is nothing in them to stop. */
  let clearing = 0;
  let presses = 0;
  const seen: TurnResult[] = [];
  let waiting: Waiting | undefined;
  let heardAt = 0;
  /** Its line goes away as soon as another worker is there. */
  let away: Waiting | undefined;

  const isColored = output.isColoredTerminal();
  const { default: widthOf } = await import('string-width');
  if (isColored) {
    const [{ createMarkdownPen }, { loadMarkdown }] = await Promise.all([
      import('../terminal/markdown.js'),
      import('../terminal/markdown-render.js'),
    ]);
    const markdown = await loadMarkdown();
    output.drawTextWith(
      createMarkdownPen({
        columns: () => options.screen.columns || 80,
        rows: () => options.screen.rows || 24,
        widthOf: markdown.widthOf,
        render: markdown.render,
        lex: markdown.lex,
      }),
    );
  }

  if (!session.isNew) await recap(session);
  output.note('  /help lists what else there is\n');

  const view = createAnswerView(output, {
    width: options.screen.columns || 80,
    from: session.openTurns[0],
    // The question of a turn that was running when we came is in the recap.
    isOurs: (messageId) => ours.has(messageId),
    showsAsked: true,
  });
  const people = createChatPeople(session);
  const lookAtPeople = (): void => {
    people.look().catch((error: unknown) => {
      if (!stop.aborted) output.problem(`cannot read what waits for you: ${errorMessage(error)}; /approvals tries again`);
    });
  };
  const showFoot = (): void => {
    if (!stop.aborted) foot.show();
  };
  const count = (change: 1 | -1): void => {
    waitingFor += change;
    if (waitingFor === 1 && change === 1) waiting = { text: 'sending {s}', since: Date.now() };
    foot.setWaiting(waitingFor > 0 || away !== undefined);
  };

  /** Waits for a result, draws it, and gives the line back. */
  const follow = async (result: Promise<TurnResult>): Promise<void> => {
    count(1);
    showFoot();
    try {
      const ended = await result;
      await feedCaughtUp(view, ended, stop);
      view.finish(ended, await wholeAnswer(client, id, ended));
      seen.push(ended);
    } catch (error) {
      if (!stop.aborted) output.problem(errorMessage(error));
    } finally {
      count(-1);
      showFoot();
    }
  };

  const send = (text: string): void => {
    const isHeld = people.count() > 0;
    const isQueued = waitingFor > 0;
    if (isQueued)
      output.note(`(queued: it is taken after this answer${isHeld ? ', which waits for your approval: /approve or /deny' : ''})`);
    session.noteSpoken();
    const messageId = randomUUID();
    // A queued one is drawn once more where its turn begins: between its line and its answer stands the answer before.
    if (!isQueued) ours.add(messageId);
    void follow(client.send(id, { id: messageId, text }, { signal: stop }));
  };

  const again: ChatControls['again'] = (edit) => {
    session.noteSpoken();
    const messageId = randomUUID();
    ours.add(messageId);
    void follow(answerAgain(session, { ...edit, messageId, signal: stop }));
  };

  const reset = async (): Promise<void> => {
    session.noteSpoken();
    clearing += 1;
    count(1);
    if (waitingFor === 1) waiting = { text: 'clearing the session {s}', since: Date.now() };
    showFoot();
    try {
      const { reply, how } = await resetNow(session);
      output.say(how === undefined ? reply : `${reply} (${how})`);
    } catch (error) {
      if (!stop.aborted) output.problem(errorMessage(error));
    } finally {
      clearing -= 1;
      count(-1);
      showFoot();
    }
  };

  const controls: ChatControls = {
    session,
    seen,
    people,
    answer: output.say,
    send,
    again,
    reset,
    stepped: () => undefined,
    leave: () => left.abort(),
  };
  const obey = async ({ command, argument }: Extract<ChatLine, { kind: 'command' }>): Promise<void> => command.run(controls, argument);

  const tell = (words: string): unknown => words !== '' && output.note(words);

  const onLine = (text: string): void => {
    presses = 0;
    const line = readChatLine(text);
    switch (line.kind) {
      case 'nothing':
        return showFoot();
      case 'message': {
        const taken = people.take(line.text);
        if (taken !== undefined) {
          taken.then(tell, (error: unknown) => output.problem(errorMessage(error)));
          return showFoot();
        }
        const question = people.question();
        if (question === undefined) return send(line.text);
        people.answer(question, line.text).then(tell, (error: unknown) => output.problem(errorMessage(error)));
        return showFoot();
      }
      case 'unknown-command':
      case 'stray-words':
        return output.problem(explainRefusal(line));
      case 'command':
        // A line after another one does not save the offered rule.
        void people.take('')?.then(tell, () => undefined);
        obey(line).catch((error: unknown) => output.problem(errorMessage(error)));
        return showFoot();
    }
  };

  const onInterrupt = (): void => {
    presses += 1;
    if (presses > 1) return left.abort();
    if (waitingFor === clearing) return output.note('(Ctrl+C again leaves)');
    // To stop would answer the question with no.
    if (people.count() > 0) return output.note('(it waits for you, and goes on waiting: /approve, /deny, /stop, or Ctrl+C again to leave)');
    view.hold();
    output.note('(stopping; Ctrl+C again leaves)');
    client.interrupt(id, 'Ctrl+C').catch((error: unknown) => output.problem(`cannot stop the answer: ${errorMessage(error)}`));
  };

  const editor = openLineEditor(options.input, options.screen, {
    onLine,
    onInterrupt,
    onEnd: () => left.abort(),
    complete: completeChatLine,
  });
  const foot = createFoot({
    screen: options.screen,
    editor,
    words: () => toWords(away ?? waiting ?? { text: 'waiting {s}', since: Date.now() }, Date.now()),
    widthOf,
    moves: isColored,
    dim: pc.dim,
  });
  const onWorker = (change: WorkerChange): void => {
    away = change.kind === 'away' ? waitingForWorker(change) : undefined;
    if (change.kind === 'back' && waitingFor > clearing) waiting = waitingForWorker(change);
    foot.setWaiting(waitingFor > 0 || away !== undefined);
    showOnceQuiet();
  };
  /** Draws the text of the dead worker first; the next one writes it anew, so that its last line may end anywhere. */
  const showOnceQuiet = (): void => {
    if (stop.aborted) return;
    if (Date.now() - heardAt < QUIET_MS) setTimeout(showOnceQuiet, QUIET_MS);
    else output.endText();
  };
  const unwatchWorker = isColored ? session.watchWorker?.(onWorker) : undefined;
  const unshare = output.shareScreen({ hide: foot.hide, show: showFoot });
  const hear = (event: FeedEvent): void => {
    heardAt = Date.now();
    waiting = waitingAfter(event, waiting, heardAt) ?? (waitingFor > 0 ? { text: 'model thinking {s}', since: heardAt } : undefined);
    view.event(event);
    if (event.kind === 'asked') lookAtPeople();
    if (event.kind === 'decided') people.forget(event.callId);
  };
  const watching = watch(session, hear, stop, () => (waiting = trouble('store unreachable', waiting, Date.now())));
  const asking = askWhenSilent(session, stop, {
    isSilent: () => waitingFor > 0 && Date.now() - heardAt > SILENCE,
    onStatus(status) {
      waiting = waitingOfStatus(status, waiting, Date.now());
      // Our feed does not have the waits of sub-agents.
      if (status.pendingApprovals !== people.count()) lookAtPeople();
    },
    onTrouble: (what) => (waiting = trouble(what, waiting, Date.now())),
  });
  try {
    for (const turn of session.openTurns) void follow(client.turn(id, turn, { signal: stop }));
    if (options.firstMessage === undefined) showFoot();
    else send(options.firstMessage);
    await aborted(stop);
    if (waitingFor > 0) output.note('(the answer is not lost: it is there when you come back)');
  } finally {
    left.abort();
    unwatchWorker?.();
    unshare();
    foot.close();
    editor.close();
    await Promise.all([watching, asking]);
  }
}

/** The feed may be silent for good reason or bad: the status says which. */
async function askWhenSilent(
  { client, id }: ChatSession,
  stop: AbortSignal,
  watcher: {
    readonly isSilent: () => boolean;
    readonly onStatus: (status: Status) => void;
    readonly onTrouble: (what: string) => void;
  },
): Promise<void> {
  const left = aborted(stop);
  while (!stop.aborted) {
    await sleep(1000, undefined, { signal: stop }).catch(() => {});
    if (stop.aborted || !watcher.isSilent()) continue;
    const reading = client.status(id).then(
      (status) => watcher.onStatus(status),
      () => watcher.onTrouble('Temporal or its worker does not answer'),
    );
    // An answer that does not come is no reason to stay when the person leaves.
    await Promise.race([reading, left]);
  }
}

/** Draws what the feed brings. Without the feed answers still come, whole. */
async function watch(session: ChatSession, hear: (event: FeedEvent) => void, stop: AbortSignal, onTrouble: () => void): Promise<void> {
  const { client, id, output, openTurns } = session;
  // From its oldest event when a turn was running before we came: its answer is shown from the beginning.
  let after = openTurns.length > 0 ? '0' : undefined;
  let complained = false;
  while (!stop.aborted) {
    try {
      for await (const { cursor, event } of client.watch(id, { after, signal: stop })) {
        after = cursor;
        hear(event);
      }
    } catch (error) {
      if (stop.aborted) return;
      if (!complained) output.note(`(live text is not available: ${errorMessage(error)}; answers come whole)`);
      complained = true;
      onTrouble();
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
