/** Which tools an agent has. The memory tools come and go with its memory channel. */
import type { AgentConfig } from '../../agents/agent-config.js';
import { MEMORY_TOOLS } from '../../records/memory/agent-memory.js';
import type { ToolRegistry } from '../../tools/registry.js';

/** In the order of the request. An agent that names its tools has the memory tools behind them; one without any has none. */
export function offeredNames(
  { tools: named, memory }: { readonly tools?: readonly string[] | undefined; readonly memory: Pick<AgentConfig['memory'], 'enabled'> },
  tools: Pick<ToolRegistry, 'names' | 'find'>,
): readonly string[] {
  const names = named ?? tools.names;
  if (!memory.enabled) return names.filter((name) => !MEMORY_TOOLS.includes(name));
  if (names.length === 0) return names;
  return [...names, ...MEMORY_TOOLS.filter((name) => !names.includes(name) && tools.find(name))];
}

/** Nothing is cited that could not be read again. */
export function hasMemoryChannel(config: AgentConfig, tools: Pick<ToolRegistry, 'names' | 'find'>): boolean {
  return offeredNames(config, tools).includes('retrieve_from_memory');
}
