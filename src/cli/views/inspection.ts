/** `perdura inspect`: one conversation as it stands. The facts first, as programs get them; then the same drawn for people. */
import type { Description, Listed, Pending, PendingActivity } from '../../client.js';
import type { QueuedEvent, Status } from '../../conversation/protocol/contract.js';
import type { InspectedTurn } from '../../insight/turns.js';
import type { TimeFormat } from '../args/global-options.js';
import { toTerminalLine, type StyledLine, type StyledSpan } from '../terminal/terminal-text.js';
import { shownArguments, shownName } from './approvals.js';
import { renderTree } from './control.js';
import { fit, pad, type Measure } from './table.js';
import { formatQuantity, bar, formatBytes, formatCount, formatDuration, formatTime, formatUsage, budgetInWords } from './quantities.js';

export interface Inspection {
  readonly description: Description;
  /** null when no worker answers for it. */
  readonly status: Status | null;
  readonly queue: readonly QueuedEvent[];
  /** What waits for a person here and in sub-agents. */
  readonly approvals: readonly Pending[];
  /** Its sub-agents, latest first. */
  readonly children: readonly Listed[];
  /** The latest, oldest first. */
  readonly turns: readonly InspectedTurn[];
  /** Its page in Temporal's own UI. */
  readonly link: string | null;
}

export interface InspectionLook {
  readonly width?: number;
  readonly timeFormat: TimeFormat;
  readonly now: number;
  readonly measure: Measure;
}

/** Below this the names of the facts stand on lines of their own. */
const NARROW = 44;
const LABEL = 10;

export function renderInspection(
  { description, status, queue, approvals, children, turns, link }: Inspection,
  look: InspectionLook,
): StyledLine[] {
  const { timeFormat, now } = look;
  const agent = status?.agent ?? description.agent;
  const title = status?.title ?? description.title;
  const started = formatTime(description.startedAt.getTime(), timeFormat, now);
  const closed = description.closedAt === null ? '' : `, ended ${formatTime(description.closedAt.getTime(), timeFormat, now)}`;
  const fact = (name: string, text: string, color?: StyledSpan['style']): StyledLine[] => drawFact(name, text, color, look);
  return [
    [{ text: description.id, style: 'cyan' }],
    ...(title === null
      ? []
      : [[{ text: fit(toTerminalLine(title, 200), look.width ?? Infinity, look.measure), style: 'bold' }] as StyledLine]),
    [],
    ...fact('status', statusLine(description, status), lookOfState(description, status)),
    ...(status?.waitingFor === undefined ? [] : fact('waiting', toTerminalLine(status.waitingFor, 400), 'yellow')),
    ...(status === null ? [] : steppingFacts(status, look)),
    ...(agent === null ? [] : fact('agent', agent)),
    ...(description.tenant === null ? [] : fact('tenant', description.tenant)),
    ...(status?.model ? fact('model', status.model) : []),
    ...(status?.fallback ? fact('fallback', fallbackInWords(status.fallback), 'yellow') : []),
    ...(status?.allowedCalls ? fact('allowed', allowedInWords(status.allowedCalls)) : []),
    ...(status === null ? [] : contextFacts(status, look)),
    ...(status === null ? [] : fact('usage', formatUsage(status.usage))),
    ...(status?.budget ? fact('budget', budgetInWords(status.budget)) : []),
    ...(status === null ? [] : windowFacts(status, look)),
    ...queueFacts(status, queue, look),
    ...fact(
      'history',
      `${formatQuantity(description.historyEvents, 'event')}${description.historyBytes === null ? '' : `, ${formatBytes(description.historyBytes)}`}`,
    ),
    ...fact('started', `${started}${closed}`),
    ...(status !== null && status.rejectedInputs.count > 0 ? rejectedFacts(status, look) : []),
    ...(status?.appEvents ? appEventFacts(status.appEvents, look) : []),
    ...(approvals.length === 0 ? [] : [[], ...drawApprovals(approvals, look)]),
    ...(status?.subAgents ? [[], [{ text: 'at work', style: 'dim' }] as StyledLine, ...renderTree(status.subAgents)] : []),
    ...(children.length === 0 ? [] : [[], ...drawChildren(children, look)]),
    ...(turns.length === 0 ? [] : [[], ...drawTurns(turns, look)]),
    ...(description.pendingActivities.length === 0 ? [] : [[], ...drawPending(description.pendingActivities, look)]),
    ...(link === null ? [] : [[], [{ text: link, style: 'dim' }] as StyledLine]),
  ];
}

function statusLine({ state }: Description, status: Status | null): string {
  if (status === null) return state === 'running' ? 'running; no worker answers for it' : state;
  const phase = state === 'running' ? status.phase : state;
  return `${phase} · turn ${status.turn} · session ${status.session}`;
}

function lookOfState({ state }: Description, status: Status | null): StyledSpan['style'] {
  if (state === 'failed' || state === 'terminated' || state === 'timed-out') return 'red';
  if (status?.phase === 'waiting-to-retry' || status?.phase === 'waiting-for-person') return 'yellow';
  return state === 'running' ? 'green' : undefined;
}

function drawFact(name: string, text: string, color: StyledSpan['style'], { width = Infinity, measure }: InspectionLook): StyledLine[] {
  if (width < NARROW) {
    return [
      [{ text: name, style: 'dim' }],
      ...wrap(text, width - 2, measure).map((part): StyledLine => [{ text: '  ' }, { text: part, style: color }]),
    ];
  }
  return wrap(text, width - LABEL, measure).map((part, at): StyledLine => [
    { text: (at === 0 ? name : '').padEnd(LABEL), style: 'dim' },
    { text: part, style: color },
  ]);
}

function contextFacts({ context }: Status, look: InspectionLook): StyledLine[] {
  const { tokens, budget } = context;
  if (budget === 0) return drawFact('context', `${formatCount(tokens)} tokens`, undefined, look);
  const share = tokens / budget;
  const cells = Math.max(8, Math.min(24, (look.width ?? 80) - LABEL - 40));
  const color = share > 0.9 ? 'red' : share > 0.7 ? 'yellow' : undefined;
  const text = `${bar(share, cells)} ${Math.round(share * 100)} % of ${formatCount(budget)} tokens`;
  return drawFact('context', text, color, look);
}

/** Only where it does not go on by itself. A worker of an earlier version does not say. */
function steppingFacts({ mode, stepLock, pausedBy, nextStep }: Status, look: InspectionLook): StyledLine[] {
  if (mode !== 'stepping') return [];
  return [
    ...drawFact('mode', `stepping${stepLock === null ? '' : ` · step ${stepLock} is running`}`, 'yellow', look),
    ...(pausedBy ? drawFact('paused by', toTerminalLine(pausedBy, 200), 'yellow', look) : []),
    ...(nextStep ? drawFact('next', toTerminalLine(nextStep, 200), undefined, look) : []),
  ];
}

function allowedInWords(allowed: NonNullable<Status['allowedCalls']>): string {
  const named = allowed.slice(-3).map(({ tool, target, callId }) => `${shownName(tool)} ${toTerminalLine(target, 60)} (${callId})`);
  const more = allowed.length > 3 ? ` and ${allowed.length - 3} more` : '';
  return `${named.join(', ')}${more} without asking, until /new`;
}

export function fallbackInWords({ turn, model, insteadOf, reason }: NonNullable<Status['fallback']>): string {
  return `${turn} by ${model} in place of ${insteadOf} (${reason})`;
}

/** What long-term memory does not have yet. A worker of an earlier version does not say. */
function windowFacts({ window }: Status, look: InspectionLook): StyledLine[] {
  if ((window as Status['window'] | undefined) === undefined) return [];
  const { since, messages, consolidated, limit, consolidating, owed } = window;
  const text = [
    `${limit === null ? formatQuantity(messages, 'message') : `${formatCount(messages)} of ${formatQuantity(limit, 'message')}`} since ${formatTime(since, look.timeFormat, look.now)}`,
    ...(consolidated === 0 ? [] : [`${formatCount(consolidated)} more ${consolidated === 1 ? 'is' : 'are'} consolidated`]),
    ...(consolidating === 0 ? [] : [`${consolidating} being consolidated`]),
    ...(owed === 0 ? [] : [`${owed} owed to memory`]),
  ].join(' · ');
  return drawFact('window', text, owed > 0 ? 'yellow' : undefined, look);
}

function queueFacts(status: Status | null, queue: readonly QueuedEvent[], look: InspectionLook): StyledLine[] {
  if (queue.length === 0) return status === null ? [] : drawFact('queue', 'empty', undefined, look);
  const lines = queue.slice(0, 5).map(({ event, queuedAt }) => {
    const since = formatTime(queuedAt, look.timeFormat, look.now);
    switch (event.kind) {
      case 'message':
        return `${event.turnId} message of ${formatBytes(event.bytes)}, ${since}`;
      case 'app':
        return `${toTerminalLine(event.type, 64)}, ${since}`;
      case 'reset':
        return `reset, ${since}`;
      case 'more':
        return `${event.count} more, ${since}`;
    }
  });
  if (queue.length > 5) lines.push(`… ${queue.length - 5} more`);
  return lines.flatMap((line, at) => drawFact(at === 0 ? 'queue' : '', line, undefined, look));
}

function rejectedFacts({ rejectedInputs: { count, last } }: Status, look: InspectionLook): StyledLine[] {
  const latest = last[last.length - 1];
  const why = latest === undefined ? '' : `, last: ${toTerminalLine(`${latest.name}: ${latest.reason}`, 200)}`;
  return drawFact('refused', `${count} ${count === 1 ? 'input' : 'inputs'}${why}`, 'yellow', look);
}

function drawApprovals(approvals: readonly Pending[], look: InspectionLook): StyledLine[] {
  return [
    [{ text: 'waits for a person', style: 'dim' }],
    ...approvals.map((one): StyledLine => {
      const { conversation, via, callId, kind, tool } = one;
      const whose = conversation === via ? '' : `${conversation} `;
      const given = one.arguments === undefined ? '' : ` ${shownArguments(one.arguments)}`;
      const head = `  ${whose}${callId} `;
      const room = Math.max(8, (look.width ?? Infinity) - look.measure(head));
      return [
        { text: head },
        { text: fit(`${kind === 'question' ? 'asks' : shownName(tool)}${given}`, room, look.measure), style: 'yellow' },
      ];
    }),
  ];
}

const MAX_CHILDREN = 10;

function drawChildren(children: readonly Listed[], look: InspectionLook): StyledLine[] {
  const more = children.length > MAX_CHILDREN ? [[{ text: `  … ${children.length - MAX_CHILDREN} more`, style: 'dim' }] as StyledLine] : [];
  return [
    [{ text: 'sub-agents', style: 'dim' }],
    ...children.slice(0, MAX_CHILDREN).map(({ id, running, state, status, agent, title }): StyledLine => {
      const head = `  ${id}  `;
      const rest = [running ? (status ?? 'running') : state, agent, title].filter(Boolean).join(' · ');
      const room = Math.max(8, (look.width ?? Infinity) - look.measure(head));
      return [{ text: head, style: 'cyan' }, { text: fit(toTerminalLine(rest, 300), room, look.measure) }];
    }),
    ...more,
  ];
}

function appEventFacts({ chunks, unreduced, parked, parkedCount }: NonNullable<Status['appEvents']>, look: InspectionLook): StyledLine[] {
  const last = parked[parked.length - 1];
  return [
    ...drawFact('events', `${formatQuantity(chunks, 'chunk')} in the context`, undefined, look),
    ...(unreduced.count === 0
      ? []
      : drawFact('', `${unreduced.count} without a reducer: ${toTerminalLine(unreduced.types.join(', '), 200)}`, 'yellow', look)),
    ...(last === undefined
      ? []
      : drawFact('', `${parkedCount} parked, last: ${toTerminalLine(`${last.type} ${last.id}: ${last.error}`, 200)}`, 'yellow', look)),
  ];
}

/** Bars on one scale, the longest turn across all of it. */
function drawTurns(turns: readonly InspectedTurn[], look: InspectionLook): StyledLine[] {
  const width = look.width ?? 100;
  const longest = Math.max(1, ...turns.map(({ durationMs }) => durationMs));
  const cells = width < 60 ? 0 : 16;
  return [
    [{ text: 'last turns', style: 'dim' }],
    ...turns.flatMap(({ turn, durationMs, toolCalls, question, startedAt, problem }): StyledLine[] => {
      const why = problem === undefined ? [] : wrap(toTerminalLine(problem, 600), width - 4, look.measure);
      const below = why.map((part): StyledLine => [{ text: '    ' }, { text: part, style: 'red' }]);
      const tools = toolCalls === 0 ? '' : ` · ${toolCalls} tool${toolCalls === 1 ? '' : 's'}`;
      const when = width < 60 ? '' : ` · ${formatTime(startedAt.getTime(), look.timeFormat, look.now)}`;
      const facts = `${formatDuration(durationMs).padStart(6)}${tools}${when}`;
      const drawn = cells === 0 ? '' : ` ${bar(durationMs / longest, cells)}`;
      const head = `  ${turn}${drawn} ${facts}`;
      if (width < 30) return [[{ text: fit(head, width, look.measure) }], ...below];
      const room = width - look.measure(head) - 2;
      return [
        [{ text: head }, { text: room < 6 ? '' : `  ${fit(toTerminalLine(question, 200), room, look.measure)}`, style: 'dim' }],
        ...below,
      ];
    }),
  ];
}

function drawPending(pending: readonly PendingActivity[], look: InspectionLook): StyledLine[] {
  const width = look.width ?? Infinity;
  return [
    [{ text: 'under way', style: 'dim' }],
    ...pending.flatMap(({ type, state, attempt, startedAt, nextAttemptAt, lastFailure, worker }): StyledLine[] => {
      const since = startedAt === null ? '' : `, since ${formatDuration(look.now - startedAt.getTime())}`;
      const next =
        nextAttemptAt === null || state !== 'scheduled' ? '' : `, again ${formatTime(nextAttemptAt.getTime(), look.timeFormat, look.now)}`;
      const by = worker === null || width < 60 ? '' : ` · ${worker}`;
      const head = `  ${type} ${state} · attempt ${attempt}${since}${next}${by}`;
      const failure = lastFailure === null ? [] : wrap(`last failure: ${toTerminalLine(lastFailure, 400)}`, width - 4, look.measure);
      return [
        [{ text: fit(head, width, look.measure) }],
        ...failure.map((part): StyledLine => [{ text: '    ' }, { text: part, style: 'yellow' }]),
      ];
    }),
  ];
}

/** At blanks; a word that is longer than a line is cut. */
export function wrap(text: string, width: number, measure: Measure): string[] {
  if (measure(text) <= width) return [text];
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (measure(longer) <= width) {
      line = longer;
      continue;
    }
    if (line !== '') lines.push(line);
    line = word;
    while (measure(line) > width) {
      const part = pad(fit(line, width + 1, measure).replace(/…$/, ''), width, measure).trimEnd();
      if (part === '') break;
      lines.push(part);
      line = line.slice(part.length);
    }
  }
  if (line !== '') lines.push(line);
  return lines;
}
