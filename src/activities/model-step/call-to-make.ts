import type { MemorySettings } from '../../conversation/activity-io/settings.js';
import type { Usage } from '../../records/message.js';
import type { SlotRange } from '../../records/slots.js';
import type { ConversationIdentity } from '../../records/identity.js';

/** A call as it is to be made, with the settings that hold for it. */
export interface CallToMake {
  readonly identity: ConversationIdentity;
  readonly session: number;
  readonly turn: string;
  readonly call: string;
  readonly slot: number;
  readonly seq: number;
  readonly context: readonly SlotRange[];
  readonly cited?: readonly SlotRange[] | undefined;
  readonly base: string | null;
  /** Epoch milliseconds of the session's beginning. */
  readonly since?: number | undefined;
  readonly memory: Pick<MemorySettings, 'version' | 'forgotten'>;
  readonly agentHash: string;
  readonly model: string;
  /** Tokens that the prompt may have. */
  readonly contextBudget: number;
  readonly firstToolCall: number;
  readonly output?: string;
  readonly soFar: { readonly usage: Usage; readonly toolCalls: number };
}
