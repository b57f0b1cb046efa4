/**
 * A store that has lost a scope's memory gets it back from the history of its one writer: what was written is written again, in its
 * order and with its time, each once per id. What people wrote by hand was in the store alone, and so were raw fallbacks.
 *
 * - Tombstones come first, so that no text returns on the way.
 * - Healing writes until all of it is there: it goes on after an interruption, and one failed write keeps no other back.
 * - A decision counts for its line, whatever number that line has now.
 */
import { log } from '@temporalio/activity';
import type { RememberInput, WrittenMemory } from '../../conversation/context/memory-effects.js';
import type { Reviewed } from '../../conversation/protocol/memory-contract.js';
import type { RememberedWrite } from '../../heal/restore-memory.js';
import type { ScopeKey, Store } from '../../stores/store.js';
import { NO_MEMORY_VERSION } from '../../records/memory/memory-lines.js';
import { acceptLine, forget, type ForgetInput } from './decide-memory.js';
import { remember } from './write-memory.js';
import type { RememberedBy } from '../dependencies.js';

/**
 * Whether a store that was written to has lost it. A memory whose MEMORY.md no consolidation has changed, or no model's answer was of
 * use for, is not lost: it would be healed at each consolidation, longer every time.
 */
export async function isMemoryLost({ documents }: Store, key: ScopeKey, written: WrittenMemory | undefined): Promise<boolean> {
  if ((await documents.changes(key)).changes.length > 0) return false;
  if (written?.version !== NO_MEMORY_VERSION) return true;
  for await (const { kind } of documents.history(key)) if (!written.summary || kind === 'summary') return false;
  return true;
}

export async function healMemory(store: Store, rememberedBy: RememberedBy | undefined, key: ScopeKey): Promise<void> {
  if (!rememberedBy) return;
  const writes = await rememberedBy(key.scope);
  if (writes.length === 0) return;
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
