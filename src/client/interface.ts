/** What programs do with conversations: the interface of the client that `createClient` makes (perdura-client.ts). */
import type {
  CompactionOutcome,
  ContextIndex,
  ConversationOutcome,
  Message,
  QueuedEvent,
  ResetResult,
  StartOptions,
  Status,
  TurnResult,
} from '../conversation/protocol/contract.js';
import type { ChangeOptions } from './temporal/patience.js';
import type { FetchedRuns } from '../heal/fetch-runs.js';
import type { TurnEvent } from '../records/feed-event.js';
import type { ConversationKey } from '../stores/store.js';
import type { Description, Listed } from './describe.js';
import type { FleetClient, UsageClient } from './fleet.js';
import type { HumanInputClient } from './human-input.js';
import type { InsightClient } from './insight.js';
import type { LineageClient } from './lineage.js';
import type { ListOptions } from './listing.js';
import type { ScopeMemory, SearchOptions } from './memory.js';
import type { ReadingClient } from './reading.js';
import type { SchedulesClient } from './schedules.js';
import type { FoundInScope } from './search-scopes.js';
import type { AnswerAgainClient } from './sending.js';
import type { Dispatch, SteppingClient } from './stepping.js';
import type { AttachClient, UploadsClient } from './uploads.js';

/** What `start` answers. */
export interface Started {
  readonly id: string;
  /** True when a conversation of that id was already running: nothing was started, `options` were not used. */
  readonly attached: boolean;
}

/** How a message is streamed. */
export interface StreamTurnOptions {
  /** Of a conversation that is not there yet; one that has ended goes on. */
  readonly start?: StartOptions;
  readonly signal?: AbortSignal;
}

/**
 * The one door to conversations, as `createClient` opens it. Methods that take an `id` throw `ClientError` `not-found` where no
 * conversation has it.
 */
export interface PerduraClient
  extends
    LineageClient,
    AnswerAgainClient,
    AttachClient,
    FleetClient,
    HumanInputClient,
    InsightClient,
    ReadingClient,
    SchedulesClient,
    SteppingClient,
    UploadsClient,
    UsageClient {
  readonly namespace: string;
  readonly taskQueue: string;
  /** Starts a conversation, or attaches to the running one of that id. Without an id one is made. */
  start(id: string | undefined, options?: StartOptions): Promise<Started>;
  /**
   * Sends a message and waits for the end of its turn, over hand-overs, worker deaths and lost connections. `start` starts the conversation
   * in the same round trip.
   */
  send(id: string, message: string | Message, options?: { start?: StartOptions; signal?: AbortSignal }): Promise<TurnResult>;
  /** Waits for the result of a turn that was sent before. */
  turn(id: string, turnId: string, options?: { signal?: AbortSignal }): Promise<TurnResult>;
  /** Sends a message and does not wait (a signal). Answers its id. */
  message(id: string, message: string | Message): Promise<{ messageId: string }>;
  /** Stops the running turn; its text so far stays. */
  interrupt(id: string, reason?: string): Promise<void>;
  /** Begins a new session: the context is empty, long-term memory gets the messages so far. */
  reset(id: string, options?: ChangeOptions): Promise<ResetResult>;
  /** Makes memory of the older turns now, and waits for it. */
  compact(id: string, options?: ChangeOptions): Promise<CompactionOutcome>;
  /** Hands over an event of the application, for its reducer. */
  dispatch: Dispatch;
  /** Takes the last compaction back: the next request is what it would have been. */
  undoCompaction(id: string, options?: ChangeOptions): Promise<CompactionOutcome>;
  /** What the next model call would see, and what it takes. */
  context(id: string): Promise<ContextIndex>;
  /** No new messages; what is queued is run out, then the workflow completes. `memory: false`: without consolidating its messages. */
  closeConversation(id: string, options?: { memory?: boolean }): Promise<void>;
  /** Waits until the conversation has ended, and answers what it ended with. */
  outcome(id: string, options?: { signal?: AbortSignal }): Promise<ConversationOutcome>;
  /** Asks the workflow to end now, without running out its queue. */
  cancel(id: string): Promise<void>;
  /** Ends the workflow from outside: nothing of it runs any more. */
  terminate(id: string, reason?: string): Promise<void>;
  /** Gives it another title. */
  rename(id: string, title: string): Promise<void>;
  /** How it stands now, by its worker. */
  status(id: string): Promise<Status>;
  /** What waits in it, in its order. */
  queue(id: string): Promise<QueuedEvent[]>;
  /** What Temporal knows of it, also without a worker and after its end. */
  describe(id: string): Promise<Description>;
  /** Where the store keeps it. */
  key(id: string): Promise<ConversationKey>;
  /** Long-term memory of a scope. A conversation has the scope of its agent, unless its start named another. */
  scope(scope: string): ScopeMemory;
  /** Names of the scopes that have messages or memories. */
  scopes(): Promise<readonly string[]>;
  /** Finds messages and memories in all scopes, by a whole question: scope by scope, that with the best find first. */
  search(question: string, options?: SearchOptions): Promise<readonly FoundInScope[]>;
  /** Temporal's histories of it, every run that is still retained, oldest first. */
  runs(id: string): Promise<FetchedRuns>;
  /** Conversations, latest started first, each once; `query` is Temporal's, over conversations only. */
  list(options?: ListOptions): Promise<Listed[]>;
  /**
   * A message, and the turn that answers it as it happens, from its beginning to `turn-finished`, through approvals; where there is no
   * conversation it begins one. Called again with the same message id, also by a program that has begun anew, it is the same turn.
   */
  stream(id: string, message: string | Message, options?: StreamTurnOptions): AsyncGenerator<TurnEvent, void>;
  /** Closes what the client has opened. Conversations go on. */
  close(): Promise<void>;
}
