import { createHash } from 'node:crypto';
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { ConversationIdentity } from '../records/identity.js';
import type { ScopeKey } from '../stores/store.js';
import { workspacePath } from './workspace.js';
import type { ActivityDependencies, ConversationDependencies } from './dependencies.js';

/** Whose traces the running activity writes: namespace and id as Temporal knows them, never from an argument. */
export function ofConversation(dependencies: ActivityDependencies, identity: ConversationIdentity): ConversationDependencies {
  const { workflowNamespace, workflowExecution } = Context.current().info;
  if (!workflowNamespace || !workflowExecution) throw new Error('this activity belongs to a conversation and was started outside of one');
  const { life, scope } = identity;
  return {
    ...dependencies,
    workspace: workspacePath(dependencies.workspace, scope),
    identity,
    key: { namespace: workflowNamespace, conversation: workflowExecution.workflowId, life, scope },
  };
}

/** Whose memory the running activity writes. */
export function scopeKey(scope: string): ScopeKey {
  const { workflowNamespace: namespace } = Context.current().info;
  if (!namespace) throw ApplicationFailure.nonRetryable('this activity belongs to a memory and was started outside of one', 'internal');
  return { namespace, scope };
}

/**
 * Of an effect's request: the same id with another hash is a conflict, never an answer. Callers name what counts,
 * since a field that a later version adds to an input must not make a conflict of an attempt that began before it.
 */
export function hashRequest(request: unknown): string {
  return createHash('sha256').update(JSON.stringify(request)).digest('hex');
}
