/** The frame of every command on a scope's memory: which scope is meant, and how its data are printed. */
import type { ScopeMemory } from '../../client.js';
import type { CliContext } from './context.js';
import { CliError, EXIT } from '../terminal/exit.js';
import { findConversation } from '../args/find-conversation.js';
import type { StyledLine } from '../terminal/terminal-text.js';
import { loadMeasure } from '../views/table.js';
import type { MemoryLook } from '../views/memory.js';
import { printFound } from './print-found.js';
import { withClient, type CommandSession, type DeskOptions, temporalCommand } from './with-client.js';

/** `scope` by its name, or `of` a conversation. */
export interface ScopeWanted {
  readonly scope?: string;
  readonly of?: string;
}

export interface MemoryDesk extends CommandSession {
  readonly memory: ScopeMemory;
  readonly look: MemoryLook;
}

/** Of an agent that says nothing else, and of conversations that name no agent. */
export const DEFAULT_SCOPE = 'default';

export function withMemory(
  context: CliContext,
  wanted: ScopeWanted,
  options: DeskOptions,
  work: (desk: MemoryDesk) => Promise<number>,
): Promise<number> {
  if (wanted.scope !== undefined && wanted.of !== undefined) {
    throw new CliError('a scope and --of name two memories: write one of them', EXIT.usage);
  }
  return withClient(context, options, async (desk) => {
    const { client, output, globals } = desk;
    const memory = client.scope(wanted.of === undefined ? (wanted.scope ?? DEFAULT_SCOPE) : await scopeOf(desk, wanted.of));
    const look = { width: output.width(), timeFormat: globals.timeFormat, now: Date.now(), measure: await loadMeasure() };
    return work({ ...desk, memory, look });
  });
}

async function scopeOf(desk: CommandSession, given: string): Promise<string> {
  const id = await findConversation(desk, given);
  const { scope } = await desk.withSlowNotice(`asking ${id} for its scope`, desk.client.key(id));
  desk.output.note(`the scope of ${id} is ${scope}`);
  return scope;
}

export interface Printout {
  /** `-o json`, and a line of `-o jsonl` where there are no records. */
  readonly data: object;
  /** `-o jsonl`: each on a line. */
  readonly records?: readonly object[];
  /** For people. */
  readonly lines: readonly StyledLine[];
  /** For people, beside the data. */
  readonly notes?: readonly string[];
  /** What of the `temporal` program shows or does the same. */
  readonly temporal: readonly string[] | undefined;
}

export function print({ output, globals, temporal }: CommandSession, printout: Printout): void {
  printFound(output, globals.output, {
    whole: printout.data,
    rows: printout.records ?? [printout.data],
    draw: () => {
      for (const line of printout.lines) output.draw(line);
      for (const note of printout.notes ?? []) output.note(note);
      if (printout.temporal !== undefined) output.explain(temporalCommand(temporal, printout.temporal));
    },
  });
}
