/** `perdura export` and `perdura import`: a conversation to take along, and one that was taken along. */
import { resolve, join } from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { importedLifeName, toImported } from '../../memory/imported-life.js';
import { type PastLife, writeLife } from '../../memory/past-life.js';
import { toLayout, readLayout, type ImportedFact, LAYOUT_FILES, type LayoutFile } from '../../memory/seed-layout/layout.js';
import { ClientError, type PerduraClient } from '../../client.js';
import { ID_PATTERN, type StartOptions } from '../../conversation/protocol/contract.js';
import { readStart } from '../../conversation/protocol/input.js';
import type { CliContext } from '../session/context.js';
import { newName } from '../gateway/tenant-names.js';
import { refuseUnusableAgent } from '../services/known-agent.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { findConversation } from '../args/find-conversation.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { toMarkdown } from '../views/transcript.js';
import { withClient, type CommandSession, temporalCommand } from '../session/with-client.js';
import { randomUUID } from 'node:crypto';
import { learnFacts } from '../../memory/facts.js';
import { foldedFact } from '../../records/memory/items.js';
import { toTraces } from '../../memory/traces.js';
import { openStore } from '../../stores/open.js';
import type { ConversationKey, Store } from '../../stores/store.js';
import { constants } from 'node:fs';
import { lstat, mkdir, open, writeFile } from 'node:fs/promises';
import { formatQuantity } from '../views/quantities.js';
import { errorCode, errorMessage } from '../../platform/errors.js';

type ExportFormat = 'md' | 'jsonl' | 'json' | 'history' | 'seed';

export interface ExportOptions {
  readonly format?: ExportFormat;
  readonly out?: string;
}

export function exportConversation(context: CliContext, given: string, options: ExportOptions): Promise<number> {
  if (options.out !== undefined && options.format !== 'seed')
    throw new CliError('--out is for --format seed: others are printed', EXIT.usage);
  return withClient(context, {}, async (desk) => {
    const { output, temporal, globals, withSlowNotice } = desk;
    const id = await findConversation(desk, given);
    const format = options.format ?? (globals.output === 'text' ? 'md' : globals.output);
    if (format === 'seed') await exportLayout(desk, id, resolve(desk.config.cwd, options.out ?? id));
    else await withSlowNotice(`reading ${id}`, format === 'history' ? exportRuns(desk, id) : exportEntries(desk, id, format));
    if (globals.output === 'text') output.explain(temporalCommand(temporal, ['workflow', 'show', '-w', id, '-o', 'json']));
    return EXIT.ok;
  });
}

async function exportEntries(
  { client, output }: CommandSession,
  id: string,
  format: Exclude<ExportFormat, 'history' | 'seed'>,
): Promise<void> {
  const [{ agent, title, scope, life, state }, entries] = await Promise.all([client.describe(id), client.history(id)]);
  switch (format) {
    case 'md':
      return output.line(toMarkdown(title ?? id, entries).trimEnd());
    case 'json':
      return output.line(toTerminalJson({ v: 1, id, namespace: client.namespace, agent, title, scope, life, state, entries }, 2));
    case 'jsonl':
      for (const entry of entries) output.line(toTerminalJson(entry));
  }
}

function heldInWords({
  entries,
  episodes,
  facts,
}: {
  readonly entries: number;
  readonly episodes: number;
  readonly facts: number;
}): string {
  return [
    formatQuantity(entries, 'entry', 'entries'),
    formatQuantity(episodes, 'summary', 'summaries'),
    formatQuantity(facts, 'fact'),
  ].join(', ');
}

/** The seed's files. Summaries that came with an import are written as they came: also those that it did not begin with. */
async function exportLayout({ client, output, globals, withSlowNotice }: CommandSession, id: string, dir: string): Promise<void> {
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
  await writeLayout(dir, toLayout({ conversation: id, scope, agent, title }, life, facts));
  const counts = { entries: life.entries.length, episodes: life.episodes.length, facts: facts.length, skipped: life.skipped };
  if (globals.output !== 'text') output.line(toTerminalJson({ id, dir, ...counts }));
  else output.line(`${dir}: ${heldInWords(counts)}`);
  if (life.skipped > 0) output.problem(`not read and left out: ${formatQuantity(life.skipped, 'record')} of the store`);
}

/** Every run as Temporal's own tools write it, oldest first: each element can be given to a replay. */
async function exportRuns({ client, output }: CommandSession, id: string): Promise<void> {
  const { histories, complete } = await client.runs(id);
  const runs = histories.map((history) => JSON.parse(historyToJSON(history)) as unknown);
  output.line(toTerminalJson(runs, 2));
  if (!complete) output.problem(`earlier runs of ${id} have passed the retention of their namespace: this is not all`);
}

/** `perdura import`: a conversation from the seed's layout. Everything is read and checked before anything is started or written. */
export interface ImportOptions {
  readonly id?: string;
  readonly agent?: string;
  readonly scope?: string;
  readonly tenant?: string;
}

/** Of what was skipped so much is named. */
const NAMED = 10;

export function importConversation(context: CliContext, given: string, options: ImportOptions): Promise<number> {
  return withClient(context, { needsWorker: true }, async ({ client, config, output, globals, temporal, withSlowNotice }) => {
    const dir = resolve(config.cwd, given);
    const { origin, life: read, facts, problems: unread } = readLayout(await readLayoutFiles(dir));
    const imported = toImported(read);
    if (imported.kind === 'refused') throw new CliError(`cannot import ${dir}: ${imported.reason}`, EXIT.failed);
    const { life } = imported;
    const problems = [...unread, ...imported.problems];
    for (const problem of problems.slice(0, NAMED)) output.problem(`left out: ${problem}`);
    if (problems.length > NAMED) output.problem(`left out: ${problems.length - NAMED} more`);
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
    const isRunning = await client.describe(id).then(
      ({ state }) => state === 'running',
      (error: unknown) => {
        if (error instanceof ClientError && error.kind === 'not-found') return false;
        throw error;
      },
    );
    if (isRunning) throw new CliError(`conversation ${name} is running: import under an id that is not in use`, EXIT.usage);

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
      const isRefused = error instanceof ClientError && error.kind === 'invalid';
      if (!isWritten || isRefused) await store.lives.delete(key).catch(() => undefined);
      throw error;
    } finally {
      await store.close();
    }

    const counts = { entries: life.entries.length, episodes: life.episodes.length, facts: facts.length, leftOut: problems.length };
    if (globals.output !== 'text') output.line(toTerminalJson({ id, scope: key.scope, ...counts }));
    else {
      output.line(name);
      output.say(`${heldInWords(counts)}; \`perdura show ${name}\` shows them`);
      output.explain(temporalCommand(temporal, ['workflow', 'describe', '-w', id]));
    }
    return EXIT.ok;
  });
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

/** In the order of their numbers, so that a scope that knows nothing numbers them the same; a batch is what has one source. */
async function learn(store: Store, key: ConversationKey, given: readonly ImportedFact[]): Promise<void> {
  const current = new Map(given.flatMap((fact) => (fact.replaced ? [] : [[foldedFact(fact.fact), fact]])));
  // What counts again in the same words is one fact.
  const facts = given.filter((fact) => !fact.replaced || !current.has(foldedFact(fact.fact)));
  for (let at = 0; at < facts.length;) {
    const source = facts[at]?.source ?? null;
    const other = facts.findIndex((fact, place) => place > at && JSON.stringify(fact.source) !== JSON.stringify(source));
    const end = other === -1 ? facts.length : other;
    const batch = facts.slice(at, end).map(({ id: _id, source: _source, replaced: _replaced, ...fact }) => fact);
    await learnFacts(store, key, `${key.life}/imported/${at + 1}`, batch, source ?? { conversation: key.conversation, turn_ids: [] });
    at = end;
  }
  const wordsOf = new Map(facts.map(({ id, fact }) => [id, fact]));
  const replaced = facts.flatMap(({ fact, replaced: by }) => (by ? [{ fact, by: wordsOf.get(by.by ?? '') ?? null, ts: by.ts }] : []));
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
  // Without blocking: a pipe of that name would keep us waiting for a writer.
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
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}
