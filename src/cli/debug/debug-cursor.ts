/** Where a person looks in the debugger: what is selected, shown whole, or being typed. The same live and in the past. */
import { wordsOf, type DebugScene } from '../../insight/scene.js';
import type { Entry } from '../../records/message.js';
import type { Key } from '../terminal/full-screen.js';
import { linesOfWhole, type DebugLook, type DebugView } from '../views/debug-screen.js';

export interface Cursor {
  focus: 'chunks' | 'queue';
  selected: number;
  selectedQueued: number;
  notice: string;
  prompt?: { readonly question: string; text: string; readonly done: (text: string) => void };
  whole?: { readonly title: string; readonly text: string; from: number };
}

export function createCursor(notice: string): Cursor {
  return { focus: 'chunks', selected: 0, selectedQueued: 0, notice };
}

export function viewOf(cursor: Cursor, more: Pick<DebugView, 'where' | 'keys' | 'event'>): DebugView {
  const { focus, selected, selectedQueued, notice, prompt, whole } = cursor;
  return { focus, selected, selectedQueued, notice, ...more, ...(prompt && { prompt }), ...(whole && { whole }) };
}

/** Keeps what is selected where there is something. */
export function clampCursor(cursor: Cursor, { chunks, queue }: DebugScene): void {
  cursor.selected = clamp(cursor.selected, chunks.length);
  cursor.selectedQueued = clamp(cursor.selectedQueued, queue.length);
  if (queue.length === 0 && cursor.focus === 'queue') cursor.focus = 'chunks';
}

/** Keys that mean the same everywhere; true when it was one. A prompt takes them all. */
export function pressed(cursor: Cursor, { name, text }: Key, scene: DebugScene, look: DebugLook): boolean {
  if (cursor.prompt) return typed(cursor, { name, text });
  if (cursor.whole) return scrolled(cursor, name, look);
  const page = Math.max(1, look.height - 12);
  const by = { up: -1, down: 1, pageup: -page, pagedown: page }[name];
  if (by === undefined) return false;
  if (cursor.focus === 'queue') cursor.selectedQueued = clamp(cursor.selectedQueued + by, scene.queue.length);
  else cursor.selected = clamp(cursor.selected + by, scene.chunks.length);
  return true;
}

export function ask(cursor: Cursor, question: string, done: (text: string) => void): void {
  cursor.prompt = { question, text: '', done };
}

/** The whole of the selected chunk; `entry` with its long texts at hand. */
export function showWhole(cursor: Cursor, scene: DebugScene, entry: Entry | undefined): void {
  const chunk = scene.chunks[cursor.selected];
  if (!chunk) return;
  const title = `${chunk.id}${chunk.turn === '' ? '' : ` · ${chunk.turn} ${chunk.role}`} · ${chunk.tokens} tokens (any other key goes back)`;
  cursor.whole = { title, text: entry ? wordsOf(entry) : chunk.words, from: 0 };
}

function typed(cursor: Cursor, { name, text }: Key): boolean {
  const { prompt } = cursor;
  if (!prompt) return false;
  if (name === 'escape' || name === 'ctrl+c') cursor.prompt = undefined;
  else if (name === 'return' || name === 'enter') {
    cursor.prompt = undefined;
    prompt.done(prompt.text.trim());
  } else if (name === 'backspace') prompt.text = [...prompt.text].slice(0, -1).join('');
  else if (text !== '' && prompt.text.length < 500) prompt.text += text;
  return true;
}

function scrolled(cursor: Cursor, name: string, look: DebugLook): boolean {
  const { whole } = cursor;
  if (!whole) return false;
  const page = Math.max(1, look.height - 6);
  const by = { up: -1, down: 1, pageup: -page, pagedown: page }[name];
  if (by === undefined) cursor.whole = undefined;
  else whole.from = Math.max(0, Math.min(whole.from + by, linesOfWhole(whole.text, look).length - page));
  return true;
}

function clamp(at: number, count: number): number {
  return Math.max(0, Math.min(at, count - 1));
}
