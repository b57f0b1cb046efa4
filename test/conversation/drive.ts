/** The loop of the workflow with canned results: what a model, tools and a store would answer is an argument, time is a counter. */
import { apply } from '../../src/conversation/apply.js';
import type {
  Compacted,
  CompactInput,
  TruncateInput,
  Truncated,
  AskMemoryInput,
  Evicted,
  EvictInput,
} from '../../src/conversation/context/compaction-effects.js';
import type { Consolidation } from '../../src/conversation/protocol/contract.js';
import type {
  DeferReason,
  ModelAnswer,
  ModelStepInput,
  ModelStepResult,
  RunToolInput,
  ToolFinished,
  ToolPlan,
} from '../../src/conversation/turn/model-step-effects.js';
import type { StepFailure, StoreStepInput, StoreStepResult, Writes, Written } from '../../src/conversation/outbox/writes.js';
import type { ConversationEvent } from '../../src/conversation/event.js';
import type { Effect, EffectName, EffectOf, Effects } from '../../src/conversation/effect.js';
import { type AssistantBlock, mediaBytes } from '../../src/records/message.js';
import { nextStep, type Step } from '../../src/conversation/next-step.js';
import { LATEST_RULES } from '../../src/conversation/opening.js';
import { openConversation, type ConversationState } from '../../src/conversation/state.js';
import { episodicId } from '../../src/records/memory/items.js';
import { countSlots, listSlots, toRanges } from '../../src/records/slots.js';
import { utf8Length } from '../../src/records/text.js';
import type { AgentSettings, Configured } from '../../src/conversation/state/settings.js';

export const SETTINGS: AgentSettings = {
  hash: 'h1',
  model: 'anthropic/claude-test',
  maxTokens: 1000,
  maxToolRounds: 50,
  agentHash: 'a1',
  contextBudget: 100_000,
  compactionRatio: 0.8,
  fixedTokens: 500,
  handOver: { events: 3000, bytes: 2_000_000, updates: 1500 },
  thresholds: { soft: 50_000, hard: 80_000, truncation: 150_000, autoCompact: true, suggests: false },
  memory: { window: 50, keep: 10, trim: 'at-window', timeoutMs: 30_000, version: 'empty', forgotten: 0 },
};

export const USAGE = { inputTokens: 10, cachedTokens: 0, outputTokens: 5, costUsd: 0.001 };
/** A tool with an activity of its own, and one that may ride. */
export const ORDINARY: ToolPlan = { rides: false, repeatable: true, timeoutMs: 1000 };
export const QUICK: ToolPlan = { ...ORDINARY, rides: true };
export const STORE_AWAY: StepFailure = { type: 'StoreUnavailable', message: 'redis closed', transient: true };

export function open(): ConversationState {
  return openConversation({
    identity: { life: 'l1', agent: 'default', scope: 'default' },
    conversation: 'chat',
    title: null,
    model: null,
    rules: LATEST_RULES,
    at: 1000,
  });
}

export function applyAll(state: ConversationState, ...events: ConversationEvent[]): ConversationState {
  return events.reduce(apply, state);
}

export function said(messageId: string, more: Partial<Extract<ConversationEvent, { kind: 'message-received' }>> = {}): ConversationEvent {
  return { kind: 'message-received', messageId, text: `text of ${messageId}`, delivery: 'queue', at: 1000, ...more };
}

export function interrupted(at: number): ConversationEvent[] {
  return [
    { kind: 'interrupt-requested', reason: null, at },
    { kind: 'stop-sent', at },
  ];
}

/** The store has taken all of it. */
export function written(write: Writes, more: Partial<Written> = {}): Written {
  return {
    messages: write.messages.map((message) => ({
      slot: message.slot,
      bytes: message.parts ? 1_000_000 : utf8Length(message.text) + mediaBytes(message),
      ...(message.output && { output: `output-${message.slot}` }),
      ...(message.context && { context: `context-${message.slot}` }),
      ...(message.tools && { tools: `tools-${message.slot}` }),
    })),
    ...(write.startContext && { startContext: 'start-context' }),
    ...more,
  };
}

/** What the model has said; `input` is its step's. */
export function answer({ session, turn, settings, call }: ModelStepInput, more: Partial<ModelAnswer> = {}): ModelAnswer {
  const blocks: AssistantBlock[] = [{ kind: 'text', text: `answer of ${call.id}` }];
  return {
    ...{ life: 'l1', session, turn, call: call.id, slot: call.slot, ts: 1, model: settings?.model ?? SETTINGS.model },
    ...{ blocks, stop: 'end', usage: USAGE, plans: [], persisted: true },
    ...more,
  };
}

export function asking(input: ModelStepInput, tools: number, plan: ToolPlan = ORDINARY): ModelAnswer {
  return askingFor(input, Array<ToolPlan>(tools).fill(plan));
}

export function askingFor(input: ModelStepInput, plans: readonly ToolPlan[]): ModelAnswer {
  const calls = plans.map((_, i) => ({
    kind: 'tool-call' as const,
    callId: `${input.turn}/c${input.call.firstToolCall + i}`,
    name: 'tool',
    input: {},
  }));
  return answer(input, { blocks: calls, stop: 'tool-calls', plans });
}

export function finished(
  run: Pick<RunToolInput, 'session' | 'turn' | 'callId' | 'name' | 'slot'>,
  more: Partial<ToolFinished> = {},
): ToolFinished {
  const { session, turn, callId, name, slot } = run;
  return {
    ...{ life: 'l1', session, turn, callId, name, slot, ts: 1, ms: 1, outcome: 'ok', text: `result of ${callId}`, persisted: true },
    ...more,
  };
}

/** Results of all tools that ride on the step. */
export function rode({ session, turn, tools }: ModelStepInput, more: Partial<ToolFinished> = {}): ToolFinished[] {
  return tools.map((tool) => finished({ session, turn, ...tool }, more));
}

type StepPart = Partial<Pick<ModelStepResult, 'written' | 'tools' | 'configured' | 'base'>>;

function stepResult(input: ModelStepInput, more: StepPart) {
  const configured: Configured = { kind: 'settings', settings: SETTINGS };
  return {
    ...{ written: written(input.write), tools: rode(input) },
    ...(input.configure && input.configure.knownHash !== SETTINGS.hash && { configured }),
    ...more,
  };
}

export function answered(input: ModelStepInput, said: Partial<ModelAnswer> = {}, more: StepPart = {}): ModelStepResult {
  return { ...stepResult(input, more), kind: 'answered', answer: answer(input, said) };
}

export function notAnswered(input: ModelStepInput, failure: StepFailure, more: StepPart = {}): ModelStepResult {
  return { ...stepResult(input, more), kind: 'failed', failure };
}

export function deferred(input: ModelStepInput, reason: DeferReason, more: StepPart = {}): ModelStepResult {
  return { ...stepResult(input, more), kind: 'deferred', reason };
}

export function stored(input: StoreStepInput, more: Partial<StoreStepResult> = {}): StoreStepResult {
  const { write, part } = input;
  return { life: 'l1', written: written(write), ...(part && { part: `part-${part.slot}-${part.text.length}` }), ...more };
}

export function evicted({ session, what }: EvictInput): Evicted {
  if (what.kind !== 'trim') return { life: 'l1', session, finished: false };
  const archived = toRanges(what.covered.flatMap(({ slots }) => listSlots(slots)));
  const task = { goal: what.task?.goal ?? 'goal', openTasks: what.task?.openTasks ?? [] };
  const episode = { id: episodicId(what.number), ts: 1, turn_ids: [], summary: 'summary', tags: ['trimmed'], salience: 0.5 };
  const base = { ref: `trim-${what.epoch}`, text: 'summary' };
  const messages = countSlots(archived);
  return { life: 'l1', session, finished: true, trimmed: { archived, messages, unsummarized: 0, tokens: 0, task, base, episode } };
}

export function nothingDropped({ epoch }: TruncateInput): Truncated {
  return { life: 'l1', epoch, dropped: [], tokens: 0, entries: 0 };
}

/** An effect's name, or the kind of any other step. */
export function nameOf(step: Step): string {
  return step.kind === 'effect' ? step.effect : step.kind;
}

export function namesOf(steps: readonly Step[]): string[] {
  return steps.map(nameOf);
}

export function isEffect<N extends EffectName>(step: Step, name: N): step is Step & EffectOf<N> {
  return step.kind === 'effect' && step.effect === name;
}

export interface Taken<N extends EffectName> {
  /** With the effect in flight. */
  readonly state: ConversationState;
  readonly id: string;
  readonly input: Effects[N]['input'];
  readonly done: (output: Effects[N]['output'], at?: number) => ConversationEvent;
  readonly failed: (failure: StepFailure, at?: number) => ConversationEvent;
}

/** Starts the effect that is next, which must be this one; a turn that is due before it begins. */
export function take<N extends EffectName>(before: ConversationState, name: N): Taken<N> {
  let state = before;
  let step = nextStep(state);
  while (step.kind === 'begin-turn') {
    state = apply(state, { kind: 'turn-begun', at: state.now });
    step = nextStep(state);
  }
  if (!isEffect(step, name)) throw new Error(`${name} was expected, not ${JSON.stringify(step)}`);
  // `step` is this effect's: the compiler follows that for one name only.
  return takeStep(state, step as unknown as EffectOf<N>);
}

export function takeStep<N extends EffectName>(state: ConversationState, step: EffectOf<N>): Taken<N> {
  const { effect, id, input } = step as Effect;
  return {
    state: apply(state, { kind: 'effect-started', effect, id, input, at: state.now } as ConversationEvent),
    ...{ id, input: input as Effects[N]['input'] },
    done: (output, at = state.now) => ({ kind: 'effect-completed', effect, id, output, at }) as ConversationEvent,
    failed: (failure, at = state.now) => ({ kind: 'effect-failed', effect, id, failure, at }),
  };
}

/** What becomes of an effect; one without an entry ends as it usually does. */
export interface Script {
  readonly step?: (input: ModelStepInput) => ModelStepResult;
  /** Its step is `answered`. */
  readonly model?: (input: ModelStepInput) => ModelAnswer;
  readonly store?: (input: StoreStepInput) => StoreStepResult;
  readonly tool?: (run: RunToolInput) => ToolFinished;
  /** Without it a compaction finds nothing. */
  readonly compact?: (input: CompactInput) => Compacted;
  readonly truncate?: (input: TruncateInput) => Truncated;
  /** Undefined: there is no answer yet. */
  readonly consolidate?: (input: AskMemoryInput) => Consolidation | undefined;
}

/** Undefined where nobody answers such an effect by itself. */
export function outputOf(effect: Effect, script: Script = {}): Effects[EffectName]['output'] | undefined {
  switch (effect.effect) {
    case 'model-step': {
      const { input } = effect;
      return script.step?.(input) ?? answered(input, script.model?.(input));
    }
    case 'store-step':
      return (script.store ?? stored)(effect.input);
    case 'run-tool':
      return (script.tool ?? finished)(effect.input);
    case 'compact':
      return script.compact?.(effect.input) ?? { kind: 'nothing-to-compact', epoch: effect.input.epoch };
    case 'truncate':
      return (script.truncate ?? nothingDropped)(effect.input);
    case 'evict':
      return evicted(effect.input);
    default:
      return undefined;
  }
}

export interface Settled {
  readonly state: ConversationState;
  readonly steps: Step[];
  readonly events: ConversationEvent[];
}

const ENDED_WITHOUT_A_WORD: readonly EffectName[] = ['uncompact', 'ask-memory', 'heal', 'deliver', 'report'];

/** Runs until nothing is left to do, ending every effect at once; what has no canned outcome is the caller's to decide. */
export function settle(before: ConversationState, script: Script = {}, most = 10_000): Settled {
  let state = before;
  const steps: Step[] = [];
  const events: ConversationEvent[] = [];
  const tell = (event: ConversationEvent): void => {
    events.push(event);
    state = apply(state, event);
  };
  for (let i = 0; i < most; i++) {
    const step = nextStep(state);
    steps.push(step);
    const at = state.now + 1;
    if (step.kind === 'begin-turn') tell({ kind: 'turn-begun', at });
    else if (step.kind === 'effect') {
      const { effect, id } = step;
      const output = outputOf(step, script);
      if (output === undefined && !ENDED_WITHOUT_A_WORD.includes(effect)) return { state, steps, events };
      tell({ ...step, kind: 'effect-started', at });
      tell({ kind: 'effect-completed', effect, id, output, at } as ConversationEvent);
      if (step.effect !== 'ask-memory') continue;
      const consolidation = (script.consolidate ?? (() => 'model' as const))(step.input);
      if (consolidation) tell({ kind: 'consolidation-ended', requestId: id, consolidation, usage: null, at });
    } else return { state, steps, events };
  }
  throw new Error(`still not settled after ${most} steps`);
}
