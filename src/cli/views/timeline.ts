/**
 * `perdura watch`: turns on a line of time, from the feed's events and the moments at which they came.
 *
 * - One event is at most one line, printed when it comes; at the end of a turn its spans are drawn on one scale.
 * - The feed does not say when a model call begins: it begins where the thing before it ended.
 * - A quick tool rides on the step that calls the model, and may be reported late: its report says how long it ran.
 * - A person's decision is reported with the next step, after the tool has begun: the wait ends where the tool begins.
 * - The view knows nothing from before it began: a running turn counts from its first event that it saw.
 */
import type { PendingActivity } from '../../client.js';
import type { FeedEvent, Status, TurnResult } from '../../conversation/protocol/contract.js';
import { toTerminalLine, type StyledLine, type StyledSpan } from '../terminal/terminal-text.js';
import { fit, pad, type Measure } from './table.js';
import { formatCount, formatDuration, formatUsage } from './quantities.js';

export interface Timeline {
  event(event: FeedEvent, at: number): StyledLine[];
  /** What Temporal says is under way: prints attempts beyond the first, each once. */
  pending(activities: readonly PendingActivity[], at: number): StyledLine[];
  /** How it is stepped, when that has changed since it was printed last; nothing of one that runs by itself. */
  control(status: Pick<Status, 'mode' | 'stepLock' | 'pausedBy' | 'nextStep'>): StyledLine[];
  /** How many messages and events wait, when these have become more: the feed has a message when its turn takes it. */
  queued(count: number): StyledLine[];
  /** What its status says that it waits for: the feed had it for those who were there when it began. */
  waits(waiting: Status['waiting']): void;
  /** What goes on now, for the foot of the screen. */
  doing(at: number): string | undefined;
}

interface Span {
  readonly label: string;
  readonly kind: 'model' | 'tool' | 'wait';
  from: number;
  /** The first token of a model call. */
  first?: number;
  to?: number;
  readonly callId?: string;
  readonly call?: string;
  outcome?: string;
  attempts: number;
}

interface WatchedTurn {
  readonly turn: string;
  readonly begin: number;
  readonly isWhole: boolean;
  readonly spans: Span[];
  /** When the latest thing ended. */
  anchor: number;
}

export interface TimelineLook {
  readonly width?: number;
  readonly measure: Measure;
}

export function createTimeline({ width, measure }: TimelineLook): Timeline {
  const turns = new Map<string, WatchedTurn>();
  const attempts = new Map<string, number>();
  let control = AUTO;
  let waiting = 0;
  let forPerson: string | undefined;

  const turnOf = (turn: string, at: number, isWhole: boolean): WatchedTurn => {
    const known = turns.get(turn);
    if (known !== undefined) return known;
    const made: WatchedTurn = { turn, begin: at, isWhole, spans: [], anchor: at };
    turns.set(turn, made);
    return made;
  };
  const line = (turn: WatchedTurn, at: number, what: string, text: string, style?: StyledSpan['style']): StyledLine[] => {
    const time = `+${formatDuration(at - turn.begin)}`.padStart(8);
    const head = `${time}  ${what}`;
    const room = (width ?? Infinity) - measure(head) - 2;
    if (room < 4) return [[{ text: fit(`${head} ${text}`, width ?? Infinity, measure), style }]];
    return [[{ text: `${time}  `, style: 'dim' }, { text: what, style }, { text: `  ${fit(toTerminalLine(text, 300), room, measure)}` }]];
  };

  const onEvent = (event: Exclude<FeedEvent, { kind: 'session' | 'resync' }>, at: number): StyledLine[] => {
    const isKnown = turns.has(event.turn);
    const turn = turnOf(event.turn, at, event.kind === 'message');
    const joined: StyledLine[] = isKnown || event.kind === 'message' ? [] : [heading(event.turn, '(already running)')];
    return [...joined, ...linesOf(turn, event, at)];
  };

  const heading = (turn: string, text: string): StyledLine => {
    const room = (width ?? Infinity) - measure(turn) - 2;
    return [{ text: turn, style: 'bold' }, { text: `  ${fit(toTerminalLine(text, 300), room, measure)}` }];
  };

  const linesOf = (turn: WatchedTurn, event: Exclude<FeedEvent, { kind: 'session' | 'resync' }>, at: number): StyledLine[] => {
    switch (event.kind) {
      case 'message':
        return [heading(event.turn, `› ${event.preview}`)];
      case 'thinking':
      case 'text': {
        const known = turn.spans.find(({ call }) => call === event.call);
        if (known !== undefined) {
          known.first ??= at;
          return [];
        }
        turn.spans.push({ label: 'model', kind: 'model', from: turn.anchor, first: at, call: event.call, attempts: 1 });
        return line(turn, at, 'model', `first ${event.kind === 'text' ? 'words' : 'thoughts'} after ${formatDuration(at - turn.anchor)}`);
      }
      case 'reset': {
        const known = turn.spans.find(({ call }) => call === event.call);
        if (known !== undefined) known.attempts += 1;
        return line(turn, at, 'model', 'starts again: the attempt before was cut off', 'yellow');
      }
      case 'tool-started': {
        const wait = turn.spans.find(({ callId, kind, to }) => callId === event.callId && kind === 'wait' && to === undefined);
        endModel(turn, at);
        if (wait !== undefined) wait.to = at;
        turn.spans.push({ label: event.name, kind: 'tool', from: at, callId: event.callId, attempts: 1 });
        return line(turn, at, `→ ${event.name}`, event.input, 'cyan');
      }
      case 'tool-finished': {
        const span = turn.spans.find(({ callId, kind }) => callId === event.callId && kind === 'tool');
        const ms = ranFor(event) ?? (span && at - span.from);
        const took = ms === undefined ? '' : `${formatDuration(ms)}  `;
        if (span !== undefined) {
          beginEarlier(turn, span, at - (ms ?? 0));
          Object.assign(span, { to: at, outcome: event.outcome });
        }
        turn.anchor = at;
        return line(turn, at, `← ${event.name}`, `${took}${event.outcome}  ${event.preview}`, event.outcome === 'ok' ? 'green' : 'red');
      }
      case 'fallback': {
        endModel(turn, at);
        turn.anchor = at;
        return line(turn, at, 'model', `${event.model} is asked in place of ${event.insteadOf}: ${event.for}`, 'yellow');
      }
      case 'waiting': {
        endModel(turn, at);
        turn.spans.push({ label: 'waiting', kind: 'wait', from: at, to: Math.max(at, event.until), attempts: 1 });
        turn.anchor = Math.max(at, event.until);
        return line(turn, at, 'waiting', `${event.for}; again in ${formatDuration(event.until - at)}`, 'yellow');
      }
      case 'asked': {
        endModel(turn, at);
        turn.spans.push({ label: event.name, kind: 'wait', from: at, callId: event.callId, attempts: 1 });
        const what = { question: 'asks', approval: 'Allow?', 'client-tool': 'waits for its client' }[event.what];
        return line(turn, at, what, `${event.name}  ${event.target}; until ${new Date(event.until).toISOString()}`, 'yellow');
      }
      case 'decided': {
        const span = turn.spans.findLast(({ callId, kind }) => callId === event.callId && kind === 'wait');
        if (span?.to === undefined) turn.anchor = at;
        if (span !== undefined) span.to ??= at;
        const waited = span === undefined ? '' : ` after ${formatDuration((span.to ?? at) - span.from)}`;
        const isGood = event.decision === 'approve' || event.decision === 'answer';
        return line(turn, at, DECIDED[event.decision] ?? event.decision, `${event.name}${waited}`, isGood ? 'green' : 'red');
      }
      case 'paused':
        return line(turn, at, 'stopped', `before ${event.why}`, 'yellow');
      case 'compacted': {
        turn.anchor = at;
        return line(turn, at, 'memory', `older turns became memory: ${event.tokensBefore} → ${event.tokensAfter} tokens`, 'dim');
      }
      case 'turn-finished': {
        endModel(turn, at);
        turns.delete(event.turn);
        for (const span of turn.spans) span.to = Math.min(span.to ?? at, at);
        return [...line(turn, at, wordOf(event.result), endOf(event.result), lookOf(event.result)), ...drawSpans(turn, at), []];
      }
      default:
        return ignoreNewer(event);
    }
  };

  const drawSpans = (turn: WatchedTurn, at: number): StyledLine[] => {
    const label = Math.min(14, Math.max(...turn.spans.map((span) => measure(span.label)), 0));
    const cells = Math.min(60, (width ?? 90) - label - 24);
    if (turn.spans.length === 0 || cells < 10) return [];
    const total = Math.max(1, at - turn.begin);
    const column = (time: number): number => Math.round(((time - turn.begin) / total) * cells);
    return turn.spans.map((span): StyledLine => {
      const to = span.to ?? at;
      const from = Math.min(column(span.from), cells - 1);
      const end = Math.max(from + 1, column(to));
      const first = span.first === undefined ? end : Math.max(from, Math.min(end, column(span.first)));
      const drawn =
        span.kind === 'wait'
          ? '░'.repeat(end - from)
          : span.kind === 'model' && span.first !== undefined
            ? '▒'.repeat(first - from) + '█'.repeat(end - first)
            : '█'.repeat(end - from);
      const look = span.kind === 'wait' ? 'yellow' : span.outcome === undefined || span.outcome === 'ok' ? undefined : 'red';
      const note = span.attempts > 1 ? ` ×${span.attempts}` : '';
      return [
        { text: `          ${pad(span.label, label, measure)} `, style: 'dim' },
        { text: `▕${' '.repeat(from)}`, style: 'dim' },
        { text: drawn, style: look ?? (span.kind === 'model' ? 'cyan' : 'green') },
        { text: `${' '.repeat(Math.max(0, cells - end))}▏`, style: 'dim' },
        { text: ` ${formatDuration(to - span.from)}${note}` },
      ];
    });
  };

  return {
    event(event, at) {
      if (event.kind === 'session') return [[{ text: `session ${event.session} begins`, style: 'bold' }]];
      if (event.kind === 'resync') return [[{ text: '(a part was missed)', style: 'yellow' }]];
      return onEvent(event, at);
    },
    pending(activities, at) {
      const lines = activities.flatMap(({ id, type, attempt, lastFailure }) => {
        if (attempt <= (attempts.get(id) ?? 1)) return [];
        attempts.set(id, attempt);
        const why = lastFailure === null ? '' : `: ${lastFailure}`;
        const turn = [...turns.values()][0];
        const text = `${type} is tried again${why}`;
        return turn === undefined
          ? [[{ text: fit(toTerminalLine(`attempt ${attempt}: ${text}`, 300), width ?? Infinity, measure), style: 'yellow' }] as StyledLine]
          : line(turn, at, `attempt ${attempt}`, text, 'yellow');
      });
      for (const id of attempts.keys()) if (!activities.some((activity) => activity.id === id)) attempts.delete(id);
      return lines;
    },
    control(status) {
      const now = controlInWords(status);
      if (now === control) return [];
      control = now;
      return [[{ text: fit(toTerminalLine(now, 300), width ?? Infinity, measure), style: 'yellow' }]];
    },
    queued(count) {
      const isMore = count > waiting;
      waiting = count;
      return isMore ? [[{ text: fit(`queue · ${formatCount(count)} waiting`, width ?? Infinity, measure), style: 'dim' }]] : [];
    },
    waits(on) {
      forPerson = on?.kind === 'approval' || on?.kind === 'question' || on?.kind === 'client-tool' ? on.tool : undefined;
    },
    doing(at) {
      const turn = [...turns.values()][0];
      if (turn === undefined) return forPerson === undefined ? undefined : `waits for a person: ${forPerson}`;
      const open = turn.spans.filter(({ kind, to }) => kind === 'tool' && to === undefined);
      const asking = turn.spans.find(({ kind, to, callId }) => kind === 'wait' && to === undefined && callId !== undefined);
      if (asking !== undefined && open.length === 0)
        return `${turn.turn}  waits for a person: ${asking.label} ${formatDuration(at - asking.from)}`;
      if (asking === undefined && open.length === 0 && forPerson !== undefined) return `${turn.turn}  waits for a person: ${forPerson}`;
      const tools = open.map(({ label, from }) => `${label} ${formatDuration(at - from)}`).join(', ');
      const model = `${turn.spans.some((span) => span.kind === 'model' && span.to === undefined) ? 'model writes' : 'model'} ${formatDuration(Math.max(0, at - turn.anchor))}`;
      return `${turn.turn}  ${tools === '' ? model : tools}`;
    },
  };
}

const DECIDED: Readonly<Record<string, string>> = { approve: 'allowed', deny: 'denied', answer: 'answered', expired: 'expired' };

const AUTO = 'auto · it runs by itself';

function controlInWords({ mode, stepLock, pausedBy, nextStep }: Parameters<Timeline['control']>[0]): string {
  if (mode === 'auto') return AUTO;
  if (stepLock !== null) return `stepping · ${stepLock} runs`;
  const stopped = pausedBy === null ? '' : ` · stopped by ${pausedBy}`;
  return `stepping${stopped} · next: ${nextStep ?? 'nothing, it waits for a message'}`;
}

/** Whatever the call was, it is over when its tools begin or the turn ends. */
function endModel(turn: WatchedTurn, at: number): void {
  const open = turn.spans.find(({ kind, to }) => kind === 'model' && to === undefined);
  if (open !== undefined) open.to = at;
  // A tool that runs, or a person who is waited for.
  const isOther = turn.spans.some(({ kind, to }) => kind !== 'model' && to === undefined);
  // A call that only asked for tools streams no words.
  if (open === undefined && !isOther && at > turn.anchor && turn.isWhole) {
    turn.spans.push({ label: 'model', kind: 'model', from: turn.anchor, to: at, attempts: 1 });
  }
  turn.anchor = at;
}

/** Undefined: the worker does not say. */
function ranFor(event: Extract<FeedEvent, { kind: 'tool-finished' }>): number | undefined {
  return 'ms' in event && typeof event.ms === 'number' ? event.ms : undefined;
}

/** The time that counted as the model's up to now was this tool's. */
function beginEarlier(turn: WatchedTurn, span: Span, from: number): void {
  const before = span.from;
  const begin = Math.max(turn.begin, from);
  if (begin >= before) return;
  span.from = begin;
  for (const model of turn.spans) if (model.kind === 'model' && model.to === before) model.to = Math.max(model.from, begin);
}

function wordOf({ stopReason }: TurnResult): string {
  return stopReason === 'end' ? 'answered' : stopReason;
}

function endOf({ text, usage, toolCalls, error }: TurnResult): string {
  const tools = toolCalls === 0 ? '' : `${toolCalls} tool${toolCalls === 1 ? '' : 's'} · `;
  return `${tools}${formatUsage(usage)} · ${error?.message ?? JSON.stringify(toTerminalLine(text, 120))}`;
}

function lookOf({ stopReason }: TurnResult): StyledSpan['style'] {
  return stopReason === 'end' ? 'green' : stopReason === 'failed' ? 'red' : 'yellow';
}

/** A worker of a later version may report things that this one does not know. */
function ignoreNewer(_value: never): StyledLine[] {
  return [];
}
