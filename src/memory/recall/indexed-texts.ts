/** What of a scope can be found: the texts of its messages, and of what is remembered in words. */
import type { Entry } from '../../records/message.js';
import { linesOf } from '../../records/memory/memory-lines.js';
import { hashOf } from '../../search/numbers.js';
import type { Kind } from '../../search/passage-table.js';
import type { Text } from '../../search/search-index.js';
import type { ConversationKey, ScopeKey, Store } from '../../stores/store.js';
import { textOf } from '../bodies.js';

/** What these answer was found or remembered already: it would be found again and again. */
const ECHOES = ['search_memory', 'open_memory', 'search_history', 'read_episode', 'retrieve_from_memory', 'query_memory'];

export interface Told {
  readonly kind: Kind;
  readonly text: string;
  /** Of a tool's result. */
  readonly tool?: string;
}

/** Undefined for what is not to be found: notices, tools' arguments, and what was read from memory. */
export async function textOfEntry(store: Store, key: ConversationKey, { message }: Entry): Promise<Told | undefined> {
  switch (message.role) {
    case 'user':
      return message.from === 'notice' ? undefined : { kind: 'user', text: await textOf(store, key, message.text) };
    case 'assistant': {
      const texts = message.blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : []));
      if (texts.length === 0) return undefined;
      return { kind: 'assistant', text: (await Promise.all(texts.map((text) => textOf(store, key, text)))).join('\n\n') };
    }
    case 'tool':
      if (ECHOES.includes(message.name)) return undefined;
      return { kind: 'tool', text: await textOf(store, key, message.text), tool: message.name };
  }
}

export interface DocumentText extends Text {
  /** As people name it: `sem_0003`. */
  readonly name: string;
}

export const DOCUMENTS = ['memory', 'history', 'fact'] as const;

/** MEMORY.md by its lines, HISTORY by its entries, and facts that count. Each has no neighbours. */
export async function documentTexts(store: Store, key: ScopeKey): Promise<DocumentText[]> {
  const [memory, { facts }] = await Promise.all([store.documents.memory(key), store.facts.list(key)]);
  const texts: DocumentText[] = [];
  const push = (kind: (typeof DOCUMENTS)[number], name: string, ts: number, text: string): void => {
    const at = hashOf(`${name}\0${text}`, 0);
    texts.push({ line: kind, at, session: at, ts, kind, text, name });
  };
  for (const [i, line] of linesOf(memory.text).entries()) if (/[\p{L}\p{N}]/u.test(line)) push('memory', `line ${i + 1}`, 0, line);
  for (const { id, ts, fact } of facts) push('fact', id, ts, fact);
  for await (const { id, ts, text } of store.documents.history(key)) push('history', id, ts, text);
  return texts;
}
