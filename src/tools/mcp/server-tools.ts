/** The tools that an agent has from its MCP servers, now. */
import { createHash } from 'node:crypto';
import type { Tool } from '../tool.js';
import { createServerLink, type ServerLink, type LinkOptions, type LinkState } from './link.js';
import type { AgentKey, Pins, ServerPins, ToolPin } from '../../stores/store.js';
import {
  createToolJudge,
  noteWaiting,
  promptSize,
  readPins,
  toolName,
  toolTable,
  toServerTool,
  type JudgedTool,
  type LeftOut,
  type ServerTool,
} from './server-tool.js';
import { resourceTools } from './resource-tools.js';
import { describeWaiting, signInTool, toTool } from './run-server-tool.js';
import type { McpServer } from './server-config.js';
import type { SignIns } from './sign-in/sign-ins.js';
import { withoutHidden } from '../hidden-text.js';

export interface AgentServers extends AgentKey {
  /** Whose sign-ins at servers are used: its whole name. Default: that of none. */
  readonly scope?: string;
  readonly servers: readonly McpServer[];
  /** Names that are taken: the built-in tools. */
  readonly taken: readonly string[];
}

export interface ServerTools {
  /**
   * Waits `patienceMs` for servers that have not answered yet, and for none that has failed. With `turn`, the answer that this turn was
   * given first, so that a prompt does not change within it.
   */
  of(agent: AgentServers, how: { readonly patienceMs: number; readonly turn?: string }): Promise<AcceptedTools>;
  close(): Promise<void>;
}

export interface AcceptedTools {
  /** Sorted by name. */
  readonly tools: readonly Tool[];
  /** Those that wait for a person, by name: why a call of one does not run. */
  readonly waiting: ReadonlyMap<string, string>;
  /** Whether a server does not answer until a person has signed in. */
  readonly isSignInNeeded: boolean;
}

export interface ServerToolsOptions extends Omit<LinkOptions, 'now' | 'openSignIn'> {
  readonly pins: Pins;
  readonly now?: () => number;
  /** Without it a server that wants a person to sign in is one that is down. */
  readonly signIns?: SignIns | undefined;
}

/** A server as people are to see it. */
export interface ServerReport {
  readonly name: string;
  /** Absent: only a worker knows it, whose code names it. */
  readonly server?: McpServer;
  readonly state: LinkState;
  readonly tools: readonly ToolReport[];
  readonly leftOut: readonly LeftOut[];
}

export interface ToolReport extends JudgedTool {
  readonly name: string;
  readonly live: ServerTool;
}

/** Characters of all tools of all servers of an agent. */
const MAX_OFFERED = 512 * 1024;
const MAX_TURNS = 1_000;
const MAX_REPORTED = 1_000;
const MAX_NAMED = 5;

export function createServerTools({ pins, now = Date.now, signIns, ...given }: ServerToolsOptions): ServerTools {
  const pool = createServerPool({ ...given, now }, signIns);
  const turns = new Map<string, AcceptedTools>();
  const reported = new Set<string>();

  const reportOnce = (line: string, what = line): void => {
    if (reported.has(what) || reported.size >= MAX_REPORTED) return;
    reported.add(what);
    given.log(line);
  };

  /** Once, until a person has accepted something: a server that changes its list all the time does not fill a log. */
  const reportWaiting = ({ agent }: AgentServers, server: string, names: readonly string[], { accepted }: ServerPins): void => {
    const hashes = accepted.flatMap((pin) => (pin.server === server ? [pin.hash] : [])).sort();
    const shown = names.slice(0, MAX_NAMED).join(', ') + (names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '');
    reportOnce(
      `MCP server ${server} has added or changed tools since it was accepted, which are not offered: ${shown}. ` +
        `A person can look at them and accept them: perdura mcp accept ${agent}`,
      JSON.stringify([agent, server, hashes]),
    );
  };

  const gather = async (agent: AgentServers, patienceMs: number, isRun: boolean): Promise<AcceptedTools> => {
    const links = await pool.refreshLinks(agent, patienceMs);
    const listings = links.map((link) => link.listing());
    const live = new Map(links.flatMap(({ server }, i) => (listings[i] ? [[server.name, listings[i].tools] as const] : [])));
    const known = await readPins(pins, agent, live);
    // Of a server that has not been heard since this worker began, what was accepted earlier stands.
    const tools = links.flatMap(({ server }) => live.get(server.name) ?? earlierTools(known, server.name));
    const { byName, refused } = toolTable(tools, new Set(agent.taken));
    const leftOut = [
      ...refused,
      ...listings.flatMap((listing, i) => (listing?.leftOut ?? []).map((one) => ({ ...one, server: links[i]?.server.name }))),
    ];
    for (const { server, tool, reason } of leftOut)
      reportOnce(`MCP server ${server}: its tool ${withoutHidden(tool)} is left out: ${reason}`);
    const linkByServer = new Map(links.map((link) => [link.server.name, link]));
    const judge = createToolJudge(known);
    const waiting = new Map<string, string>();
    const waitingPins = new Map([...live.keys()].map((server) => [server, new Map<string, ToolPin>()]));
    // Of a server that is named no more nothing waits.
    for (const { server } of known.waiting) if (!linkByServer.has(server)) waitingPins.set(server, new Map());
    let size = 0;
    const offered = [...byName].flatMap(([name, tool]) => {
      const link = linkByServer.get(tool.server);
      const { state, now, pin, accepted } = judge(tool);
      if (!link) return [];
      if (state !== 'accepted' || !pin || !accepted) {
        waiting.set(name, describeWaiting({ name, agent: agent.agent, server: tool.server }, state));
        waitingPins.get(tool.server)?.set(name, now);
        return [];
      }
      size += promptSize(accepted);
      if (size <= MAX_OFFERED) return [toTool({ name, agent: agent.agent, link, accepted, pin })];
      reportOnce(
        `the tools of all MCP servers of agent ${agent.agent} have more than ${MAX_OFFERED} characters together: ${name} is left out`,
      );
      return [];
    });
    for (const [server, byTool] of waitingPins) if (byTool.size > 0) reportWaiting(agent, server, [...byTool.keys()], known);
    await noteWaiting(pins, agent, known, new Map([...waitingPins].map(([server, byTool]) => [server, [...byTool.values()]])));
    const more = [...resourceTools(links), ...signInTool(links, isRun)].filter(({ name }) => !agent.taken.includes(name));
    const isSignInNeeded = links.some((link) => link.signIn()?.isNeeded() === true);
    return { tools: [...offered, ...more].sort((a, b) => (a.name < b.name ? -1 : 1)), waiting, isSignInNeeded };
  };

  return {
    async of(agent, { patienceMs, turn }) {
      const before = turn === undefined ? undefined : turns.get(turn);
      // What a person's sign-in opens is there in the same turn.
      if (before && !before.isSignInNeeded && !pool.waits(agent)) return before;
      const tools = await gather(agent, patienceMs, turn === undefined);
      if (turn !== undefined) {
        turns.set(turn, tools);
        if (turns.size > MAX_TURNS) turns.delete(turns.keys().next().value ?? '');
      }
      return tools;
    },
    close: () => pool.close(),
  };
}

/**
 * For people: all servers are listed, nothing is accepted. Of those that are away, or that only a worker knows, those tools that a worker
 * has seen waiting.
 */
export async function inspectServers(
  agent: Pick<AgentServers, 'agent' | 'namespace' | 'servers' | 'scope'>,
  { pins, now = Date.now, signIns, ...given }: ServerToolsOptions,
): Promise<readonly ServerReport[]> {
  const pool = createServerPool({ ...given, now }, signIns);
  try {
    const links = await pool.refreshLinks(agent, MAX_WAIT_MS);
    const known = await pins.list(agent);
    const judge = createToolJudge(known);
    const { byName, refused } = toolTable(
      links.flatMap((link) => link.listing()?.tools ?? []),
      new Set(),
    );
    const listed = new Set(links.flatMap((link) => (link.listing() ? [link.server.name] : [])));
    const unlisted = known.waiting.filter(({ server }) => !listed.has(server)).flatMap((pin) => toServerTool(pin) ?? []);
    const all = [...byName, ...unlisted.map((live) => [toolName(live.server, live.tool), live] as const)];
    const toolsFrom = (server: string): ToolReport[] =>
      all.flatMap(([name, live]) => (live.server === server ? [{ name, live, ...judge(live) }] : []));
    const named = new Set(agent.servers.map(({ name }) => name));
    const others = new Set(unlisted.map(({ server }) => server).filter((server) => !named.has(server)));
    return [
      ...links.map((link): ServerReport => {
        const { name } = link.server;
        const leftOut = [...(link.listing()?.leftOut ?? []), ...refused.filter(({ server }) => server === name)];
        return { name, server: link.server, state: link.state(), tools: toolsFrom(name), leftOut };
      }),
      ...[...others].map((name): ServerReport => ({ name, state: { kind: 'idle' }, tools: toolsFrom(name), leftOut: [] })),
    ];
  } finally {
    await pool.close();
  }
}

const MAX_WAIT_MS = 20_000;

function isWorthWaiting(link: ServerLink): boolean {
  return link.state().kind !== 'down';
}

function earlierTools({ accepted }: ServerPins, server: string): ServerTool[] {
  return accepted.filter((pin) => pin.server === server).flatMap((pin) => toServerTool(pin) ?? []);
}

type PoolKey = Pick<AgentServers, 'agent' | 'namespace' | 'servers' | 'scope'>;

/** The connections of a worker: one for each server of each agent, as its settings are; and for each scope, where people sign in. */
interface ServerPool {
  /** In the order of the agent's servers; those that have answered, or were waited for so long. */
  refreshLinks(agent: PoolKey, patienceMs: number): Promise<readonly ServerLink[]>;
  /** Whether one of them has found out that a person has to sign in. */
  waits(agent: PoolKey): boolean;
  close(): Promise<void>;
}

/** A turn that began under other settings may still be using it. */
const RETIRED_MS = 2 * 60_000;

function createServerPool(options: Omit<LinkOptions, 'openSignIn'>, signIns: SignIns | undefined): ServerPool {
  const links = new Map<string, { readonly agent: string; readonly link: ServerLink }>();
  /** Servers, by agent, that want a token: one connection then serves one scope. */
  const guarded = new Set<string>();

  const toKey = ({ agent, namespace, scope }: PoolKey, server: McpServer): string =>
    guarded.has(linkKey(agent, server)) ? linkKey(agent, server, [namespace, scope]) : linkKey(agent, server);

  const retire = (agent: string, wanted: ReadonlySet<string>): void => {
    for (const [key, known] of links) {
      if (known.agent !== agent || wanted.has(key) || options.now() - known.link.lastUsed() < RETIRED_MS) continue;
      links.delete(key);
      void known.link.close();
    }
  };

  const openLink = (of: PoolKey, server: McpServer): ServerLink => {
    const { agent, namespace, scope } = of;
    const shared = linkKey(agent, server);
    const who = guarded.has(shared) && scope !== undefined ? { namespace, agent, scope } : undefined;
    return createServerLink(server, {
      ...options,
      ...(signIns && {
        openSignIn: (expanded, learn) =>
          signIns.open(expanded, who, { learn, ...(scope !== undefined && { onNeeded: () => guarded.add(shared) }) }),
      }),
    });
  };

  const openLinks = (of: PoolKey): readonly ServerLink[] => {
    const keys = of.servers.map((server) => toKey(of, server));
    retire(of.agent, new Set(keys));
    return of.servers.map((server, i) => {
      const key = keys[i] ?? '';
      const known = links.get(key) ?? { agent: of.agent, link: openLink(of, server) };
      links.set(key, known);
      return known.link;
    });
  };

  const refresh = async (link: ServerLink, patienceMs: number): Promise<void> => {
    const wasNeeded = link.signIn()?.isNeeded() === true;
    await link.signIn()?.look();
    const hasSignedIn = wasNeeded && link.signIn()?.isNeeded() === false;
    await link.refresh(hasSignedIn || isWorthWaiting(link) ? patienceMs : 0);
  };

  return {
    async refreshLinks(of, patienceMs) {
      const all = openLinks(of);
      await Promise.all(all.map((link) => refresh(link, patienceMs)));
      // One of them may want a token, as is known by now.
      const again = openLinks(of);
      await Promise.all(again.flatMap((link) => (all.includes(link) ? [] : [refresh(link, patienceMs)])));
      return again;
    },
    waits: (of) => of.servers.some((server) => links.get(toKey(of, server))?.link.signIn()?.isNeeded() === true),

    async close() {
      const all = [...links.values()];
      links.clear();
      await Promise.all(all.map(({ link }) => link.close()));
    },
  };
}

function linkKey(agent: string, server: McpServer, who: readonly unknown[] = []): string {
  return createHash('sha256')
    .update(JSON.stringify([agent, server, ...who]))
    .digest('hex');
}
