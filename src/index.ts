/** `import … from 'perdura'`: talking to conversations, and making tools. The worker is `perdura/worker`, settings are `perdura/config`. */
export * from './client.js';
export { defineTool } from './tools/define-tool.js';
export { z } from 'zod';
export type { Tool, ToolContext, ToolDefinition, ToolPolicy, ToolResult } from './tools/tool.js';
export type { Model, ModelDelta, ModelFailureKind, ModelRequest, ModelResponse, ModelUsage, StreamOptions } from './models/model.js';
export { ModelFailure, ModelInterrupted } from './models/model.js';
export type { FeedEvent, Message, ResetResult, StartOptions, Status, TurnResult } from './conversation/protocol/contract.js';
export type { AssistantBlock, ConversationMessage, Entry, JsonObject, JsonValue, Usage } from './records/message.js';
export type { ConversationEvent } from './conversation/event.js';
export { finishedTools } from './conversation/views/observation.js';
export type { ToolFinished } from './conversation/activity-io/tool-effects.js';
export type {
  ActionResult,
  AgentAction,
  CompactedResult,
  CompactionContext,
  CompactionPlugin,
} from './memory/channel/compaction-plugin.js';
export type {
  AgentMemory,
  MemoryCriteria,
  MemoryItem,
  MemoryItemHead,
  MemorySnapshot,
  MemoryTransform,
  NewMemoryItem,
} from './records/memory/agent-memory.js';
export type { Observed, Observer, Extensions } from './extensions/user-config.js';
