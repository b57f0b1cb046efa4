/**
 * The debugger on a conversation that runs. It asks the workflow when the feed says that something happened, and every few seconds for
 * what the feed does not have; what it does to the conversation are the client's own updates. Leaving changes nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ReadStream, WriteStream } from 'node:tty';
import type { QueueEdit } from '../../conversation/protocol/contract.js';
import { ask, clampCursor, createCursor, pressed, showWhole, viewOf } from './debug-cursor.js';
import { showItems } from './debug-items.js';
import { type DebugScene, chunksOf } from '../../insight/scene.js';
import { openFullScreen, type Key } from '../terminal/full-screen.js';
import { loadMeasure } from '../views/table.js';
import { breakpointsInWords, queuedInWords } from '../views/control.js';
import { formatDuration } from '../views/quantities.js';
import { renderDebug, type DebugLook } from '../views/debug-screen.js';
import type { CommandSession } from '../session/with-client.js';
import type { Breakpoints } from '../../conversation/protocol/stepping.js';
import { errorMessage } from '../../platform/errors.js';
import type { PerduraClient } from '../../client.js';
import { tokenCounterBy } from '../../models/token-counter.js';
import type { Entry } from '../../records/message.js';
import { listSlots } from '../../records/slots.js';

const KEYS =
  's step  i into  o over  r run (auto)  p pause  b breakpoints  e queue  a/d approve/deny  ↑↓ PgUp PgDn chunks  ⏎ whole  m memory items  q quit';
const QUEUE_KEYS = '↑↓ select  u/n move up/down  d drop  c clear  esc back  q quit';
const LOOK_MS = 3000;
const STALE_MS = 8000;
/** Many events of the feed are one look. */
const GATHER_MS = 150;

/** Resolves when the person leaves, with the mode that the conversation is left in; rejects when the first look fails. */
export async function debugLive(
  { client, output, signal }: CommandSession,
  id: string,
  terminal: { readonly input: ReadStream; readonly screen: WriteStream },
): Promise<{ readonly mode: string; readonly ended: boolean }> {
  const measure = await loadMeasure();
  const read = createEntryReader(client, id);
  let scene: DebugScene = await liveScene(client, id, read);
  const cursor = createCursor('');
  const left = new AbortController();
  const stop = AbortSignal.any([left.signal, signal]);
  let ended = false;
  let trouble = '';
  let lookedAt = Date.now();

  const look = (): DebugLook => ({ ...screen.size(), measure });
  /** Without a worker there is no answer, and no error either. */
  const where = (): string => {
    const age = Date.now() - lookedAt;
    return age < STALE_MS ? trouble || 'live' : `as of ${formatDuration(age)} ago: no worker answers`;
  };
  const draw = (): void => {
    clampCursor(cursor, scene);
    const keys = cursor.focus === 'queue' ? QUEUE_KEYS : KEYS;
    screen.draw(renderDebug(scene, viewOf(cursor, { where: where(), keys }), look()));
  };

  let looking: Promise<void> | undefined;
  let again = false;
  const refresh = (): Promise<void> => {
    again = true;
    return (looking ??= (async () => {
      while (again && !stop.aborted) {
        again = false;
        try {
          scene = await liveScene(client, id, read);
          trouble = '';
          lookedAt = Date.now();
        } catch (error) {
          trouble = 'not up to date';
          const described = await client.describe(id).catch(() => undefined);
          if (described !== undefined && described.state !== 'running') {
            ended = true;
            return left.abort();
          }
          cursor.notice = errorMessage(error);
        }
        if (!stop.aborted) draw();
      }
    })().finally(() => (looking = undefined)));
  };

  const act = (what: string, work: () => Promise<string>): void => {
    cursor.notice = `${what} …`;
    draw();
    work()
      .then(
        (said) => (cursor.notice = said),
        (error: unknown) => (cursor.notice = errorMessage(error)),
      )
      .then(refresh)
      .catch(() => undefined);
  };
  const edit = (what: string, change: QueueEdit): void =>
    act(what, async () => {
      await client.editQueue(id, change);
      return `${what}: done`;
    });

  const onQueueKey = (name: string): void => {
    const { queue } = scene;
    const chosen = queue[cursor.selectedQueued];
    if (name === 'escape' || name === 'e') cursor.focus = 'chunks';
    else if (!chosen) return;
    else if (name === 'd')
      ask(
        cursor,
        `drop ${chosen.id} (${queuedInWords(chosen)})? y/n`,
        (text) => isYes(text) && edit(`drop ${chosen.id}`, { op: 'drop', id: chosen.id }),
      );
    else if (name === 'c') ask(cursor, `clear all ${queue.length}? y/n`, (text) => isYes(text) && edit('clear the queue', { op: 'clear' }));
    else if (name === 'u' || name === 'n') {
      const before = name === 'u' ? queue[cursor.selectedQueued - 1]?.id : (queue[cursor.selectedQueued + 2]?.id ?? null);
      const isAtEnd = name === 'n' && cursor.selectedQueued === queue.length - 1;
      if (before === undefined || isAtEnd) return;
      cursor.selectedQueued += name === 'u' ? -1 : 1;
      edit(`move ${chosen.id}`, { op: 'move', id: chosen.id, before });
    }
  };

  const decide = (decision: 'approve' | 'deny'): void => {
    const [first] = scene.approvals;
    if (!first) return void (cursor.notice = 'nothing waits for a person');
    const { callId, conversation, hash, kind } = first;
    const submit = (note?: string): void =>
      act(`${decision} ${callId}`, async () => {
        const where = conversation === id ? {} : { conversation };
        await client.decide(id, { callId, decision, hash, ...where, ...(note && { note }) });
        return `${decision} ${callId}: taken`;
      });
    if (kind !== 'approval' && decision === 'approve')
      ask(cursor, `answer to ${first.target || first.tool}:`, (text) => text !== '' && submit(text));
    else submit();
  };

  const onKey = (key: Key): void => {
    if (!cursor.prompt && (key.name === 'q' || key.name === 'ctrl+c')) return left.abort();
    cursor.notice = cursor.prompt ? cursor.notice : '';
    if (!pressed(cursor, key, scene, look())) onCommand(key.name);
    draw();
  };
  const onCommand = (name: string): void => {
    if (cursor.focus === 'queue') return onQueueKey(name);
    switch (name) {
      case 's':
      case 'i':
      case 'o': {
        const scope = name === 'i' ? 'into' : name === 'o' ? 'over' : undefined;
        return act(scope === undefined ? 'step' : `step ${scope}`, async () => {
          const { did, words } = await client.step(id, { scope, signal: stop });
          return `${did}: ${words}`;
        });
      }
      case 'r':
        return act('run', async () => {
          await client.setMode(id, 'auto');
          return 'it goes on by itself';
        });
      case 'p':
        return act('pause', async () => {
          await client.setMode(id, 'stepping');
          return 'stepping: what is under way ends, then it waits for s';
        });
      case 'b': {
        const now = breakpointsInWords(scene.control?.breakpoints ?? {});
        return ask(cursor, `breakpoints (now ${now}); tool NAME, event TYPE, error, cost USD, none:`, (text) => {
          if (text === '') return;
          const wanted = readBreakpointLine(text, scene.control?.breakpoints ?? {});
          if (typeof wanted === 'string') return void (cursor.notice = wanted);
          act('breakpoints', async () => `breakpoints: ${breakpointsInWords((await client.setBreakpoints(id, wanted)).breakpoints)}`);
        });
      }
      case 'e':
        if (scene.queue.length === 0) cursor.notice = 'the queue is empty';
        else cursor.focus = 'queue';
        return;
      case 'm':
        return showItems(client, id, cursor, draw);
      case 'a':
        return decide('approve');
      case 'd':
        return decide('deny');
      case 'return':
      case 'enter': {
        const slot = scene.chunks[cursor.selected]?.slot;
        if (slot === undefined) return showWhole(cursor, scene, undefined);
        const chosen = cursor.selected;
        client.entries(id, [slot], { whole: true }).then(
          ([entry]) => {
            if (cursor.selected === chosen) showWhole(cursor, scene, entry);
            draw();
          },
          (error: unknown) => {
            cursor.notice = errorMessage(error);
            draw();
          },
        );
      }
    }
  };

  const screen = openFullScreen(terminal.input, terminal.screen, {
    onKey,
    onResize: draw,
    onEnd: () => left.abort(),
    isColored: output.isColoredTerminal(),
  });
  try {
    draw();
    const listening = listen(client, id, stop, refresh);
    while (!stop.aborted) {
      await sleep(LOOK_MS, undefined, { signal: stop }).catch(() => undefined);
      if (stop.aborted) break;
      void refresh();
      if (Date.now() - lookedAt >= STALE_MS) draw();
    }
    await listening;
  } finally {
    left.abort();
    screen.close();
  }
  signal.throwIfAborted();
  return { mode: scene.status.mode, ended };
}

/** Without the feed there is still the look every few seconds. */
async function listen(client: CommandSession['client'], id: string, stop: AbortSignal, refresh: () => Promise<void>): Promise<void> {
  while (!stop.aborted) {
    try {
      for await (const _ of client.watch(id, { signal: stop })) {
        await sleep(GATHER_MS, undefined, { signal: stop });
        void refresh();
      }
    } catch {
      // The status says what there is to say.
    }
    await sleep(LOOK_MS, undefined, { signal: stop }).catch(() => undefined);
  }
}

/** `tool pay`, `event reset`, `error`, `cost 0.5`, `none`, several with commas; what is named is added. Or why not. */
export function readBreakpointLine(line: string, before: Breakpoints): Breakpoints | string {
  let now = before;
  for (const part of line.split(',').map((text) => text.trim())) {
    const [word = '', ...rest] = part.split(/\s+/);
    const name = rest.join(' ');
    if (word === 'none') now = {};
    else if (word === 'error') now = { ...now, onError: true };
    else if (word === 'tool' && name !== '') now = { ...now, tools: [...new Set([...(now.tools ?? []), name])] };
    else if (word === 'event' && name !== '') now = { ...now, events: [...new Set([...(now.events ?? []), name])] };
    else if (word === 'cost' && name !== '' && Number(name.replace('$', '')) >= 0) now = { ...now, costUsd: Number(name.replace('$', '')) };
    else return `${part} is no breakpoint: write tool NAME, event TYPE, error, cost USD or none`;
  }
  return now;
}

function isYes(text: string): boolean {
  return /^y(es)?$/i.test(text);
}

/** What the debugger shows of a conversation that runs. */

/** Entries never change: each is read once. */
function createEntryReader(client: Pick<PerduraClient, 'entries'>, id: string): (slots: readonly number[]) => Promise<Map<number, Entry>> {
  const known = new Map<number, Entry>();
  return async (slots) => {
    const unknown = slots.filter((slot) => !known.has(slot));
    if (unknown.length > 0) for (const entry of await client.entries(id, unknown)) known.set(entry.slot, entry);
    return known;
  };
}

async function liveScene(client: PerduraClient, id: string, read: ReturnType<typeof createEntryReader>): Promise<DebugScene> {
  const [status, queue, index, control, approvals] = await Promise.all([
    client.status(id),
    client.queue(id),
    client.context(id),
    client.control(id).catch(() => null),
    client.approvals(id).catch(() => []),
  ]);
  const slots = index.chunks.flatMap(({ slots: ranges = [] }) => listSlots(ranges));
  const entries = await read(slots).catch(() => new Map<number, Entry>());
  const { count } = await tokenCounterBy(index.tokenizer);
  return { id, status, queue, index, control, approvals, chunks: chunksOf(index, entries, control, count) };
}
