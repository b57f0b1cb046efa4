/** Which tools an agent has: those of the worker, and those of its MCP servers. */
import type { LoadedAgent } from '../../agents/load-agent.js';
import { RESOURCE_TOOL_NAMES } from '../../tools/mcp/resource-tools.js';
import { isServerToolName, serverPrefix } from '../../tools/mcp/server-tool.js';
import { SIGN_IN_TOOL } from '../../tools/mcp/run-server-tool.js';
import { createToolRegistry, UnknownTools, type ToolRegistry } from '../../tools/tool.js';
import type { Tool } from '../../tools/tool.js';
import type { ConversationDependencies } from '../dependencies.js';
import type { AgentConfig } from '../../agents/agent-config.js';
import { addressIn } from '../../memory/recall/indexed-texts.js';
import { MEMORY_TOOLS } from '../../records/memory/agent-memory.js';
import type { ConversationKey } from '../../stores/store.js';

export interface AgentTools {
  readonly registry: ToolRegistry;
  /** In the order that the model sees. */
  readonly offered: readonly Tool[];
  /** Tools of servers that wait for a person, by name: why a call of one does not run. */
  readonly waiting: ReadonlyMap<string, string>;
}

/** How long a turn waits, once, for servers that this worker has not heard of before. */
export const SERVER_PATIENCE_MS = 3_000;

export interface ToolsWanted {
  /** Milliseconds; 0 where the caller cannot wait. */
  readonly patienceMs: number;
  /** Within it the answer stays the same. */
  readonly turn?: string;
}

/** Throws UnknownTools for names in `agent.json` that are nowhere. A server that is away makes no name unknown. */
export async function findTools(
  { tools, serverTools, key: { namespace, life, scope } }: Pick<ConversationDependencies, 'tools' | 'serverTools' | 'key'>,
  { id, config, servers }: Pick<LoadedAgent, 'id' | 'config' | 'servers'>,
  { patienceMs, turn }: ToolsWanted,
): Promise<AgentTools> {
  if (!serverTools || servers.length === 0) {
    return { registry: tools, offered: tools.select(offeredNames(config, tools)), waiting: new Map() };
  }
  const wanted = { namespace, agent: id, scope, servers, taken: tools.names };
  const { tools: theirs, waiting } = await serverTools.of(wanted, { patienceMs, ...(turn !== undefined && { turn: `${life}/${turn}` }) });
  const registry = createToolRegistry([...tools.select(tools.names), ...theirs]);
  const prefixes = servers.map(({ name }) => serverPrefix(name));
  const expanded = config.tools?.flatMap((name) => expand(name, registry, prefixes));
  // An agent with tools of servers can have a person sign in there.
  const isOffered = config.tools?.some(isServerToolName) === true && registry.find(SIGN_IN_TOOL) !== undefined;
  const named = expanded && isOffered ? [...expanded, SIGN_IN_TOOL] : expanded;
  const isNamed = (name: string): boolean =>
    config.tools?.some((one) => one === name || prefixes.some((prefix) => one === `${prefix}*` && name.startsWith(prefix))) ?? true;
  return {
    registry,
    offered: registry.select(offeredNames({ tools: named, memory: config.memory }, registry)),
    waiting: new Map([...waiting].filter(([name]) => isNamed(name))),
  };
}

/** `mcp__<server>__*` is all of a server that there is; a tool that a server does not have now is none. */
function expand(name: string, registry: ToolRegistry, prefixes: readonly string[]): readonly string[] {
  if (registry.find(name)) return [name];
  if ((RESOURCE_TOOL_NAMES as readonly string[]).includes(name) || name === SIGN_IN_TOOL) return [];
  if (!isServerToolName(name)) return [name];
  const prefix = prefixes.find((one) => name.startsWith(one));
  if (prefix === undefined) throw new UnknownTools([name], [...registry.names, ...prefixes.map((one) => `${one}*`)]);
  return name === `${prefix}*` ? registry.names.filter((one) => one.startsWith(prefix)) : [];
}

// Which tools an agent has. The memory tools come and go with its memory channel.

/** In the order of the request. An agent that names its tools has the memory tools behind them; one without any has none. */
function offeredNames(
  { tools: named, memory }: { readonly tools?: readonly string[] | undefined; readonly memory: Pick<AgentConfig['memory'], 'enabled'> },
  tools: Pick<ToolRegistry, 'names' | 'find'>,
): readonly string[] {
  const names = named ?? tools.names;
  if (!memory.enabled) return names.filter((name) => !MEMORY_TOOLS.includes(name));
  if (names.length === 0) return names;
  return [...names, ...MEMORY_TOOLS.filter((name) => !names.includes(name) && tools.find(name))];
}

/** How what a prompt says of older turns can be read, for a text that says so. */
export interface HowToRead {
  readonly canRead: boolean;
  readonly addressOf?: (slot: number) => string;
}

/** `key`: whose messages they are. */
export function howToRead(key: ConversationKey, config: AgentConfig, tools: Pick<ToolRegistry, 'names' | 'find'>): HowToRead {
  const canRead = tools.find('read_episode') !== undefined && offeredNames(config, tools).includes('read_episode');
  return { canRead, ...(canOpenMemory(config, tools) && { addressOf: (slot) => addressIn(key, slot) }) };
}

/** What left a prompt can be looked at again. */
export function canOpenMemory(config: AgentConfig, tools: Pick<ToolRegistry, 'names' | 'find'>): boolean {
  return offeredNames(config, tools).includes('open_memory');
}

/** Nothing is cited that could not be read again. */
export function hasMemoryChannel(config: AgentConfig, tools: Pick<ToolRegistry, 'names' | 'find'>): boolean {
  return offeredNames(config, tools).includes('retrieve_from_memory');
}
