/** What a conversation is called where people read of it. */
import { ApplicationFailure } from '@temporalio/common';
import { readTenant } from '../records/scope.js';
import type { ConversationDependencies } from './dependencies.js';

/** As its tenant knows it. Receivers may be the tenant's, and the id that Temporal has is the installation's. */
export async function shownId({ readPublicId, identity }: ConversationDependencies, id: string): Promise<string> {
  if (readTenant(identity.scope) === undefined) return id;
  if (!readPublicId) throw ApplicationFailure.nonRetryable(`this worker has no way to ask what a tenant calls ${id}`, 'not-available');
  const [root = '', ...below] = id.split(':');
  return [await readPublicId(root), ...below].join(':');
}
