/** A program imports what the documents define under their names; the compiler compares the shapes, `npm run check` runs it. */
import type {
  AgentMemory,
  CompactionPlugin,
  CompactionResult,
  Compactor,
  ConsolidationResult,
  ConversationEntry,
  DispatchResult,
  EpisodicItem,
  ExecutionMode,
  FileOperations,
  IdentityFiles,
  MemoryBundle,
  MemoryChunk,
  MemoryCriteria,
  MemoryItem,
  MemorySnapshot,
  MemoryTransform,
  OverflowReport,
  QueuedEvent,
  RawTraceItem,
  RuntimeInfo,
  SemanticItem,
  StepResult,
  TokenThresholds,
  TokenUsage,
  ToolDefinition,
  ToolInteraction,
  ToolResult,
  z,
} from '../../src/index.js';

type Fields<T> = readonly (keyof T)[];

test('what the documents define is exported under their names, with their fields', () => {
  const names = {
    RawTraceItem: ['id', 'ts', 'turn_id', 'seq', 'trace_type', 'content', 'source_event'] satisfies Fields<RawTraceItem>,
    EpisodicItem: ['id', 'ts', 'turn_ids', 'summary', 'tags', 'salience'] satisfies Fields<EpisodicItem>,
    SemanticItem: ['id', 'ts', 'fact', 'tags', 'confidence', 'salience'] satisfies Fields<SemanticItem>,
    ToolInteraction: ['tool_call_id', 'turn_id', 'tool_name', 'arguments', 'result', 'error', 'status'] satisfies Fields<ToolInteraction>,
    MemoryBundle: ['episodic', 'semantic'] satisfies Fields<MemoryBundle>,
    CompactionResult: ['episodic', 'semantic'] satisfies Fields<CompactionResult>,
    Compactor: ['name', 'compact'] satisfies Fields<Compactor>,
    ConversationEntry: ['role', 'content', 'timestamp', 'toolsUsed'] satisfies Fields<ConversationEntry>,
    ConsolidationResult: ['historyEntry', 'memoryUpdate'] satisfies Fields<ConsolidationResult>,
    IdentityFiles: ['soul', 'identity', 'user', 'memory', 'agents', 'tools'] satisfies Fields<IdentityFiles>,
    RuntimeInfo: ['sessionBegan'] satisfies Fields<RuntimeInfo>,
    OverflowReport: ['droppedCount', 'estimatedDroppedTokens'] satisfies Fields<OverflowReport>,
    FileOperations: ['read', 'edited', 'written'] satisfies Fields<FileOperations>,
    ToolDefinition: ['name', 'description', 'input', 'run'] satisfies Fields<ToolDefinition<z.ZodObject>>,
    ToolResult: ['ok'] satisfies Fields<ToolResult>,
    AgentMemory: ['store', 'retrieve', 'query', 'clear', 'snapshot', 'restore'] satisfies Fields<AgentMemory>,
    MemoryItem: ['id', 'type', 'content', 'metadata'] satisfies Fields<MemoryItem>,
    MemoryTransform: ['type'] satisfies Fields<MemoryTransform>,
    QueuedEvent: ['id'] satisfies Fields<QueuedEvent>,
    StepResult: ['eventProcessed', 'compactionPerformed', 'truncationPerformed', 'queuedEventCount'] satisfies Fields<StepResult>,
    DispatchResult: ['addedChunks', 'removedChunkIds'] satisfies Fields<DispatchResult>,
    MemoryChunk: ['id', 'type', 'tokens', 'createdAt'] satisfies Fields<MemoryChunk>,
    TokenThresholds: ['softThreshold', 'hardThreshold', 'truncationThreshold'] satisfies Fields<TokenThresholds>,
    TokenUsage: ['totalTokens', 'compressibleTokens', 'suggestCompaction', 'chunksToTruncate'] satisfies Fields<TokenUsage>,
  };
  const modes: readonly ExecutionMode[] = ['auto', 'stepping'];
  const opaque: readonly (CompactionPlugin | MemoryCriteria | MemorySnapshot)[] = [];
  expect([Object.keys(names).length, modes.length, opaque.length]).toEqual([24, 2, 0]);
});
