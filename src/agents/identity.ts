/**
 * Who an agent is: its identity files (seed 002, System Prompt), and the system prompt that they make. Volatile facts, the time
 * above all, are no part of it: a prompt that changes is a prompt that no cache keeps (design section 4).
 */

/** Markdown by where it came from; null where there is no such file. */
export interface IdentityFiles {
  readonly soul: string | null;
  readonly identity: string | null;
  readonly user: string | null;
  /** The long-term memory of the conversation's scope, not a file of the agent's. */
  readonly memory: string | null;
  readonly agents: string | null;
  readonly tools: string | null;
}

/** In an agent's folder, each optional. */
export const IDENTITY_FILES = {
  soul: 'SOUL.md',
  identity: 'IDENTITY.md',
  user: 'USER.md',
  agents: 'AGENTS.md',
  tools: 'TOOLS.md',
} as const;

const DEFAULT_SOUL = 'You are a helpful assistant. Answer clearly and honestly, and say so when you do not know.';

/**
 * In the seed's order: soul, identity, user, memory, agents, tools. The soul speaks first and without a heading. `recap`, what is left
 * of messages that the window has let go (seed 001), comes last and brings a heading of its own.
 */
export function buildSystemPrompt(files: IdentityFiles, recap = ''): string {
  const sections = [
    files.soul?.trim() || DEFAULT_SOUL,
    section('Identity', files.identity),
    section('User', files.user),
    section('Memory', files.memory),
    section('Agents', files.agents),
    section('Tools', files.tools),
    recap.trim(),
  ];
  return sections.filter((text) => text !== '').join('\n\n');
}

function section(heading: string, text: string | null): string {
  const content = text?.trim() ?? '';
  return content === '' ? '' : `# ${heading}\n\n${content}`;
}
