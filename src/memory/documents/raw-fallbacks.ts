/** Lines of HISTORY that are no summary but words of a conversation, as they stand where no model summarized in time. */
import { splitLines, type HistoryEntry } from '../../records/memory/documents.js';
import type { ConversationKey } from '../../stores/store.js';

/** Of these lives alone: a line that another entry has too is that one's as well, and is not among them. */
export async function rawFallbackLines(
  history: AsyncIterable<HistoryEntry>,
  of: readonly { readonly conversation: string; readonly lives: readonly string[] }[],
): Promise<ReadonlySet<string>> {
  const ids = of.flatMap(({ conversation, lives }) => lives.map((life) => consolidationId({ conversation, life }, '')));
  const [ofLives, others] = [new Set<string>(), new Set<string>()];
  for await (const { id, kind, text } of history) {
    const isOfLives = kind === 'raw-fallback' && ids.some((beginning) => id.startsWith(beginning));
    // The first line says what the entry is.
    for (const line of splitLines(text).slice(1)) (isOfLives ? ofLives : others).add(line);
  }
  return new Set([...ofLives].filter((line) => line !== '' && !others.has(line)));
}

/** The same for all that one request leads to: its entries in HISTORY, its write of MEMORY.md. */
export function consolidationId({ conversation, life }: Pick<ConversationKey, 'conversation' | 'life'>, requestId: string): string {
  return `${conversation}/${life}/${requestId}`;
}
