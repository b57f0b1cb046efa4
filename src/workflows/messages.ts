/** The names that a client may say to a conversation (design section 3). Light: the client imports these values. */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import { defineSearchAttributeKey, SearchAttributeType, type SearchAttributeUpdatePair } from '@temporalio/common';
import type {
  DeletedNotice,
  Cared,
  CareRequest,
  ConsolidationNews,
  ForgetRequest,
  Forgotten,
  MemoryStatus,
  Reviewed,
  ReviewRequest,
  AskedConsolidation,
} from '../conversation/protocol/memory-contract.js';
import type {
  CompactionOutcome,
  ContextIndex,
  Enqueued,
  Message,
  QueuedEvent,
  QueueEdit,
  ResetResult,
  RewindRequest,
  Status,
  TurnResult,
  Withdrawn,
} from '../conversation/protocol/contract.js';
import type { JsonValue } from '../records/message.js';
import type { TokenUsageTotals } from '../records/token-usage.js';
import type { Budget } from '../records/identity.js';
import type {
  Breakpoints,
  ControlMode,
  ControlOrder,
  ControlStatus,
  ControlView,
  DispatchedEvent,
  StepResult,
  StepScope,
} from '../conversation/protocol/stepping.js';
import type { Approval, ChildNews, Decided, Decision } from '../conversation/protocol/human-input.js';
import type { Opened, RewindResult } from '../conversation/protocol/input.js';
import type { SearchAttributes } from '../conversation/attributes.js';

export const WORKFLOW_TYPE = 'conversation';
/** Delivers one event. */
export const WEBHOOK_WORKFLOW_TYPE = 'webhook';
/** Deletes once what has been over or idle for long enough. */
export const RETENTION_WORKFLOW_TYPE = 'retention';

/** Begins the name of each mark that says: from here on the workers of another build take new runs. */
export const UPGRADE_MARK = 'upgrade-';
/** Ends once conversations that are idle for as long as they say, and archives what is old. */
export const GC_WORKFLOW_TYPE = 'gc';

export const messageSignal = defineSignal<[string | Message]>('message');
export const newSignal = defineSignal<[{ id?: string }?]>('new');
export const interruptSignal = defineSignal<[{ reason?: string }?]>('interrupt');
export const decideSignal = defineSignal<[Decision]>('decide');
/** From a sub-agent to the conversation that started it. */
export const childSignal = defineSignal<[ChildNews]>('child');
/** From the conversation that started a sub-agent to that one: how it goes on. */
export const parentSignal = defineSignal<[ControlOrder & { readonly capability?: string }]>('parent');
/** `memory: false`: no message is consolidated, and the close waits for nothing. */
export const closeSignal = defineSignal<[{ memory?: boolean }?]>('close');
/** To go on with the build that new conversations begin on: between turns, with `parked` also in one that waits for a person. */
export const upgradeSignal = defineSignal<[{ parked?: boolean }?]>('upgrade');
/** Beyond design section 3: a new title, for lists and the UI. */
export const renameSignal = defineSignal<[{ title: string }]>('rename');

export const sendUpdate = defineUpdate<TurnResult, [string | Message]>('send');
export const turnUpdate = defineUpdate<TurnResult, [{ turnId: string }]>('turn');
export const resetUpdate = defineUpdate<ResetResult, [{ id?: string }]>('reset');

export const enqueueUpdate = defineUpdate<Enqueued, [string | Message]>('enqueue');
export const withdrawUpdate = defineUpdate<Withdrawn, [{ messageId: string }]>('withdraw');
export const decideUpdate = defineUpdate<Decided, [Decision]>('decide');
export const raiseBudgetUpdate = defineUpdate<{ readonly budget: Budget }, [Budget]>('raiseBudget');

export const setModelUpdate = defineUpdate<{ readonly model: string | null }, [{ model: string | null }]>('setModel');

/** An application event, for its reducer (seed 004). */
export const eventSignal = defineSignal<[{ id?: string; type: string; payload?: JsonValue }]>('event');
export const dispatchUpdate = defineUpdate<DispatchedEvent, [{ id?: string; type: string; payload?: JsonValue; wait?: boolean }]>(
  'dispatch',
);
export const setModeUpdate = defineUpdate<ControlStatus, [{ mode: ControlMode }]>('setMode');
export const stepUpdate = defineUpdate<StepResult, [{ id?: string; scope?: StepScope }]>('step');
export const setBreakpointsUpdate = defineUpdate<ControlStatus, [Breakpoints]>('setBreakpoints');
export const editQueueUpdate = defineUpdate<{ readonly queue: QueuedEvent[] }, [QueueEdit]>('editQueue');
/** Seed 004: of chunks that a program names. */
export const executeTruncationUpdate = defineUpdate<CompactionOutcome, [{ id?: string; chunks: readonly string[] }]>('executeTruncation');
export const triggerCompactionUpdate = defineUpdate<CompactionOutcome, [{ id?: string; chunks: readonly string[] }]>('triggerCompaction');
export const truncateUpdate = defineUpdate<CompactionOutcome, [{ id?: string }]>('truncate');

export const compactUpdate = defineUpdate<CompactionOutcome, [{ id?: string }]>('compact');
export const undoCompactionUpdate = defineUpdate<CompactionOutcome, [{ id?: string }]>('undoCompaction');

export const rewindUpdate = defineUpdate<RewindResult, [RewindRequest]>('rewind');
/** Beyond design section 3: waits until a fork, or what was resumed, has its beginning; null for one that begins with nothing. */
export const openedUpdate = defineUpdate<Opened | null>('opened');

export const statusQuery = defineQuery<Status>('status');
export const queueQuery = defineQuery<QueuedEvent[]>('queue');
export const approvalsQuery = defineQuery<Approval[]>('approvals');
export const controlQuery = defineQuery<ControlView>('control');
export const checkTokenUsageQuery = defineQuery<TokenUsageTotals>('checkTokenUsage');
export const contextQuery = defineQuery<ContextIndex>('context');

/** From the memory workflow to the conversation that sent the request. */
export const consolidatedSignal = defineSignal<[ConsolidationNews]>('consolidated');

/** To the workflow `memory:<scope>`. The store gives what it has written. */
export const consolidateSignal = defineSignal<[AskedConsolidation]>('consolidate');
export const forgetSignal = defineSignal<[ForgetRequest]>('forget');
/** Beyond design section 3: a conversation was deleted. */
export const deletedSignal = defineSignal<[DeletedNotice]>('deleted');
export const reviewSignal = defineSignal<[ReviewRequest]>('accept');
export const careSignal = defineSignal<[CareRequest?]>('care');
export const forgetUpdate = defineUpdate<Forgotten, [ForgetRequest]>('forget');
export const reviewUpdate = defineUpdate<Reviewed, [ReviewRequest]>('accept');
export const careUpdate = defineUpdate<Cared, [CareRequest?]>('care');
export const memoryStatusQuery = defineQuery<MemoryStatus>('status');

/** What Temporal's page shows beside each name; the payloads stand in docs/reference/contract.md. */
export const DESCRIPTIONS = {
  signal: {
    message: 'Says something to the agent, or /new.',
    new: 'Begins a new session; the old one is consolidated into long-term memory.',
    interrupt: 'Stops the running turn.',
    decide: 'Approves or denies a tool call, or answers a question.',
    child: 'From a sub-agent: what it waits for, how it is stepped, how it ended.',
    parent: 'From the conversation that started this sub-agent: how it goes on.',
    close: 'Ends the conversation once its queue is empty.',
    upgrade: 'Goes on with the build of the workers that takes new runs.',
    rename: 'Gives it another title.',
    event: 'An event of the application, for its reducer.',
    consolidated: 'From the memory workflow: how a request to consolidate ended.',
    consolidate: 'Turns of a conversation, to be consolidated into long-term memory.',
    forget: 'Removes what long-term memory has of a text.',
    deleted: 'A conversation was deleted.',
    accept: 'Takes or refuses lines that wait for a person.',
    care: 'Tidies up what stores keep of the scope.',
  },
  update: {
    send: 'Says something to the agent, and answers with the result of its turn.',
    turn: 'Waits for the result of a turn.',
    reset: 'Begins a new session, and answers once it has begun.',
    enqueue: 'Says something to the agent, and answers once it is queued.',
    withdraw: 'Takes a message out of the queue.',
    decide: 'Approves or denies a tool call, or answers a question; refused where nothing waits for it.',
    raiseBudget: 'Sets what it may use in all.',
    setModel: 'Chooses the model of the next turns; null: that of the agent.',
    dispatch: 'An event of the application, for its reducer.',
    setMode: 'Has it run by itself (auto), or wait for steps (stepping).',
    step: 'Takes one step of a conversation that is stepped.',
    setBreakpoints: 'Says where a conversation in auto stops.',
    editQueue: 'Moves, drops or clears what is queued.',
    executeTruncation: 'Takes these chunks out of the prompt.',
    triggerCompaction: 'Makes these chunks memory.',
    truncate: 'Takes the oldest out of the prompt, down to the hard threshold.',
    compact: 'Makes older turns memory now.',
    undoCompaction: 'Brings back what the last compaction took out of the prompt.',
    rewind: 'Removes the turns after a given one; they stay as a branch.',
    opened: 'Waits until a fork, or what was resumed, has its beginning.',
    forget: 'Removes what long-term memory has of a text.',
    accept: 'Takes or refuses lines that wait for a person.',
    care: 'Tidies up what stores keep of the scope.',
  },
  query: {
    status: 'Its phase, its turns, its context and costs, and what it waits for.',
    queue: 'What is queued, in its order.',
    approvals: 'What waits for a person.',
    control: 'How it is stepped, and what a step would do.',
    checkTokenUsage: 'How full the context is.',
    context: 'What the next model call sees, by its chunks.',
  },
} as const satisfies Readonly<Record<'signal' | 'update' | 'query', Readonly<Record<string, string>>>>;

/** Types of the failures that a client can meet. */
export const FAILURES = {
  invalidStart: 'InvalidStart',
  invalidMessage: 'InvalidMessage',
  unknownTurn: 'UnknownTurn',
  closing: 'ConversationClosing',
  /** The run hands over to the next: retry with the same id. */
  continues: 'Continues',
  /** Nothing of that id waits for a decision, or not with these arguments. */
  notWaiting: 'NotWaiting',
  /** A step while one runs, or in a conversation that runs by itself. */
  cannotStep: 'CannotStep',
  /** As many application events wait as may. */
  queueFull: 'QueueFull',
  /** A reset that was taken out of the queue. */
  withdrawn: 'Withdrawn',
} as const;

// Our search attributes as Temporal types them; registered by `perdura up`, `perdura admin setup` and `npm start`.

export const SEARCH_ATTRIBUTES = {
  AgentName: defineSearchAttributeKey('AgentName', SearchAttributeType.KEYWORD),
  AgentStatus: defineSearchAttributeKey('AgentStatus', SearchAttributeType.KEYWORD),
  AgentModel: defineSearchAttributeKey('AgentModel', SearchAttributeType.KEYWORD),
  AgentParent: defineSearchAttributeKey('AgentParent', SearchAttributeType.KEYWORD),
  AgentTenant: defineSearchAttributeKey('AgentTenant', SearchAttributeType.KEYWORD),
  AgentTurns: defineSearchAttributeKey('AgentTurns', SearchAttributeType.INT),
  AgentCostUsd: defineSearchAttributeKey('AgentCostUsd', SearchAttributeType.DOUBLE),
} as const;

export function toPairs(attributes: SearchAttributes): SearchAttributeUpdatePair[] {
  return [
    { key: SEARCH_ATTRIBUTES.AgentName, value: attributes.AgentName },
    { key: SEARCH_ATTRIBUTES.AgentStatus, value: attributes.AgentStatus },
    ...(attributes.AgentModel === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.AgentModel, value: attributes.AgentModel }]),
    ...(attributes.AgentParent === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.AgentParent, value: attributes.AgentParent }]),
    ...(attributes.AgentTenant === undefined ? [] : [{ key: SEARCH_ATTRIBUTES.AgentTenant, value: attributes.AgentTenant }]),
    { key: SEARCH_ATTRIBUTES.AgentTurns, value: attributes.AgentTurns },
    { key: SEARCH_ATTRIBUTES.AgentCostUsd, value: attributes.AgentCostUsd },
  ];
}
