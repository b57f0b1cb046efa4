/** What consolidations have put into HISTORY: of which life, and which of its slots it was about, is in their ids. */
import { consolidationId } from '../../memory/documents/search-history.js';
import { LIMITS } from '../../conversation/protocol/contract.js';
import { withoutSuperseding } from '../../records/memory/history-text.js';
import type { LifeName } from '../../records/lives.js';
import { listSlots, type SlotRange } from '../../records/slots.js';
import type { ConversationKey, Documents, ScopeKey } from '../../stores/store.js';

/** Seconds by which clocks may differ: HISTORY has the worker's time, a session begins by the server's. */
const CLOCKS_APART = 3_600;

/**
 * By request. What a model wrote alone: of a raw fallback there is none. `since`: epoch milliseconds, before which none of them was made;
 * HISTORY is not read any further back.
 */
export async function summariesByRequest(
  documents: Documents,
  key: ConversationKey,
  { requestIds, since }: { readonly requestIds: readonly string[]; readonly since: number },
): Promise<ReadonlyMap<string, string>> {
  const wanted = new Map(requestIds.map((requestId) => [consolidationId(key, requestId), requestId]));
  const found = new Map<string, string>();
  for await (const { id, kind, ts, text } of documents.history(key)) {
    if (found.size === wanted.size || ts < since / 1000 - CLOCKS_APART) break;
    const requestId = kind === 'summary' ? wanted.get(id) : undefined;
    if (requestId !== undefined) found.set(requestId, withoutSuperseding(text));
  }
  return found;
}

/** As `enqueueRequest` names them (conversation/context/consolidation.ts): conversation and life, session, first and last slot. */
const ID = /^(?<life>.+)\/s\d+\/(?<first>\d{1,9})-(?<last>\d{1,9})$/;

/** What models have put into HISTORY about this life's slots, by their first, such as what came after its raw fallback. As `summariesByRequest`. */
export async function summariesOfSlots(
  documents: Documents,
  key: ConversationKey,
  { slots, since }: { readonly slots: readonly number[]; readonly since: number },
): Promise<readonly { readonly first: number; readonly last: number; readonly text: string }[]> {
  const found: { readonly first: number; readonly last: number; readonly text: string }[] = [];
  for await (const { id, kind, ts, text } of documents.history(key)) {
    if (ts < since / 1000 - CLOCKS_APART) break;
    const { life, first, last } = ID.exec(id)?.groups ?? {};
    if (kind !== 'summary' || life !== `${key.conversation}/${key.life}`) continue;
    const [from, to] = [Number(first), Number(last)];
    if (slots.some((slot) => slot >= from && slot <= to)) found.push({ first: from, last: to, text: withoutSuperseding(text) });
  }
  return found.sort((a, b) => a.first - b.first);
}

/** Slots that consolidations of these lives were about, raw fallbacks too: their summaries follow. `slots`: of a life no others count. */
export async function consolidatedSlots(
  documents: Documents,
  key: ScopeKey,
  { lives, since }: { readonly lives: readonly (LifeName & { readonly slots?: readonly SlotRange[] })[]; readonly since: number },
): Promise<number[]> {
  const wanted = new Map(lives.map(({ conversation, life, slots }) => [`${conversation}/${life}`, slots && new Set(listSlots(slots))]));
  const found: number[] = [];
  for await (const { id, ts } of documents.history(key)) {
    if (ts < since / 1000 - CLOCKS_APART) break;
    const { life = '', first, last } = ID.exec(id)?.groups ?? {};
    const ofLife = wanted.get(life);
    if (!wanted.has(life) || Number(last) - Number(first) > LIMITS.slots) continue;
    found.push(...listSlots([[Number(first), Number(last)]]).filter((slot) => ofLife?.has(slot) ?? true));
  }
  return found;
}
