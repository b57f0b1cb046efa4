/** What was paid for, over all conversations in files: from their journals, line by line. */
import { join } from 'node:path';
import type { Spent } from '../../records/spending.js';
import { isForeign, toUnavailable } from './errors.js';
import { spentIn } from './journal.js';
import { readNewLines, UNREAD } from './lines.js';
import { namesIn } from './lives.js';
import type { Spendings } from '../store.js';

export function createFileSpendings(dir: string): Spendings {
  return {
    async *all() {
      for (const journal of await journals(dir)) yield* await spentOf(journal);
    },
  };
}

async function journals(dir: string): Promise<string[]> {
  const found: string[] = [];
  const agents = join(dir, 'agents');
  for (const scope of await namesIn(agents)) {
    const conversations = join(agents, scope, 'conversations');
    for (const conversation of await namesIn(conversations)) {
      const lives = join(conversations, conversation);
      for (const life of await namesIn(lives)) found.push(join(lives, life, 'journal.jsonl'));
    }
  }
  return found;
}

/** Once per id, as the journal's index has it (file/first-line-wins). */
async function spentOf(journal: string): Promise<Iterable<Spent>> {
  const found = new Map<string, Spent>();
  const take = (line: string): void => {
    const spent = spentIn(line);
    if (spent && !found.has(spent.id)) found.set(spent.id, spent);
  };
  try {
    await readNewLines(journal, UNREAD, take, () => undefined);
  } catch (error) {
    if (!isForeign(error)) throw toUnavailable('read what was spent', journal, error);
  }
  return found.values();
}
