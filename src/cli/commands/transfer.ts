/** `perdura admin export` and `import`: a conversation to take along, and one that was taken along. */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, mkdir, open, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Option } from 'commander';
import type { PerduraClient } from '../../client.js';
import { ID_PATTERN, type StartOptions } from '../../conversation/protocol/contract.js';
import { readStart } from '../../conversation/protocol/input.js';
import type { PastLife } from '../../memory/past-life.js';
import type { ImportedFact, LayoutFile } from '../../memory/seed-layout/layout.js';
import { toTraces } from '../../memory/traces.js';
import { errorCode, errorMessage } from '../../platform/errors.js';
import { decodeText } from '../../records/file-type.js';
import type { ConversationKey, Store } from '../../stores/store.js';
import { findConversation, newName } from '../args/find-conversation.js';
import { findFile } from '../args/values.js';
import { refuseUnusableAgent } from '../services/before-start.js';
import { CONVERSATION, type Answer, type CommandFrame, type CommandRow, type CommandSession } from '../session/command.js';
import { temporalCommand } from '../session/connect.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { formatQuantity } from '../views/quantities.js';
import { toMarkdown } from '../views/transcript.js';

type ExportFormat = 'md' | 'jsonl' | 'json' | 'history' | 'seed';

interface ExportOptions {
  readonly format?: ExportFormat;
  readonly out?: string;
}

interface ImportOptions {
  readonly id?: string;
  readonly agent?: string;
  readonly scope?: string;
  readonly tenant?: string;
}

export const TRANSFER: readonly CommandRow[] = [
  {
    name: 'admin export',
    description: 'print a whole conversation, to read, to keep or to replay',
    args: [CONVERSATION],
    options: [
      new Option(
        '--format <format>',
        "md to read (the default), json or jsonl to process, history: Temporal's of every run, for replay, seed: a folder of raw traces and memory, which `perdura admin import` reads",
      ).choices(['md', 'jsonl', 'json', 'history', 'seed']),
      ['--out <dir>', 'where --format seed writes its folder; nothing there is overwritten (default: the id, in this folder)'],
    ],
    async run(frame, given: string, { format: wanted, out }: ExportOptions): Promise<Answer | number> {
      if (out !== undefined && wanted !== 'seed') throw new CliError('--out is for --format seed: others are printed', EXIT.usage);
      const session = await frame.open();
      const id = await findConversation(session, given);
      const format = wanted ?? (session.globals.output === 'text' ? 'md' : 'json');
      if (format === 'seed') return exportLayout(session, id, resolve(session.config.cwd, out ?? id));
      // A document is printed as it is, whatever -o asks for.
      const exporting = format === 'history' ? exportRuns(session, id) : exportEntries(session, id, format);
      for (const line of await session.withSlowNotice(`reading ${id}`, exporting)) session.output.line(line);
      session.output.explain(temporalCommand(session.temporal, ['workflow', 'show', '-w', id, '-o', 'json']));
      return EXIT.ok;
    },
  },
  {
    name: 'admin import',
    description: 'start a conversation from what `admin export --format seed` wrote, or another program in the same layout',
    args: [['<dir>', 'the folder']],
    options: [
      ['--id <id>', 'the new conversation; it must not be running'],
      ['--agent <name>', 'its agent'],
      ['--tenant <name>', 'whose it is, where several share the installation'],
      ['--scope <name>', 'whose long-term memory takes the facts (default: a new one, named as the conversation)'],
    ],
    help: `The conversation goes on: its model sees the imported turns as if they had happened here, summaries stand for the turns that were
archived, and fork and rewind take it back to any of them. Thinking goes to no model, because another account's may be refused.
The facts go to its scope, which numbers them anew. Import into a scope that others use only what you trust: what the files name
as words of the person counts as such.`,
    run: importConversation,
  },
];

async function exportEntries({ client }: CommandSession, id: string, format: 'md' | 'json' | 'jsonl'): Promise<readonly string[]> {
  const [{ agent, title, scope, life, state }, entries] = await Promise.all([client.describe(id), client.history(id)]);
  switch (format) {
    case 'md':
      return [toMarkdown(title ?? id, entries).trimEnd()];
    case 'json':
      return [toTerminalJson({ v: 1, id, namespace: client.namespace, agent, title, scope, life, state, entries }, 2)];
    case 'jsonl':
      return entries.map((entry) => toTerminalJson(entry));
  }
}

/** Every run as Temporal's tools write it, oldest first: each element can be given to a replay. */
async function exportRuns({ client, output }: CommandSession, id: string): Promise<readonly string[]> {
  const { historyToJSON } = await import('@temporalio/common/lib/proto-utils.js');
  const { histories, complete } = await client.runs(id);
  if (!complete) output.problem(`earlier runs of ${id} have passed the retention of their namespace: this is not all`);
  return [
    toTerminalJson(
      histories.map((history) => JSON.parse(historyToJSON(history)) as unknown),
      2,
    ),
  ];
}

/** The seed's files. Summaries that came with an import are written as they came: also those that it did not begin with. */
async function exportLayout({ client, withSlowNotice }: CommandSession, id: string, dir: string): Promise<Answer> {
  const read = Promise.all([
    client.describe(id),
    client.history(id),
    client.archived(id),
    client.memory(id, { all: true }),
    client.imported(id),
  ]);
  const [{ agent, title }, entries, archived, { episodes, facts, skipped }, imported] = await withSlowNotice(`reading ${id}`, read);
  const known = new Set(imported.map(({ id: episode }) => episode));
  const all = [...episodes.filter(({ id: episode }) => !known.has(episode)), ...imported];
  const life: PastLife = { entries, archived, episodes: all, skipped };
  const { scope } = await client.key(id);
  const { toLayout } = await import('../../memory/seed-layout/layout.js');
  await writeLayout(dir, toLayout({ conversation: id, scope, agent, title }, life, facts));
  const counts = { entries: entries.length, episodes: all.length, facts: facts.length, skipped };
  return {
    data: { id, dir, ...counts },
    text: `${dir}: ${describeCounts(counts)}`,
    problems: skipped > 0 ? [`not read and left out: ${formatQuantity(skipped, 'record')} of the store`] : [],
  };
}

function describeCounts({ entries, episodes, facts }: Readonly<Record<'entries' | 'episodes' | 'facts', number>>): string {
  return [
    formatQuantity(entries, 'entry', 'entries'),
    formatQuantity(episodes, 'summary', 'summaries'),
    formatQuantity(facts, 'fact'),
  ].join(', ');
}

/** Of what was skipped so much is named. */
const MAX_NAMED = 10;

/** Everything is read and checked before anything is started or written. */
async function importConversation(frame: CommandFrame, given: string, options: ImportOptions): Promise<Answer> {
  const { client, config, output, withSlowNotice } = await frame.open({ needsWorker: true });
  const [{ readLayout }, { importedLifeName, toImported }, { writeLife }, { openStore }] = await Promise.all([
    import('../../memory/seed-layout/layout.js'),
    import('../../memory/imported-life.js'),
    import('../../memory/past-life.js'),
    import('../../stores/open.js'),
  ]);
  const dir = await findFile(config.cwd, given);
  const { origin, life: read, facts, problems: unread } = readLayout(await readLayoutFiles(dir));
  const imported = toImported(read);
  if (imported.kind === 'refused') throw new CliError(`cannot import ${dir}: ${imported.reason}`, EXIT.failed);
  const { life } = imported;
  const problems = [...unread, ...imported.problems];
  for (const problem of problems.slice(0, MAX_NAMED)) output.problem(`left out: ${problem}`);
  if (problems.length > MAX_NAMED) output.problem(`left out: ${problems.length - MAX_NAMED} more`);
  if (life.entries.length + facts.length === 0) throw new CliError(`cannot import ${dir}: nothing in it can be read`, EXIT.failed);

  const { tenant, id: wanted = `conv-${randomUUID()}` } = options;
  if (!ID_PATTERN.test(wanted))
    throw new CliError(`${JSON.stringify(wanted)} cannot be an id: up to 64 letters, digits, - and _`, EXIT.usage);
  const { id, publicId, name } = await newName(config, tenant, wanted);
  const start = {
    agent: options.agent,
    scope: options.scope ?? wanted,
    ...(tenant !== undefined && { tenant, publicId }),
    ...(origin?.title && { title: origin.title }),
  };
  const checked = readStart(start);
  if (!checked.ok) throw new CliError(`cannot start ${id}: ${checked.reason}`, EXIT.usage);
  await refuseUnusableAgent(config, options.agent, tenant);
  if (await isRunning(client, id)) throw new CliError(`conversation ${name} is running: import under an id that is not in use`, EXIT.usage);

  const traceLines = (entry: Parameters<typeof toTraces>[0], { conversation }: ConversationKey): string[] =>
    toTraces(entry, conversation).map((trace) => JSON.stringify(trace));
  const store = openStore(config, { traceLines });
  const key = { namespace: client.namespace, scope: checked.value.scope, conversation: id, life: importedLifeName(randomUUID()) };
  let isWritten = false;
  try {
    await withSlowNotice(`writing ${formatQuantity(life.entries.length, 'entry', 'entries')}`, writeLife(store, key, life));
    await learn(store, key, facts);
    isWritten = true;
    await withSlowNotice('starting a conversation', begin(client, key, life, start));
  } catch (error) {
    // A start without an answer may have begun with what was written; one that was refused has not. The first failure is the one to show.
    const isRefused = ['invalid', 'conflict'].includes(String((error as { kind?: unknown }).kind));
    if (!isWritten || isRefused) await store.lives.delete(key).catch(() => undefined);
    throw error;
  } finally {
    await store.close();
  }
  const counts = { entries: life.entries.length, episodes: life.episodes.length, facts: facts.length };
  return {
    data: { id, scope: key.scope, ...counts, leftOut: problems.length },
    text: name,
    say: `${describeCounts(counts)}; \`perdura show ${name}\` shows them`,
    temporal: ['workflow', 'describe', '-w', id],
  };
}

async function isRunning(client: PerduraClient, id: string): Promise<boolean> {
  return client.describe(id).then(
    ({ state }) => state === 'running',
    (error: unknown) => {
      if ((error as { kind?: unknown }).kind === 'not-found') return false;
      throw error;
    },
  );
}

async function begin(
  client: PerduraClient,
  { conversation: id, life }: ConversationKey,
  { entries }: PastLife,
  start: StartOptions,
): Promise<void> {
  if (entries.length > 0) return void (await client.begin(id, life, start));
  const { attached } = await client.start(id, start);
  if (attached) throw new CliError(`conversation ${id} is running: import under an id that is not in use`, EXIT.usage);
}

/** In the order of their numbers, so that an empty scope numbers them the same; a batch is what has one source. */
async function learn(store: Store, key: ConversationKey, given: readonly ImportedFact[]): Promise<void> {
  const [{ learnFacts }, { foldedFact }] = await Promise.all([import('../../memory/facts.js'), import('../../records/memory/items.js')]);
  const current = new Map(given.flatMap((fact) => (fact.replaced ? [] : [[foldedFact(fact.fact), fact]])));
  // Leaves out a replaced fact with the words of a current one.
  const facts = given.filter((fact) => !fact.replaced || !current.has(foldedFact(fact.fact)));
  for (let at = 0; at < facts.length;) {
    const source = facts[at]?.source ?? null;
    const other = facts.findIndex((fact, place) => place > at && JSON.stringify(fact.source) !== JSON.stringify(source));
    const end = other === -1 ? facts.length : other;
    const batch = facts.slice(at, end).map(({ id: _id, source: _source, replaced: _replaced, ...fact }) => fact);
    await learnFacts(store, key, `${key.life}/imported/${at + 1}`, batch, source ?? { conversation: key.conversation, turn_ids: [] });
    at = end;
  }
  const factWords = new Map(facts.map(({ id, fact }) => [id, fact]));
  const replaced = facts.flatMap(({ fact, replaced: by }) => (by ? [{ fact, by: factWords.get(by.by ?? '') ?? null, ts: by.ts }] : []));
  await store.facts.add(key, `${key.life}/imported/replaced`, [], { conversation: key.conversation, turn_ids: [] }, replaced);
}

/**
 * The files of the seed's layout on a disk. Their names are fixed, so nothing in a layout names a path; a link is refused instead
 * of followed, since it may point anywhere.
 */
export const MAX_FILE = 256 * 1024 * 1024;

/** Overwrites nothing. */
export async function writeLayout(dir: string, files: Readonly<Record<LayoutFile, string>>): Promise<void> {
  try {
    await mkdir(dir, { recursive: true });
    await refuseLink(dir);
    const { LAYOUT_FILES } = await import('../../memory/seed-layout/layout.js');
    for (const name of LAYOUT_FILES) await writeFile(join(dir, name), files[name], { flag: 'wx' });
  } catch (cause) {
    if (cause instanceof CliError) throw cause;
    const isThere = errorCode(cause) === 'EEXIST';
    throw new CliError(
      `cannot write ${dir}: ${isThere ? 'there is an export already; name another folder' : errorMessage(cause)}`,
      EXIT.failed,
      {
        cause,
      },
    );
  }
}

/** Those that are there; at least one must be. */
export async function readLayoutFiles(dir: string): Promise<Partial<Record<LayoutFile, string>>> {
  await refuseLink(dir);
  const { LAYOUT_FILES } = await import('../../memory/seed-layout/layout.js');
  const files: Partial<Record<LayoutFile, string>> = {};
  for (const name of LAYOUT_FILES) {
    const text = await readBounded(join(dir, name));
    if (text !== undefined) files[name] = text;
  }
  if (Object.keys(files).length > 0) return files;
  throw new CliError(`cannot import ${dir}: none of ${LAYOUT_FILES.join(', ')} is there`, EXIT.notFound);
}

async function refuseLink(dir: string): Promise<void> {
  const found = await lstat(dir).catch((cause: unknown) => {
    throw new CliError(`cannot open ${dir}: ${errorMessage(cause)}`, EXIT.notFound, { cause });
  });
  if (!found.isDirectory())
    throw new CliError(`${dir} is no folder${found.isSymbolicLink() ? ' but a link' : ''}: name the folder itself`, EXIT.usage);
}

async function readBounded(path: string): Promise<string | undefined> {
  // Without blocking: a pipe of that name would wait for a writer.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return undefined;
    const why = cause.code === 'ELOOP' || cause.code === 'EMLINK' ? 'it is a link, and links are not followed' : errorMessage(cause);
    throw new CliError(`cannot read ${path}: ${why}`, EXIT.usage, { cause });
  });
  if (file === undefined) return undefined;
  try {
    const found = await file.stat();
    if (!found.isFile()) throw new CliError(`cannot read ${path}: it is no file`, EXIT.usage);
    if (found.size > MAX_FILE) throw new CliError(`cannot read ${path}: ${found.size} bytes, at most ${MAX_FILE} are read`, EXIT.usage);
    return decodeText(await file.readFile());
  } finally {
    await file.close();
  }
}
