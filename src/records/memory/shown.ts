/** How much of a conversation a prompt shows after a compaction (seed 000, section 19), where an agent does not set it. */
export const RAW_TAIL_TURNS = 4;
export const MAX_EPISODIC_ITEMS = 3;
export const MAX_SEMANTIC_ITEMS = 20;

/** What of the memory stands before the messages. */
export interface ShownMemory {
  readonly maxEpisodic: number;
  readonly maxSemantic: number;
}
