/** `perdura list` for people. */
import type { Listed } from '../../client.js';
import type { TimeFormat } from '../args/global-options.js';
import { toTerminalLine, type StyledLine, type StyledSpan } from '../terminal/terminal-text.js';
import { formatCost, formatCount, formatTime } from './quantities.js';
import { renderTable, type Column, type Measure } from './table.js';

export interface ListLook {
  /** Of the screen; undefined where there is none. */
  readonly width?: number;
  readonly timeFormat: TimeFormat;
  readonly now: number;
  readonly measure: Measure;
}

export function renderList(conversations: readonly Listed[], look: ListLook): StyledLine[] {
  const ids = look.width === undefined ? undefined : shortIds(conversations.map(({ id }) => id));
  const hasTurns = conversations.some(({ turns }) => turns !== null);
  const columns: Column<Listed>[] = [
    { title: 'ID', cell: ({ id }) => ids?.get(id) ?? id, look: () => 'cyan', rank: 0 },
    { title: 'STATUS', cell: shownStatus, look: lookOfStatus, rank: 1 },
    { title: 'AGENT', cell: ({ agent }) => toTerminalLine(agent ?? '', 64), least: 6, rank: 4 },
    ...(hasTurns
      ? ([
          { title: 'TURNS', cell: ({ turns }) => (turns === null ? '' : formatCount(turns)), align: 'right', rank: 5 },
          {
            title: 'COST', // Search attributes have no word for a cost that is not known.
            cell: ({ costUsd }) => (costUsd === null || costUsd === 0 ? '' : formatCost(costUsd)),
            align: 'right',
            rank: 6,
          },
        ] satisfies Column<Listed>[])
      : []),
    { title: 'STARTED', cell: ({ startedAt }) => formatTime(startedAt.getTime(), look.timeFormat, look.now), rank: 3 },
    { title: 'TITLE', cell: ({ title }) => toTerminalLine(title ?? '', 200), least: 8, rank: 2 },
  ];
  return renderTable(conversations, columns, look);
}

/** What runs says how it is, where search attributes tell. */
export function shownStatus({ running, state, status }: Listed): string {
  return running ? (status ?? 'running') : state;
}

function lookOfStatus(conversation: Listed): StyledSpan['style'] {
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
