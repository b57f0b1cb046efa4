/** `perdura export`: a conversation to take along. */
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { CliContext } from '../context.js';
import { toMarkdown } from '../conversation-markdown.js';
import { EXIT } from '../exit.js';
import { findConversation } from '../find-conversation.js';
import { temporalCommand } from '../temporal-command.js';
import { toTerminalJson } from '../terminal-text.js';
import { withClient, type Desk } from '../with-client.js';

export type ExportFormat = 'md' | 'jsonl' | 'json' | 'history';

export function exportConversation(context: CliContext, given: string, options: { readonly format?: ExportFormat }): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const { output, temporal, globals, slowly } = desk;
    const id = await findConversation(desk, given);
    const format = options.format ?? (globals.output === 'text' ? 'md' : globals.output);
    await slowly(`reading ${id}`, format === 'history' ? exportRuns(desk, id) : exportEntries(desk, id, format));
    if (globals.output === 'text') output.note(temporalCommand(temporal, ['workflow', 'show', '-w', id, '-o', 'json']));
    return EXIT.ok;
  });
}

async function exportEntries({ client, output }: Desk, id: string, format: Exclude<ExportFormat, 'history'>): Promise<void> {
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

/** Every run as Temporal's own tools write it, oldest first: each element can be given to a replay. */
async function exportRuns({ client, output }: Desk, id: string): Promise<void> {
  const { histories, complete } = await client.runs(id);
  const runs = histories.map((history) => JSON.parse(historyToJSON(history)) as unknown);
  output.line(toTerminalJson(runs, 2));
  if (!complete) output.problem(`earlier runs of ${id} have passed the retention of their namespace: this is not all`);
}
