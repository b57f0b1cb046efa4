/** The debugger's screen: what stands there follows from a state alone, fits every terminal, and nothing on it moves the cursor. */
import { createPast } from '../../../src/conversation/replay/past.js';
import { apply } from '../../../src/conversation/apply.js';
import type { Entry } from '../../../src/records/message.js';
import { createCursor, pressed, showWhole, viewOf } from '../../../src/cli/debug/debug-cursor.js';
import { showItems } from '../../../src/cli/debug/debug-items.js';
import { readBreakpointLine } from '../../../src/cli/debug/debug-live.js';
import { chunksOf, pastScene, type DebugScene } from '../../../src/insight/scene.js';
import { textOfDrawn } from '../../../src/cli/terminal/terminal-text.js';
import { renderDebug, type DebugView } from '../../../src/cli/views/debug-screen.js';
import { eventInWords } from '../../../src/insight/event-words.js';
import { manyTurns } from '../../support/many-turns.js';
import { measure } from './measure.js';

const past = createPast([manyTurns(12)]);
const view: DebugView = { where: 'live', focus: 'chunks', selected: 0, selectedQueued: 0, keys: 's step  q quit', notice: '' };

function entry(slot: number, turn: number, text: string): Entry {
  return { v: 1, slot, session: 1, turn: `turn_${String(turn).padStart(4, '0')}`, seq: 1, ts: slot, message: { role: 'user', text } };
}

const hostile = '\u001b[2J漢字'.repeat(40);
const entries = new Map(Array.from({ length: 40 }, (_, n) => [n + 1, entry(n + 1, n + 1, n % 2 === 0 ? hostile : `message ${n + 1}`)]));
const sceneAt = (position: number): DebugScene => pastScene('conv', past.at(position), entries);
const drawn = (scene: DebugScene, width: number, height: number, more: Partial<DebugView> = {}): string[] =>
  renderDebug(scene, { ...view, ...more }, { width, height, measure }).map(textOfDrawn);

test.each([
  [80, 24],
  [120, 40],
  [44, 12],
  [20, 8],
  [10, 3],
  [300, 100],
])('at %i by %i there are as many lines as rows, and none is wider', (width, height) => {
  for (const position of [0, 5, past.last / 2, past.last]) {
    for (const focus of ['chunks', 'queue'] as const) {
      const lines = drawn(sceneAt(position), width, height, { focus, event: 'e'.repeat(300), notice: '漢'.repeat(300) });
      expect(lines).toHaveLength(height);
      for (const line of lines) expect(measure(line)).toBeLessThanOrEqual(width);
    }
  }
});

test('what models and tools said cannot move the cursor', () => {
  const text = drawn(sceneAt(past.last), 120, 60).join('');
  expect(text).toContain('␛[2J漢字');
  expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
});

test('state, thresholds, queue, calls and the next step stand there in words', () => {
  const position = past.find('run-tool-started', 0, 1) ?? 0;
  const lines = drawn(sceneAt(position), 120, 40).join('\n');
  expect(lines).toContain('mode auto');
  expect(lines).toContain('── turn_0010');
  expect(lines).toMatch(/running +tool \(turn_0010\/c1\)/);
  expect(lines).toContain('queue 0');
});

test('the oldest of the working flow is marked as what would be dropped next, as much as covers the excess', () => {
  const { index, control } = sceneAt(past.last);
  const known = new Map(
    [...entries].slice(0, 8).map(([slot, one]) => [slot, { ...one, message: { role: 'user', text: 'x'.repeat(400) } } as Entry]),
  );
  const slots = [[1, 8]] as const;
  const full = { ...index, total: 1_250, chunks: [{ kind: 'WORKING_FLOW', tokens: 800, slots } as const] };
  const limits = { ...control!, thresholds: { soft: 500, hard: 1_000, truncation: 1_200, autoCompact: true }, turn: null };
  expect(chunksOf(full, known, limits).map(({ drops }) => drops)).toEqual([true, true, true, false, false, false, false, false]);
  const inOne = { ...limits, turn: { id: 'turn_0001', modelCall: null, calls: [] } };
  expect(chunksOf(full, known, inOne).map(({ drops }) => drops)).toEqual([false, true, true, true, false, false, false, false]);
});

test('arrows move within what there is; a chunk is shown whole and scrolled, and another key goes back', () => {
  const scene = sceneAt(past.last);
  const look = { width: 80, height: 24, measure };
  const cursor = createCursor('');
  const press = (name: string): boolean => pressed(cursor, { name, text: '' }, scene, look);
  press('up');
  expect(cursor.selected).toBe(0);
  for (let n = 0; n < 100; n++) press('pagedown');
  expect(cursor.selected).toBe(scene.chunks.length - 1);
  expect(press('s')).toBe(false);
  showWhole(cursor, scene, entry(1, 1, Array.from({ length: 60 }, (_, n) => `line ${n}`).join('\n')));
  press('down');
  const lines = renderDebug(scene, viewOf(cursor, { where: '', keys: '' }), look).map(textOfDrawn);
  expect(lines[2]).toBe('line 1');
  for (let n = 0; n < 100; n++) press('pagedown');
  expect(
    renderDebug(scene, viewOf(cursor, { where: '', keys: '' }), look)
      .map(textOfDrawn)
      .join(),
  ).toContain('line 59');
  expect(press('q')).toBe(true);
  expect(cursor.whole).toBeUndefined();
});

test('items of the memory channel are listed, and one is shown whole, with nothing that moves the cursor', async () => {
  const record = {
    ...{ id: 'mem_1', ts: 1, session: 2, slot: 3, type: 'tool_result', source: 'fetch_url' },
    content: { bytes: 2_048 },
    tags: ['a'],
  };
  const client = {
    items: () => Promise.resolve({ items: [record], skipped: 1 }),
    item: (_id: string, item: string) =>
      item === 'mem_1' ? Promise.resolve({ ...record, text: `page\n${hostile}` }) : Promise.reject(new Error(`there is no ${item}`)),
  } as unknown as Parameters<typeof showItems>[0];
  const asked = async (text: string): Promise<string> => {
    const cursor = createCursor('');
    await new Promise<void>((drawnNow) => {
      showItems(client, 'conv', cursor, drawnNow);
      for (const letter of text) pressed(cursor, { name: letter, text: letter }, sceneAt(0), { width: 80, height: 24, measure });
      pressed(cursor, { name: 'return', text: '' }, sceneAt(0), { width: 80, height: 24, measure });
    });
    const lines = renderDebug(sceneAt(0), viewOf(cursor, { where: 'live', keys: '' }), { width: 80, height: 24, measure });
    return lines.map(textOfDrawn).join('\n');
  };
  const list = await asked('');
  expect(list).toContain('memory channel · 1 item');
  expect(list).toMatch(/mem_1 · tool_result · fetch_url · 2\S* KiB · session 2 · #a/);
  expect(list).toContain('1 record of the store cannot be read');
  const one = await asked('mem_1');
  expect(one).toContain('page\n␛[2J漢字');
  expect(one).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  expect(await asked('mem_9')).toContain('there is no mem_9');
});

test('breakpoints are written in a line, and a slip is said', () => {
  expect(readBreakpointLine('tool pay, error, cost $0.5', { tools: ['look'] })).toEqual({
    tools: ['look', 'pay'],
    onError: true,
    costUsd: 0.5,
  });
  expect(readBreakpointLine('none, event reset', { onError: true })).toEqual({ events: ['reset'] });
  expect(readBreakpointLine('pay', {})).toContain('pay is no breakpoint');
});

test('every event of a conversation has words', () => {
  for (let position = 0; position <= past.last; position++) {
    const words = eventInWords(past.at(position).event);
    expect(words).not.toBe('');
    expect(words.length).toBeLessThan(300);
  }
  const paused = apply(past.at(0).state, { kind: 'mode-set', mode: 'stepping', at: 1 });
  expect(drawn(pastScene('c', { state: paused, position: 1 }, entries), 80, 24).join('\n')).toContain('mode stepping');
});
