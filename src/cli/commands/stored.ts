/**
 * What is stored. `perdura admin backup` and `restore`: all that a store has, in a folder; neither needs Temporal, which may be what was lost.
 * `perdura gc`: what keeps it from growing for ever, now and not once a day.
 */
import { resolve } from 'node:path';
import { agentsFolder, createAgentLoader } from '../../agents/load-agent.js';
import type { Overdue } from '../../client/gc.js';
import { temporalConnection, type Config } from '../../config.js';
import { forgetAgain } from '../../memory/documents/forgetting.js';
import { toTraces } from '../../memory/traces.js';
import type { AtRest } from '../../platform/at-rest.js';
import { packageVersion } from '../../platform/optional-package.js';
import type { BackupFile, BackupHead } from '../../stores/backup/folder.js';
import type { Part, Restored } from '../../stores/backup/parts.js';
import { LifeDeleted, type ConversationKey, type Store } from '../../stores/store.js';
import type { Answer, CommandFrame, CommandRow } from '../session/command.js';
import { CliError, EXIT } from '../terminal/exit.js';
import type { Output } from '../terminal/output.js';
import { formatBytes, formatQuantity } from '../views/quantities.js';
import { withErasureAccess } from './erasure.js';

interface RestoreOptions {
  readonly skipDamaged?: boolean;
  readonly unfinished?: boolean;
}

export const STORED: readonly CommandRow[] = [
  {
    name: 'admin backup',
    description: 'copy all that the store has into a folder, while workers run; cut short, the same command goes on',
    args: [['<dir>', 'a new folder, or one in which a backup was cut short']],
    help: `Of the namespace that TEMPORAL_NAMESPACE names. Encrypted with the store's newest key where PERDURA_ENCRYPTION is set. What is left out is
made again: live events, indexes for search, files that no message has used. Temporal's database is backed up apart (docs/operations/backup.md).`,
    run: backUp,
  },
  {
    name: 'admin restore',
    description: 'put a backup into the store, empty or not, files or Redis; what the store has stays',
    args: [['<dir>', 'the folder that `perdura admin backup` wrote']],
    options: [
      ['--skip-damaged', 'restore what is whole, where files of the backup are damaged or missing'],
      ['--unfinished', 'restore what there is of a backup that was cut short'],
    ],
    help: `Every file is checked by its SHA-256 before anything is written. Nothing is replaced, and nothing that was deleted comes back, so the same
command can be run again. What conversations have done since the backup comes from Temporal's history: when they go on, or by
\`perdura admin heal ID\`.`,
    run: restore,
  },
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

async function openPlaces(config: Config): Promise<{ readonly store: Store; readonly namespace: string }> {
  const { openStore } = await import('../../stores/open.js');
  const { namespace } = await temporalConnection(config);
  const traceLines = (entry: Parameters<typeof toTraces>[0], { conversation }: ConversationKey): string[] =>
    toTraces(entry, conversation).map((trace) => JSON.stringify(trace));
  return { store: openStore(config, { traceLines }), namespace };
}

const PARTS_BETWEEN_NOTES = 500;

async function backUp({ config: load, output }: CommandFrame, given: string): Promise<Answer> {
  const config = load();
  const dir = resolve(config.cwd, given);
  const [{ openWriter }, { isGone, listParts, namePart, readPart }, { openAtRest }] = await Promise.all([
    import('../../stores/backup/folder.js'),
    import('../../stores/backup/parts.js'),
    import('../../stores/open.js'),
  ]);
  const { store, namespace } = await openPlaces(config);
  try {
    const head = { program: packageVersion(), store: await store.id(), kind: store.kind, namespace, begun: new Date().toISOString() };
    const writer = await asRefusal(openWriter(dir, head, openAtRest(config)));
    if (writer.known.size > 0) output.note(`(going on: ${formatQuantity(writer.known.size, 'part')} are there)`);
    const counts = { conversations: 0, scopes: 0, others: 0 };
    let [skipped, parts] = [0, 0];
    const seen = new Set<string>();
    for await (const part of listParts(store, namespace)) {
      const name = namePart(part);
      if (seen.has(name)) continue;
      seen.add(name);
      counts[part.kind === 'life' ? 'conversations' : part.kind === 'scope' ? 'scopes' : 'others'] += 1;
      if (writer.known.has(name)) continue;
      const records = readPart(store, namespace, part, (count) => (skipped += count));
      const written = await asRefusal(writer.add(part, records, () => isGone(store, namespace, part)));
      if ((parts += 1) % PARTS_BETWEEN_NOTES === 0) output.note(`(${formatQuantity(parts, 'part')}, ${formatBytes(written)} so far)`);
    }
    const { finished, files = 0, bytes } = await asRefusal(writer.finish(new Date()));
    return {
      data: { dir, ...head, finished, files, ...counts, bytes, skipped },
      text: `${dir}: ${formatQuantity(counts.conversations, 'conversation')}, ${formatQuantity(counts.scopes, 'scope')}, ${formatBytes(bytes)}`,
      problems: skipped > 0 ? [`not read and left out: ${formatQuantity(skipped, 'record')} of the store`] : [],
    };
  } finally {
    await store.close();
  }
}

async function restore({ config: load, output }: CommandFrame, given: string, options: RestoreOptions): Promise<Answer> {
  const config = load();
  const dir = resolve(config.cwd, given);
  const [{ readHead, readFiles }, { openAtRest }] = await Promise.all([
    import('../../stores/backup/folder.js'),
    import('../../stores/open.js'),
  ]);
  const head = await asRefusal(readHead(dir));
  if (head === undefined) throw new CliError(`there is no backup in ${dir}: it has no backup.json`, EXIT.notFound);
  if (head.finished === undefined && options.unfinished !== true)
    throw new CliError(
      `the backup in ${dir} was cut short: \`perdura admin backup\` with that folder finishes it, --unfinished restores what there is`,
      EXIT.usage,
    );
  const atRest = openAtRest(config);
  const files = await asRefusal(readFiles(dir, head, atRest));
  const damaged = await findDamaged(dir, files, output);
  if (damaged.size > 0 && options.skipDamaged !== true)
    throw new CliError(
      `nothing was restored, because of ${dir} ${[...damaged.values()].join('; ')}: put the files back from a copy, or restore the rest with --skip-damaged`,
      EXIT.failed,
    );
  const { store, namespace } = await openPlaces(config);
  try {
    if (head.namespace !== namespace)
      throw new CliError(
        `the backup in ${dir} is of the namespace ${head.namespace}, and TEMPORAL_NAMESPACE names ${namespace}: set it to that of the backup`,
        EXIT.usage,
      );
    // Its message says what to do, before the first file.
    await store.check();
    const whole = files.filter(({ file }) => !damaged.has(file));
    return describeRestored(dir, head, await restoreFiles({ store, namespace, dir, files: whole, atRest, output }), files, damaged);
  } finally {
    await store.close();
  }
}

async function findDamaged(dir: string, files: readonly BackupFile[], output: Output): Promise<Map<string, string>> {
  const { findDamage } = await import('../../stores/backup/folder.js');
  const damaged = new Map<string, string>();
  for (const file of files) {
    const why = await findDamage(dir, file);
    if (why === undefined) continue;
    damaged.set(file.file, why);
    output.problem(`${why}; in it: ${describeParts(file.parts)}`);
  }
  return damaged;
}

const MAX_NAMED = 10;

function describeParts(parts: readonly Part[]): string {
  const names = parts.map((part) =>
    part.kind === 'life' ? part.conversation : part.kind === 'scope' ? `the memory of ${part.scope}` : part.name,
  );
  const more = names.length - MAX_NAMED;
  return [...names.slice(0, MAX_NAMED), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

interface Totals extends Restored {
  conversations: number;
  scopes: number;
  /** Deleted since, so that they do not come back. */
  readonly deleted: Set<string>;
}

interface Restoring {
  readonly store: Store;
  readonly namespace: string;
  readonly dir: string;
  readonly files: readonly BackupFile[];
  readonly atRest: AtRest;
  readonly output: Output;
}

async function restoreFiles({ store, namespace, dir, files, atRest, output }: Restoring): Promise<Totals> {
  const [{ readParts }, { isGone, restorePart }] = await Promise.all([
    import('../../stores/backup/folder.js'),
    import('../../stores/backup/parts.js'),
  ]);
  const totals: Totals = { conversations: 0, scopes: 0, entries: 0, different: 0, unreadable: 0, deleted: new Set() };
  let parts = 0;
  for (const file of files) {
    for await (const { part, records } of readParts(dir, file, atRest)) {
      if (await isGone(store, namespace, part)) {
        if (part.kind === 'life') totals.deleted.add(part.conversation);
        continue;
      }
      try {
        const restored = await restorePart(store, namespace, part, records);
        for (const count of ['entries', 'different', 'unreadable'] as const) totals[count] += restored[count];
      } catch (error) {
        // Deleted while it was restored.
        if (!(error instanceof LifeDeleted) || part.kind !== 'life') throw error;
        totals.deleted.add(part.conversation);
      }
      if (part.kind === 'scope') await forgetAgain(store, { namespace, scope: part.scope });
      if (part.kind === 'life') totals.conversations += 1;
      if (part.kind === 'scope') totals.scopes += 1;
      if ((parts += 1) % PARTS_BETWEEN_NOTES === 0) output.note(`(${formatQuantity(parts, 'part')} so far)`);
    }
  }
  return totals;
}

function describeRestored(
  dir: string,
  head: BackupHead,
  { deleted, ...totals }: Totals,
  files: readonly BackupFile[],
  damaged: ReadonlyMap<string, string>,
): Answer {
  const { conversations, scopes, entries, different, unreadable } = totals;
  return {
    data: {
      dir,
      of: head.store,
      begun: head.begun,
      finished: head.finished ?? null,
      ...totals,
      deleted: [...deleted],
      damaged: [...damaged.keys()],
    },
    text: [
      `${formatQuantity(conversations, 'conversation')}, ${formatQuantity(entries, 'entry', 'entries')}, ${formatQuantity(scopes, 'scope')}`,
      `of the backup that was begun at ${head.begun}`,
    ].join(' '),
    notes: [
      ...(deleted.size > 0 ? [`${formatQuantity(deleted.size, 'conversation')} of it were deleted since, and stay so`] : []),
      ...(different > 0 ? [`${formatQuantity(different, 'record')} of it are different in the store, which keeps what it has`] : []),
      "what conversations have done since comes from Temporal's history when they go on; `perdura admin heal ID` does it now",
    ],
    problems: [
      ...(unreadable > 0 ? [`not understood and left out: ${formatQuantity(unreadable, 'record')} of the backup`] : []),
      ...(damaged.size > 0 ? [`not restored: ${damaged.size} of ${formatQuantity(files.length, 'file')} are damaged`] : []),
    ],
    exitCode: damaged.size > 0 ? EXIT.failed : EXIT.ok,
  };
}

async function asRefusal<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    if ((cause as { readonly name?: unknown }).name !== 'BackupRefused') throw cause;
    throw new CliError((cause as Error).message, EXIT.failed, { cause });
  }
}

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
