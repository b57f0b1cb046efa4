/**
 * What every effect has in common: it starts, and completes or fails. `state.inFlight` is the only place that says what runs,
 * `state.retries` the only one that says what waits to be tried again.
 */
import type {
  Compacted,
  CompactInput,
  TruncateInput,
  Truncated,
  UncompactInput,
  AskMemoryInput,
  Evicted,
  EvictInput,
} from './context/compaction-effects.js';
import type { DeliverInput } from './outbox/webhook-effects.js';
import type { HandedBack, HealInput, StoreStepInput, StoreStepResult, StepFailure } from './outbox/writes.js';
import type { MadeTitle, ModelStepInput, ModelStepResult, TitleInput, RunToolInput, ToolFinished } from './turn/model-step-effects.js';
import type { EndedTurn } from './state/turn-state.js';
import type { OpenedOrigin, OpenOriginInput, RewindInput, Rewound } from './lineage/lineage-effects.js';
import type { ParentLink } from '../records/identity.js';
import type { Delegation, StartOptions } from './protocol/contract.js';

export interface ChildStart {
  readonly callId: string;
  readonly child: string;
  readonly options: StartOptions & { readonly delegation: Delegation };
}

/** Names of activities, except the last two, which are separate workflows and signals. */
export interface Effects {
  'model-step': { input: ModelStepInput; output: ModelStepResult };
  'store-step': { input: StoreStepInput; output: StoreStepResult };
  'run-tool': { input: RunToolInput; output: ToolFinished };
  compact: { input: CompactInput; output: Compacted };
  truncate: { input: TruncateInput; output: Truncated };
  uncompact: { input: UncompactInput; output: void };
  evict: { input: EvictInput; output: Evicted };
  heal: { input: HealInput; output: void };
  'open-origin': { input: OpenOriginInput; output: OpenedOrigin };
  rewind: { input: RewindInput; output: Rewound };
  'ask-memory': { input: AskMemoryInput; output: void };
  title: { input: TitleInput; output: MadeTitle };
  deliver: { input: DeliverInput; output: void };
  /** The status of a sub-agent of an earlier run, in Temporal's word. */
  'look-after': { input: { readonly child: string }; output: string };
  'start-child': { input: ChildStart; output: void };
  /** How the one turn of a sub-agent ended, for its parent. */
  report: {
    input: { readonly parent: ParentLink; readonly ended: EndedTurn; readonly context?: HandedBack; readonly capability?: string };
    output: void;
  };
}

export type EffectName = keyof Effects;

type OfEach<Of extends { readonly [N in EffectName]: unknown }> = Of[EffectName];

/** `id` distinguishes it from all others of its kind in this life: what comes late is known by it. */
export type Effect = OfEach<{
  [N in EffectName]: { readonly effect: N; readonly id: string; readonly input: Effects[N]['input'] };
}>;

export type EffectEvent =
  | (Effect & { readonly kind: 'effect-started'; readonly at: number })
  | OfEach<{
      [N in EffectName]: {
        readonly kind: 'effect-completed';
        readonly effect: N;
        readonly id: string;
        readonly output: Effects[N]['output'];
        readonly at: number;
      };
    }>
  | {
      readonly kind: 'effect-failed';
      readonly effect: EffectName;
      readonly id: string;
      readonly failure: StepFailure;
      readonly at: number;
    };

/** As the functions that take an effect's start and outcome are given it. */
export interface Started<N extends EffectName> {
  readonly id: string;
  readonly input: Effects[N]['input'];
  readonly at: number;
}
export interface Completed<N extends EffectName> extends Started<N> {
  readonly output: Effects[N]['output'];
}
export interface Failed<N extends EffectName> extends Started<N> {
  readonly failure: StepFailure;
}

export type EffectOf<N extends EffectName> = Extract<Effect, { effect: N }>;

interface InFlight {
  readonly inFlight: readonly Effect[];
}

export function running<N extends EffectName>(state: InFlight, name: N, id?: string): EffectOf<N> | undefined {
  return state.inFlight.find((one): one is EffectOf<N> => one.effect === name && (id === undefined || one.id === id));
}

export function isRunning(state: InFlight, ...names: readonly EffectName[]): boolean {
  return state.inFlight.some(({ effect }) => names.includes(effect));
}

/** What else would change the context waits. */
export function isChangingContext(state: InFlight): boolean {
  return isRunning(state, 'compact', 'truncate', 'uncompact');
}
