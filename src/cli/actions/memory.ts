/** `perdura memory list`, `items` and `care`: what a conversation remembers; and a scope's memory put in order. */
import type { CliContext } from '../session/context.js';
import { EXIT } from '../terminal/exit.js';
import { findConversation } from '../args/find-conversation.js';
import { toTerminalJson, toTerminalText } from '../terminal/terminal-text.js';
import { loadMeasure } from '../views/table.js';
import { withoutSuperseded } from '../../records/memory/items.js';
import { renderEpisodes, renderFacts, renderItems } from '../views/memory.js';
import { formatQuantity, formatCount } from '../views/quantities.js';
import { printFound } from '../session/print-found.js';
import { withClient, temporalCommand } from '../session/with-client.js';
import { memoryWorkflowId } from '../../conversation/protocol/memory-contract.js';
import { print, withMemory, type ScopeWanted } from '../session/with-memory.js';

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
    await printFound(output, globals.output, {
      whole: { id, ...(withEpisodes && { episodes }), ...(withFacts && { facts }), skipped },
      rows: [
        ...(withEpisodes ? episodes.map((episode) => ({ kind: 'episodic', ...episode })) : []),
        ...(withFacts ? facts.map((fact) => ({ kind: 'semantic', ...fact })) : []),
      ],
      draw: async () => {
        const { scope } = await client.key(id);
        const look = { width: output.width(), timeFormat: globals.timeFormat, now: Date.now(), measure: await loadMeasure() };
        const lines = [
          ...(withEpisodes ? renderEpisodes(episodes, look) : []),
          ...(withEpisodes && withFacts ? [[]] : []),
          ...(withFacts ? renderFacts(facts, scope, look) : []),
        ];
        for (const line of lines) output.draw(line);
      },
    });
    if (skipped > 0) output.problem(`not read and left out: ${formatQuantity(skipped, 'record')} of the store`);
    if (globals.output === 'text') output.explain(temporalCommand(temporal, ['workflow', 'query', '--name', 'context', '-w', id]));
    return EXIT.ok;
  });
}

export interface MemoryItemsOptions {
  readonly show?: string;
}

export function memoryItems(context: CliContext, given: string, { show }: MemoryItemsOptions): Promise<number> {
  return withClient(context, {}, async (desk) => {
    const { client, output, globals, withSlowNotice } = desk;
    const id = await findConversation(desk, given);
    if (show !== undefined) {
      const item = await withSlowNotice(`reading ${show} of ${id}`, client.item(id, show));
      if (globals.output === 'text') output.line(toTerminalText(item.text));
      else output.line(toTerminalJson(item, globals.output === 'json' ? 2 : undefined));
      return EXIT.ok;
    }
    const { items, skipped } = await withSlowNotice(`reading the items of ${id}`, client.items(id));
    await printFound(output, globals.output, {
      whole: { id, items, skipped },
      rows: items,
      draw: async () => {
        const look = { width: output.width(), timeFormat: globals.timeFormat, now: Date.now(), measure: await loadMeasure() };
        for (const line of renderItems(items, look)) output.draw(line);
        if (items.length > 0) output.note(`perdura memory items ${id} --show ${items[0]?.id ?? ''} prints one`);
      },
    });
    if (skipped > 0) output.problem(`not read and left out: ${formatQuantity(skipped, 'record')} of the store`);
    return EXIT.ok;
  });
}

export interface CareWanted extends ScopeWanted {
  readonly agent?: string;
}

export function careForMemory(context: CliContext, wanted: CareWanted): Promise<number> {
  return withMemory(context, wanted, { needsWorker: true }, async (desk) => {
    const { memory, withSlowNotice } = desk;
    const { scope } = memory;
    const cared = await withSlowNotice(`taking care of the memory of ${scope}`, memory.care(wanted.agent));
    const { kind, bytesBefore, bytesAfter, facts } = cared;
    const merged = facts.length === 0 ? '' : `; gone, since another says the same: ${formatQuantity(facts.length, 'fact')}`;
    const done = `the memory of ${scope} is in order: ${formatCount(bytesBefore)} → ${formatCount(bytesAfter)} bytes${merged}`;
    const input = wanted.agent === undefined ? {} : { agent: wanted.agent };
    print(desk, {
      data: { scope, ...cared },
      lines: [[{ text: kind === 'cared' ? done : `there is nothing to do in the memory of ${scope}` }]],
      temporal: ['workflow', 'update', 'execute', '--name', 'care', '-w', memoryWorkflowId(scope), '--input', JSON.stringify(input)],
    });
    return EXIT.ok;
  });
}
