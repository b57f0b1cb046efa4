/**
 * `mcp__<server>__<tool>`, the name under which a model knows a server's tool.
 *
 * - Two tools never share a name by accident: the server's part holds no `__` and does not end in `_`, so the first `__` after it is where
 *   it ends. `acme_` + `status` and `acme` + `_status` are two names.
 * - A name that does not fit providers' pattern (`^[a-zA-Z0-9_-]{1,64}$`) is shortened to one that does, and ends in a hash of the whole.
 * - If two tools come to one name all the same, it belongs to neither.
 */
import { createHash } from 'node:crypto';

const PREFIX = 'mcp__';
const MAX_LENGTH = 64;
const MAX_SERVER = 24;
const DIGEST = 8;

export function toolName(server: string, tool: string): string {
  const begin = `${serverPrefix(server)}`;
  const room = MAX_LENGTH - begin.length;
  const isPlain = /^[a-zA-Z0-9_-]+$/.test(tool) && tool.length <= room;
  return `${begin}${isPlain ? tool : `${toSlug(tool, room - DIGEST - 1)}_${shortHash(tool)}`}`;
}

/** What the names of all tools of a server begin with. */
export function serverPrefix(server: string): string {
  const isPlain = /^[a-zA-Z0-9_-]+$/.test(server) && server.length <= MAX_SERVER && !server.includes('__') && !server.endsWith('_');
  return `${PREFIX}${isPlain ? server : `${toSlug(server, MAX_SERVER - DIGEST - 1)}-${shortHash(server)}`}__`;
}

export function isServerToolName(name: string): boolean {
  return name.startsWith(PREFIX);
}

/** Without `_`, so that no two of them stand beside each other. */
function toSlug(text: string, room: number): string {
  const slug = text
    .slice(0, 4 * room)
    .replace(/[^a-zA-Z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, room)
    .replace(/-$/, '');
  return slug || 'x';
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, DIGEST);
}

/** Which name leads to which tool. A Map, since an object would answer to `constructor`. */
interface Named {
  readonly server: string;
  readonly tool: string;
}

interface ToolTable<T extends Named> {
  readonly byName: ReadonlyMap<string, T>;
  readonly refused: readonly (Named & { readonly reason: string })[];
}

/** A built-in tool keeps its name, and a name that two tools claim leads to neither. */
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
      ? `a built-in tool is named ${name}`
      : others.length > 0
        ? `${others.length + 1} tools would be named ${name}, and a call could mean any of them`
        : undefined;
    if (reason === undefined) byName.set(name, first);
    else refused.push(...[first, ...others].map(({ server, tool }) => ({ server, tool, reason })));
  }
  return { byName, refused };
}
