/** A file store with a scope of its own for each test, and what people say in it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRecall, type Recall } from '../../../src/memory/recall/recall.js';
import { createFileStore } from '../../../src/stores/file/index.js';
import type { ConversationKey, Store } from '../../../src/stores/store.js';
import { aConversation, aScope, userEntry } from '../../stores/builders.js';

export const now = new Date('2025-02-01T12:00:00Z');
export const TALK = ['We sail to Norway in June', 'The boat is called Seagull', 'My dentist is Dr. Brandt', 'Good night'] as const;
export const log = (count: number) => Array.from({ length: count }, (_, i) => `Entry number ${i} of the long log`);

interface Place {
  readonly dir: string;
  readonly store: Store;
  readonly key: ConversationKey;
  readonly lines: string[];
}

/** Its fields are of the test that runs. */
export function searchedPlace() {
  const place = {} as { -readonly [field in keyof Place]: Place[field] };
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

  const recallOf = (over = place.store): Recall => createRecall({ store: over, log: (line) => place.lines.push(line) });
  return Object.assign(place as Place, {
    recallOf,
    say: (texts: readonly string[], of = place.key, first = 1) =>
      place.store.entries.append(
        of,
        texts.map((text, i) => userEntry(first + i, text)),
      ),
    found: async (question: string, recall = recallOf(), at = now) =>
      (await recall.search(place.key, { question, now: at, limit: 5 })).map(({ text }) => text),
  });
}
