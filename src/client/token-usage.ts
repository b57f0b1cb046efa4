/** How full a conversation's context is, chunk by chunk (seed 004, checkTokenUsage): the workflow has the total, the store what each takes. */
import type { ContextIndex } from '../conversation/protocol/contract.js';
import type { ControlView } from '../conversation/protocol/stepping.js';
import { isPinned, type Entry } from '../records/message.js';
import { slotsOf } from '../records/slots.js';
import { checkTokenUsage, DEFAULT_THRESHOLDS, type MemoryChunk, type TokenUsage } from '../records/token-usage.js';
import { selectTruncation } from '../memory/compaction/truncation.js';
import { entryTokens } from '../memory/tokens.js';
import { tokenCounterBy } from '../models/token-counter.js';

export interface TokenUsageSource {
  readonly context: (id: string) => Promise<ContextIndex>;
  readonly control: (id: string) => Promise<ControlView>;
  readonly entries: (id: string, slots: readonly number[]) => Promise<readonly Entry[]>;
}

/** Whole calls with their results go together, so `chunksToTruncate` may name some more than cover what is too much. */
export async function readTokenUsage({ context, control, entries }: TokenUsageSource, id: string): Promise<TokenUsage> {
  const [index, { thresholds, turn }] = await Promise.all([context(id), control(id)]);
  const known = await entries(
    id,
    index.chunks.flatMap(({ slots = [] }) => slotsOf(slots)),
  );
  const { count } = await tokenCounterBy(index.tokenizer);
  const tokensOf = entryTokens(known, { count });
  const lines = thresholds ?? {
    soft: DEFAULT_THRESHOLDS.softThreshold,
    hard: DEFAULT_THRESHOLDS.hardThreshold,
    truncation: DEFAULT_THRESHOLDS.truncationThreshold,
  };
  const chunks = [
    ...index.chunks.flatMap(({ kind, tokens }): MemoryChunk[] =>
      kind === 'WORKING_FLOW' ? [] : [{ id: kind.toLowerCase(), type: kind, tokens, createdAt: 0 }],
    ),
    ...known.map((entry): MemoryChunk => ({
      id: `chunk_${entry.slot}`,
      type: isPinned(entry.message) ? 'TASK' : 'WORKING_FLOW',
      tokens: tokensOf(entry),
      createdAt: entry.ts * 1000,
    })),
  ];
  const { soft: softThreshold, hard: hardThreshold, truncation: truncationThreshold } = lines;
  const usage = checkTokenUsage(chunks, { softThreshold, hardThreshold, truncationThreshold }, index.total);
  if (!usage.needsTruncation) return usage;
  const { dropped } = selectTruncation(known, index.total - hardThreshold, turn?.id ?? null, tokensOf);
  return { ...usage, chunksToTruncate: dropped.map(({ slot }) => `chunk_${slot}`) };
}
