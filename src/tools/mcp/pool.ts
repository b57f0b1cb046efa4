/** The connections of a worker: one for each server of each agent, as its settings are. */
import { createHash } from 'node:crypto';
import { createServerLink, type LinkOptions, type ServerLink } from './link.js';
import type { McpServer } from './server-config.js';

export interface ServerPool {
  /** In the order given. None is opened by this. */
  linksOf(agent: string, servers: readonly McpServer[]): readonly ServerLink[];
  close(): Promise<void>;
}

/** A turn that began under other settings may still be using it. */
const RETIRED_MS = 2 * 60_000;

export function createServerPool(options: LinkOptions): ServerPool {
  const links = new Map<string, { readonly agent: string; readonly link: ServerLink }>();

  const retire = (agent: string, wanted: ReadonlySet<string>): void => {
    for (const [key, known] of links) {
      if (known.agent !== agent || wanted.has(key) || options.now() - known.link.lastUsed() < RETIRED_MS) continue;
      links.delete(key);
      void known.link.close();
    }
  };

  return {
    linksOf(agent, servers) {
      const keys = servers.map((server) => keyOf(agent, server));
      retire(agent, new Set(keys));
      return servers.map((server, i) => {
        const key = keys[i] ?? '';
        const known = links.get(key) ?? { agent, link: createServerLink(server, options) };
        links.set(key, known);
        return known.link;
      });
    },

    async close() {
      const all = [...links.values()];
      links.clear();
      await Promise.all(all.map(({ link }) => link.close()));
    },
  };
}

function keyOf(agent: string, server: McpServer): string {
  return createHash('sha256')
    .update(JSON.stringify([agent, server]))
    .digest('hex');
}
