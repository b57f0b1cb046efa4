/** The debugger on a conversation's past: read-only, forwards and backwards through every state that it was in. */
import type { ReadStream, WriteStream } from 'node:tty';
import type { Past } from '../../conversation/replay/past.js';
import { eventInWords } from '../../insight/event-words.js';
import { pastScene, type DebugScene } from '../../insight/scene.js';
import { tokenCounterBy } from '../../models/token-counter.js';
import type { Entry } from '../../records/message.js';
import type { CommandSession } from '../session/command.js';
import { openFullScreen, type Key } from '../terminal/full-screen.js';
import { formatCount, formatTime } from '../views/quantities.js';
import { loadMeasure } from '../views/table.js';
import { press, renderDebug, showWhole, type Cursor, type ScreenLook } from './screen.js';

const KEYS = '←/→ event  t/T next/previous turn  home/end  ↑↓ PgUp PgDn chunks  ⏎ whole  q quit';

/** Resolves when the person leaves. */
export async function debugPast(
  { output, signal, globals }: CommandSession,
  id: string,
  past: Past,
  entries: ReadonlyMap<number, Entry>,
  terminal: { readonly input: ReadStream; readonly screen: WriteStream; readonly from: number; readonly notice: string },
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
    screen.draw(renderDebug(scene, { where, keys: KEYS, event: `${eventInWords(event)} · ${when}` }, cursor, look()));
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
  const onKey = ({ name }: Key): void => {
    if (name === 'q' || name === 'ctrl+c') return leave();
    cursor.notice = '';
    if (!press(cursor, name, scene, look())) commands[name]?.();
    draw();
  };
  const screen = openFullScreen(terminal.input, terminal.screen, {
    onKey,
    onResize: draw,
    onEnd: leave,
    isColored: output.isColoredTerminal(),
  });
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
