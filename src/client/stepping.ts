/** The step engine's door (seed 004): mode, step, breakpoints, the queue by hand, and events of the application. */
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import type { CompactionOutcome, ContextIndex, QueuedEvent, QueueEdit } from '../conversation/protocol/contract.js';
import {
  readBreakpoints,
  readChosenChunks,
  readMode,
  readQueueEdit,
  type Breakpoints,
  type ControlMode,
  type ControlStatus,
  type ControlView,
  type StepResult,
  type StepScope,
  type DispatchedEvent,
  readAppEvent,
} from '../conversation/protocol/stepping.js';
import type { Checked } from '../conversation/protocol/schema.js';
import {
  contextQuery,
  controlQuery,
  editQueueUpdate,
  executeTruncationUpdate,
  queueQuery,
  setBreakpointsUpdate,
  setModeUpdate,
  stepUpdate,
  triggerCompactionUpdate,
  truncateUpdate,
  dispatchUpdate,
} from '../workflows/messages.js';
import { ClientError } from './errors.js';
import { type TokenUsage, checkTokenUsage, DEFAULT_THRESHOLDS, type MemoryChunk } from '../records/token-usage.js';
import type { AskChange, AskQuery, AskWorker, ChangeOptions } from './temporal/patience.js';
import { isPinned, type Entry, type JsonValue } from '../records/message.js';
import { listSlots } from '../records/slots.js';
import { selectTruncation } from '../memory/compaction/truncation.js';
import { entryTokens } from '../memory/tokens.js';
import { tokenCounterBy } from '../models/token-counter.js';

/** The step engine: one thing at a time, breakpoints, the queue by hand. */
export interface SteppingClient {
  /** `auto` drains the queue; `stepping` lets what is under way end, and does the rest one step at a time. */
  setMode(id: string, mode: ControlMode): Promise<ControlStatus>;
  /**
   * Does exactly one thing and answers what it was, over hand-overs and worker deaths: however often the request is repeated, it is
   * one step. With sub-agents at work, `scope` says where it goes (`StepScope`). Fails with kind `cannot-step` while another runs (its id
   * is in the text), and in a conversation that runs by itself.
   */
  step(id: string, options?: StepRequest): Promise<StepResult>;
  /** In place of those before; `{}` takes all away. */
  setBreakpoints(id: string, breakpoints: Breakpoints): Promise<ControlStatus>;
  /** Drops, moves or clears what waits, and answers what waits then. Each is a separate event in history. */
  editQueue(id: string, edit: QueueEdit): Promise<QueuedEvent[]>;
  /** Leaves the oldest of the working flow out of the prompt, down to the hard threshold (seed 004, executeTruncation). */
  truncate(id: string, options?: ChangeOptions): Promise<CompactionOutcome>;
  /**
   * These chunks leave the prompt, whatever the thresholds say (seed 004, executeTruncation). Calls go with their results; the running
   * turn's message and last answer stay. Fails with kind `invalid` for one that is not in the context, or not of type WORKING_FLOW.
   */
  executeTruncation(id: string, chunks: readonly string[]): Promise<CompactionOutcome>;
  /** These chunks become memory, and nothing else does (seed 004, triggerCompaction); the same holds for them. */
  triggerCompaction(id: string, chunks: readonly string[]): Promise<CompactionOutcome>;
  /** How full the context is, and what would be compacted and truncated, chunk by chunk (seed 004). */
  checkTokenUsage(id: string): Promise<TokenUsage>;
  /** What a debugger shows beside `status`, `queue` and `context`. */
  control(id: string): Promise<ControlView>;
}

/** Which step is requested. */
export interface StepRequest {
  readonly id?: string;
  readonly scope?: StepScope;
  readonly signal?: AbortSignal;
}

export interface SteppingAccess {
  readonly handleOf: (id: string) => WorkflowHandle;
  readonly askWorker: AskWorker;
  readonly askChange: AskChange;
  readonly askQuery: AskQuery;
}

export function createStepping({
  handleOf,
  askWorker,
  askChange,
  askQuery,
  entries,
}: SteppingAccess & Pick<TokenUsageSource, 'entries'>): SteppingClient {
  const control = (id: string): Promise<ControlView> =>
    askQuery({ id, attempt: `cannot read how ${id} is stepped` }, () => handleOf(id).query(controlQuery));

  return {
    async setMode(id, mode) {
      const attempt = `cannot set the mode of ${id}`;
      const args: [{ mode: ControlMode }] = [{ mode: checked(attempt, readMode({ mode })) }];
      const updateId = `setMode-${randomUUID()}`;
      return askWorker({ id, attempt }, () => handleOf(id).executeUpdate(setModeUpdate, { args, updateId }));
    },

    step(id, { id: stepId = randomUUID(), scope, signal } = {}) {
      const args: [{ id: string; scope?: StepScope }] = [{ id: stepId, ...(scope !== undefined && { scope }) }];
      // A new id each time: a run answers an update once, and a step that it refused may be possible a moment later.
      const without = `a step with the same id (${stepId}) is this one, whether it was done by then or not`;
      return askWorker({ id, attempt: `cannot step ${id}`, signal, without }, () =>
        handleOf(id).executeUpdate(stepUpdate, { args, updateId: `step-${stepId}-${randomUUID()}` }),
      );
    },

    async setBreakpoints(id, breakpoints) {
      const attempt = `cannot set the breakpoints of ${id}`;
      const args: [Breakpoints] = [checked(attempt, readBreakpoints(breakpoints))];
      const updateId = `setBreakpoints-${randomUUID()}`;
      return askWorker({ id, attempt }, () => handleOf(id).executeUpdate(setBreakpointsUpdate, { args, updateId }));
    },

    async editQueue(id, edit) {
      const attempt = `cannot change the queue of ${id}`;
      const args: [QueueEdit] = [checked(attempt, readQueueEdit(edit))];
      const updateId = `editQueue-${randomUUID()}`;
      let tries = 0;
      try {
        return await askWorker({ id, attempt }, async () => {
          tries += 1;
          return (await handleOf(id).executeUpdate(editQueueUpdate, { args, updateId })).queue;
        });
      } catch (error) {
        // Its first try was heard, and its answer lost in a hand-over: what was to be dropped is gone.
        const isRefused = error instanceof ClientError && error.kind === 'invalid';
        if (tries < 2 || edit.op !== 'drop' || !isRefused) throw error;
        const queue = await askQuery({ id, attempt }, () => handleOf(id).query(queueQuery));
        if (queue.some((item) => item.id === edit.id)) throw error;
        return queue;
      }
    },

    truncate: (id, options) => askChange({ ...options, id, attempt: `cannot truncate the context of ${id}` }, truncateUpdate),

    async executeTruncation(id, chunks) {
      const request = chosen(`cannot truncate the context of ${id}`, 'executeTruncation', chunks);
      return askWorker({ id, attempt: request.attempt }, () => handleOf(id).executeUpdate(executeTruncationUpdate, request.call));
    },

    async triggerCompaction(id, chunks) {
      const request = chosen(`cannot compact the context of ${id}`, 'triggerCompaction', chunks);
      return askWorker({ id, attempt: request.attempt }, () => handleOf(id).executeUpdate(triggerCompactionUpdate, request.call));
    },

    checkTokenUsage(id) {
      const context = (): Promise<ContextIndex> =>
        askQuery({ id, attempt: `cannot read the context of ${id}` }, () => handleOf(id).query(contextQuery));
      return readTokenUsage({ context, control, entries }, id);
    },

    control,
  };
}

function chosen(attempt: string, name: 'executeTruncation' | 'triggerCompaction', chunks: readonly string[]) {
  const id = randomUUID();
  checked(attempt, readChosenChunks({ chunks }, name));
  const args: [{ id: string; chunks: readonly string[] }] = [{ id, chunks }];
  return { attempt, call: { args, updateId: `${name}-${id}` } };
}

/** As the workflow checks it, so that a slip is reported at once. */
function checked<T>(attempt: string, read: Checked<T>): T {
  if (read.ok) return read.value;
  throw new ClientError('invalid', `${attempt}: ${read.reason}`);
}

// How full a conversation's context is, chunk by chunk (seed 004, checkTokenUsage): the workflow has the total, the store what each takes.

interface TokenUsageSource {
  readonly context: (id: string) => Promise<ContextIndex>;
  readonly control: (id: string) => Promise<ControlView>;
  readonly entries: (id: string, slots: readonly number[]) => Promise<readonly Entry[]>;
}

/** Whole calls with their results go together, so `chunksToTruncate` may name some more than cover what is too much. */
async function readTokenUsage({ context, control, entries }: TokenUsageSource, id: string): Promise<TokenUsage> {
  const [index, { thresholds, turn }] = await Promise.all([context(id), control(id)]);
  const known = await entries(
    id,
    index.chunks.flatMap(({ slots = [] }) => listSlots(slots)),
  );
  const { count } = await tokenCounterBy(index.tokenizer, index.tokenRatio);
  const countEntryTokens = entryTokens(known, { count });
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
      tokens: countEntryTokens(entry),
      createdAt: entry.ts * 1000,
    })),
  ];
  const { soft: softThreshold, hard: hardThreshold, truncation: truncationThreshold } = lines;
  const usage = checkTokenUsage(chunks, { softThreshold, hardThreshold, truncationThreshold }, index.total);
  if (!usage.needsTruncation) return usage;
  const { dropped } = selectTruncation(known, index.total - hardThreshold, turn?.id ?? null, countEntryTokens);
  return { ...usage, chunksToTruncate: dropped.map(({ slot }) => `chunk_${slot}`) };
}

// An event of the application, handed to a conversation for its reducer (seed 004).

/** An event of the application. */
export interface AppEventToDispatch {
  /** The same twice is one event; one is made where there is none. */
  readonly id?: string;
  readonly type: string;
  readonly payload?: JsonValue;
}

/** A receipt for an event, with what its reducer has made of it where that was waited for. */
export type Dispatched = DispatchedEvent;

/** `wait`: for what its reducer makes of it, which is the `result`. */
export type Dispatch = (id: string, event: AppEventToDispatch, options?: DispatchOptions) => Promise<Dispatched>;

/** How an event is handed over. */
export interface DispatchOptions {
  readonly wait?: boolean;
  readonly signal?: AbortSignal;
}

/** Resolves once it is queued, durably, or with `wait` once it is reduced: over hand-overs too, since the same id is one event. */
export function createDispatch({ handleOf, askWorker }: Pick<SteppingAccess, 'handleOf' | 'askWorker'>): Dispatch {
  return async (id, event, { wait, signal } = {}) => {
    const attempt = `cannot dispatch ${event.type} to ${id}`;
    const read = readAppEvent(event);
    if (!read.ok) throw new ClientError('invalid', `${attempt}: ${read.reason}`);
    const outgoing = { ...event, id: event.id ?? randomUUID() };
    const without = `dispatch it again with the same id (${outgoing.id}) once one does: it is one event`;
    if (!wait)
      return askWorker({ id, attempt, without }, () =>
        handleOf(id).executeUpdate(dispatchUpdate, { args: [outgoing], updateId: `dispatch-${outgoing.id}` }),
      );
    // A new id each time: a run that hands over answers so once.
    return askWorker({ id, attempt, signal, without }, () =>
      handleOf(id).executeUpdate(dispatchUpdate, { args: [{ ...outgoing, wait }], updateId: `dispatch-${outgoing.id}-${randomUUID()}` }),
    );
  };
}
