/** What people decide about a scope's memory: `forget` and `review`. The memory workflow runs them, one write at a time. */
import { ApplicationFailure } from '@temporalio/common';
import type { Forgotten, Reviewed } from '../../conversation/protocol/memory-contract.js';
import { isForgotten, redactor, tombstoneFor, withoutForgotten } from '../../memory/documents/forgetting.js';
import { dropIndex, dropVectors } from '../../memory/recall/recall.js';
import type { LineSource } from '../../records/memory/documents.js';
import { splitLines } from '../../records/memory/memory-lines.js';
import type { ScopeKey, Store } from '../../stores/store.js';
import { scopeKey } from '../key.js';
import { replaceMemory } from './write-memory.js';

export interface ForgetInput {
  readonly scope: string;
  readonly text: string;
  /** Epoch milliseconds of the decision. */
  readonly at: number;
}

export interface ReviewInput {
  readonly scope: string;
  readonly id: string;
  readonly decision: 'accept' | 'reject';
}

/** The tombstone first: from then on nothing brings it back, whatever else is cut off. All of it may be done again. */
export async function forget(store: Store, { scope, text, at }: ForgetInput): Promise<Forgotten> {
  const key = scopeKey(scope);
  const { documents, facts } = store;
  const tombstone = tombstoneFor({ scope, text, at });
  if (tombstone.words.length === 0)
    throw ApplicationFailure.nonRetryable('there is no word in this that could be forgotten', 'InvalidMessage');
  await documents.forget(key, tombstone);
  const isGone = (line: string): boolean => isForgotten(line, [tombstone], scope);
  const [lines, known, { proposals }] = await Promise.all([
    change(store, key, {
      id: `${tombstone.id}/${at}`,
      ts: at / 1000,
      cause: 'forgotten',
      make: (now) => withoutForgotten(now, [tombstone], scope),
    }),
    facts.list(key, { all: true }),
    documents.proposals(key),
  ]);
  const factIds = known.facts.filter(({ fact }) => isGone(fact)).map((fact) => fact.id);
  await facts.remove(key, factIds);
  const open = proposals.filter(({ line, state }) => state === 'open' && isGone(line)).map((proposal) => proposal.id);
  for (const proposal of open) await documents.settleProposal(key, proposal, 'rejected');
  await documents.redact(key, redactor([tombstone], scope));
  await dropIndex(store, key);
  await dropVectors(store, key);
  return { lines: lines.removed, facts: factIds, proposals: open };
}

/** An accepted line is written as the person's. */
export async function review(store: Store, { scope, id, decision }: ReviewInput): Promise<Reviewed> {
  const key = scopeKey(scope);
  const settled = await store.documents.settleProposal(key, id, decision === 'accept' ? 'accepted' : 'rejected');
  if (!settled || settled.state === 'open') {
    throw ApplicationFailure.nonRetryable(`there is no proposal ${id} in the memory of ${scope}`, 'UnknownProposal');
  }
  const { line, source, state } = settled;
  const isGone = isForgotten(line, await store.documents.forgotten(key), scope);
  if (state === 'accepted' && !isGone) await acceptLine(store, key, { id, line, source, at: Date.now() });
  return { id, line, state };
}

/** Into MEMORY.md, as the person's. */
export async function acceptLine(
  store: Store,
  key: ScopeKey,
  { id, line, source, at }: { readonly id: string; readonly line: string; readonly source: LineSource; readonly at: number },
): Promise<void> {
  const accepted = { line, source: { ...source, trust: 'person' as const } };
  const make = (text: string): string => withLine(text, line);
  await change(store, key, { id: `accept/${id}`, ts: at / 1000, cause: 'accepted', make, lines: [accepted] });
}

interface Change {
  readonly id: string;
  readonly ts: number;
  readonly cause: 'forgotten' | 'accepted';
  readonly make: (text: string) => string;
  readonly lines?: Parameters<Store['documents']['writeMemory']>[1]['lines'];
}

async function change({ documents }: Store, key: ScopeKey, { make, lines = [], ...what }: Change): Promise<{ readonly removed: string[] }> {
  const { before, after } = await replaceMemory(documents, key, what, ({ text }) => ({ text: make(text), lines }));
  const left = new Set(splitLines(after));
  return { removed: splitLines(before).filter((line) => !left.has(line)) };
}

function withLine(text: string, line: string): string {
  if (splitLines(text).some((known) => known.trim() === line.trim())) return text;
  return `${text === '' || text.endsWith('\n') ? text : `${text}\n`}${line}\n`;
}
