import { estimateStringTokens } from '../memory/tokens.js';
import type { Tool } from '../tools/tool.js';

/** What every prompt of an agent takes before a word is said. */
export function fixedTokens(system: string, tools: readonly Tool[]): number {
  const described = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  return estimateStringTokens(system) + estimateStringTokens(JSON.stringify(described));
}
