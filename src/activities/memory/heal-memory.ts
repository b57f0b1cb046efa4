/**
 * A store that has lost a scope's memory gets it back from the history of its one writer: what was written is written again, in its
 * order and with its time, each once per id. What people wrote by hand was in the store alone, and so were raw fallbacks.
 *
 * H1  What is to stay forgotten comes first, so that nothing brings it back on the way.
 * H2  Written again until all of it is there: a healing that was cut off is gone on with, and one write that fails keeps no other back.
 * H3  A decision counts for the line that it was about, whatever number that has now.
 */
import { log } from '@temporalio/activity';
import type { RememberInput } from '../../conversation/activity-io/memory-effects.js';
import type { Reviewed } from '../../conversation/protocol/memory-contract.js';
import type { RememberedWrite } from '../../heal/restore-memory.js';
import type { ScopeKey, Store } from '../../stores/store.js';
import { acceptLine, forget, type ForgetInput } from './decide-memory.js';
import { remember } from './remember.js';

export type RememberedBy = (scope: string) => Promise<readonly RememberedWrite[]>;

/** True when there was something to write again. Whoever has found out that something is lost says so; else a memory without any change is. */
export async function healMemory(
  store: Store,
  rememberedBy: RememberedBy | undefined,
  key: ScopeKey,
  { isLost = false }: { readonly isLost?: boolean } = {},
): Promise<boolean> {
  if (!rememberedBy || (!isLost && (await store.documents.changes(key)).changes.length > 0)) return false;
  const writes = await rememberedBy(key.scope);
  if (writes.length === 0) return false;
  const forgotten = writes.filter(({ activity }) => activity === 'forget');
  const others = writes.filter(({ activity }) => activity !== 'forget');
  let failed = 0;
  for (const write of [...forgotten, ...others]) {
    await again(store, key, write).catch((error: unknown) => {
      failed += 1;
      log.warn('a write of the memory could not be repeated', { scope: key.scope, activity: write.activity, reason: String(error) });
    });
  }
  log.warn('the store had lost a memory: written again from history', { scope: key.scope, writes: writes.length, failed });
  return true;
}

async function again(store: Store, key: ScopeKey, { activity, input, result, at }: RememberedWrite): Promise<void> {
  switch (activity) {
    case 'remember':
      return void (await remember(store, input as RememberInput, at));
    case 'forget':
      return void (await forget(store, input as ForgetInput));
    case 'review': {
      const { id, line, state } = result as Reviewed;
      const open = (await store.documents.proposals(key)).proposals.find((one) => one.line === line && one.state === 'open');
      if (open) await store.documents.settleProposal(key, open.id, state);
      if (state === 'accepted') await acceptLine(store, key, { id, line, source: open?.source ?? { trust: 'person' }, at });
    }
  }
}
