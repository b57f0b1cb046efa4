/** `perdura export`: a conversation to take along. */
import { resolve } from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { joinLives, type PastLife } from '../../memory/past-life.js';
import { toLayout } from '../../memory/seed-layout/layout.js';
import type { CliContext } from '../session/context.js';
import { toMarkdown } from '../views/conversation-markdown.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { findConversation } from '../args/find-conversation.js';
import { writeLayout } from './layout-files.js';
import { temporalCommand } from '../session/temporal-command.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { asImported } from '../views/transcript.js';
import { withClient, type Desk } from '../session/with-client.js';

export type ExportFormat = 'md' | 'jsonl' | 'json' | 'history' | 'seed';

export interface ExportOptions {
  readonly format?: ExportFormat;
  readonly out?: string;
}

export function exportConversation(context: CliContext, given: string, options: ExportOptions): Promise<number> {
  if (options.out !== undefined && options.format !== 'seed')
    throw new CliError('--out is for --format seed: others are printed', EXIT.usage);
  return withClient(context, {}, async (desk) => {
    const { output, temporal, globals, slowly } = desk;
    const id = await findConversation(desk, given);
    const format = options.format ?? (globals.output === 'text' ? 'md' : globals.output);
    if (format === 'seed') await exportLayout(desk, id, resolve(desk.config.cwd, options.out ?? id));
    else await slowly(`reading ${id}`, format === 'history' ? exportRuns(desk, id) : exportEntries(desk, id, format));
    if (globals.output === 'text') output.note(temporalCommand(temporal, ['workflow', 'show', '-w', id, '-o', 'json']));
    return EXIT.ok;
  });
}

async function exportEntries({ client, output }: Desk, id: string, format: Exclude<ExportFormat, 'history' | 'seed'>): Promise<void> {
  const [{ agent, title, scope, life, state }, own, imported] = await Promise.all([
    client.describe(id),
    client.history(id),
    client.imported(id),
  ]);
  const entries = [...(imported?.entries ?? []).map(asImported), ...own];
  switch (format) {
    case 'md':
      return output.line(toMarkdown(title ?? id, entries).trimEnd());
    case 'json':
      return output.line(toTerminalJson({ v: 1, id, namespace: client.namespace, agent, title, scope, life, state, entries }, 2));
    case 'jsonl':
      for (const entry of entries) output.line(toTerminalJson(entry));
  }
}

/** The seed's files. What was imported into the conversation comes first, and its own turns are numbered on from there. */
async function exportLayout({ client, output, globals, slowly }: Desk, id: string, dir: string): Promise<void> {
  const read = Promise.all([client.describe(id), client.history(id), client.archived(id), client.memory(id), client.imported(id)]);
  const [{ agent, title }, entries, archived, { episodes, facts, skipped }, imported] = await slowly(`reading ${id}`, read);
  const own: PastLife = { entries, archived, episodes, skipped };
  const life = imported ? joinLives(imported, own) : own;
  const { scope } = await client.key(id);
  await writeLayout(dir, toLayout({ conversation: id, scope, agent, title }, life, facts));
  const told = { entries: life.entries.length, episodes: life.episodes.length, facts: facts.length, skipped: life.skipped };
  if (globals.output !== 'text') output.line(toTerminalJson({ id, dir, ...told }));
  else output.line(`${dir}: ${told.entries} entries, ${told.episodes} summaries, ${told.facts} facts`);
  if (life.skipped > 0) output.problem(`${life.skipped} records in the store cannot be read and are left out`);
}

/** Every run as Temporal's own tools write it, oldest first: each element can be given to a replay. */
async function exportRuns({ client, output }: Desk, id: string): Promise<void> {
  const { histories, complete } = await client.runs(id);
  const runs = histories.map((history) => JSON.parse(historyToJSON(history)) as unknown);
  output.line(toTerminalJson(runs, 2));
  if (!complete) output.problem(`earlier runs of ${id} have passed the retention of their namespace: this is not all`);
}
