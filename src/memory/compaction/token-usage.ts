/** How full the context is, and what to do about it (seed 004, CompactionManager.checkTokenUsage). Pure; tokens are estimates. */

export type ChunkType = 'SYSTEM' | 'MEMORY' | 'SUMMARY' | 'TASK' | 'WORKING_FLOW' | 'NOTICE';

export interface MemoryChunk {
  readonly id: string;
  readonly type: ChunkType;
  readonly tokens: number;
  /** Epoch milliseconds. */
  readonly createdAt: number;
}

/** Seed 004, Token-Based Thresholds. */
export interface TokenThresholds {
  readonly softThreshold: number;
  readonly hardThreshold: number;
  readonly truncationThreshold: number;
}

export const DEFAULT_THRESHOLDS: TokenThresholds = { softThreshold: 50_000, hardThreshold: 80_000, truncationThreshold: 100_000 };

export interface TokenUsage {
  readonly totalTokens: number;
  readonly compressibleTokens: number;
  readonly suggestCompaction: boolean;
  readonly forceCompaction: boolean;
  readonly needsTruncation: boolean;
  readonly chunksToCompact: readonly MemoryChunk[];
  /** Ids of the oldest `WORKING_FLOW` chunks, as many as cover `totalTokens - hardThreshold`. */
  readonly chunksToTruncate: readonly string[];
}

/** `total`: what the provider counted, where that is known; the sum of the chunks otherwise. */
export function checkTokenUsage(chunks: readonly MemoryChunk[], thresholds: TokenThresholds, total?: number): TokenUsage {
  const compressible = getCompressibleChunks(chunks);
  const totalTokens = total ?? sum(chunks);
  const needsTruncation = totalTokens > thresholds.truncationThreshold;
  return {
    totalTokens,
    compressibleTokens: sum(compressible),
    suggestCompaction: totalTokens >= thresholds.softThreshold,
    forceCompaction: totalTokens > thresholds.hardThreshold,
    needsTruncation,
    chunksToCompact: compressible,
    chunksToTruncate: needsTruncation ? oldestThatCover(compressible, totalTokens - thresholds.hardThreshold) : [],
  };
}

export function getCompressibleChunks(chunks: readonly MemoryChunk[]): readonly MemoryChunk[] {
  return chunks.filter(({ type }) => type === 'WORKING_FLOW');
}

function oldestThatCover(chunks: readonly MemoryChunk[], excess: number): string[] {
  const ids: string[] = [];
  let covered = 0;
  for (const { id, tokens } of [...chunks].sort((a, b) => a.createdAt - b.createdAt)) {
    if (covered >= excess) break;
    ids.push(id);
    covered += tokens;
  }
  return ids;
}

function sum(chunks: readonly MemoryChunk[]): number {
  return chunks.reduce((all, { tokens }) => all + tokens, 0);
}
