/**
 * A sub-agent's memory that is shared with the conversation it works for: it finds what lies in either, and what it stores is for both.
 * Its own tools' results lie in its own place, since they are written with them.
 */
import { DEFAULT_LIMIT, MOST_FOUND, type AgentMemory } from '../../records/memory/agent-memory.js';

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

/** What the other one had at `until` (epoch milliseconds) can be seen; what is stored is one's own. */
export function snapshotMemory(own: AgentMemory, other: AgentMemory, until: number): AgentMemory {
  const wasThere = ({ metadata }: { readonly metadata: { readonly timestamp: Date } }): boolean => metadata.timestamp.getTime() <= until;
  return {
    ...own,
    async retrieve(id, transform) {
      const mine = await own.retrieve(id, transform);
      if (mine) return mine;
      const theirs = await other.retrieve(id, transform);
      return theirs && wasThere(theirs) ? theirs : null;
    },
    async query(criteria = {}) {
      const found = [...(await own.query(criteria)), ...(await other.query(criteria)).filter(wasThere)];
      const newestFirst = found.sort((a, b) => b.metadata.timestamp.getTime() - a.metadata.timestamp.getTime());
      return newestFirst.slice(0, Math.max(0, Math.min(criteria.limit ?? DEFAULT_LIMIT, MOST_FOUND)));
    },
  };
}
