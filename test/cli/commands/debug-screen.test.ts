/** The debugger's screen: what stands there follows from a state alone, fits every terminal, and nothing on it moves the cursor. */
import { createPast } from '../../../src/conversation/replay/past.js';
import { apply } from '../../../src/conversation/apply.js';
import type { Entry } from '../../../src/records/message.js';
import { press, renderDebug, showWhole, type Cursor, type DebugHead } from '../../../src/cli/debug/screen.js';
import { describeChunks, pastScene, type DebugScene } from '../../../src/insight/moments.js';
import { textOfDrawn } from '../../../src/cli/terminal/terminal-text.js';
import { describeEvent } from '../../../src/insight/event-words.js';
import { manyTurns } from '../../support/many-turns.js';
import { measure } from './measure.js';

const past = createPast([manyTurns(12)]);
const HEAD: DebugHead = { where: 'live', keys: 's step  q quit' };

function entry(slot: number, turn: number, text: string): Entry {
  return { v: 1, slot, session: 1, turn: `turn_${String(turn).padStart(4, '0')}`, seq: 1, ts: slot, message: { role: 'user', text } };
}

const hostile = '\u001b[2J漢字'.repeat(40);
const entries = new Map(Array.from({ length: 40 }, (_, n) => [n + 1, entry(n + 1, n + 1, n % 2 === 0 ? hostile : `message ${n + 1}`)]));
const sceneAt = (position: number): DebugScene => pastScene('conv', past.at(position), entries);
const drawn = (scene: DebugScene, width: number, height: number, more: Partial<DebugHead> = {}, notice = ''): string[] =>
  renderDebug(scene, { ...HEAD, ...more }, { selected: 0, notice }, { width, height, measure }).map(textOfDrawn);

test.each([
  [80, 24],
  [120, 40],
  [44, 12],
  [20, 8],
  [10, 3],
  [300, 100],
])('at %i by %i there are as many lines as rows, and none is wider', (width, height) => {
  for (const position of [0, 5, past.last / 2, past.last]) {
    const lines = drawn(sceneAt(position), width, height, { event: 'e'.repeat(300) }, '漢'.repeat(300));
    expect(lines).toHaveLength(height);
    for (const line of lines) expect(measure(line)).toBeLessThanOrEqual(width);
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
  expect(describeChunks(full, known, limits).map(({ drops }) => drops)).toEqual([true, true, true, false, false, false, false, false]);
  const inOne = { ...limits, turn: { id: 'turn_0001', modelCall: null, calls: [] } };
  expect(describeChunks(full, known, inOne).map(({ drops }) => drops)).toEqual([false, true, true, true, false, false, false, false]);
});

test('arrows move within what there is; a chunk is shown whole and scrolled, and another key goes back', () => {
  const scene = sceneAt(past.last);
  const look = { width: 80, height: 24, measure };
  const cursor: Cursor = { selected: 0, notice: '' };
  const type = (name: string): boolean => press(cursor, name, scene, look);
  const lines = (): string[] => renderDebug(scene, HEAD, cursor, look).map(textOfDrawn);
  type('up');
  expect(cursor.selected).toBe(0);
  for (let n = 0; n < 100; n++) type('pagedown');
  expect(cursor.selected).toBe(scene.chunks.length - 1);
  expect(type('s')).toBe(false);
  showWhole(cursor, scene, entry(1, 1, Array.from({ length: 60 }, (_, n) => `line ${n}`).join('\n')));
  type('down');
  expect(lines()[2]).toBe('line 1');
  for (let n = 0; n < 100; n++) type('pagedown');
  expect(lines().join()).toContain('line 59');
  expect(type('q')).toBe(true);
  expect(cursor.whole).toBeUndefined();
});

test('every event of a conversation has words', () => {
  for (let position = 0; position <= past.last; position++) {
    const words = describeEvent(past.at(position).event);
    expect(words).not.toBe('');
    expect(words.length).toBeLessThan(300);
  }
  const paused = apply(past.at(0).state, { kind: 'mode-set', mode: 'stepping', at: 1 });
  expect(drawn(pastScene('c', { state: paused, position: 1 }, entries), 80, 24).join('\n')).toContain('mode stepping');
});
