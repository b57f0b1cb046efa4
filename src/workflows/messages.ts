/** The names that a client may say to a conversation (design section 3). Light: the client imports these values. */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type {
  Cared,
  CareRequest,
  ConsolidationNews,
  ForgetRequest,
  Forgotten,
  MemoryStatus,
  Reviewed,
  ReviewRequest,
} from '../conversation/memory-contract.js';
import type { AskedConsolidation } from '../conversation/memory-queue.js';
import type {
  CompactionOutcome,
  ContextIndex,
  Message,
  Opened,
  QueuedEvent,
  ResetResult,
  RewindResult,
  Status,
  TurnResult,
} from '../conversation/contract.js';

export const WORKFLOW_TYPE = 'conversation';

export const messageSignal = defineSignal<[string | Message]>('message');
export const newSignal = defineSignal<[{ id?: string }?]>('new');
export const interruptSignal = defineSignal<[{ reason?: string }?]>('interrupt');
export const closeSignal = defineSignal('close');
/** Beyond design section 3: a new title, for lists and the UI. */
export const renameSignal = defineSignal<[{ title: string }]>('rename');

export const sendUpdate = defineUpdate<TurnResult, [string | Message]>('send');
export const turnUpdate = defineUpdate<TurnResult, [{ turnId: string }]>('turn');
export const resetUpdate = defineUpdate<ResetResult, [{ id?: string }]>('reset');

export const compactUpdate = defineUpdate<CompactionOutcome, [{ id?: string }]>('compact');
export const undoCompactionUpdate = defineUpdate<CompactionOutcome, [{ id?: string }]>('undoCompaction');

export const rewindUpdate = defineUpdate<RewindResult, [{ to: string; id?: string }]>('rewind');
/** Beyond design section 3: waits until a fork, or what was resumed, has its beginning; null for one that begins with nothing. */
export const openedUpdate = defineUpdate<Opened | null>('opened');

export const statusQuery = defineQuery<Status>('status');
export const queueQuery = defineQuery<QueuedEvent[]>('queue');
export const contextQuery = defineQuery<ContextIndex>('context');

/** From the memory workflow to the conversation that asked it. */
export const consolidatedSignal = defineSignal<[ConsolidationNews]>('consolidated');

/** To the workflow `memory:<scope>`. What it has written can be asked of the store. */
export const consolidateSignal = defineSignal<[AskedConsolidation]>('consolidate');
export const forgetSignal = defineSignal<[ForgetRequest]>('forget');
export const reviewSignal = defineSignal<[ReviewRequest]>('accept');
export const careSignal = defineSignal<[CareRequest?]>('care');
export const forgetUpdate = defineUpdate<Forgotten, [ForgetRequest]>('forget');
export const reviewUpdate = defineUpdate<Reviewed, [ReviewRequest]>('accept');
export const careUpdate = defineUpdate<Cared, [CareRequest?]>('care');
export const memoryStatusQuery = defineQuery<MemoryStatus>('status');

/** In the contract, not built yet: these fail with the type `NotYetAvailable`. */
export const LATER = {
  signals: ['decide', 'child'],
  updates: ['enqueue', 'withdraw', 'setMode', 'step', 'setBreakpoints', 'editQueue', 'decide', 'raiseBudget'],
  queries: ['approvals'],
} as const;

/** Types of the failures that a client can meet. */
export const FAILURES = {
  invalidStart: 'InvalidStart',
  invalidMessage: 'InvalidMessage',
  unknownTurn: 'UnknownTurn',
  notYetAvailable: 'NotYetAvailable',
  closing: 'ConversationClosing',
  /** The run hands over to the next: say it again, with the same id. */
  continues: 'Continues',
} as const;
