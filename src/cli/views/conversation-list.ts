/** `perdura list` for people. */
import type { Standing } from '../../client/current-status.js';
import type { TimeFormat } from '../args/global-options.js';
import { toTerminalLine, type StyledLine, type StyledSpan } from '../terminal/terminal-text.js';
import { formatCost, formatCount, formatTime } from './quantities.js';
import { wrap } from './inspection.js';
import { renderTable, type Column, type Measure } from './table.js';

export interface ListLook {
  /** Of the screen; undefined where there is none. */
  readonly width?: number;
  readonly timeFormat: TimeFormat;
  readonly now: number;
  readonly measure: Measure;
}

export function renderList(conversations: readonly Standing[], look: ListLook): StyledLine[] {
  const ids = look.width === undefined ? undefined : shortIds(conversations.map(({ id }) => id));
  const hasTurns = conversations.some(({ turns }) => turns !== null);
  const columns: Column<Standing>[] = [
    { title: 'ID', cell: (one) => tenantsName(one) ?? ids?.get(one.id) ?? one.id, look: () => 'cyan', rank: 0 },
    { title: 'STATUS', cell: shownStatus, look: lookOfStatus, rank: 1 },
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
    { title: 'STARTED', cell: ({ startedAt }) => formatTime(startedAt.getTime(), look.timeFormat, look.now), rank: 3 },
    { title: 'TITLE', cell: ({ title }) => toTerminalLine(title ?? '', 200), least: 8, rank: 2 },
  ];
  return renderTable(conversations, columns, look);
}

/** As commands take it, and its tenant knows it. */
function tenantsName({ tenant, publicId }: Standing): string | undefined {
  return tenant === null || publicId === null ? undefined : `${tenant}/${publicId}`;
}

const MAX_PROBLEMS = 5;

/** Why the last turns of conversations have no whole answer, and what to do, below the list. */
export function renderProblems(conversations: readonly Standing[], { width, measure }: ListLook): StyledLine[] {
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
export function shownStatus({ running, state, status }: Standing): string {
  return running ? (status ?? 'running') : state;
}

function lookOfStatus(conversation: Standing): StyledSpan['style'] {
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
