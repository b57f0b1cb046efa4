/** How full the context is, and what to do about it (seed 004, CompactionManager.checkTokenUsage). Pure; tokens are estimates. */

export type ChunkType = 'SYSTEM' | 'MEMORY' | 'SUMMARY' | 'TASK' | 'WORKING_FLOW' | 'NOTICE';

/** A piece of the context, with what it takes (seed 004). */
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

/** Of DEFAULT_THRESHOLDS: how far the others are from the one at which older turns are compacted. */
const [SOFT_SHARE, TRUNCATION_SHARE] = [5 / 8, 5 / 4];

/** People set the hard threshold alone: the others follow from it, where they are not set. */
export function thresholdsAt(
  compactAt: number = DEFAULT_THRESHOLDS.hardThreshold,
  { softThreshold, hardThreshold = compactAt, truncationThreshold }: { readonly [name in keyof TokenThresholds]?: number | undefined } = {},
): TokenThresholds {
  return {
    softThreshold: softThreshold ?? Math.floor(hardThreshold * SOFT_SHARE),
    hardThreshold,
    truncationThreshold: truncationThreshold ?? Math.ceil(hardThreshold * TRUNCATION_SHARE),
  };
}

/** How full the context is, and what is due (seed 004). */
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

/** Answer of the query `checkTokenUsage`: what the workflow knows without the texts. */
export interface TokenUsageTotals extends Pick<
  TokenUsage,
  'totalTokens' | 'compressibleTokens' | 'suggestCompaction' | 'forceCompaction' | 'needsTruncation'
> {
  readonly thresholds: TokenThresholds;
  /** First and last of each range of the working flow, oldest first: `chunk_<slot>` is the id of each. */
  readonly chunksToCompact: readonly (readonly [number, number])[];
}

/** Of a total alone: what is due, each from its threshold on, by the one rule that the conversation and its views go by. */
export function checkThresholds(
  total: number,
  { softThreshold, hardThreshold, truncationThreshold }: TokenThresholds,
): Pick<TokenUsage, 'suggestCompaction' | 'forceCompaction' | 'needsTruncation'> {
  return {
    suggestCompaction: total >= softThreshold,
    forceCompaction: total >= hardThreshold,
    needsTruncation: total >= truncationThreshold,
  };
}

/** `total`: what the provider counted, where that is known; the sum of the chunks otherwise. */
export function checkTokenUsage(chunks: readonly MemoryChunk[], thresholds: TokenThresholds, total?: number): TokenUsage {
  const compressible = chunks.filter(isCompressible);
  const totalTokens = total ?? sum(chunks);
  const due = checkThresholds(totalTokens, thresholds);
  return {
    totalTokens,
    compressibleTokens: sum(compressible),
    ...due,
    chunksToCompact: compressible,
    chunksToTruncate: due.needsTruncation ? oldestThatCover(chunks, totalTokens - thresholds.hardThreshold) : [],
  };
}

/** Ids of the oldest compressible chunks, as many as cover `excess` tokens (seed 004, Truncation Strategy). */
export function oldestThatCover(chunks: readonly MemoryChunk[], excess: number): string[] {
  const ids: string[] = [];
  let covered = 0;
  for (const { id, tokens } of chunks.filter(isCompressible).sort((a, b) => a.createdAt - b.createdAt)) {
    if (covered >= excess) break;
    ids.push(id);
    covered += tokens;
  }
  return ids;
}

function isCompressible({ type }: MemoryChunk): boolean {
  return type === 'WORKING_FLOW';
}

function sum(chunks: readonly MemoryChunk[]): number {
  return chunks.reduce((all, { tokens }) => all + tokens, 0);
}
