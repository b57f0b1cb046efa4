/** The debugger on a conversation's past: read-only, forwards and backwards through every state that it was in. */
import type { ReadStream, WriteStream } from 'node:tty';
import type { Entry } from '../../records/message.js';
import type { Past } from '../../conversation/replay/past.js';
import { tokenCounterBy } from '../../models/token-counter.js';
import { ask, clampCursor, createCursor, pressed, showWhole, viewOf } from './debug-cursor.js';
import { showItems } from './debug-items.js';
import { pastScene, type DebugScene } from '../../insight/scene.js';
import { openFullScreen, type Key } from '../terminal/full-screen.js';
import { loadMeasure } from '../views/table.js';
import { renderDebug, type DebugLook } from '../views/debug-screen.js';
import { eventInWords } from '../../insight/event-words.js';
import { formatCount, formatTime } from '../views/quantities.js';
import type { CommandSession } from '../session/with-client.js';

const KEYS =
  '←/→ event  t/T next/previous turn  home/end  / find  n/N next/previous match  ↑↓ PgUp PgDn chunks  ⏎ whole  m memory items  q quit';

/** Resolves when the person leaves. */
export async function debugPast(
  { client, output, signal, globals }: CommandSession,
  id: string,
  past: Past,
  entries: ReadonlyMap<number, Entry>,
  terminal: { readonly input: ReadStream; readonly screen: WriteStream; readonly from: number; readonly notice: string },
): Promise<void> {
  const measure = await loadMeasure();
  const cursor = createCursor(terminal.notice);
  let position = terminal.from;
  let sought = '';
  const { count } = await tokenCounterBy(past.at(past.last).state.settings?.tokenizer);
  let scene: DebugScene = pastScene(id, past.at(position), entries, count);

  const look = (): DebugLook => ({ ...screen.size(), measure });
  const draw = (): void => {
    const { event, state, run } = past.at(position);
    clampCursor(cursor, scene);
    const where = `read-only · event ${formatCount(position)} of ${formatCount(past.last)} · run ${run}`;
    const when = formatTime(event?.at ?? state.now, globals.timeFormat === 'relative' ? 'iso' : globals.timeFormat, Date.now());
    screen.draw(renderDebug(scene, viewOf(cursor, { where, keys: KEYS, event: `${eventInWords(event)} · ${when}` }), look()));
  };
  const go = (to: number | undefined, otherwise: string): void => {
    if (to === undefined || to < 0 || to > past.last) return void (cursor.notice = otherwise);
    position = to;
    scene = pastScene(id, past.at(position), entries, count);
  };
  const find = (direction: 1 | -1): void => {
    if (sought === '') return void (cursor.notice = 'write / and a part of a name, such as run-tool-completed');
    go(past.find(sought, position, direction), `no ${direction === 1 ? 'later' : 'earlier'} event whose name contains ${sought}`);
  };
  const onCommand = (name: string): void => {
    switch (name) {
      case 'left':
        return go(position - 1, 'this is the beginning');
      case 'right':
        return go(position + 1, 'this is the end');
      case 'home':
        return go(0, '');
      case 'end':
        return go(past.last, '');
      case 't':
        return go(past.turns.find((turn) => turn.position > position)?.position, 'there is no later turn');
      case 'T':
        return go(past.turns.findLast((turn) => turn.position < position)?.position, 'there is no earlier turn');
      case '/':
        return ask(cursor, 'find an event by its name:', (text) => {
          sought = text.toLowerCase().replaceAll(' ', '-');
          if (sought !== '') find(1);
        });
      case 'm':
        return showItems(client, id, cursor, draw);
      case 'n':
        return find(1);
      case 'N':
        return find(-1);
      case 'return':
      case 'enter': {
        const slot = scene.chunks[cursor.selected]?.slot;
        return showWhole(cursor, scene, slot === undefined ? undefined : entries.get(slot));
      }
    }
  };
  let leave!: () => void;
  const leaving = new Promise<void>((resolve) => (leave = resolve));
  const onKey = (key: Key): void => {
    if (!cursor.prompt && (key.name === 'q' || key.name === 'ctrl+c')) return leave();
    cursor.notice = '';
    if (!pressed(cursor, key, scene, look())) onCommand(key.name);
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
