/** MEMORY.md is compared before it is set: what somebody writes between the look and the write is looked at again, not written over. */
import { ApplicationFailure } from '@temporalio/common';
import type { ScopeKey, Store } from '../../stores/store.js';

type Documents = Store['documents'];
type Written = Parameters<Documents['writeMemory']>[1];
type Current = Awaited<ReturnType<Documents['memory']>>;

/** Between reading and writing a person may write: nobody is that quick five times. */
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
