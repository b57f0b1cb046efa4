/**
 * `remember`: what a consolidation has made is written: HISTORY first, then MEMORY.md, then what waits for a person. Each once per id,
 * so that a second attempt changes nothing. A MEMORY.md that was edited meanwhile is merged, not overwritten.
 */
import { log } from '@temporalio/activity';
import type { MemoryUpdate, Remembered, RememberInput } from '../../conversation/context/memory-effects.js';
import { mergeMemory } from '../../memory/consolidation/merge.js';
import type { Tombstone } from '../../records/memory/documents.js';
import { isForgotten, redactor, withoutForgotten } from '../../memory/documents/forgetting.js';
import type { ScopeKey, Store } from '../../stores/store.js';
import { scopeKey } from '../key.js';
import { ApplicationFailure } from '@temporalio/common';

/** `at`: when it was, in epoch milliseconds, for what is written again. */
export async function remember(store: Store, input: RememberInput, at: number = Date.now()): Promise<Remembered> {
  const key = scopeKey(input.scope);
  const ts = at / 1000;
  const { id, history, update, proposed } = input;
  const tombstones = await store.documents.forgotten(key);
  if (history) {
    // What was forgotten while the model answered does not come back.
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
  { documents }: Store,
  key: ScopeKey,
  { id, cause }: RememberInput,
  { update, tombstones, ts }: { readonly update: MemoryUpdate; readonly tombstones: readonly Tombstone[]; readonly ts: number },
): Promise<string> {
  const base = await documents.memoryText(key, update.from);
  const lines = update.added.filter(({ line }) => !isForgotten(line, tombstones, key.scope));
  const { version } = await replaceMemory(documents, key, { id, ts, cause }, (current) => {
    const isOurs = current.version === update.from || base === undefined;
    const merged = isOurs ? update.text : mergeMemory({ base, theirs: current.text, ours: update.text });
    return { text: withoutForgotten(merged, tombstones, key.scope), lines };
  });
  return version;
}

// MEMORY.md is compared before it is set: an edit between the read and the write is read again, not overwritten.

type Documents = Store['documents'];
type Written = Parameters<Documents['writeMemory']>[1];
type Current = Awaited<ReturnType<Documents['memory']>>;

/** Between reading and writing a person may write, but hardly five times in a row. */
const TRIES = 5;

/** `make` may be called again, with what there is by then. Throws `conflict`, which is worth another attempt. */
export async function replaceMemory(
  documents: Documents,
  key: ScopeKey,
  what: Pick<Written, 'id' | 'ts' | 'cause'>,
  make: (current: Current) => Pick<Written, 'text' | 'lines'>,
): Promise<{ readonly version: string; readonly before: string; readonly after: string }> {
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    const current = await documents.memory(key);
    const { text, lines } = make(current);
    if (text === current.text) return { version: current.version, before: text, after: text };
    const written = await documents.writeMemory(key, { ...what, from: current.version, text, lines });
    if (written.status === 'written') return { version: written.version, before: current.text, after: text };
  }
  throw ApplicationFailure.retryable(`cannot write MEMORY.md of ${key.scope}: it changes all the time; it is tried again`, 'conflict');
}
