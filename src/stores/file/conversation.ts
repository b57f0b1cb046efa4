/**
 * One conversation's journal, open as an index in memory.
 *
 * - A reader looks at the size of the journal first and folds the lines of others; nothing new costs one `stat`.
 * - A writer holds the lock, folds, decides, appends one line, folds that line as any other process would, and waits for the disk: the
 *   answer is the content of the journal, not the intent of the writer.
 * - `raw_traces.jsonl` is derived: appended after the journal while that goes to the disk, not synced, and written anew whenever its size
 *   is not that of the journal's traces (a worker died in between, a line is torn, a person edited it).
 * - So is `raw_traces_archive.jsonl`, of the archived entries. It changes with an archiving or a restoring alone, and is checked only then
 *   and at the first opening: recording and committing know nothing of it.
 */
import { statSync, type Stats } from 'node:fs';
import { dirname, join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import type { Entry } from '../../records/message.js';
import type { AtRest } from '../../platform/at-rest.js';
import { isForeign } from './errors.js';
import type { FileHandles } from './handles.js';
import { emptyIndex, foldLine, type JournalIndex, type JournalLine } from './journal.js';
import { createTurns, readNewLines, replaceFileIf, syncFolder, UNREAD } from './lines.js';
import type { WithLock } from './lock.js';

export interface OpenConversation {
  /** Fresh, also when another process has written. */
  read(): Promise<JournalIndex>;
  /** Appends the line or lines that `decide` returns, if any, and answers with the index after them. */
  write(decide: (index: JournalIndex) => Decided | Promise<Decided>): Promise<JournalIndex>;
  /** Puts the lines that `make` returns in the place of all there are; undefined leaves them. */
  rewrite(make: (index: JournalIndex) => Promise<readonly JournalLine[] | undefined>): Promise<boolean>;
  /** Bytes of the journal, about what the index takes. */
  size(): number;
}

type Decided = JournalLine | readonly JournalLine[] | undefined;

export interface ConversationFiles {
  readonly dir: string;
  readonly handles: FileHandles;
  readonly withLock: WithLock;
  readonly atRest: AtRest;
  /** Folders whose name in their parent is known to be on the disk. */
  readonly synced: Set<string>;
  readonly traceLines?: (entry: Entry) => readonly string[];
  readonly log?: (line: string) => void;
}

export function openConversation({
  dir,
  handles,
  withLock,
  atRest,
  synced,
  traceLines: readable,
  log,
}: ConversationFiles): OpenConversation {
  const journal = join(dir, 'journal.jsonl');
  const traces = join(dir, 'raw_traces.jsonl');
  const archive = join(dir, 'raw_traces_archive.jsonl');
  // For people and grep, who could read nothing of it.
  const traceLines = atRest.isOn ? undefined : readable;
  let index = emptyIndex();
  let reading = UNREAD;
  let traceBytes = 0;
  /** Entries went from one trace file to the other since both were last written. */
  let moved = false;
  let checked = false;

  const toTraceText = (entries: Iterable<Entry>): string =>
    traceLines === undefined
      ? ''
      : Array.from(entries, (entry) =>
          traceLines(entry)
            .map((line) => `${line}\n`)
            .join(''),
        ).join('');

  const toArchiveText = (): string => toTraceText([...index.archived].flatMap((slot) => index.entries.get(slot) ?? []));
  const isActive = ({ slot }: Entry): boolean => !index.archived.has(slot);

  /** Answers with the active traces that came with the line. */
  function foldOne(line: string): string {
    const { added, archived, restored } = foldLine(index, line);
    const active = index.archived.size === 0 ? added : added.filter(isActive);
    const text = toTraceText(active);
    traceBytes += Buffer.byteLength(text);
    if (archived.length > 0 || restored.length > 0 || active.length < added.length) {
      moved = true;
      traceBytes += Buffer.byteLength(toTraceText(restored)) - Buffer.byteLength(toTraceText(archived));
    }
    return text;
  }

  async function fold(): Promise<string> {
    let added = '';
    reading = await readNewLines(
      journal,
      reading,
      (line) => (added += foldOne(atRest.openRecord(line))),
      () => {
        index = emptyIndex();
        traceBytes = 0;
        moved = false;
      },
    );
    return added;
  }

  async function append(...lines: readonly string[]): Promise<void> {
    const begins = reading.ino === 0;
    const stored = lines.map((line) => `${atRest.seal(line)}\n`).join('');
    const appended = await handles.append(journal, stored, reading, { sync: true });
    const follow = async (): Promise<void> => {
      if (appended.reading === undefined) return followTraces(await fold());
      reading = appended.reading;
      return followTraces(lines.map(foldOne).join(''));
    };
    await Promise.all([appended.synced, begins && syncUpwards(dir, synced), follow()]);
  }

  async function followArchive(): Promise<void> {
    const text = toArchiveText();
    if (measure(archive) !== Buffer.byteLength(text)) await writeFileAtomic(archive, text, { fsync: false });
  }

  /** Never fails a write that the journal has: what is derived is derived again next time. */
  async function followTraces(added: string): Promise<void> {
    if (traceLines === undefined) return;
    try {
      if (moved) await followArchive();
      const { ino, size } = tryStat(traces) ?? UNREAD;
      if (size === traceBytes - Buffer.byteLength(added) && !moved) {
        if (added !== '') await handles.append(traces, added, { ino, end: size, size }, { sync: false });
      } else if (moved || size !== traceBytes) {
        await writeFileAtomic(traces, toTraceText([...index.entries.values()].filter(isActive)), { fsync: false });
      }
      moved = false;
    } catch (error) {
      log?.(`cannot bring ${traces} up to date: ${String(error)}; the next write to this conversation tries again`);
    }
  }

  // Within a process waiting in line is cheaper than contending for the lock, and folds never overlap.
  const inTurn = createTurns();
  return {
    size: () => reading.size,

    read: () =>
      inTurn(async () => {
        try {
          await fold();
        } catch (error) {
          if (!isForeign(error)) throw error;
          return { ...emptyIndex(), skipped: 1 };
        }
        if (!checked && reading.ino !== 0 && traceLines !== undefined) {
          moved &&= measure(archive) !== Buffer.byteLength(toArchiveText());
          if (moved || measure(traces) !== traceBytes) {
            await withLock(join(dir, 'lock'), async () => followTraces(await fold())).catch((error: unknown) =>
              log?.(`cannot rebuild ${traces}: ${String(error)}; the next write to this conversation tries again`),
            );
          }
          checked = true;
        }
        return index;
      }),

    rewrite: (make) =>
      inTurn(() =>
        withLock(join(dir, 'lock'), async () => {
          await fold();
          const before = reading;
          const lines = await make(index);
          if (lines === undefined) return false;
          const text = lines.map((line) => `${atRest.seal(JSON.stringify(line))}\n`).join('');
          // Long work: should another have taken the lock meanwhile, its lines are not lost.
          const isUnchanged = (): boolean => {
            const now = tryStat(journal);
            return now?.ino === before.ino && now.size === before.size;
          };
          if (!(await replaceFileIf(journal, text, isUnchanged))) return false;
          await followTraces(await fold());
          return true;
        }),
      ),

    write: (decide) =>
      inTurn(() =>
        withLock(join(dir, 'lock'), async () => {
          await fold();
          const decided = await decide(index);
          const lines = decided === undefined ? [] : Array.isArray(decided) ? (decided as readonly JournalLine[]) : [decided];
          if (lines.length > 0) await append(...lines.map((line) => JSON.stringify(line)));
          return index;
        }),
      ),
  };
}

function tryStat(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function measure(path: string): number {
  return tryStat(path)?.size ?? 0;
}

/**
 * A new file survives a power cut only when the folders that name it are on the disk too: life, conversation, conversations, scope, agents.
 * The upper ones hold many; they are remembered.
 */
async function syncUpwards(dir: string, synced: Set<string>): Promise<void> {
  const folders: string[] = [];
  for (let folder = dir; folders.length < 6; folder = dirname(folder)) {
    folders.push(folder);
    if (synced.has(folder)) break;
  }
  await Promise.all(folders.map(syncFolder));
  for (const folder of folders.slice(2)) synced.add(folder);
}
