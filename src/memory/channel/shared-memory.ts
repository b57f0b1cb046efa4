/**
 * A sub-agent's memory that is shared with the conversation it works for: it finds what lies in either, and what it stores is for both.
 * Its own tools' results lie in its own place, since they are written with them.
 */
import { DEFAULT_LIMIT, MOST_FOUND, type AgentMemory } from './agent-memory.js';

export function sharedMemory(own: AgentMemory, shared: AgentMemory): AgentMemory {
  return {
    store: (item) => shared.store(item),
    retrieve: async (id, transform) => (await own.retrieve(id, transform)) ?? shared.retrieve(id, transform),
    async query(criteria = {}) {
      const found = (await Promise.all([own.query(criteria), shared.query(criteria)])).flat();
      const newestFirst = found.sort((a, b) => b.metadata.timestamp.getTime() - a.metadata.timestamp.getTime());
      return newestFirst.slice(0, Math.max(0, Math.min(criteria.limit ?? DEFAULT_LIMIT, MOST_FOUND)));
    },
    /** What is shared is not one's own to clear. */
    clear: () => own.clear(),
    snapshot: () => own.snapshot(),
    restore: (snapshot) => own.restore(snapshot),
  };
}
