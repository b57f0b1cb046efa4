/** The tools that a worker has, by name. */
import { isClientTool } from '../conversation/protocol/message.js';
import type { ToolDescription } from '../models/model.js';
import type { Tool } from './tool.js';

export interface ToolRegistry {
  readonly find: (name: string) => Tool | undefined;
  /** The named tools in the order given, each once. Throws UnknownTools for names that are not here. */
  readonly select: (names: readonly string[]) => readonly Tool[];
  /** What a model is offered: the named tools in the order given, or all, sorted by name, so that the prompt stays byte-stable. */
  readonly describe: (names?: readonly string[]) => readonly ToolDescription[];
  /** Sorted. */
  readonly names: readonly string[];
}

export class UnknownTools extends Error {
  override readonly name = 'UnknownTools';
  constructor(
    readonly unknown: readonly string[],
    known: readonly string[],
  ) {
    super(`no tool is named ${unknown.map((name) => JSON.stringify(name)).join(', ')}; there are: ${known.join(', ') || 'none'}`);
  }
}

export function createToolRegistry(tools: readonly Tool[]): ToolRegistry {
  // A Map, since an object would answer to `constructor` and `__proto__`.
  const byName = new Map<string, Tool>();
  for (const tool of tools) {
    if (byName.has(tool.name)) throw new Error(`two tools are named ${tool.name}; a model could not tell them apart: rename one`);
    if (isClientTool(tool.name))
      throw new Error(`no tool may be named ${tool.name}: so begin the names of tools that clients bring; rename it`);
    byName.set(tool.name, tool);
  }
  const names = [...byName.keys()].sort();

  const select = (wanted: readonly string[]): readonly Tool[] => {
    const unknown = [...new Set(wanted)].filter((name) => !byName.has(name));
    if (unknown.length > 0) throw new UnknownTools(unknown, names);
    return [...new Set(wanted)].flatMap((name) => byName.get(name) ?? []);
  };

  return {
    names,
    select,
    find: (name) => byName.get(name),
    describe: (wanted = names) => select(wanted).map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
  };
}
