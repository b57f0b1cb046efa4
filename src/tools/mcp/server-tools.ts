/** The tools that an agent has from its MCP servers, now. */
import { createHash } from 'node:crypto';
import type { Tool } from '../tool.js';
import { createServerLink, type ServerLink, type LinkOptions, type LinkState } from './link.js';
import type { AgentKey, Pins, ToolPin } from '../../stores/store.js';
import { byTool, pinKey, loadPins, toServerTool, promptSize, type LeftOut, type ServerTool, toolTable } from './server-tool.js';
import { resourceTools } from './resource-tools.js';
import { toTool } from './run-server-tool.js';
import type { McpServer } from './server-config.js';
import { withoutHidden } from '../hidden-text.js';

export interface AgentServers extends AgentKey {
  readonly servers: readonly McpServer[];
  /** Names that are taken: the built-in tools. */
  readonly taken: readonly string[];
}

export interface ServerTools {
  /**
   * Sorted by name. Waits `patienceMs` for servers that have not answered yet, and for none that has failed. With `turn`, the
   * answer that this turn was given first, so that a prompt does not change within it.
   */
  of(agent: AgentServers, how: { readonly patienceMs: number; readonly turn?: string }): Promise<readonly Tool[]>;
  close(): Promise<void>;
}

export interface ServerToolsOptions extends Omit<LinkOptions, 'now'> {
  readonly pins: Pins;
  readonly now?: () => number;
}

/** A server as people are to see it. */
export interface ServerReport {
  readonly server: McpServer;
  readonly state: LinkState;
  readonly tools: readonly ToolReport[];
  readonly leftOut: readonly LeftOut[];
}

export interface ToolReport {
  readonly name: string;
  readonly live: ServerTool;
  readonly pin: ToolPin | undefined;
}

/** Characters of all tools of all servers of an agent. */
const MAX_OFFERED = 512 * 1024;
const MAX_TURNS = 1_000;
const MAX_REPORTED = 1_000;

export function createServerTools({ pins, now = Date.now, ...given }: ServerToolsOptions): ServerTools {
  const pool = createServerPool({ ...given, now });
  const turns = new Map<string, readonly Tool[]>();
  const reported = new Set<string>();

  const reportOnce = (line: string): void => {
    if (reported.has(line) || reported.size >= MAX_REPORTED) return;
    reported.add(line);
    given.log(line);
  };

  const gather = async (agent: AgentServers, patienceMs: number): Promise<readonly Tool[]> => {
    const links = pool.openLinks(agent.agent, agent.servers);
    await Promise.all(links.map((link) => link.refresh(isWorthWaiting(link) ? patienceMs : 0)));
    const listings = links.map((link) => link.listing());
    const live = listings.flatMap((listing) => listing?.tools ?? []);
    const known = await loadPins(pins, agent, live);
    // Of a server that has not been heard since this worker began, what was accepted earlier stands.
    const tools = links.flatMap((link, i) => listings[i]?.tools ?? earlierTools(known, link.server.name));
    const { byName, refused } = toolTable(tools, new Set(agent.taken));
    const leftOut = [
      ...refused,
      ...listings.flatMap((listing, i) => (listing?.leftOut ?? []).map((one) => ({ ...one, server: links[i]?.server.name }))),
    ];
    for (const { server, tool, reason } of leftOut)
      reportOnce(`MCP server ${server}: its tool ${withoutHidden(tool)} is left out: ${reason}`);
    const linkByServer = new Map(links.map((link) => [link.server.name, link]));
    let size = 0;
    const offered = [...byName].flatMap(([name, { server, tool }]) => {
      const link = linkByServer.get(server);
      const pin = known.get(pinKey(server, tool));
      const accepted = pin && toServerTool(pin);
      if (!link || !pin || !accepted) return [];
      size += promptSize(accepted);
      if (size <= MAX_OFFERED) return [toTool({ name, agent: agent.agent, link, accepted, pin })];
      reportOnce(
        `the tools of all MCP servers of agent ${agent.agent} have more than ${MAX_OFFERED} characters together: ${name} is left out`,
      );
      return [];
    });
    const more = resourceTools(links).filter(({ name }) => !agent.taken.includes(name));
    return [...offered, ...more].sort((a, b) => (a.name < b.name ? -1 : 1));
  };

  return {
    async of(agent, { patienceMs, turn }) {
      const before = turn === undefined ? undefined : turns.get(turn);
      if (before) return before;
      const tools = await gather(agent, patienceMs);
      if (turn !== undefined) {
        turns.set(turn, tools);
        if (turns.size > MAX_TURNS) turns.delete(turns.keys().next().value ?? '');
      }
      return tools;
    },
    close: () => pool.close(),
  };
}

/** For people: all servers are listed, nothing is pinned. */
export async function inspectServers(
  agent: Pick<AgentServers, 'agent' | 'namespace' | 'servers'>,
  { pins, now = Date.now, ...given }: ServerToolsOptions,
): Promise<readonly ServerReport[]> {
  const pool = createServerPool({ ...given, now });
  try {
    const links = pool.openLinks(agent.agent, agent.servers);
    await Promise.all(links.map((link) => link.refresh(MAX_WAIT_MS)));
    const known = byTool(await pins.list(agent));
    const { byName, refused } = toolTable(
      links.flatMap((link) => link.listing()?.tools ?? []),
      new Set(),
    );
    return links.map((link) => ({
      server: link.server,
      state: link.state(),
      tools: [...byName].flatMap(([name, live]) =>
        live.server === link.server.name ? [{ name, live, pin: known.get(pinKey(live.server, live.tool)) }] : [],
      ),
      leftOut: [...(link.listing()?.leftOut ?? []), ...refused.filter(({ server }) => server === link.server.name)],
    }));
  } finally {
    await pool.close();
  }
}

const MAX_WAIT_MS = 20_000;

function isWorthWaiting(link: ServerLink): boolean {
  return link.state().kind !== 'down';
}

function earlierTools(known: ReadonlyMap<string, ToolPin>, server: string): ServerTool[] {
  return [...known.values()].filter((pin) => pin.server === server).flatMap((pin) => toServerTool(pin) ?? []);
}

/** The connections of a worker: one for each server of each agent, as its settings are. */
interface ServerPool {
  /** In the order given. None is opened by this. */
  openLinks(agent: string, servers: readonly McpServer[]): readonly ServerLink[];
  close(): Promise<void>;
}

/** A turn that began under other settings may still be using it. */
const RETIRED_MS = 2 * 60_000;

function createServerPool(options: LinkOptions): ServerPool {
  const links = new Map<string, { readonly agent: string; readonly link: ServerLink }>();

  const retire = (agent: string, wanted: ReadonlySet<string>): void => {
    for (const [key, known] of links) {
      if (known.agent !== agent || wanted.has(key) || options.now() - known.link.lastUsed() < RETIRED_MS) continue;
      links.delete(key);
      void known.link.close();
    }
  };

  return {
    openLinks(agent, servers) {
      const keys = servers.map((server) => linkKey(agent, server));
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

function linkKey(agent: string, server: McpServer): string {
  return createHash('sha256')
    .update(JSON.stringify([agent, server]))
    .digest('hex');
}
