/** When a memory is taken for lost: what its one writer knows to have written is not there. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isMemoryLost } from '../../src/activities/memory/decide-memory.js';
import { NO_MEMORY_VERSION } from '../../src/records/memory/documents.js';
import { createFileStore } from '../../src/stores/file/index.js';
import type { Store } from '../../src/stores/store.js';

const KEY = { namespace: 'default', scope: 's' };
const UNCHANGED = { version: NO_MEMORY_VERSION, summary: true };
const UNUSABLE = { version: NO_MEMORY_VERSION, summary: false };
const CHANGED = { version: 'a version', summary: true };

let dir: string;
let store: Store;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-heal-memory-'));
  store = createFileStore({ dir });
});
afterEach(async () => {
  await store.close();
  await rm(dir, { recursive: true, force: true });
});

const lost = (written: typeof CHANGED | undefined): Promise<boolean> => isMemoryLost(store, KEY, written);
const append = (kind: 'summary' | 'raw-fallback') => store.documents.appendHistory(KEY, { id: kind, kind, ts: 1, text: '[…] Talked.' });

test('a store without anything has lost what was written, and may have lost what nobody knows of', async () => {
  for (const written of [undefined, UNCHANGED, UNUSABLE, CHANGED]) expect(await lost(written)).toBe(true);
});

test('where no consolidation has changed MEMORY.md, HISTORY says that it is there', async () => {
  await append('raw-fallback');
  // A session that ended without its summary may have brought that one after the loss.
  expect([await lost(UNCHANGED), await lost(UNUSABLE)]).toEqual([true, false]);
  await append('summary');
  expect([await lost(UNCHANGED), await lost(UNUSABLE)]).toEqual([false, false]);
});

test('where one has changed it, the change must be there', async () => {
  await append('summary');
  expect(await lost(CHANGED)).toBe(true);
  await store.documents.writeMemory(KEY, {
    id: 'w',
    ts: 1,
    cause: 'consolidation',
    from: NO_MEMORY_VERSION,
    text: '- Likes tea.\n',
    lines: [],
  });
  for (const written of [undefined, UNCHANGED, UNUSABLE, CHANGED]) expect(await lost(written)).toBe(false);
});
