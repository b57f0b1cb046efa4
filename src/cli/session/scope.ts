/** Which long-term memory a command means: that of a scope by its name, or of a conversation. */
import type { ScopeMemory } from '../../client.js';
import { findConversation } from '../args/find-conversation.js';
import { CliError, EXIT } from '../terminal/exit.js';
import type { CommandSession } from './command.js';

export interface ScopeWanted {
  readonly scope?: string;
  readonly of?: string;
}

export const SCOPE = ['[scope]', 'whose memory (default: "default")'] as const;
export const OF_CONVERSATION = ['--of <conversation>', 'the scope of this conversation'] as const;

/** Of an agent that names none, and of conversations that name no agent. */
const DEFAULT_SCOPE = 'default';

export async function openScope(desk: CommandSession, { scope, of }: ScopeWanted): Promise<ScopeMemory> {
  if (scope !== undefined && of !== undefined) throw new CliError('a scope and --of name two memories: write one of them', EXIT.usage);
  return desk.client.scope(of === undefined ? (scope ?? DEFAULT_SCOPE) : await readScope(desk, of));
}

async function readScope(desk: CommandSession, given: string): Promise<string> {
  const id = await findConversation(desk, given);
  const { scope } = await desk.withSlowNotice(`asking ${id} for its scope`, desk.client.key(id));
  desk.output.note(`the scope of ${id} is ${scope}`);
  return scope;
}
