/** What a conversation is called where people read of it. */
import { ApplicationFailure } from '@temporalio/common';
import { tenantOf } from '../records/scope.js';
import type { ConversationDependencies } from './dependencies.js';

/** As its tenant knows it. Receivers may be the tenant's own, and the id that Temporal has is the installation's. */
export async function shownId({ publicIdOf, identity }: ConversationDependencies, id: string): Promise<string> {
  if (tenantOf(identity.scope) === undefined) return id;
  if (!publicIdOf) throw ApplicationFailure.nonRetryable(`this worker has no way to ask what a tenant calls ${id}`, 'not-available');
  const [own = '', ...below] = id.split(':');
  return [await publicIdOf(own), ...below].join(':');
}
