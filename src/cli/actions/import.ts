/** `perdura import`: a conversation from the seed's layout. Everything is read and checked before anything is started or written. */
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { learnFacts } from '../../memory/facts.js';
import { importedLife, writeLife } from '../../memory/past-life.js';
import { readLayout, type ImportedFact } from '../../memory/seed-layout/layout.js';
import { toTraces } from '../../memory/traces.js';
import { openStore } from '../../stores/open.js';
import type { ConversationKey, Store } from '../../stores/store.js';
import type { CliContext } from '../session/context.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { readLayoutFiles } from './layout-files.js';
import { temporalCommand } from '../session/temporal-command.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { withClient } from '../session/with-client.js';

export interface ImportOptions {
  readonly id?: string;
  readonly agent?: string;
  readonly scope?: string;
}

/** Of what was skipped so much is named. */
const NAMED = 10;

export function importConversation(context: CliContext, given: string, options: ImportOptions): Promise<number> {
  return withClient(context, { needsWorker: true }, async ({ client, config, output, globals, temporal, slowly }) => {
    const dir = resolve(config.cwd, given);
    const { origin, life, facts, problems } = readLayout(await readLayoutFiles(dir));
    for (const problem of problems.slice(0, NAMED)) output.problem(`left out: ${problem}`);
    if (problems.length > NAMED) output.problem(`left out: ${problems.length - NAMED} more`);
    if (life.entries.length + life.episodes.length + facts.length === 0) {
      throw new CliError(`cannot import ${dir}: nothing in it can be read`, EXIT.failed);
    }

    const wanted = options.id ?? `conv-${randomUUID()}`;
    const start = { agent: options.agent, scope: options.scope ?? wanted, ...(origin?.title && { title: origin.title }) };
    const { id, attached } = await slowly('starting a conversation', client.start(wanted, start));
    if (attached) throw new CliError(`conversation ${id} is running: import under an id that is not in use`, EXIT.usage);
    const traceLines = (entry: Parameters<typeof toTraces>[0], { conversation }: ConversationKey): string[] =>
      toTraces(entry, conversation).map((trace) => JSON.stringify(trace));
    const store = openStore(config, { traceLines });
    try {
      const key = await client.key(id);
      await slowly(`writing ${life.entries.length} entries`, writeLife(store, importedLife(key), life));
      await learn(store, key, facts);
    } catch (error) {
      output.problem(`${id} was started, and what was imported is not whole: import again under another id`);
      throw error;
    } finally {
      await store.close();
    }

    const told = { entries: life.entries.length, episodes: life.episodes.length, facts: facts.length, leftOut: problems.length };
    if (globals.output !== 'text') output.line(toTerminalJson({ id, scope: start.scope, ...told }));
    else {
      output.line(id);
      output.say(`${told.entries} entries, ${told.episodes} summaries and ${told.facts} facts; \`perdura show ${id}\` tells them`);
      output.note(temporalCommand(temporal, ['workflow', 'describe', '-w', id]));
    }
    return EXIT.ok;
  });
}

/** In the order of their numbers, so that a scope that knows nothing numbers them the same; a batch is what has one source. */
async function learn(store: Store, key: ConversationKey, facts: readonly ImportedFact[]): Promise<void> {
  for (let at = 0; at < facts.length;) {
    const source = facts[at]?.source ?? null;
    const other = facts.findIndex((fact, place) => place > at && JSON.stringify(fact.source) !== JSON.stringify(source));
    const end = other === -1 ? facts.length : other;
    const batch = facts.slice(at, end).map(({ id: _id, source: _source, ...fact }) => fact);
    await learnFacts(store, key, `${key.life}/imported/${at + 1}`, batch, source ?? { conversation: key.conversation, turn_ids: [] });
    at = end;
  }
}
