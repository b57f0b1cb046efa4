/** What the APIs demand of names and ids, `^[a-zA-Z0-9_-]+$`, of which history may hold anything. */

const FOREIGN = /[^a-zA-Z0-9_-]/g;

/** A model may have called a tool by a name that cannot be; sent back as it was, it would be refused for ever. */
export function toWireName(name: string): string {
  return name.replace(FOREIGN, '_').slice(0, 64) || 'unnamed';
}

/**
 * Ids for one request: `turn_0007/c3` becomes `turn_0007_c3`. Two that would be the same stay two, and an id depends only
 * on those before it, so that a longer conversation begins with the same bytes.
 */
export function createWireIds({ maxLength = Infinity }: { readonly maxLength?: number } = {}): (callId: string) => string {
  const wireIds = new Map<string, string>();
  const taken = new Set<string>();
  return (callId) => {
    const known = wireIds.get(callId);
    if (known !== undefined) return known;
    const base = callId.replace(FOREIGN, '_') || 'call';
    let id = base.slice(0, maxLength);
    for (let n = 2; taken.has(id); n++) id = `${base.slice(0, maxLength - 1 - String(n).length)}-${n}`;
    taken.add(id);
    wireIds.set(callId, id);
    return id;
  };
}
