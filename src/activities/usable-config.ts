/** An agent's settings, for a step that has something to do also where they cannot be read. */
import { AgentConfigError } from '../agents/load-agent.js';
import { agentConfigSchema, type AgentConfig } from '../agents/agent-config.js';
import type { ActivityDependencies } from './dependencies.js';

/** Undefined where its files cannot be used: the turn reports that, and the step goes by the defaults. */
export async function usableConfig(
  { agents }: Pick<ActivityDependencies, 'agents'>,
  { agent, scope }: { readonly agent: string; readonly scope: string },
): Promise<AgentConfig | undefined> {
  try {
    return (await agents(agent, scope)).config;
  } catch (error) {
    if (error instanceof AgentConfigError) return undefined;
    throw error;
  }
}

/** Such files are no reason to lose messages. */
export async function configOrDefaults(...of: Parameters<typeof usableConfig>): Promise<AgentConfig> {
  return (await usableConfig(...of)) ?? agentConfigSchema.parse({});
}
