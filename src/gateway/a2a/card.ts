/**
 * Who serves here, for clients that look for an agent. What a stranger reads names no agent and nothing that runs behind it; the extended
 * card is for those with a token. Pure.
 */
/** The first is preferred; a request without a version is one of 0.3. */
export const A2A_VERSIONS = ['1.0', '0.3'] as const;

export interface CardOptions {
  /** Such as `https://agents.example/perdura`. */
  readonly base: string;
  readonly version: string;
  /** The agent of a card for one agent. */
  readonly agent?: string;
  /** All agents, in an extended card. */
  readonly agents?: readonly string[];
}

const TEXT = ['text/plain', 'application/json'];
const MEDIA = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'application/pdf', 'text/plain'];

export function createCard({ base, version, agent, agents }: CardOptions): object {
  const url = `${base}/a2a${agent === undefined ? '' : `/${agent}`}`;
  return {
    name: agent ?? 'Perdura',
    description:
      'Durable conversations with AI agents. A context is a conversation, and a task is one turn of it, which outlives connections and servers.',
    version,
    supportedInterfaces: A2A_VERSIONS.map((protocolVersion) => ({ url, protocolBinding: 'JSONRPC', protocolVersion })),
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
    securitySchemes: { token: { httpAuthSecurityScheme: { scheme: 'Bearer', description: 'The token that `perdura serve` names.' } } },
    securityRequirements: [{ schemes: { token: { list: [] } } }],
    defaultInputModes: [...TEXT, ...MEDIA],
    defaultOutputModes: TEXT,
    skills: (agent === undefined ? agents : [agent])?.map(toSkill) ?? [CONVERSE],
  };
}

const CONVERSE = {
  id: 'converse',
  name: 'Converse',
  description: 'Talk with an agent: it answers, uses its tools, and asks back where a person must decide.',
  tags: ['conversation'],
};

function toSkill(agent: string): object {
  return {
    id: agent,
    name: agent,
    description: `Talk with the agent ${agent}: send { "agent": "${agent}" } as metadata.`,
    tags: ['agent'],
  };
}
