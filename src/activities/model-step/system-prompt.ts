import { buildSystemPrompt } from '../../agents/identity.js';
import type { LoadedAgent } from '../../agents/load-agent.js';

/** With the scope's MEMORY.md and, where the window has let messages go, what is left of them. */
export function systemPrompt({ files, system }: LoadedAgent, memory: string, recap = ''): string {
  return memory.trim() === '' && recap === '' ? system : buildSystemPrompt({ ...files, memory }, recap);
}
