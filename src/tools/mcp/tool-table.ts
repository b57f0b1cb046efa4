/** Which name leads to which tool. A Map, since an object would answer to `constructor`. */
import { toolName } from './tool-name.js';

export interface Named {
  readonly server: string;
  readonly tool: string;
}

export interface ToolTable<T extends Named> {
  readonly byName: ReadonlyMap<string, T>;
  readonly refused: readonly (Named & { readonly reason: string })[];
}

/** A name of ours stays ours, and one that two tools come to leads to neither. */
export function toolTable<T extends Named>(tools: readonly T[], taken: ReadonlySet<string>): ToolTable<T> {
  const sharing = new Map<string, T[]>();
  for (const tool of tools) {
    const name = toolName(tool.server, tool.tool);
    sharing.set(name, [...(sharing.get(name) ?? []), tool]);
  }
  const byName = new Map<string, T>();
  const refused: (Named & { reason: string })[] = [];
  for (const [name, [first, ...others]] of sharing) {
    if (first === undefined) continue;
    const reason = taken.has(name)
      ? `a tool of ours is named ${name}`
      : others.length > 0
        ? `${others.length + 1} tools would be named ${name}, and a call could mean any of them`
        : undefined;
    if (reason === undefined) byName.set(name, first);
    else refused.push(...[first, ...others].map(({ server, tool }) => ({ server, tool, reason })));
  }
  return { byName, refused };
}
