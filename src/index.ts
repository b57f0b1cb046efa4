/// <reference path="../types/ms.d.ts" preserve="true" />
/**
 * `import … from 'perdura'`: talking to conversations, and making tools. The worker is `perdura/worker`, settings are `perdura/config`.
 *
 * @packageDocumentation
 */
export * from './client.js';
export { defineTool } from './tools/define-tool.js';
export { z } from 'zod';
export type { SandboxKind, Tool, ToolContext, ToolDefinition, ToolPolicy, ToolResult } from './tools/tool.js';
export type {
  AnswerSchema,
  Model,
  ModelDelta,
  ModelFailureKind,
  ModelRequest,
  ModelResponse,
  ModelUsage,
  SilenceLimits,
  Served,
  StreamOptions,
  TextToolFormat,
  ToolDescription,
} from './models/model.js';
export type { ContextWindow } from './models/model.js';
export { ModelFailure, ModelInterrupted } from './models/model.js';
export { aiSdk, type AiSdkModel, type AiSdkOptions, type AiSdkProvider } from './models/ai-sdk/provider.js';
export type { Embedded, Embedder } from './models/embedder.js';
export { createDraft, type Draft, type GrowingCall } from './models/draft.js';
export type { HookedCall, ModelHook } from './models/model.js';
export type {
  InputProcessor,
  Processor,
  ProcessorContext,
  Processors,
  ToolResultContext,
  ToolResultProcessor,
} from './memory/processors.js';

export type { FeedEvent, Message, ResetResult, StartOptions, Status, TurnResult } from './conversation/protocol/contract.js';
export type {
  AssistantBlock,
  AssistantMessage,
  Body,
  BodyRef,
  ClientTool,
  LateResult,
  Stop,
  ConversationMessage,
  Entry,
  JsonObject,
  JsonValue,
  Media,
  MediaSource,
  MessageContent,
  ModelStop,
  ToolOutcome,
  ToolResultMessage,
  Usage,
  UserMessage,
} from './records/message.js';
export type { ConversationEvent } from './conversation/event.js';
export { webhookEvent, type WebhookEvent } from './records/webhooks/webhook-event.js';
export { finishedTools } from './conversation/views/observation.js';
export type { ToolFinished } from './conversation/turn/model-step-effects.js';
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
export { openMemory, type OpenMemory } from './memory/channel/open-memory.js';
export type { CallInTree } from './records/identity.js';
export type { ItemPlace, MemoryItemMetadata } from './records/memory/agent-memory.js';
export type { Observed, Observer, Extensions } from './extensions/user-config.js';
// What the documents define and we have, under their names (docs/contributing/conformance.md).
export type { RawTrace as RawTraceItem } from './memory/traces.js';
export type { ToolInteraction } from './memory/traces.js';
export type { MemoryBundle } from './memory/compaction/snapshot.js';
export type { Summarized as CompactionResult } from './memory/compaction/summary.js';
export type { Compactor, CompactorAnswer, CompactorInput } from './memory/compaction/compactor.js';
export type { FileOperations } from './memory/compaction/recent-turns.js';
export type { OverflowReport } from './memory/select-messages.js';
export type { ConversationEntry } from './memory/consolidation/message-lines.js';
export type { ConsolidationResult, Handover } from './memory/consolidation/parse-response.js';
export type { EpisodicItem, SemanticItem } from './records/memory/items.js';
export type { MemoryChunk, TokenThresholds, TokenUsage } from './records/token-usage.js';
export type { IdentityFiles, RuntimeInfo } from './agents/system-prompt.js';
export type { QueuedEvent } from './conversation/protocol/contract.js';
export type { ControlMode as ExecutionMode, DispatchResult, StepResult } from './conversation/protocol/stepping.js';
// What the signatures above name.
export type { Dispatch, DispatchOptions } from './client/stepping.js';
export type { Scheduled, ScheduleOptions } from './client/schedules.js';
export type { StepRequest } from './client/stepping.js';
export type { AppContextRef } from './conversation/outbox/writes.js';
export type { WorkflowAction } from './conversation/turn/model-step-effects.js';
export type {
  AgentStatus,
  CompactionOutcome,
  Consolidation,
  ContextIndex,
  ConversationOutcome,
  Delegation,
  Delivery,
  Enqueued,
  Fallback,
  Phase,
  QueueEdit,
  RejectedInput,
  TurnError,
  WaitKind,
  Waiting,
  Withdrawn,
} from './conversation/protocol/contract.js';
export type { Approval, ChildReport, Decided, Decision } from './conversation/protocol/human-input.js';
export type { Origin, RewindResult } from './conversation/protocol/input.js';
export type { Cared, Forgotten, MemoryStatus, Reviewed } from './conversation/protocol/memory-contract.js';
export type {
  AppEventOutcome,
  Breakpoints,
  ControlOrder,
  ControlStatus,
  ControlView,
  DispatchedEvent,
  StepKind,
  StepOfChild,
  StepScope,
  SubAgent,
} from './conversation/protocol/stepping.js';
export type { FetchedRuns } from './heal/fetch-runs.js';
export type { Earlier, FoldedEpisode } from './memory/compaction/snapshot.js';
export type { FlatTurn } from './memory/compaction/recent-turns.js';
export type { Ask } from './memory/long-record.js';
export type { RecallQuery } from './memory/recall/recall.js';
export type { Compat, DeclaredLimits, DeclaredModel } from './models/known-models.js';
export type { LimitKind, SeenLimit, SeenLimits } from './records/rate-limit.js';
export type { CompactionRecord, Episode, EpisodeFold, EpisodeLinks, Fact, SentFiles, Task } from './records/episodes.js';
export type { ItemRecord, TransformUnit } from './records/memory/agent-memory.js';
export type {
  ChangeCause,
  HistoryEntry,
  LineSource,
  MemoryChange,
  MemoryText,
  Proposal,
  SourcedLine,
  Trust,
} from './records/memory/documents.js';
export type { ItemRef } from './records/message.js';
export type { Budget } from './records/shared-budget.js';
export type { SlotRange } from './records/slots.js';
export type { SpendingSum } from './records/spending.js';
export type { ChunkType } from './records/token-usage.js';
export type { Mark } from './search/question.js';
export type { ConversationKey } from './stores/names.js';
export type { EpisodeRecord, FactRecord, FactSource } from './stores/store.js';
export type { ApprovalPolicy, ExamineContext, Examined, OpenEpisode, Verified, WorkflowActionContext } from './tools/tool.js';
export type { QueueLoad, WorkerLoad } from './client/fleet.js';
export type { ContextChange } from './insight/compactions.js';
export type { KnownTurns } from './insight/why.js';
export type { MomentPage, MomentView } from './insight/moments.js';
export type { DebugChunk, EarlierChunks } from './insight/moments.js';
export type { TurnTimeline } from './insight/timeline/shape.js';
export type { InspectedTurn } from './insight/turns.js';
export type { WhyAnswer } from './insight/why.js';
