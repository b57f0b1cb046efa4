/** `perdura memory list`: what a conversation remembers. */
import type { CliContext } from '../session/context.js';
import { EXIT } from '../terminal/exit.js';
import { findConversation } from '../args/find-conversation.js';
import { toTerminalJson } from '../terminal/terminal-text.js';
import { loadMeasure } from '../views/table.js';
import { withoutSuperseded } from '../../records/memory/items.js';
import { renderEpisodes, renderFacts } from '../views/memory.js';
import { formatCount } from '../views/quantities.js';
import { withClient, temporalCommand } from '../session/with-client.js';

export interface MemoryListOptions {
  readonly episodic?: boolean;
  readonly semantic?: boolean;
  readonly all?: boolean;
}

export function listMemory(context: CliContext, given: string, wanted: MemoryListOptions): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const { client, output, globals, temporal, withSlowNotice } = desk;
    const id = await findConversation(desk, given);
    const [own, imported] = await withSlowNotice(
      `reading the memory of ${id}`,
      Promise.all([client.memory(id, { all: wanted.all === true }), client.imported(id)]),
    );
    // Those that it did not begin with: of earlier sessions, and those that a later one stands for.
    const known = new Set(own.episodes.map(({ id: episode }) => episode));
    const left = imported.filter(({ id: episode }) => !known.has(episode)).map((episode) => ({ ...episode, imported: true as const }));
    const all = [...own.episodes, ...left];
    const episodes = wanted.all === true ? all : withoutSuperseded(all);
    const { facts, skipped } = own;
    const withEpisodes = wanted.semantic !== true;
    const withFacts = wanted.episodic !== true;
    switch (globals.output) {
      case 'json':
        output.line(toTerminalJson({ id, ...(withEpisodes && { episodes }), ...(withFacts && { facts }), skipped }, 2));
        break;
      case 'jsonl':
        if (withEpisodes) for (const episode of episodes) output.line(toTerminalJson({ kind: 'episodic', ...episode }));
        if (withFacts) for (const fact of facts) output.line(toTerminalJson({ kind: 'semantic', ...fact }));
        break;
      case 'text': {
        const { scope } = await client.key(id);
        const look = { width: output.width(), timeFormat: globals.timeFormat, now: Date.now(), measure: await loadMeasure() };
        const lines = [
          ...(withEpisodes ? renderEpisodes(episodes, look) : []),
          ...(withEpisodes && withFacts ? [[]] : []),
          ...(withFacts ? renderFacts(facts, scope, look) : []),
        ];
        for (const line of lines) output.draw(line);
      }
    }
    if (skipped > 0) output.problem(`${formatCount(skipped)} records in the store cannot be read and are left out`);
    if (globals.output === 'text') output.note(temporalCommand(temporal, ['workflow', 'query', '--name', 'context', '-w', id]));
    return EXIT.ok;
  });
}
