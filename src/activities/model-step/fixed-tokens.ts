import type { CountTokens } from '../../memory/tokens.js';
import type { Tool } from '../../tools/tool.js';

/** What every prompt of an agent takes before a word is said. */
export function fixedTokens(system: string, tools: readonly Tool[], count: CountTokens): number {
  const described = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  return count(system) + count(JSON.stringify(described));
}
