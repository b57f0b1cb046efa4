/**
 * The debugger on a conversation that runs. It asks the workflow when the feed says that something happened, and every few seconds for
 * what the feed does not have; what it does to the conversation are the client's updates. Leaving changes nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ReadStream, WriteStream } from 'node:tty';
import { press, renderDebug, showWhole, type Cursor, type ScreenLook, openFullScreen, type FullScreen } from './screen.js';
import type { CommandSession } from '../session/command.js';
import type { Output } from '../terminal/output.js';
import { formatCount, formatDuration, formatTime } from '../views/quantities.js';
import { loadMeasure } from '../views/table.js';
import type { PerduraClient } from '../../client.js';
import type { Past } from '../../conversation/replay/past.js';
import { describeEvent } from '../../insight/event-words.js';
import { describeChunks, pastScene, type DebugScene } from '../../insight/moments.js';
import { tokenCounterBy } from '../../models/token-counter.js';
import { errorMessage } from '../../platform/errors.js';
import type { Entry } from '../../records/message.js';
import { listSlots } from '../../records/slots.js';

const LIVE_KEYS = 's step  i into  o over  r run (auto)  p pause  a approve  d deny  ↑↓ PgUp PgDn chunks  ⏎ whole  q quit';
const LOOK_MS = 3000;
const STALE_MS = 8000;
/** Many events of the feed are one look. */
const GATHER_MS = 150;

interface Terminal {
  readonly input: ReadStream;
  readonly screen: WriteStream;
}

/** Resolves when the person leaves, with the mode that the conversation is left in; rejects when the first look fails. */
export async function debugLive(
  { client, output, signal }: CommandSession,
  id: string,
  terminal: Terminal,
): Promise<{ readonly mode: string; readonly ended: boolean }> {
  const measure = await loadMeasure();
  const read = createEntryReader(client, id);
  let scene: DebugScene = await readScene(client, id, read);
  const cursor: Cursor = { selected: 0, notice: '' };
  const left = new AbortController();
  const stop = AbortSignal.any([left.signal, signal]);
  let ended = false;
  let trouble = '';
  let lookedAt = Date.now();

  const look = (): ScreenLook => ({ ...screen.size(), measure });
  /** Without a worker there is no answer, and no error either. */
  const where = (): string => {
    const age = Date.now() - lookedAt;
    return age < STALE_MS ? trouble || 'live' : `as of ${formatDuration(age)} ago: no worker answers`;
  };
  const draw = (): void => {
    cursor.selected = Math.max(0, Math.min(cursor.selected, scene.chunks.length - 1));
    screen.draw(renderDebug(scene, { where: where(), keys: LIVE_KEYS }, cursor, look()));
  };

  let looking: Promise<void> | undefined;
  let again = false;
  const refresh = (): Promise<void> => {
    again = true;
    return (looking ??= (async () => {
      while (again && !stop.aborted) {
        again = false;
        try {
          scene = await readScene(client, id, read);
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
        (outcome) => (cursor.notice = outcome),
        (error: unknown) => (cursor.notice = errorMessage(error)),
      )
      .then(refresh)
      .catch(() => undefined);
  };
  const step = (scope?: 'into' | 'over'): void =>
    act(`step ${scope ?? ''}`.trim(), async () => {
      const { did, words } = await client.step(id, { scope, signal: stop });
      return `${did}: ${words}`;
    });
  const setMode = (mode: 'auto' | 'stepping', outcome: string): void =>
    act(mode, async () => {
      await client.setMode(id, mode);
      return outcome;
    });
  const decide = (decision: 'approve' | 'deny'): void => {
    const [first] = scene.approvals;
    if (!first) return void (cursor.notice = 'nothing waits for a person');
    const { callId, conversation, hash, kind } = first;
    if (kind !== 'approval' && decision === 'approve')
      return void (cursor.notice = `it is answered elsewhere: perdura answer ${conversation} ${callId} YOUR ANSWER`);
    act(`${decision} ${callId}`, async () => {
      await client.decide(id, { callId, decision, hash, ...(conversation === id ? {} : { conversation }) });
      return `${decision} ${callId}: taken`;
    });
  };
  const showSelected = (): void => {
    const chosen = cursor.selected;
    const slot = scene.chunks[chosen]?.slot;
    if (slot === undefined) return showWhole(cursor, scene, undefined);
    client
      .entries(id, [slot], { whole: true })
      .then(
        ([entry]) => {
          if (cursor.selected === chosen) showWhole(cursor, scene, entry);
        },
        (error: unknown) => (cursor.notice = errorMessage(error)),
      )
      .finally(draw);
  };
  const commands: Readonly<Record<string, () => void>> = {
    s: () => step(),
    i: () => step('into'),
    o: () => step('over'),
    r: () => setMode('auto', 'it goes on by itself'),
    p: () => setMode('stepping', 'stepping: what is under way ends, then it waits for s'),
    a: () => decide('approve'),
    d: () => decide('deny'),
    return: showSelected,
    enter: showSelected,
  };
  const screen = openScreen(terminal, output, {
    ...{ cursor, commands, look, draw },
    scene: () => scene,
    leave: () => left.abort(),
  });
  const timer = setInterval(() => {
    void refresh();
    if (Date.now() - lookedAt >= STALE_MS) draw();
  }, LOOK_MS);
  try {
    draw();
    await listen(client, id, stop, refresh);
  } finally {
    clearInterval(timer);
    left.abort();
    screen.close();
  }
  signal.throwIfAborted();
  return { mode: scene.status.mode, ended };
}

/** Without the feed there is still the look every few seconds. */
async function listen(client: PerduraClient, id: string, stop: AbortSignal, refresh: () => Promise<void>): Promise<void> {
  while (!stop.aborted) {
    try {
      for await (const _ of client.watch(id, { signal: stop })) {
        await sleep(GATHER_MS, undefined, { signal: stop });
        void refresh();
      }
    } catch {
      // The status has what there is to show.
    }
    await sleep(LOOK_MS, undefined, { signal: stop }).catch(() => undefined);
  }
}

/** Entries never change: each is read once. */
function createEntryReader(client: Pick<PerduraClient, 'entries'>, id: string): (slots: readonly number[]) => Promise<Map<number, Entry>> {
  const known = new Map<number, Entry>();
  return async (slots) => {
    const unknown = slots.filter((slot) => !known.has(slot));
    if (unknown.length > 0) for (const entry of await client.entries(id, unknown)) known.set(entry.slot, entry);
    return known;
  };
}

async function readScene(client: PerduraClient, id: string, read: ReturnType<typeof createEntryReader>): Promise<DebugScene> {
  const [status, queue, index, control, approvals] = await Promise.all([
    client.status(id),
    client.queue(id),
    client.context(id),
    client.control(id).catch(() => null),
    client.approvals(id).catch(() => []),
  ]);
  const slots = index.chunks.flatMap(({ slots: ranges = [] }) => listSlots(ranges));
  const entries = await read(slots).catch(() => new Map<number, Entry>());
  const { count } = await tokenCounterBy(index.tokenizer, index.tokenRatio);
  return { id, status, queue, index, control, approvals, chunks: describeChunks(index, entries, control, count) };
}

const PAST_KEYS = '←/→ event  t/T next/previous turn  home/end  ↑↓ PgUp PgDn chunks  ⏎ whole  q quit';

/** Resolves when the person leaves. */
export async function debugPast(
  { output, signal, globals }: CommandSession,
  id: string,
  past: Past,
  entries: ReadonlyMap<number, Entry>,
  terminal: Terminal & { readonly from: number; readonly notice: string },
): Promise<void> {
  const measure = await loadMeasure();
  const cursor: Cursor = { selected: 0, notice: terminal.notice };
  let position = terminal.from;
  const { count } = await tokenCounterBy(past.at(past.last).state.settings?.tokenizer);
  let scene: DebugScene = pastScene(id, past.at(position), entries, count);

  const look = (): ScreenLook => ({ ...screen.size(), measure });
  const draw = (): void => {
    const { event, state, run } = past.at(position);
    cursor.selected = Math.max(0, Math.min(cursor.selected, scene.chunks.length - 1));
    const where = `read-only · event ${formatCount(position)} of ${formatCount(past.last)} · run ${run}`;
    const when = formatTime(event?.at ?? state.now, globals.timeFormat === 'relative' ? 'iso' : globals.timeFormat, Date.now());
    screen.draw(renderDebug(scene, { where, keys: PAST_KEYS, event: `${describeEvent(event)} · ${when}` }, cursor, look()));
  };
  const go = (to: number | undefined, otherwise: string): void => {
    if (to === undefined || to < 0 || to > past.last) return void (cursor.notice = otherwise);
    position = to;
    scene = pastScene(id, past.at(position), entries, count);
  };
  const showSelected = (): void => {
    const slot = scene.chunks[cursor.selected]?.slot;
    showWhole(cursor, scene, slot === undefined ? undefined : entries.get(slot));
  };
  const commands: Readonly<Record<string, () => void>> = {
    left: () => go(position - 1, 'this is the beginning'),
    right: () => go(position + 1, 'this is the end'),
    home: () => go(0, ''),
    end: () => go(past.last, ''),
    t: () => go(past.turns.find((turn) => turn.position > position)?.position, 'there is no later turn'),
    T: () => go(past.turns.findLast((turn) => turn.position < position)?.position, 'there is no earlier turn'),
    return: showSelected,
    enter: showSelected,
  };
  let leave!: () => void;
  const leaving = new Promise<void>((resolve) => (leave = resolve));
  const screen = openScreen(terminal, output, { cursor, commands, look, draw, scene: () => scene, leave });
  signal.addEventListener('abort', leave, { once: true });
  try {
    draw();
    await leaving;
  } finally {
    signal.removeEventListener('abort', leave);
    screen.close();
  }
  signal.throwIfAborted();
}

interface ScreenParts {
  readonly cursor: Cursor;
  readonly commands: Readonly<Record<string, () => void>>;
  readonly scene: () => DebugScene;
  readonly look: () => ScreenLook;
  readonly draw: () => void;
  readonly leave: () => void;
}

/** A key leaves, moves in the list, or is a command. */
function openScreen(terminal: Terminal, output: Output, { cursor, commands, scene, look, draw, leave }: ScreenParts): FullScreen {
  return openFullScreen(terminal.input, terminal.screen, {
    onKey({ name }) {
      if (name === 'q' || name === 'ctrl+c') return leave();
      cursor.notice = '';
      if (!press(cursor, name, scene(), look())) commands[name]?.();
      draw();
    },
    onResize: draw,
    onEnd: leave,
    isColored: output.isColoredTerminal(),
  });
}
