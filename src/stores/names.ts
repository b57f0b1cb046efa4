/** By which names a store keeps things: conversations and their lives, scopes, agents. */

/** Names whose long-term memory it is. */
export interface ScopeKey {
  readonly namespace: string;
  readonly scope: string;
}

/** Names one life of one conversation. `life` is Temporal's `firstExecutionRunId`, the same over continue-as-new. */
export interface ConversationKey extends ScopeKey {
  readonly conversation: string;
  readonly life: string;
}

/** Names an agent, of which many scopes may have conversations. */
export interface AgentKey {
  readonly namespace: string;
  readonly agent: string;
}

export interface ConversationName {
  readonly namespace: string;
  readonly conversation: string;
}

export interface DeletedLife {
  readonly life: string;
  /** When it was deleted first, in epoch seconds. */
  readonly at: number;
}

/** Whose files wait to be used: those of one tenant, or of none (''). */
export interface UploadOwner {
  readonly namespace: string;
  readonly tenant: string;
}
