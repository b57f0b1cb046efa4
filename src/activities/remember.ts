/**
 * `remember`: what a consolidation has made is written: HISTORY first, then MEMORY.md, then what waits for a person. Each once per id,
 * so that a second attempt changes nothing. A MEMORY.md that somebody has changed meanwhile is merged, not overwritten.
 */
import { Context, log } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { MemoryUpdate, Remembered, RememberInput } from '../conversation/memory-effects.js';
import { mergeMemory } from '../memory/consolidation/merge.js';
import type { Tombstone } from '../memory/documents/documents.js';
import { isForgotten, redactor, withoutForgotten } from '../memory/documents/forgetting.js';
import type { ScopeKey, Store } from '../stores/store.js';

/** Between reading and writing a person may write: nobody is that quick five times. */
const TRIES = 5;

/** `at`: when it was, in epoch milliseconds, for what is written again. */
export async function remember(store: Store, input: RememberInput, at: number = Date.now()): Promise<Remembered> {
  const key = scopeKey(input.scope);
  const ts = at / 1000;
  const { id, history, update, proposed } = input;
  const tombstones = await store.documents.forgotten(key);
  if (history) {
    // What was forgotten while the model was asked does not come back.
    const text = redactor(tombstones, key.scope)(history.text);
    await store.documents.appendHistory(key, { id, kind: history.kind, ts, text });
  }
  const version = update ? await write(store, key, input, { update, tombstones, ts }) : (await store.documents.memory(key)).version;
  const open = proposed.filter(({ line }) => !isForgotten(line, tombstones, key.scope)).map((line) => ({ ...line, ts }));
  if (open.length > 0) await store.documents.propose(key, id, open);
  log.info('remembered', { scope: input.scope, id, version, proposed: proposed.length });
  return { version };
}

async function write(
  store: Store,
  key: ScopeKey,
  { id, cause }: RememberInput,
  { update, tombstones, ts }: { readonly update: MemoryUpdate; readonly tombstones: readonly Tombstone[]; readonly ts: number },
): Promise<string> {
  const base = await store.documents.memoryText(key, update.from);
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const current = await store.documents.memory(key);
    const merged =
      current.version === update.from
        ? update.text
        : base === undefined
          ? update.text
          : mergeMemory({ base, theirs: current.text, ours: update.text });
    const text = withoutForgotten(merged, tombstones, key.scope);
    const lines = update.added.filter(({ line }) => !isForgotten(line, tombstones, key.scope));
    if (text === current.text) return current.version;
    const written = await store.documents.writeMemory(key, { id, ts, cause, from: current.version, text, lines });
    if (written.status === 'written') return written.version;
  }
  throw ApplicationFailure.retryable(`cannot write MEMORY.md of ${key.scope}: it changes all the time; it is tried again`, 'conflict');
}

/** Namespace as Temporal knows it, never from an argument. */
export function scopeKey(scope: string): ScopeKey {
  const { workflowNamespace: namespace } = Context.current().info;
  if (!namespace) throw ApplicationFailure.nonRetryable('this activity belongs to a memory and was started outside of one', 'internal');
  return { namespace, scope };
}
