/** The conversations that one may see, as the list has them; refreshed while somebody looks. */
import { signal } from '@preact/signals';
import { request, type Schema } from './api/request.js';
import { plainText } from './ui/words.js';
import { whileVisible } from './ui/while-visible.js';

export type Listed = Schema<'Listed'>;
export type Origin = NonNullable<Schema<'Status'>['origin']>;

const PAGE = 60;
const MOST = 500;
const REFRESH_MS = 8_000;

export const conversations = signal<{
  readonly all: readonly Listed[];
  readonly limit: number;
  readonly isKnown: boolean;
  readonly error?: unknown;
}>({
  all: [],
  limit: PAGE,
  isKnown: false,
});

let latest = 0;

export async function refreshList(): Promise<void> {
  const turn = (latest += 1);
  const { limit } = conversations.value;
  try {
    const { conversations: all } = await request('get', '/v1/conversations', { query: { limit } });
    if (turn === latest) conversations.value = { all, limit: conversations.value.limit, isKnown: true };
  } catch (error) {
    if (turn === latest) conversations.value = { ...conversations.value, error };
  }
}

export const hasMore = (): boolean => conversations.value.all.length >= conversations.value.limit && conversations.value.limit < MOST;

export function listMore(limit = Math.min(MOST, conversations.value.limit * 4)): void {
  conversations.value = { ...conversations.value, limit };
  void refreshList();
}

/** Until the returned function is called. */
export function keepListed(): () => void {
  return whileVisible(refreshList, REFRESH_MS);
}

/** What people call it: its title, else its id. */
export function nameConversation(id: string, listed: Pick<Listed, 'title'> | undefined): string {
  return plainText(listed?.title ?? id, 120);
}

/** Where a conversation that was forked comes from, as its status says. */
export function readFork(about: Schema<'Conversation'> | undefined): Origin | undefined {
  const origin = about?.status?.origin;
  return origin?.kind === 'fork' ? origin : undefined;
}
