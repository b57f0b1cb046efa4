/** MCP servers for tests: one that nobody here wrote, and one of ours that does what none should. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { JsonValue } from '../../src/records/message.js';
import { mcpConfigSchema, toServers, type McpServer } from '../../src/tools/mcp/server-config.js';
import { createServerTools, type AcceptedTools, type ServerTools, type ServerToolsOptions } from '../../src/tools/mcp/server-tools.js';
import type { Tool, ToolResult } from '../../src/tools/tool.js';
import type { Collection, Place } from '../../src/stores/collections/collection.js';
import { createPins } from '../../src/stores/collections/mcp-servers.js';
import type { AgentKey, Pins } from '../../src/stores/store.js';
import { toolContext } from '../tools/tool-context.js';
import { timeoutSignal } from '../../src/platform/promises.js';

/** `@modelcontextprotocol/server-everything`. */
export const EVERYTHING = join(dirname(require.resolve('@modelcontextprotocol/server-everything/package.json')), 'dist/index.js');

const HOSTILE = join(__dirname, 'hostile-mcp-server.cjs');

export interface HostileServer {
  readonly config: { readonly command: string; readonly args: readonly string[] };
  /** From now on it says this of itself. */
  be(wish: object): Promise<void>;
  /** What it has noted, line by line. */
  notes(): Promise<string[]>;
  remove(): Promise<void>;
}

export async function hostileServer(wish: object): Promise<HostileServer> {
  const dir = await mkdtemp(join(tmpdir(), 'perdura-mcp-'));
  const file = join(dir, 'wish.json');
  const notes = join(dir, 'notes');
  const be = (next: object): Promise<void> => writeFile(file, JSON.stringify({ notes, ...next }));
  await be(wish);
  return {
    config: { command: process.execPath, args: [HOSTILE, file] },
    be,
    notes: async () => (await readFile(notes, 'utf8').catch(() => '')).split('\n').filter((line) => line !== ''),
    remove: () => rm(dir, { recursive: true, force: true }),
  };
}

export function aTool(name: string, over: object = {}): object {
  return { name, description: `does ${name}`, inputSchema: { type: 'object', properties: { a: { type: 'string' } } }, ...over };
}

export function serversOf(mcpServers: object, folder = tmpdir()): readonly McpServer[] {
  return toServers(mcpConfigSchema.parse({ mcpServers }), folder);
}

/** Pins in memory: the real ones, over one list for each agent. */
export function pinsInMemory(): Pins {
  const lists = new Map<string, readonly object[]>();
  return createPins(<Item extends object>(place: Place): Collection<Item> => {
    const { namespace, agent } = place.key as AgentKey;
    const name = JSON.stringify([namespace, agent]);
    const items = (): readonly Item[] => (lists.get(name) ?? []) as readonly Item[];
    return {
      read: () => Promise.resolve({ items: items(), skipped: 0 }),
      change: async (_attempt, decide) => void lists.set(name, (await decide(items(), [])) ?? items()),
    };
  });
}

export const AGENT = { namespace: 'default', agent: 'ada' } as const;

interface OfferWanted {
  readonly patienceMs?: number;
  readonly turn?: string;
  readonly taken?: readonly string[];
}

export interface Bench {
  readonly serverTools: ServerTools;
  readonly pins: Pins;
  /** What was logged. */
  readonly lines: readonly string[];
  /** The tools of an agent with these servers, and what waits. */
  offer(mcpServers: object, how?: OfferWanted): Promise<AcceptedTools>;
  tools(mcpServers: object, how?: OfferWanted): Promise<readonly Tool[]>;
  close(): Promise<void>;
}

export function aBench(given: Partial<ServerToolsOptions> = {}): Bench {
  const pins = given.pins ?? pinsInMemory();
  const lines: string[] = [];
  const serverTools = createServerTools({ variables: process.env, version: '0.0.0', log: (line) => lines.push(line), ...given, pins });
  const offer: Bench['offer'] = (mcpServers, { patienceMs = 8_000, taken = [], ...how } = {}) =>
    serverTools.of({ ...AGENT, servers: serversOf(mcpServers), taken }, { patienceMs, ...how });
  return {
    serverTools,
    pins,
    lines,
    offer,
    tools: async (mcpServers, how) => (await offer(mcpServers, how)).tools,
    close: () => serverTools.close(),
  };
}

export function named(tools: readonly Tool[], name: string): Tool {
  const found = tools.find((tool) => tool.name === name);
  if (!found) throw new Error(`there is no tool ${name}; there are ${tools.map((tool) => tool.name).join(', ')}`);
  return found;
}

export function run(tool: Tool, input: JsonValue = {}, signal = timeoutSignal(120_000)): Promise<ToolResult> {
  return tool.run(input, toolContext({ signal }));
}

export function said(result: ToolResult): string {
  return result.ok ? result.content : result.error;
}
