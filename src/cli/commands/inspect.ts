/** `perdura debug inspect`: how a conversation stands, with or without a worker. */
import type { Description, Listed, Pending, PendingActivity, TurnEnd } from '../../client.js';
import type { QueuedEvent, Status } from '../../conversation/protocol/contract.js';
import { inspectTurns, type InspectedTurn } from '../../insight/turns.js';
import { errorMessage } from '../../platform/errors.js';
import type { Entry } from '../../records/message.js';
import { findConversation } from '../args/find-conversation.js';
import { parseCount } from '../args/values.js';
import { findUiPort, uiLink } from '../services/temporal-connection.js';
import { CONVERSATION, type Answer, type CommandRow, type CommandSession } from '../session/command.js';
import { withTimeoutFallback } from '../session/with-progress.js';
import { toTerminalLine, type StyledLine, type StyledSpan } from '../terminal/terminal-text.js';
import { renderApprovals, shownName } from '../views/approvals.js';
import { renderQueue, renderTree } from '../views/state.js';
import {
  formatQuantity,
  describeBudget,
  formatBytes,
  formatCount,
  formatDuration,
  formatTime,
  formatUsage,
  describePrefix,
} from '../views/quantities.js';
import { renderTable, wrap, type Column, type Look } from '../views/table.js';

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
  /** Its page in Temporal's UI. */
  readonly link: string | null;
}

const MAX_CHILDREN = 100;

export const INSPECT: readonly CommandRow[] = [
  {
    name: 'debug inspect',
    description: 'show the state of a conversation: phase, context, queue, cost, running effects',
    args: [CONVERSATION],
    options: [['--turns <count>', 'how many of the last turns', parseCount, 5]],
    async run(frame, given: string, { turns }: { readonly turns: number }): Promise<Answer> {
      const session = await frame.open();
      const id = await findConversation(session, given);
      const inspection = await session.withSlowNotice(`looking at ${id}`, readInspection(session, id, turns));
      return {
        data: inspection,
        draw: (look) => renderInspection(inspection, look),
        temporal: ['workflow', 'describe', '-w', id],
      };
    },
  },
];

async function readInspection({ client, temporal, output }: CommandSession, id: string, most: number): Promise<Inspection> {
  const description = await client.describe(id);
  const [status, queue, approvals, children, [entries, ends], uiPort] = await Promise.all([
    withTimeoutFallback<Status | null>(client.status(id), null),
    withTimeoutFallback<QueuedEvent[]>(client.queue(id), []),
    withTimeoutFallback<Pending[]>(client.approvals(id), []),
    client.list({ query: `WorkflowId STARTS_WITH '${id}:'`, limit: MAX_CHILDREN }).catch((): Listed[] => []),
    Promise.all([client.history(id), client.turnEnds(id)]).catch((error: unknown): [Entry[], TurnEnd[]] => {
      output.problem(`the messages cannot be read: ${errorMessage(error)}`);
      return [[], []];
    }),
    findUiPort(temporal),
  ]);
  const link = uiLink(temporal, uiPort, id) ?? null;
  return { description, status, queue, approvals, children, turns: inspectTurns(entries, ends, most), link };
}

type Fact = readonly [name: string, text: string, style?: StyledSpan['style']];

export function renderInspection({ description, status, queue, approvals, children, turns, link }: Inspection, look: Look): StyledLine[] {
  const section = (name: string, lines: readonly StyledLine[]): StyledLine[] =>
    lines.length === 0 ? [] : [[], [{ text: name, style: 'dim' }], ...lines];
  const facts = [...describeConversation(description, status, look), ...(status === null ? [] : describeState(status, look))];
  return [
    [{ text: description.id, style: 'cyan' }],
    [],
    ...facts.flatMap((fact) => drawFact(fact, look)),
    ...section('queue', queue.length === 0 ? [] : renderQueue(queue, look.timeFormat, look.now)),
    ...section('waits for a person', approvals.length === 0 ? [] : renderApprovals(approvals, look)),
    ...section('at work', renderTree(status?.subAgents ?? [])),
    ...section('sub-agents', children.length === 0 ? [] : renderTable(children, CHILD_COLUMNS, look)),
    ...section('last turns', turns.length === 0 ? [] : renderTable(turns, turnColumns(look), look)),
    ...section(
      'running activities',
      description.pendingActivities.length === 0 ? [] : renderTable(description.pendingActivities, activityColumns(look), look),
    ),
    ...(link === null ? [] : [[], [{ text: link, style: 'dim' }] as StyledLine]),
  ];
}

/** Below this the names of the facts stand on separate lines. */
const NARROW = 44;
const LABEL = 10;

function drawFact([name, text, style]: Fact, { width = Infinity, measure }: Look): StyledLine[] {
  if (width < NARROW) {
    const below = wrap(text, width - 2, measure).map((part): StyledLine => [{ text: '  ' }, { text: part, style }]);
    return [[{ text: name, style: 'dim' }], ...below];
  }
  return wrap(text, width - LABEL, measure).map((part, at): StyledLine => [
    { text: (at === 0 ? name : '').padEnd(LABEL), style: 'dim' },
    { text: part, style },
  ]);
}

/** What Temporal knows without a worker. */
function describeConversation(description: Description, status: Status | null, { timeFormat, now }: Look): Fact[] {
  const { state, tenant, startedAt, closedAt, historyEvents, historyBytes } = description;
  const title = status?.title ?? description.title;
  const agent = status?.agent ?? description.agent;
  const ended = closedAt === null ? '' : `, ended ${formatTime(closedAt.getTime(), timeFormat, now)}`;
  const where = state === 'running' ? (status?.phase ?? 'running; no worker answers for it') : state;
  const position = status === null ? '' : ` · turn ${status.turn} · session ${status.session}`;
  return [
    ...(title === null ? [] : [['title', toTerminalLine(title, 200)] as const]),
    ['status', `${where}${position}`, stateStyle(state, status)],
    ...(agent === null ? [] : [['agent', agent] as const]),
    ...(tenant === null ? [] : [['tenant', tenant] as const]),
    ['started', `${formatTime(startedAt.getTime(), timeFormat, now)}${ended}`],
    ['history', `${formatQuantity(historyEvents, 'event')}${historyBytes === null ? '' : `, ${formatBytes(historyBytes)}`}`],
  ];
}

function stateStyle(state: Description['state'], status: Status | null): StyledSpan['style'] {
  if (state === 'failed' || state === 'terminated' || state === 'timed-out') return 'red';
  if (status?.phase === 'waiting-to-retry' || status?.phase === 'waiting-for-person') return 'yellow';
  return state === 'running' ? 'green' : undefined;
}

function describeState(status: Status, { timeFormat, now }: Look): Fact[] {
  const { waitingFor, mode, stepLock, pausedBy, nextStep, model, fallback, allowedCalls, context, usage, budget, rejectedInputs } = status;
  const prefix = describePrefix(context);
  const facts: (Fact | false)[] = [
    waitingFor !== undefined && ['waiting', toTerminalLine(waitingFor, 400), 'yellow'],
    mode === 'stepping' && ['mode', `stepping${stepLock === null ? '' : ` · step ${stepLock} is running`}`, 'yellow'],
    Boolean(pausedBy) && ['paused by', toTerminalLine(pausedBy ?? '', 200), 'yellow'],
    mode === 'stepping' && Boolean(nextStep) && ['next', toTerminalLine(nextStep ?? '', 200)],
    Boolean(model) && ['model', model ?? ''],
    fallback
      ? ['fallback', `${fallback.turn} by ${fallback.model} in place of ${fallback.insteadOf} (${fallback.reason})`, 'yellow']
      : false,
    allowedCalls ? ['allowed', describeAllowed(allowedCalls)] : false,
    ['context', describeContext(context)],
    prefix !== undefined && ['cache', prefix],
    ['usage', formatUsage(usage)],
    budget !== null && ['budget', describeBudget(budget)],
    describeWindow(status, timeFormat, now),
    rejectedInputs.count > 0 && ['refused', describeRejected(rejectedInputs), 'yellow'],
    ...describeEvents(status),
  ];
  return facts.filter((fact) => fact !== false);
}

function describeContext({ tokens, budget }: Status['context']): string {
  if (budget === 0) return `${formatCount(tokens)} tokens`;
  return `${formatCount(tokens)} of ${formatCount(budget)} tokens, ${Math.round((tokens / budget) * 100)} %`;
}

function describeAllowed(allowed: NonNullable<Status['allowedCalls']>): string {
  const named = allowed.slice(-3).map(({ tool, target, callId }) => `${shownName(tool)} ${toTerminalLine(target, 60)} (${callId})`);
  const more = allowed.length > 3 ? ` and ${allowed.length - 3} more` : '';
  return `${named.join(', ')}${more} without asking, until /new`;
}

/** What long-term memory does not have yet. A worker of an earlier version does not report it. */
function describeWindow(status: Status, timeFormat: Look['timeFormat'], at: number): Fact | false {
  const window = status.window as Status['window'] | undefined;
  if (window === undefined) return false;
  const { since, messages, consolidated, limit, consolidating, owed } = window;
  const text = [
    `${limit === null ? formatQuantity(messages, 'message') : `${formatCount(messages)} of ${formatQuantity(limit, 'message')}`} since ${formatTime(since, timeFormat, at)}`,
    ...(consolidated === 0 ? [] : [`${formatCount(consolidated)} more ${consolidated === 1 ? 'is' : 'are'} consolidated`]),
    ...(consolidating === 0 ? [] : [`${consolidating} being consolidated`]),
    ...(owed === 0 ? [] : [`${owed} owed to memory`]),
  ].join(' · ');
  return ['window', text, owed > 0 ? 'yellow' : undefined];
}

function describeRejected({ count, last }: Status['rejectedInputs']): string {
  const latest = last.at(-1);
  return `${formatQuantity(count, 'input')}${latest === undefined ? '' : `, last: ${toTerminalLine(`${latest.name}: ${latest.reason}`, 200)}`}`;
}

function describeEvents({ appEvents }: Status): (Fact | false)[] {
  if (!appEvents) return [];
  const { chunks, unreduced, parked, parkedCount } = appEvents;
  const last = parked.at(-1);
  const types = toTerminalLine(unreduced.types.join(', '), 200);
  return [
    ['events', `${formatQuantity(chunks, 'chunk')} in the context`],
    unreduced.count > 0 && ['', `${unreduced.count} without a reducer: ${types}`, 'yellow'],
    last ? ['', `${parkedCount} parked, last: ${toTerminalLine(`${last.type} ${last.id}: ${last.error}`, 200)}`, 'yellow'] : false,
  ];
}

const CHILD_COLUMNS: readonly Column<Listed>[] = [
  { title: 'ID', cell: ({ id }) => id, look: () => 'cyan', rank: 0 },
  { title: 'STATUS', cell: ({ running, status, state }) => (running ? (status ?? 'running') : state), rank: 1 },
  { title: 'AGENT', cell: ({ agent }) => toTerminalLine(agent ?? '', 64), least: 6, rank: 2 },
  { title: 'TITLE', cell: ({ title }) => toTerminalLine(title ?? '', 200), least: 8, rank: 3 },
];

function turnColumns({ timeFormat, now }: Look): Column<InspectedTurn>[] {
  return [
    { title: 'TURN', cell: ({ turn }) => turn, rank: 0 },
    { title: 'TOOK', cell: ({ durationMs }) => formatDuration(durationMs), align: 'right', rank: 2 },
    { title: 'TOOLS', cell: ({ toolCalls }) => (toolCalls === 0 ? '' : String(toolCalls)), align: 'right', rank: 4 },
    { title: 'STARTED', cell: ({ startedAt }) => formatTime(startedAt.getTime(), timeFormat, now), rank: 3 },
    {
      title: 'MESSAGE',
      cell: ({ question, problem }) => toTerminalLine(problem ?? question, 400),
      look: ({ problem }) => (problem === undefined ? 'dim' : 'red'),
      least: 8,
      rank: 1,
    },
  ];
}

function activityColumns({ timeFormat, now }: Look): Column<PendingActivity>[] {
  return [
    { title: 'TYPE', cell: ({ type }) => type, rank: 0 },
    { title: 'STATE', cell: ({ state }) => state, rank: 2 },
    { title: 'ATTEMPT', cell: ({ attempt }) => String(attempt), align: 'right', rank: 1 },
    { title: 'SINCE', cell: ({ startedAt }) => (startedAt === null ? '' : formatTime(startedAt.getTime(), timeFormat, now)), rank: 4 },
    { title: 'WORKER', cell: ({ worker }) => worker ?? '', rank: 5, least: 8 },
    { title: 'LAST FAILURE', cell: ({ lastFailure }) => toTerminalLine(lastFailure ?? '', 400), look: () => 'yellow', least: 8, rank: 3 },
  ];
}
