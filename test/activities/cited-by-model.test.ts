/** Which long results a model may cite in place of a plugin (seed 003, option B). */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keepResult } from '../../src/activities/tools/run-tool.js';
import type { CompactionPlugins } from '../../src/memory/channel/compaction-plugin.js';
import { createFileStore } from '../../src/stores/file/index.js';
import type { Store } from '../../src/stores/store.js';
import { aConversation } from '../stores/builders.js';

let dir: string;
let store: Store;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'perdura-cited-'));
  store = createFileStore({ dir });
});
afterAll(async () => {
  await store.close();
  await rm(dir, { recursive: true });
});

const rows = JSON.stringify(Array.from({ length: 99 }, (_, id) => ({ id })));
const mine: CompactionPlugins = { fetch_url: { compact: () => ({ mine: true }) } };
test.each<[string, string, string, CompactionPlugins, object]>([
  ['of a page: the built-in plugin only stands in', 'fetch_url', 'plums '.repeat(100), {}, { isPlain: true }],
  ['of rows, which are known by their shape', 'ask', rows, {}, { isPlain: true }],
  ['of no plugin', 'ask', 'plums '.repeat(100), {}, { isPlain: true }],
  ['of a plugin of the user’s, which comes first', 'fetch_url', 'plums '.repeat(100), mine, {}],
])('a result %s', async (_, name, text, compactionPlugins, expected) => {
  const key = aConversation();
  const input = { session: 1, slot: 3, name, callId: 'turn_0001/c1' } as Parameters<typeof keepResult>[1];
  const dependencies = { store, key, compactionPlugins } as unknown as Parameters<typeof keepResult>[0];
  const answered = { text, outcome: 'ok', argument: {}, ts: 1, calls: 1 } as const;
  const { item } = await keepResult(dependencies, input, answered, 100);
  expect(item).toEqual({ id: item?.id, citation: item?.citation, ...expected });
});
