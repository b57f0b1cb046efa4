/** `perdura list`: conversations that visibility knows, as they stand now. */
import { Option } from 'commander';
import type { Listed } from '../../client.js';
import { withCurrentStatus, type Standing } from '../../client/listing.js';
import { errorMessage } from '../../platform/errors.js';
import { parseCount } from '../args/values.js';
import { hasWorker } from '../services/temporal-connection.js';
import type { Answer, CommandRow, CommandSession } from '../session/command.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalLine, type StyledLine, type StyledSpan } from '../terminal/terminal-text.js';
import { formatCost, formatCount, formatTime } from '../views/quantities.js';
import { renderTable, wrap, type Column, type Look } from '../views/table.js';

const STATUSES = ['running', 'waiting', 'failed', 'ended', 'canceled', 'terminated', 'timed-out'] as const;
type ListStatus = (typeof STATUSES)[number];

interface ListOptions {
  readonly query?: string;
  readonly limit: number;
  readonly status?: ListStatus;
  readonly tenant?: string;
}

export const LIST: readonly CommandRow[] = [
  {
    name: 'list',
    description: 'list conversations, latest first',
    options: [
      ['-q, --query <query>', "a query of Temporal's visibility, as in: AgentName = 'default' AND AgentTurns > 10"],
      ['--limit <count>', 'at most so many', parseCount, 20],
      ['--tenant <name>', "only this tenant's"],
      new Option('--status <status>', 'only these').choices(STATUSES),
    ],
    async run(frame, { query, limit, status, tenant }: ListOptions): Promise<Answer> {
      const session = await frame.open();
      const { client, withSlowNotice } = session;
      const conditions = [
        ...(query === undefined ? [] : [`(${query})`]),
        ...(status === undefined
          ? []
          : [statusQuery(status, await withSlowNotice('asking for search attributes', hasAttributes(session, status)))]),
      ];
      const filter = conditions.length === 0 ? undefined : conditions.join(' AND ');
      // One more than is shown, to know whether there are more.
      const listing = client.list({ limit: limit + 1, query: filter, ...(tenant !== undefined && { tenant }) });
      const found = await withSlowNotice('listing conversations', listing.catch(explainQuery(query)));
      const shown = await withSlowNotice('asking how they stand', readStanding(session, found.slice(0, limit)));
      const nothing =
        filter === undefined && tenant === undefined ? 'there are no conversations yet; `perdura new` starts one' : 'no conversation fits';
      return {
        data: shown,
        draw: (look) => (shown.length === 0 ? [] : [...renderList(shown, look), ...renderProblems(shown, look)]),
        notes: [
          ...(shown.length === 0 ? [nothing] : []),
          ...(shown.some(({ isCurrent, turns }) => !isCurrent && turns !== null)
            ? ['+: as of the last tenth turn, since no worker answered in time']
            : []),
          ...(found.length > limit ? [`the first ${limit} of more; --limit shows more`] : []),
        ],
        temporal: ['workflow', 'list', '-q', [`WorkflowType = 'conversation'`, ...conditions].join(' AND '), '--limit', String(limit)],
      };
    },
  },
];

async function readStanding({ config, client }: CommandSession, listed: readonly Listed[]): Promise<Standing[]> {
  if (listed.length === 0) return [];
  const { connectTemporal } = await import('../../client.js');
  const { connection } = await connectTemporal(config);
  try {
    return await withCurrentStatus(listed, {
      statusOf: client.status,
      hasWorker: (taskQueue) => hasWorker(connection, client.namespace, taskQueue),
    });
  } finally {
    await connection.close();
  }
}

function explainQuery(query: string | undefined): (error: unknown) => never {
  return (error) => {
    if (query === undefined || (error as { kind?: unknown }).kind !== 'invalid') throw error;
    const why = errorMessage(error).replace(/^.*INVALID_ARGUMENT: /s, '');
    throw new CliError(`cannot list by ${query}: ${why}; \`perdura list --help\` has an example`, EXIT.usage, { cause: error });
  };
}

/** Only where the answer matters: `running` and the rest are Temporal's. */
async function hasAttributes({ config, client }: CommandSession, status: ListStatus): Promise<boolean> {
  if (status !== 'waiting' && status !== 'failed') return false;
  const [{ connectTemporal }, { missingAttributes }] = await Promise.all([
    import('../../client.js'),
    import('../../client/temporal/connection.js'),
  ]);
  const { connection } = await connectTemporal(config);
  try {
    return (await missingAttributes(connection, client.namespace)).length === 0;
  } finally {
    await connection.close();
  }
}

const EXECUTION: Readonly<Record<Exclude<ListStatus, 'waiting'>, string>> = {
  running: 'Running',
  failed: 'Failed',
  ended: 'Completed',
  canceled: 'Canceled',
  terminated: 'Terminated',
  'timed-out': 'TimedOut',
};

function statusQuery(status: ListStatus, attributes: boolean): string {
  if (status === 'waiting') {
    if (attributes) return `(ExecutionStatus = 'Running' AND AgentStatus = 'waiting')`;
    throw new CliError(
      'cannot list what waits: the search attribute AgentStatus is not registered; `perdura admin setup` does that',
      EXIT.failed,
    );
  }
  const execution = `ExecutionStatus = '${EXECUTION[status]}'`;
  return status === 'failed' && attributes ? `(${execution} OR (ExecutionStatus = 'Running' AND AgentStatus = 'failed'))` : execution;
}

export function renderList(conversations: readonly Standing[], look: Look): StyledLine[] {
  const ids = look.width === undefined ? undefined : shortIds(conversations.map(({ id }) => id));
  const hasTurns = conversations.some(({ turns }) => turns !== null);
  const columns: Column<Standing>[] = [
    { title: 'ID', cell: (one) => tenantName(one) ?? ids?.get(one.id) ?? one.id, look: () => 'cyan', rank: 0 },
    { title: 'STATUS', cell: shownStatus, look: statusStyle, rank: 1 },
    ...(conversations.some(({ tenant }) => tenant !== null)
      ? ([{ title: 'TENANT', cell: ({ tenant }) => toTerminalLine(tenant ?? '', 40), least: 6, rank: 4 }] satisfies Column<Standing>[])
      : []),
    { title: 'AGENT', cell: ({ agent }) => toTerminalLine(agent ?? '', 64), least: 6, rank: 4 },
    ...(hasTurns
      ? ([
          {
            title: 'TURNS',
            cell: ({ turns, isCurrent }) => (turns === null ? '' : `${formatCount(turns)}${isCurrent ? '' : '+'}`),
            align: 'right',
            rank: 5,
          },
          {
            title: 'COST', // Search attributes have no word for a cost that is not known.
            cell: ({ costUsd, isCurrent }) => (costUsd === null || costUsd === 0 ? '' : `${formatCost(costUsd)}${isCurrent ? '' : '+'}`),
            align: 'right',
            rank: 6,
          },
        ] satisfies Column<Standing>[])
      : []),
    ...(conversations.some(({ build }) => build !== undefined)
      ? ([{ title: 'BUILD', cell: ({ build }) => toTerminalLine(build ?? '', 40), least: 6, rank: 5 }] satisfies Column<Standing>[])
      : []),
    { title: 'STARTED', cell: ({ startedAt }) => formatTime(startedAt.getTime(), look.timeFormat, look.now), rank: 3 },
    { title: 'TITLE', cell: ({ title }) => toTerminalLine(title ?? '', 200), least: 8, rank: 2 },
  ];
  return renderTable(conversations, columns, look);
}

/** As commands take it, and its tenant knows it. */
function tenantName({ tenant, publicId }: Standing): string | undefined {
  return tenant === null || publicId === null ? undefined : `${tenant}/${publicId}`;
}

const MAX_PROBLEMS = 5;

/** Why the last turns of conversations have no whole answer, and what to do, below the list. */
export function renderProblems(conversations: readonly Standing[], { width, measure }: Look): StyledLine[] {
  const ids = width === undefined ? undefined : shortIds(conversations.map(({ id }) => id));
  const problems = conversations.flatMap(({ id, lastError }) =>
    lastError ? [{ id: ids?.get(id) ?? id, message: lastError.message }] : [],
  );
  const lines = problems.slice(0, MAX_PROBLEMS).flatMap(({ id, message }): StyledLine[] => {
    const [first = '', ...rest] = wrap(toTerminalLine(message, 400), (width ?? Infinity) - measure(id) - 2, measure);
    const below = rest.map((part): StyledLine => [{ text: `${' '.repeat(measure(id))}  ${part}`, style: 'red' }]);
    return [
      [
        { text: id, style: 'cyan' },
        { text: `  ${first}`, style: 'red' },
      ],
      ...below,
    ];
  });
  const more = problems.length - MAX_PROBLEMS;
  if (lines.length === 0) return [];
  return [[], ...lines, ...(more > 0 ? [[{ text: `… and ${more} more: \`perdura show ID\` says why`, style: 'dim' as const }]] : [])];
}

/** What runs says how it is, where search attributes say so. */
function shownStatus({ running, state, status }: Standing): string {
  return running ? (status ?? 'running') : state;
}

function statusStyle(conversation: Standing): StyledSpan['style'] {
  const status = shownStatus(conversation);
  if (status === 'failed' || status === 'terminated' || status === 'timed-out') return 'red';
  return status === 'waiting' ? 'yellow' : conversation.running ? 'green' : 'dim';
}

/** Long ids as their shortest beginnings that are still different, as every command takes them. */
export function shortIds(ids: readonly string[]): ReadonlyMap<string, string> {
  const least = 13;
  return new Map(
    ids.map((id) => {
      let length = Math.min(least, id.length);
      while (length < id.length && ids.some((other) => other !== id && other.startsWith(id.slice(0, length)))) length++;
      // One more character is no shorter than the sign of a cut.
      return [id, length >= id.length - 1 ? id : `${id.slice(0, length)}…`];
    }),
  );
}
