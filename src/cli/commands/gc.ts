/** `perdura gc`: what keeps an installation from growing for ever, now and not once a day. */
import type { Overdue } from '../../client/gc.js';
import { agentsFolder, createAgentLoader } from '../../agents/load-agent.js';
import type { Answer, CommandFrame, CommandRow } from '../session/command.js';
import { EXIT } from '../terminal/exit.js';
import { formatBytes, formatQuantity } from '../views/quantities.js';
import { withErasureAccess } from './erasure.js';

export const GC: readonly CommandRow[] = [
  {
    name: 'gc',
    description: 'close conversations that are idle for as long as they say, and move what is old to the archive',
    options: [['--dry-run', 'show which are to be closed, and do nothing']],
    help: `Workers do it once a day, by the schedule gc-QUEUE. Closed is what has \`idle\` in its agent's agent.json or in its start; archived, where
PERDURA_ARCHIVE is set, what has rested for PERDURA_ARCHIVE_AFTER. Nothing is lost: \`perdura show ID --where\` says what lies where, and what
is needed of it comes back by itself. It can be cut short and run again at any moment.`,
    run: collect,
  },
];

async function collect(frame: CommandFrame, { dryRun = false }: { readonly dryRun?: boolean }): Promise<Answer> {
  const session = await frame.open({ whenInterrupted: 'interrupted; the same command does the rest' });
  const { config, output, signal, withSlowNotice } = session;
  const { collectGarbage, findOverdue, gcSchedule } = await import('../../client/gc.js');
  return withErasureAccess(session, async (access) => {
    const agents = createAgentLoader(agentsFolder(config));
    const { place } = access.store.archived;
    const kept: string[] = [];
    const options = {
      ...{ agents, archiveAfter: config.archiveAfter, stop: signal },
      onClosed: ({ id }: Overdue) => output.note(`(closed ${id})`),
      onKept: ({ id }: Overdue, why: string) => kept.push(`${id} stays open: ${why}`),
    };
    if (dryRun) {
      const overdue = await withSlowNotice('looking which are idle', findOverdue(access, options));
      const lines = overdue.map(
        ({ id, days, lastAt }) => `${id}  idle since ${lastAt.toISOString()}, closed after ${formatQuantity(days, 'day')}`,
      );
      return {
        data: { overdue: overdue.map(({ lastAt, ...one }) => ({ ...one, lastAt: lastAt.toISOString() })), archive: place?.where ?? null },
        text: lines.length === 0 ? 'nothing is to be closed' : lines.join('\n'),
        notes: [describeArchive(place?.where, config.archiveAfter)],
      };
    }
    const outcome = await withSlowNotice('looking what is old', collectGarbage(access, options));
    const { closed, archived, entries, bodies, plainBytes, bytes, removed, adopted, unknown } = outcome;
    return {
      data: { ...outcome, kept, archive: place?.where ?? null, schedule: gcSchedule(access.taskQueue) },
      text: [
        `${formatQuantity(closed, 'conversation')} closed`,
        place === undefined
          ? 'nothing archived'
          : `${formatQuantity(archived, 'conversation')} archived: ${formatQuantity(entries, 'message')}, ${formatQuantity(bodies, 'long text')}, ${formatBytes(bytes)} for ${formatBytes(plainBytes)}`,
      ].join('; '),
      notes: [
        ...(place === undefined ? [describeArchive(undefined, config.archiveAfter)] : []),
        ...(removed + adopted > 0 ? [`of earlier runs that were killed: ${removed} parts removed, ${adopted} taken into the index`] : []),
        ...(unknown > 0 ? [`${unknown} parts of the archive are of conversations that this store does not know: they stay`] : []),
      ],
      problems: kept,
      exitCode: EXIT.ok,
    };
  });
}

function describeArchive(where: string | undefined, days: number): string {
  return where === undefined
    ? 'nothing goes to an archive: PERDURA_ARCHIVE names none'
    : `what has rested for ${formatQuantity(days, 'day')} goes to ${where}`;
}
