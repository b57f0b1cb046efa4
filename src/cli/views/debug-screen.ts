/**
 * `perdura debug`: one state of a conversation on a whole screen. Pure: what stands there follows from the scene and from where the
 * person looks, exactly as many lines as the screen has, none wider than it is.
 */
import type { DebugChunk, DebugScene } from '../../insight/scene.js';
import { toTerminalLine, plain, type StyledLine, type StyledSpan } from '../terminal/terminal-text.js';
import { fit, pad, type Measure } from './table.js';
import { breakpointsInWords, queuedInWords, renderTree } from './control.js';
import { wrap } from './inspection.js';
import { formatQuantity, bar, formatCost, formatCount } from './quantities.js';

export interface DebugLook {
  readonly width: number;
  readonly height: number;
  readonly measure: Measure;
}

/** Where the person looks, and what is said to them. */
export interface DebugView {
  /** Beside the title: `live`, or where in the past. */
  readonly where: string;
  /** In words: what led to this state. Only in the past. */
  readonly event?: string;
  readonly focus: 'chunks' | 'queue';
  readonly selected: number;
  readonly selectedQueued: number;
  readonly keys: string;
  readonly notice: string;
  /** What is being typed, behind its question. */
  readonly prompt?: { readonly question: string; readonly text: string };
  /** A chunk shown whole, from this line on. */
  readonly whole?: { readonly title: string; readonly text: string; readonly from: number };
}

/** From here on queue and calls stand beside the chunks. */
const WIDE = 110;
const SMALLEST = { width: 20, height: 8 };

export function renderDebug(scene: DebugScene, view: DebugView, look: DebugLook): StyledLine[] {
  const { width, height, measure } = look;
  if (width < SMALLEST.width || height < SMALLEST.height) {
    return fill([plain(fit('too small a screen: q leaves', width, measure))], height).map((line) => cut(line, look));
  }
  const head = [titleLine(scene, view, look)];
  const foot = [noticeLine(view), ...keyLines(view.keys, look)];
  const room = height - head.length - foot.length;
  const body = view.whole ? wholeLines(view.whole, room, look) : bodyLines(scene, view, room, look);
  return [...head, ...fill(body, room), ...foot].map((line) => cut(line, look));
}

/** How many lines of a whole chunk there are on such a screen. */
export function linesOfWhole(text: string, { width, measure }: DebugLook): string[] {
  return text.split('\n').flatMap((line) => (line === '' ? [''] : wrap(line.replaceAll('\t', '  '), width, measure)));
}

function titleLine({ id, status }: DebugScene, { where }: DebugView, { width, measure }: DebugLook): StyledLine {
  const title = status.title === null ? '' : ` · ${toTerminalLine(status.title, 80)}`;
  const right = ` ${where} `;
  const room = Math.max(0, width - measure(right));
  return [
    { text: pad(` ${id}${title}`, room, measure), style: 'bold' },
    { text: right, style: 'yellow' },
  ];
}

function noticeLine({ prompt, notice }: DebugView): StyledLine {
  if (prompt) return [{ text: `${prompt.question} `, style: 'bold' }, { text: `${toTerminalLine(prompt.text, 200)}▏` }];
  return [{ text: toTerminalLine(notice, 400), style: 'yellow' }];
}

/** At blanks between keys, so that none is cut off in the middle. */
function keyLines(keys: string, { width, measure }: DebugLook): StyledLine[] {
  const lines = keys.split('  ').reduce<string[]>((all, key) => {
    const last = all.at(-1);
    if (last === undefined || measure(`${last}  ${key}`) > width) return [...all, key];
    return [...all.slice(0, -1), `${last}  ${key}`];
  }, []);
  return lines.slice(0, 3).map((text): StyledLine => [{ text, style: 'dim' }]);
}

function bodyLines(scene: DebugScene, view: DebugView, room: number, look: DebugLook): StyledLine[] {
  const state = stateLines(scene, view, look);
  const left = room - state.length;
  if (look.width >= WIDE) {
    const narrow = Math.floor(look.width * 0.42);
    const side = fill([...queueLines(scene, view, Math.max(3, Math.floor(left / 2))), ...callLines(scene, left)], left);
    const chunks = fill(chunkLines(scene, view, left, look.width - narrow - 1), left);
    return [
      ...state,
      ...side.map((line, at): StyledLine => [...padded(line, narrow, look), { text: '│', style: 'dim' }, ...(chunks[at] ?? [])]),
    ];
  }
  const queue = queueLines(scene, view, view.focus === 'queue' ? Math.max(4, left - 6) : 4);
  const calls = callLines(scene, view.focus === 'queue' ? 2 : 5);
  return [...state, ...queue, ...calls, ...chunkLines(scene, view, Math.max(0, left - queue.length - calls.length), look.width)];
}

function stateLines({ status, control, index }: DebugScene, { event }: DebugView, look: DebugLook): StyledLine[] {
  const { phase, mode, session, turn, turns, epoch, stepLock, pausedBy, waiting, waitingFor, usage } = status;
  const thresholds = control?.thresholds;
  const line = (name: string, text: string, color?: StyledSpan['style']): StyledLine => [
    { text: name.padEnd(9), style: 'dim' },
    { text: toTerminalLine(text, 400), style: color },
  ];
  const paused = pausedBy === null ? '' : ` · stopped by ${pausedBy}`;
  const lock = stepLock === null ? '' : ` · step ${stepLock} runs${control?.running ? `: ${control.running}` : ''}`;
  const breaks = breakpointsInWords(control?.breakpoints ?? {});
  const next = control?.next ?? status.nextStep;
  const rest = status.phase === 'closing' ? 'nothing more: it closes, or has ended' : nothingToDo(mode, Boolean(control?.turn));
  return [
    ...(event === undefined ? [] : [line('event', event, 'cyan')]),
    line('state', `${phase} · mode ${mode}${paused}${lock}`, mode === 'stepping' ? 'yellow' : 'green'),
    line('turn', `${turn} (${turns} ended) · session ${session} · epoch ${epoch} · ${formatCost(usage.costUsd)}`),
    thresholds
      ? tokenLine(index.total, thresholds, look)
      : line('tokens', `${formatCount(index.total)}; thresholds are known once the first turn has begun`),
    ...(breaks === 'none' ? [] : [line('breaks', breaks)]),
    // In stepping it waits for the step that stands below.
    ...(waitingFor === undefined || waiting?.kind === 'step' || waiting?.kind === 'breakpoint'
      ? []
      : [line('waits', waitingFor, 'yellow')]),
    line('next', next ?? rest, 'bold'),
  ];
}

function nothingToDo(mode: string, inTurn: boolean): string {
  if (inTurn) return 'nothing new: it waits for what is under way, or for a person';
  return mode === 'stepping' ? 'nothing: the queue is empty' : 'nothing: it waits for a message';
}

function tokenLine(
  total: number,
  { soft, hard, truncation }: { soft: number; hard: number; truncation: number },
  { width }: DebugLook,
): StyledLine {
  const color = total > truncation ? 'red' : total > hard ? 'yellow' : undefined;
  const numbers = `${formatCount(total)} · soft ${formatCount(soft)} · hard ${formatCount(hard)} · truncation ${formatCount(truncation)}`;
  return [
    { text: 'tokens'.padEnd(9), style: 'dim' },
    { text: bar(total / truncation, width >= 100 ? 24 : 10), style: color },
    { text: ` ${numbers}`, style: color },
  ];
}

function queueLines({ queue, status, approvals }: DebugScene, { focus, selectedQueued }: DebugView, most: number): StyledLine[] {
  const heading: StyledLine = [{ text: `── queue ${formatCount(status.queued)} `, style: focus === 'queue' ? 'bold' : 'dim' }];
  const asks = approvals
    .slice(0, 2)
    .map((approval): StyledLine => [
      { text: approval.kind !== 'approval' ? '? answer ' : '? approve ', style: 'yellow' },
      { text: toTerminalLine(`${approval.tool} ${approval.target} (${approval.callId})`, 200) },
    ]);
  const room = Math.max(1, most - 1 - asks.length);
  const from = focus === 'queue' ? windowFrom(selectedQueued, queue.length, room) : 0;
  const shown = queue.slice(from, from + room).map((queued, at): StyledLine => {
    const isSelected = focus === 'queue' && from + at === selectedQueued;
    return [
      { text: `${isSelected ? '▸' : ' '} ${queued.id} `, style: 'cyan' },
      { text: queuedInWords(queued), style: isSelected ? 'bold' : undefined },
    ];
  });
  const more = queue.length - from - shown.length;
  const last = shown.at(-1);
  if (more > 0 && last) shown[shown.length - 1] = [...last, { text: `  … ${more} more`, style: 'dim' }];
  return [heading, ...(shown.length === 0 ? [[{ text: '  empty', style: 'dim' }] as StyledLine] : shown), ...asks];
}

const CALL_LOOKS: Readonly<Record<string, StyledSpan['style']>> = {
  running: 'cyan',
  riding: 'cyan',
  waiting: 'yellow',
  asking: 'yellow',
  done: 'green',
};

function callLines(scene: DebugScene, most: number): StyledLine[] {
  const { control, status } = scene;
  const turn = control?.turn;
  if (!turn) return [];
  const tree = renderTree(status.subAgents ?? []).slice(0, Math.max(1, Math.floor(most / 2)));
  const heading: StyledLine = [{ text: `── ${turn.id} `, style: 'dim' }];
  const line = (status: string, text: string): StyledLine => [
    { text: `  ${status.padEnd(9)}`, style: CALL_LOOKS[status] },
    { text: toTerminalLine(text, 200) },
  ];
  const model = turn.modelCall;
  const failed = !model || model.failures === 0 ? '' : `, failed ${formatQuantity(model.failures, 'time')}`;
  // Beside a model call stand the tools that ride on its step.
  const calls = [
    ...turn.calls.map(({ id, name, target, status }) =>
      line(model?.inFlight ? 'riding' : status, `${name}${target === '' ? '' : `: ${target}`} (${id})`),
    ),
    ...(model ? [line(model.inFlight ? 'running' : 'waiting', `model call ${model.id}${failed}`)] : []),
  ];
  const room = Math.max(1, most - 1 - tree.length);
  return [
    heading,
    ...calls
      .slice(0, room)
      .map((line, at): StyledLine =>
        at === room - 1 && calls.length > room ? [...line, { text: `  … ${calls.length - room} more`, style: 'dim' }] : line,
      ),
    ...tree,
  ];
}

function chunkLines({ chunks, index, control }: DebugScene, { focus, selected }: DebugView, room: number, width: number): StyledLine[] {
  if (room <= 1) return [];
  const out = control && control.leftOut > 0 ? ` · ${control.leftOut} left out` : '';
  const heading: StyledLine = [
    {
      text: `── context ${formatQuantity(chunks.length, 'chunk')} · ${formatCount(index.total)} tokens, ${index.tokenizer ?? 'estimated'}${out} `,
      style: focus === 'chunks' ? 'bold' : 'dim',
    },
    { text: '✂ = dropped next', style: 'dim' },
  ];
  const from = windowFrom(selected, chunks.length, room - 1);
  const wide = width >= 60;
  return [
    heading,
    ...chunks.slice(from, from + room - 1).map((chunk, at) => chunkLine(chunk, focus === 'chunks' && from + at === selected, wide)),
  ];
}

function chunkLine({ id, kind, tokens, turn, role, words, drops }: DebugChunk, isSelected: boolean, wide: boolean): StyledLine {
  const name = kind === 'WORKING_FLOW' ? id : kind;
  return [
    { text: isSelected ? '▸' : ' ', style: 'bold' },
    { text: drops ? '✂ ' : '  ', style: 'red' },
    { text: name.padEnd(11), style: 'cyan' },
    { text: formatCount(tokens).padStart(8), style: drops ? 'red' : undefined },
    ...(wide ? [{ text: ` ${turn.padEnd(10)}${role.padEnd(10)}`, style: 'dim' } as const] : [{ text: ' ' }]),
    { text: toTerminalLine(words, 400), style: isSelected ? 'bold' : undefined },
  ];
}

function wholeLines({ title, text, from }: NonNullable<DebugView['whole']>, room: number, look: DebugLook): StyledLine[] {
  const lines = linesOfWhole(text, look);
  const shown = lines.slice(from, from + room - 1);
  const where = lines.length > room - 1 ? ` · lines ${from + 1}–${from + shown.length} of ${lines.length}` : '';
  return [[{ text: `── ${title}${where} `, style: 'bold' }], ...shown.map(plain)];
}

/** So that the selected one is in sight. */
function windowFrom(selected: number, count: number, room: number): number {
  return Math.max(0, Math.min(selected - Math.floor(room / 2), count - room));
}

function fill(lines: readonly StyledLine[], height: number): StyledLine[] {
  return [...lines.slice(0, height), ...Array.from({ length: Math.max(0, height - lines.length) }, (): StyledLine => [])];
}

function cut(line: StyledLine, { width, measure }: Pick<DebugLook, 'width' | 'measure'>): StyledLine {
  let left = width;
  return line.flatMap(({ text, style }): StyledSpan[] => {
    if (left <= 0) return [];
    const fitted = fit(text, left, measure);
    left -= measure(fitted);
    if (fitted !== text) left = 0;
    return [{ text: fitted, style }];
  });
}

function padded(line: StyledLine, width: number, look: DebugLook): StyledLine {
  const short = cut(line, { width, measure: look.measure });
  const used = short.reduce((sum, { text }) => sum + look.measure(text), 0);
  return [...short, { text: ' '.repeat(Math.max(0, width - used)) }];
}
