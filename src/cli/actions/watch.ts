/** `perdura watch`: turns as they happen, over lost connections, until the conversation ends or Ctrl+C. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CliContext } from '../session/context.js';
import { EXIT, exitCodeOf } from '../terminal/exit.js';
import { findConversation } from '../args/find-conversation.js';
import { withTimeoutFallback } from '../session/with-progress.js';
import { toTerminalJson, toTerminalLine } from '../terminal/terminal-text.js';
import { loadMeasure } from '../views/table.js';
import { createTimeline, type Timeline } from '../views/timeline.js';
import { withClient, type CommandSession, temporalCommand } from '../session/with-client.js';
import { errorMessage } from '../../platform/errors.js';

export interface WatchOptions {
  /** Begin with the oldest event that is kept. */
  readonly fromStart?: boolean;
}

const LOOK_MS = 1000;
const FOOT_MS = 200;

export function watch(context: CliContext, given: string, { fromStart }: WatchOptions): Promise<number> {
  return withClient(context, { needsWorker: true, whenInterrupted: 'stopped watching; the conversation goes on' }, async (desk) => {
    const { output, globals, temporal, client } = desk;
    const id = await findConversation(desk, given);
    const isText = globals.output === 'text';
    const timeline = createTimeline({ width: output.width(), measure: await loadMeasure() });
    const ended = new AbortController();
    const stop = AbortSignal.any([desk.signal, ended.signal]);
    if (isText) output.note(`watching ${id}; Ctrl+C ends that`);
    const endFoot = isText && output.width() !== undefined ? showFoot(desk, timeline) : undefined;
    try {
      const looking = look(desk, id, isText ? timeline : undefined, stop);
      // Nothing more comes once it has ended: what is on its way is let in, then the feed is left.
      void looking.then(() => setTimeout(() => ended.abort(), 500));
      await read(desk, id, fromStart === true ? '0' : '$', stop, (cursor, event) => {
        const at = Date.now();
        if (!isText) return output.line(toTerminalJson({ cursor, at, event }));
        for (const line of timeline.event(event, at)) output.draw(line);
      });
      await looking;
    } finally {
      endFoot?.();
    }
    desk.signal.throwIfAborted();
    const { state } = await client.describe(id);
    output.note(`${id} has ended (${state})`);
    if (isText) output.explain(temporalCommand(temporal, ['workflow', 'show', '-w', id, '--follow']));
    return EXIT.ok;
  });
}

type OnEvent = (cursor: string, event: Parameters<Timeline['event']>[0]) => void;

/** Goes on after the last event that it had, however often the store or Temporal goes away. */
async function read({ client, output }: CommandSession, id: string, first: string, signal: AbortSignal, onEvent: OnEvent): Promise<void> {
  let after = first;
  for (let isAway = false; !signal.aborted;) {
    try {
      for await (const { cursor, event } of client.watch(id, { after, signal })) {
        if (isAway) output.note('connected again');
        isAway = false;
        after = cursor;
        onEvent(cursor, event);
      }
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (exitCodeOf(error) !== EXIT.unreachable) throw error;
      if (!isAway) output.problem(`connection lost (${errorMessage(error)}); trying again`);
      isAway = true;
    }
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** What the feed does not have: retries of activities, what waits, how it is stepped, and that the conversation has ended. */
async function look({ client, output }: CommandSession, id: string, timeline: Timeline | undefined, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const description = await client.describe(id).catch(() => undefined);
    if (description !== undefined && description.state !== 'running') return;
    const lines = timeline?.pending(description?.pendingActivities ?? [], Date.now()) ?? [];
    for (const line of lines) output.draw(line);
    const status = timeline && (await withTimeoutFallback(client.status(id), undefined, LOOK_MS).catch(() => undefined));
    timeline?.waits(status?.waiting);
    if (status && timeline) for (const line of [...timeline.control(status), ...timeline.queued(status.queued)]) output.draw(line);
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** One line at the foot of the screen that says what goes on. */
function showFoot({ output, surroundings }: CommandSession, timeline: Timeline): () => void {
  const screen = surroundings.stderr;
  if (!screen.isTTY) return () => undefined;
  let isShown = false;
  const hide = (): void => {
    if (isShown) screen.write('\r\x1b[K');
    isShown = false;
  };
  const show = (): void => {
    const text = timeline.doing(Date.now());
    hide();
    if (text === undefined) return;
    screen.write(toTerminalLine(text, (screen.columns ?? 80) - 1));
    isShown = true;
  };
  const endSharing = output.shareScreen({ hide, show });
  const timer = setInterval(show, FOOT_MS);
  return () => {
    clearInterval(timer);
    hide();
    endSharing();
  };
}
