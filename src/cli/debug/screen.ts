/**
 * `perdura debug`: one state of a conversation on a whole screen. Pure: what stands there follows from the scene and from where the
 * person looks, exactly as many lines as the screen has, none wider than it is. `openFullScreen` shows them.
 */
import { emitKeypressEvents } from 'node:readline';
import type { ReadStream, WriteStream } from 'node:tty';
import pc from 'picocolors';
import { describeEntry, type DebugChunk, type DebugScene } from '../../insight/moments.js';
import type { Entry } from '../../records/message.js';
import { plain, toTerminalLine, type StyledLine, type StyledSpan, toTerminalText } from '../terminal/terminal-text.js';
import { describeBreakpoints, describeQueued, renderTree } from '../views/state.js';
import { formatQuantity, formatCost, formatCount } from '../views/quantities.js';
import { fit, pad, wrap, type Measure } from '../views/table.js';

export interface ScreenLook {
  readonly width: number;
  readonly height: number;
  readonly measure: Measure;
}

/** Where the person looks, and what is written for them. */
export interface Cursor {
  selected: number;
  notice: string;
  /** A chunk shown whole, from this line on. */
  whole?: { readonly title: string; readonly text: string; from: number };
}

export interface DebugHead {
  /** Beside the title: `live`, or where in the past. */
  readonly where: string;
  readonly keys: string;
  /** What led to this state. Only in the past. */
  readonly event?: string;
}

const SMALLEST = { width: 20, height: 8 };
const MAX_QUEUE = 3;
const MAX_CALLS = 5;

export function renderDebug(scene: DebugScene, head: DebugHead, cursor: Cursor, look: ScreenLook): StyledLine[] {
  const { width, height, measure } = look;
  if (width < SMALLEST.width || height < SMALLEST.height) {
    return fill([plain(fit('too small a screen: q leaves', width, measure))], height).map((line) => cut(line, look));
  }
  const foot: StyledLine[] = [
    [{ text: toTerminalLine(cursor.notice, 400), style: 'yellow' }],
    ...wrap(head.keys, width, measure)
      .slice(0, 3)
      .map((text): StyledLine => [{ text, style: 'dim' }]),
  ];
  const room = height - 1 - foot.length;
  const body = cursor.whole ? wholeLines(cursor.whole, room, look) : bodyLines(scene, head, cursor, room, look);
  return [titleLine(scene, head, look), ...fill(body, room), ...foot].map((line) => cut(line, look));
}

/** Keys that mean the same live and in the past; true when it was one. */
export function press(cursor: Cursor, name: string, { chunks }: DebugScene, look: ScreenLook): boolean {
  const { whole } = cursor;
  const page = Math.max(1, look.height - (whole ? 6 : 12));
  const by = { up: -1, down: 1, pageup: -page, pagedown: page }[name];
  if (whole) {
    if (by === undefined) cursor.whole = undefined;
    else whole.from = Math.max(0, Math.min(whole.from + by, wholeText(whole.text, look).length - page));
    return true;
  }
  if (by === undefined) return false;
  cursor.selected = Math.max(0, Math.min(cursor.selected + by, chunks.length - 1));
  return true;
}

/** The whole of the selected chunk; `entry` with its long texts read. */
export function showWhole(cursor: Cursor, scene: DebugScene, entry: Entry | undefined): void {
  const chunk = scene.chunks[cursor.selected];
  if (!chunk) return;
  const title = `${chunk.id}${chunk.turn === '' ? '' : ` · ${chunk.turn} ${chunk.role}`} · ${chunk.tokens} tokens (any other key goes back)`;
  cursor.whole = { title, text: entry ? describeEntry(entry) : chunk.words, from: 0 };
}

function titleLine({ id, status }: DebugScene, { where }: DebugHead, { width, measure }: ScreenLook): StyledLine {
  const title = status.title === null ? '' : ` · ${toTerminalLine(status.title, 80)}`;
  const right = ` ${where} `;
  return [
    { text: pad(` ${id}${title}`, Math.max(0, width - measure(right)), measure), style: 'bold' },
    { text: right, style: 'yellow' },
  ];
}

function bodyLines(scene: DebugScene, head: DebugHead, { selected }: Cursor, room: number, look: ScreenLook): StyledLine[] {
  const above = [...stateLines(scene, head), ...queueLines(scene), ...callLines(scene)];
  return [...above, ...chunkLines(scene, selected, Math.max(0, room - above.length), look.width)];
}

function stateLines({ status, control, index }: DebugScene, { event }: DebugHead): StyledLine[] {
  const { phase, mode, session, turn, turns, epoch, stepLock, pausedBy, waiting, waitingFor, usage } = status;
  const line = (name: string, text: string, style?: StyledSpan['style']): StyledLine => [
    { text: name.padEnd(9), style: 'dim' },
    { text: toTerminalLine(text, 400), style },
  ];
  const thresholds = control?.thresholds;
  const limits = thresholds
    ? ` · soft ${formatCount(thresholds.soft)} · hard ${formatCount(thresholds.hard)} · truncation ${formatCount(thresholds.truncation)}`
    : '; thresholds are known once the first turn has begun';
  const paused = pausedBy === null ? '' : ` · stopped by ${pausedBy}`;
  const lock = stepLock === null ? '' : ` · step ${stepLock} runs${control?.running ? `: ${control.running}` : ''}`;
  const breaks = describeBreakpoints(control?.breakpoints ?? {});
  const rest = phase === 'closing' ? 'nothing more: it closes, or has ended' : describeIdle(mode, Boolean(control?.turn));
  return [
    ...(event === undefined ? [] : [line('event', event, 'cyan')]),
    line('state', `${phase} · mode ${mode}${paused}${lock}`, mode === 'stepping' ? 'yellow' : 'green'),
    line('turn', `${turn} (${turns} ended) · session ${session} · epoch ${epoch} · ${formatCost(usage.costUsd)}`),
    line('tokens', `${formatCount(index.total)}${limits}`, thresholds && index.total > thresholds.hard ? 'red' : undefined),
    ...(breaks === 'none' ? [] : [line('breaks', breaks)]),
    // In stepping it waits for the step that stands below.
    ...(waitingFor === undefined || waiting?.kind === 'step' || waiting?.kind === 'breakpoint'
      ? []
      : [line('waits', waitingFor, 'yellow')]),
    line('next', control?.next ?? status.nextStep ?? rest, 'bold'),
  ];
}

function describeIdle(mode: string, inTurn: boolean): string {
  if (inTurn) return 'nothing new: it waits for what is under way, or for a person';
  return mode === 'stepping' ? 'nothing: the queue is empty' : 'nothing: it waits for a message';
}

function queueLines({ queue, status, approvals }: DebugScene): StyledLine[] {
  const waiting = queue
    .slice(0, MAX_QUEUE)
    .map((queued): StyledLine => [{ text: `  ${queued.id} `, style: 'cyan' }, { text: describeQueued(queued) }]);
  const people = approvals
    .slice(0, 2)
    .map((approval): StyledLine => [
      { text: approval.kind !== 'approval' ? '? answer ' : '? approve ', style: 'yellow' },
      { text: toTerminalLine(`${approval.tool} ${approval.target} (${approval.callId})`, 200) },
    ]);
  return [[{ text: `── queue ${formatCount(status.queued)} `, style: 'dim' }], ...waiting, ...people];
}

const CALL_STYLES: Readonly<Record<string, StyledSpan['style']>> = {
  running: 'cyan',
  riding: 'cyan',
  waiting: 'yellow',
  asking: 'yellow',
  done: 'green',
};

function callLines({ control, status }: DebugScene): StyledLine[] {
  const turn = control?.turn;
  if (!turn) return [];
  const line = (state: string, text: string): StyledLine => [
    { text: `  ${state.padEnd(9)}`, style: CALL_STYLES[state] },
    { text: toTerminalLine(text, 200) },
  ];
  const model = turn.modelCall;
  const failed = !model || model.failures === 0 ? '' : `, failed ${formatQuantity(model.failures, 'time')}`;
  // Beside a model call stand the tools that ride on its step.
  const calls = [
    ...turn.calls.map(({ id, name, target, status: state }) =>
      line(model?.inFlight ? 'riding' : state, `${name}${target === '' ? '' : `: ${target}`} (${id})`),
    ),
    ...(model ? [line(model.inFlight ? 'running' : 'waiting', `model call ${model.id}${failed}`)] : []),
    ...renderTree(status.subAgents ?? []),
  ];
  const more = calls.length - MAX_CALLS;
  return [
    [{ text: `── ${turn.id} `, style: 'dim' }],
    ...calls.slice(0, MAX_CALLS),
    ...(more > 0 ? [[{ text: `  … ${more} more`, style: 'dim' }] as StyledLine] : []),
  ];
}

function chunkLines({ chunks, index, control }: DebugScene, selected: number, room: number, width: number): StyledLine[] {
  if (room <= 1) return [];
  const out = control && control.leftOut > 0 ? ` · ${control.leftOut} left out` : '';
  const from = Math.max(0, Math.min(selected - Math.floor((room - 1) / 2), chunks.length - (room - 1)));
  return [
    [
      { text: `── context ${formatQuantity(chunks.length, 'chunk')}, ${index.tokenizer ?? 'estimated'}${out} `, style: 'dim' },
      { text: '✂ = dropped next', style: 'dim' },
    ],
    ...chunks.slice(from, from + room - 1).map((chunk, at) => chunkLine(chunk, from + at === selected, width >= 60)),
  ];
}

function chunkLine({ id, kind, tokens, turn, role, words, drops }: DebugChunk, isSelected: boolean, isWide: boolean): StyledLine {
  return [
    { text: isSelected ? '▸' : ' ', style: 'bold' },
    { text: drops ? '✂ ' : '  ', style: 'red' },
    { text: (kind === 'WORKING_FLOW' ? id : kind).padEnd(11), style: 'cyan' },
    { text: formatCount(tokens).padStart(8), style: drops ? 'red' : undefined },
    { text: isWide ? ` ${turn.padEnd(10)}${role.padEnd(10)}` : ' ', style: 'dim' },
    { text: toTerminalLine(words, 400), style: isSelected ? 'bold' : undefined },
  ];
}

function wholeText(text: string, { width, measure }: ScreenLook): string[] {
  return text.split('\n').flatMap((line) => (line === '' ? [''] : wrap(line.replaceAll('\t', '  '), width, measure)));
}

function wholeLines({ title, text, from }: NonNullable<Cursor['whole']>, room: number, look: ScreenLook): StyledLine[] {
  const lines = wholeText(text, look);
  const shown = lines.slice(from, from + room - 1);
  const where = lines.length > room - 1 ? ` · lines ${from + 1}–${from + shown.length} of ${lines.length}` : '';
  return [[{ text: `── ${title}${where} `, style: 'bold' }], ...shown.map(plain)];
}

function fill(lines: readonly StyledLine[], height: number): StyledLine[] {
  return [...lines.slice(0, height), ...Array.from({ length: Math.max(0, height - lines.length) }, (): StyledLine => [])];
}

function cut(line: StyledLine, { width, measure }: ScreenLook): StyledLine {
  let left = width;
  return line.flatMap(({ text, style }): StyledSpan[] => {
    if (left <= 0) return [];
    const fitted = fit(text, left, measure);
    left -= measure(fitted);
    if (fitted !== text) left = 0;
    return [{ text: fitted, style }];
  });
}

// A whole terminal for ourselves: another screen, keys as they are pressed, and everything as it was when we leave, however that is.

export interface Key {
  /** `up`, `pagedown`, `return`, `escape`, `ctrl+c`, or the character itself. */
  readonly name: string;
  /** What was typed; '' where nothing can be. */
  readonly text: string;
}

export interface FullScreen {
  /** As many lines as there are rows. */
  draw(lines: readonly StyledLine[]): void;
  size(): { readonly width: number; readonly height: number };
  close(): void;
}

// The other screen, no cursor, no wrapping at the right edge; and back.
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l';
// A frame is shown at once, by terminals that know it. Each row is cleared before it is written: in the last column the cursor stays
// on the character that was just written, and clearing behind it would take that away.
const BEGIN_FRAME = '\x1b[?2026h\x1b[H';
const END_FRAME = '\x1b[?2026l';

export function openFullScreen(
  input: ReadStream,
  output: WriteStream,
  events: { readonly onKey: (key: Key) => void; readonly onResize: () => void; readonly onEnd: () => void; readonly isColored: boolean },
): FullScreen {
  const colors = pc.createColors(events.isColored);
  let isOpen = true;
  const leave = (): void => {
    if (!isOpen) return;
    isOpen = false;
    output.write(LEAVE);
    if (input.isTTY) input.setRawMode(false);
  };
  const onKey = (text: string | undefined, key: { name?: string; ctrl?: boolean; sequence?: string } | undefined): void => {
    const isTyped = text !== undefined && [...text].length === 1 && text >= ' ' && text !== '\x7f';
    const name = key?.ctrl === true ? `ctrl+${key.name ?? ''}` : isTyped ? text : (key?.name ?? '');
    events.onKey({ name, text: isTyped && key?.ctrl !== true ? text : '' });
  };
  emitKeypressEvents(input);
  input.on('keypress', onKey);
  input.on('error', events.onEnd);
  input.on('end', events.onEnd);
  output.on('resize', events.onResize);
  output.on('error', events.onEnd);
  // Also when an uncaught error ends the process.
  process.once('exit', leave);
  input.setRawMode(true);
  input.resume();
  output.write(ENTER);
  return {
    draw(lines) {
      if (!isOpen) return;
      const drawn = lines.map((line) => line.map(({ text, style }) => (style ? colors[style] : String)(oneLine(text))).join(''));
      output.write(`${BEGIN_FRAME}${drawn.map((line) => `\x1b[2K${line}`).join('\r\n')}${END_FRAME}`);
    },
    size: () => ({ width: output.columns || 80, height: output.rows || 24 }),
    close() {
      leave();
      process.off('exit', leave);
      input.off('keypress', onKey);
      input.off('error', events.onEnd);
      input.off('end', events.onEnd);
      output.off('resize', events.onResize);
      output.off('error', events.onEnd);
      input.pause();
    },
  };
}

/** Nothing that is drawn may move the cursor. */
function oneLine(text: string): string {
  return toTerminalText(text).replace(/[\n\t]/g, ' ');
}
