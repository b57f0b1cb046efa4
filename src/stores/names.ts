/** By which names a store has things: conversations and their lives, scopes, agents; and its name. */
import { randomInt } from 'node:crypto';

/** Names whose long-term memory it is. */
export interface ScopeKey {
  readonly namespace: string;
  readonly scope: string;
  /**
   * Who writes there: the life of a conversation, or a run of the memory workflow. A scope that was erased takes nothing more from those
   * that were at work then (`Scopes.erase`).
   */
  readonly life?: string;
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

/** Names whose sign-in at MCP servers it is: a scope, or a tenant and a full stop. */
export interface SignInOwner {
  readonly namespace: string;
  readonly owner: string;
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

/** The owner of files that wait to be used: one tenant, or none (''). */
export interface UploadOwner {
  readonly namespace: string;
  readonly tenant: string;
}

const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz';
const LENGTH = 6;

/** A store's name, made once: it distinguishes two stores that are reached by the same address, and identifies one that is reached by two. */
export function freshStoreId(): string {
  return Array.from({ length: LENGTH }, () => DIGITS[randomInt(DIGITS.length)]).join('');
}

export function isStoreId(text: string): boolean {
  return /^[0-9a-z]{6}$/.test(text);
}
