/**
 * What runs a workflow: Temporal (temporal-host.ts), or a process without it (testing/engine/). The loop and its handlers take from it
 * everything that is not decided by the state, so that what is tested in memory is what runs.
 */
import type { ActivityOptions, QueryDefinition, SearchAttributeUpdatePair, SignalDefinition, UpdateDefinition } from '@temporalio/common';
import type { Activities } from '../activities/index.js';
import type { ConversationEvent } from '../conversation/event.js';
import type { ConversationState } from '../conversation/state.js';
import type { ConversationListener } from '../conversation/views/observation.js';
import { sealProblemOf } from '../conversation/protocol/state-seal.js';

/** Of the running workflow, with what its present task has brought. */
export interface MeasuredHistory {
  readonly events: number;
  /** Of what has come in, and of the events themselves. What went out again is as much at the most, or less. */
  readonly bytes: number;
}

export interface HostInfo {
  readonly workflowId: string;
  readonly runId: string;
  readonly firstExecutionRunId: string;
  readonly continuedFromExecutionRunId?: string;
  readonly parent?: { readonly workflowId: string };
  readonly memo?: Readonly<Record<string, unknown>>;
  readonly searchAttributes?: Readonly<Record<string, readonly unknown[] | undefined>>;
  readonly historyLength: number;
}

/** What has begun in it is stopped together. */
export interface Scope {
  run<T>(work: () => Promise<T>): Promise<T>;
  cancel(): void;
}

export interface ChildStartOptions {
  readonly workflowId: string;
  readonly args: [unknown];
  readonly memo: Record<string, unknown>;
  readonly staticSummary: string;
}

/** Of a conversation that is played again (testing/engine/): its events come as they were recorded, and no client sends them. */
export interface Played {
  /** The state that its first run begins with. */
  readonly opened?: ConversationState;
  /** From now on this run hears of them so. */
  readonly listen: (dispatch: (event: ConversationEvent) => void) => void;
}

/** Its promises resolve by jobs from outside: nothing here is asynchronous by itself. */
export interface Host {
  /** Epoch milliseconds, the same on replay. */
  now(): number;
  uuid(): string;
  info(): HostInfo;
  measure(): MeasuredHistory;
  isReplaying(): boolean;
  /** Whether this run knows the mark: always, but for a replay of what began before it. */
  patched(mark: string): boolean;

  setHandler<Result, Args extends unknown[]>(
    update: UpdateDefinition<Result, Args>,
    handle: (...args: never[]) => Result | Promise<Result>,
    options?: { readonly validator: (...args: never[]) => void },
  ): void;
  setHandler<Args extends unknown[]>(signal: SignalDefinition<Args>, handle: (...args: never[]) => void | Promise<void>): void;
  setHandler<Result, Args extends unknown[]>(query: QueryDefinition<Result, Args>, handle: (...args: never[]) => Result): void;
  /** Of names that have no handler. Called once all others are there: what came before is heard now, in its order (workflows/early-signals). */
  onOtherSignal(handle: (name: string) => void): void;
  onOtherUpdate(handle: (name: string) => never): void;
  allHandlersFinished(): boolean;

  /** Resolves once it is so; false: the time came first. */
  condition(isSo: () => boolean): Promise<void>;
  condition(isSo: () => boolean, ms: number, options: { readonly summary: string }): Promise<boolean>;
  /** A client cancels the workflow. */
  onCancelled(cancelled: (error: Error) => void): void;
  createScope(): Scope;

  activity(name: keyof Activities, input: unknown, options: ActivityOptions): Promise<unknown>;
  /** Resolves once it runs. It outlives the one that has started it. */
  startChild(type: string, options: ChildStartOptions): Promise<{ result(): Promise<unknown> }>;
  /** Resolves once it is sure to be heard. */
  signal<Args extends unknown[]>(workflowId: string, signal: SignalDefinition<Args>, args: Args): Promise<void>;
  /** `current`: the next run begins on the build that new conversations begin on; `same`: on this one's. */
  continueAsNew(argument: object, build: 'current' | 'same'): Promise<never>;
  /**
   * Whether new runs of this workflow would begin on another build of the workers. The answer of each moment is kept: another asking under
   * the same name has the same answer.
   */
  isOtherBuildDue(moment: string): boolean;

  upsertMemo(memo: Record<string, unknown>): void;
  upsertSearchAttributes(pairs: SearchAttributeUpdatePair[]): void;
  setCurrentDetails(details: string): void;
  /** What happens to a conversation: one way, nothing comes back. Absent without a listener. */
  readonly observer?: ConversationListener;
  /** Absent on Temporal. */
  readonly played?: Played;
}

const PATCH = 'refused-for-its-seal';

/**
 * Why this run must end for what it was handed; undefined where it goes on, also where it began before the workers had a key. Decided once,
 * at its first task, and kept in history whatever keys later workers have.
 */
export function refusedSeal(host: Host, argument: object): string | undefined {
  const problem = sealProblemOf(argument);
  // On replay history alone knows; a first task with nothing to refuse leaves no mark there.
  const isRefused = (problem !== undefined || host.isReplaying()) && host.patched(PATCH);
  return isRefused ? (problem ?? 'its signature was refused') : undefined;
}
