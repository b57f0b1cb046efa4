/** A file store with a scope of its own for each test, and what people say in it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRecall } from '../../../src/memory/recall/recall.js';
import { createFileStore } from '../../../src/stores/file/index.js';
import type { ConversationKey, Store } from '../../../src/stores/store.js';
import { aConversation, aScope, userEntry } from '../../stores/builders.js';

export const now = new Date('2025-02-01T12:00:00Z');
export const TALK = ['We sail to Norway in June', 'The boat is called Seagull', 'My dentist is Dr. Brandt', 'Good night'] as const;
export const log = (count: number) => Array.from({ length: count }, (_, i) => `Entry number ${i} of the long log`);

/** Its fields are of the test that runs. */
export function searchedPlace() {
  const place = {
    dir: '',
    store: undefined as unknown as Store,
    key: undefined as unknown as ConversationKey,
    lines: [] as string[],
    recallOf: (over = place.store) => createRecall({ store: over, log: (line) => place.lines.push(line) }),
    say: (texts: readonly string[], of = place.key, first = 1) =>
      place.store.entries.append(
        of,
        texts.map((text, i) => userEntry(first + i, text)),
      ),
    found: async (question: string, recall = place.recallOf(), at = now) =>
      (await recall.search(place.key, { question, now: at, limit: 5 })).map(({ text }) => text),
  };
  beforeAll(async () => {
    place.dir = await mkdtemp(join(tmpdir(), 'perdura-recall-'));
    place.store = createFileStore({ dir: place.dir });
  });
  beforeEach(() => {
    place.key = aConversation(aScope());
    place.lines = [];
  });
  afterAll(async () => {
    await place.store.close();
    await rm(place.dir, { recursive: true, force: true });
  });
  return place;
}
