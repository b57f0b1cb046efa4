/** What the running activity has from Temporal: whose traces it writes, where its tools stay, and its signs of life. */
import { hash } from 'node:crypto';
import { mkdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { type ConversationIdentity, readTenant } from '../records/identity.js';
import type { ScopeKey } from '../stores/store.js';
import type { ActivityDependencies, ConversationDependencies } from './dependencies.js';
import { withinLimits } from './rate-limiter.js';

/** Whose traces the running activity writes: namespace and id as Temporal knows them, never from an argument. */
export function ofConversation(dependencies: ActivityDependencies, identity: ConversationIdentity): ConversationDependencies {
  const { workflowNamespace, workflowExecution } = Context.current().info;
  if (!workflowNamespace || !workflowExecution) throw new Error('this activity belongs to a conversation and was started outside of one');
  const { life, scope } = identity;
  return {
    ...dependencies,
    workspace: workspacePath(dependencies.workspace, scope),
    models: withinLimits(dependencies.models, dependencies.limiter, scope),
    identity,
    key: { namespace: workflowNamespace, conversation: workflowExecution.workflowId, life, scope },
  };
}

/** Whose memory the running activity writes. */
export function scopeKey(scope: string): ScopeKey {
  const { workflowNamespace: namespace, workflowExecution } = Context.current().info;
  if (!namespace || !workflowExecution)
    throw ApplicationFailure.nonRetryable('this activity belongs to a memory and was started outside of one', 'internal');
  return { namespace, scope, life: workflowExecution.runId };
}

/**
 * Of an effect's request: the same id with another hash is a conflict, never an answer. Callers name what counts,
 * since a field that a later version adds to an input must not make a conflict of an attempt that began before it.
 */
export function hashRequest(request: unknown): string {
  return hash('sha256', JSON.stringify(request));
}

/** Where the tools of a conversation stay: a tenant's in a separate folder, below the one of those without a tenant. */
function workspacePath(root: string, scope: string): string {
  const tenant = readTenant(scope);
  return tenant === undefined ? root : join(root, tenant);
}

/** Made at its first use. The folder above is one that agents of no tenant write in: a link in its place is not followed. */
export async function makeWorkspace(workspace: string, scope: string): Promise<void> {
  const tenant = readTenant(scope);
  if (tenant === undefined) return;
  await mkdir(workspace, { recursive: true });
  const [real, above] = await Promise.all([realpath(workspace), realpath(dirname(workspace))]);
  if (real === join(above, tenant)) return;
  throw ApplicationFailure.nonRetryable(
    `cannot enter the workspace of ${tenant}: ${workspace} is a link; put a folder in its place`,
    'bad-workspace',
  );
}

const EVERY_MS = 500;

/**
 * Signs of life for the whole of an activity, by a separate timer: they also bring the news that it should stop. Twice a second: a beat at
 * once costs a short activity 6 ms, and says nothing that its start has not. `details` are for another attempt.
 */
export async function withHeartbeat<T>(context: Context, work: () => Promise<T>, details?: () => unknown): Promise<T> {
  // It keeps no process alive, as one of a test that has left a tool behind.
  const timer = setInterval(() => context.heartbeat(details?.()), EVERY_MS).unref();
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** Whether the stop that `cancellationSignal` reports is a person's, and not the worker's end or a lost heartbeat. */
export function wasStopped(context: Context): boolean {
  return context.cancellationDetails?.cancelRequested === true;
}
