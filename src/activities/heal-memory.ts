/**
 * A store that has lost a scope's memory gets it back from the history of its one writer: what was written is written again, in its
 * order, each once per id. What people wrote by hand was in the store alone, and so were raw fallbacks.
 */
import { log } from '@temporalio/activity';
import type { RememberInput } from '../conversation/effects.js';
import type { RememberedWrite } from '../heal/remembered.js';
import type { ScopeKey, Store } from '../stores/store.js';
import { forget, review, type ForgetInput, type ReviewInput } from './decide-memory.js';
import { remember } from './remember.js';

export type RememberedBy = (scope: string) => Promise<readonly RememberedWrite[]>;

/** True when there was something to bring back. A memory that has any change is not lost, whatever a person has made of it. */
export async function healMemory(store: Store, rememberedBy: RememberedBy | undefined, key: ScopeKey): Promise<boolean> {
  if (!rememberedBy || (await store.documents.changes(key)).changes.length > 0) return false;
  const writes = await rememberedBy(key.scope);
  for (const { activity, input } of writes) await again(store, activity, input);
  if (writes.length > 0) log.warn('the store had lost a memory: written again from history', { scope: key.scope, writes: writes.length });
  return writes.length > 0;
}

async function again(store: Store, activity: RememberedWrite['activity'], input: unknown): Promise<void> {
  switch (activity) {
    case 'remember':
      return void (await remember(store, input as RememberInput));
    case 'forget':
      return void (await forget(store, input as ForgetInput));
    case 'review':
      return void (await review(store, input as ReviewInput));
  }
}
