/** One conversation of a tree that is played, or one sub-agent: what was recorded of it beside what happens to it now. */
import { apply } from '../conversation/apply.js';
import type { ConversationEvent } from '../conversation/event.js';
import type { ConversationState } from '../conversation/state.js';
import type { PromptHead } from '../conversation/state/compaction-state.js';
import type { ModelStepInput, ToolPlan } from '../conversation/turn/model-step-effects.js';
import { approvalsOf } from '../conversation/turn/approvals.js';
import { NO_MEMORY_VERSION } from '../records/memory/documents.js';
import type { RecordedAnswers } from './answers.js';
import { isStep, TIMER, type Happening, type RecordedStep, type Track } from './recording.js';
import type { ReportedCall } from './report.js';
import { createTurnLog, type TurnLog } from './turn-log.js';

export interface Part {
  readonly id: string;
  /** Undefined: a sub-agent that the recording does not have. */
  readonly track: Track | undefined;
  readonly answers: RecordedAnswers | undefined;
  /** Of what is played. */
  readonly log: TurnLog;
  /** Undefined until it has begun. */
  state(): ConversationState | undefined;
  opened(state: ConversationState): void;
  event(event: ConversationEvent): void;
  /** What came next has been brought. */
  brought(): void;
  /** Whether its run is to end here, as it did then; undefined: nothing says. */
  handsOver(): boolean | undefined;
  /** Slots up to this one are read where it was recorded. */
  before(): number;
  /** Told of each model call that is answered, by its id. */
  onAnswer(listen: (call: string) => void): void;
  readonly held: Held[];
  hold(one: Held): void;
  /** An attempt of a model step begins: the recorded step that it stands for. */
  begin(input: ModelStepInput, attempt: number): RecordedStep | undefined;
  /** Which one that was. */
  present(): { readonly step: RecordedStep | undefined; readonly input: ModelStepInput; readonly isRepeated?: true } | undefined;
  /** That one is to end as it did then, whatever comes of it. */
  repeat(): void;
  memoryVersion(): string;
  /** What prompts began with then, as of the present call. */
  head(): PromptHead | undefined;
  readonly sources: Map<string, ReportedCall['source']>;
  readonly modelMs: Map<string, number>;
  plans(): Iterable<{ readonly plans: readonly ToolPlan[]; readonly names: readonly string[] }>;
}

/** An effect that has been done, a wait that is over, or what another conversation has sent: its conversation has not heard of it. */
export interface Held {
  readonly effect: string;
  readonly of: string;
  readonly release: () => void;
}

export function createPart(id: string, track: Track | undefined, answers: RecordedAnswers | undefined): Part {
  const sources = new Map<string, ReportedCall['source']>();
  const modelMs = new Map<string, number>();
  const log = createTurnLog({ modelMs: (call) => modelMs.get(call), findSource: (call) => sources.get(call) });
  const held: Held[] = [];
  const begun = new WeakSet<RecordedStep>();
  let stepped = 0;
  let isHandedOver = false;
  let listener = (_call: string): void => undefined;
  let state: ConversationState | undefined;
  let present: ReturnType<Part['present']>;
  let version = track?.opened.settings?.memory.version ?? NO_MEMORY_VERSION;
  let head = track?.opened.compaction.prefix.head;
  let before = track?.opened.counters.slot ?? 0;

  return {
    ...{ id, track, answers, log, held, sources, modelMs },
    hold(one) {
      // Its loop waits once at a time: who waits anew has given up the wait before.
      const given = one.effect === TIMER.effect ? held.findIndex(({ effect }) => effect === TIMER.effect) : -1;
      if (given >= 0) held.splice(given, 1);
      held.push(one);
    },
    state: () => state,
    opened(now) {
      state = now;
    },
    brought() {
      stepped = 0;
      isHandedOver = false;
    },
    handsOver() {
      if (!track?.batch()) return undefined;
      const due = track.handOverAfter();
      return due !== undefined && !isHandedOver && stepped >= due;
    },
    event(event) {
      if (isStep(event)) stepped += 1;
      if (event.kind === 'hand-over-due') isHandedOver = true;
      if (!state) return;
      state = apply(state, event);
      log.add(event, state);
      if (event.kind === 'effect-completed' && event.effect === 'model-step' && event.output.kind === 'answered')
        listener(event.output.answer.call);
      // A fork goes on in what it shares.
      if (event.kind === 'effect-completed' && event.effect === 'open-origin') before = Math.max(before, event.output.slot);
    },
    onAnswer: (listen) => void (listener = listen),
    before: () => before,
    begin(input, attempt) {
      const steps = track?.steps(input.call.id) ?? [];
      const step = attempt > 1 ? present?.step : (steps.find((one) => !begun.has(one)) ?? steps.at(-1));
      if (step) begun.add(step);
      const configured = step?.result?.configured;
      if (configured?.kind === 'settings') version = configured.settings.memory.version;
      if (step?.result?.kind === 'answered') head = step.result.answer.head ?? head;
      present = { step, input };
      return step;
    },
    present: () => present,
    repeat() {
      if (present) present = { ...present, isRepeated: true };
    },
    memoryVersion: () => version,
    head: () => head,
    *plans() {
      for (const { result } of track?.known() ?? []) {
        if (result?.kind !== 'answered') continue;
        const names = result.answer.blocks.flatMap((block) => (block.kind === 'tool-call' ? [block.name] : []));
        if (names.length > 0) yield { plans: result.answer.plans ?? [], names };
      }
    },
  };
}

/** Whether a person would send it now: what came while nothing went on waits until nothing goes on. */
export function fits(part: Part, happening: Happening): boolean {
  if (happening.kind === 'end') return part.held.some(({ effect, of }) => effect === happening.effect && of === happening.of);
  return happening.turn !== null || part.state()?.turn === null || happening.event.kind === 'consolidation-ended';
}

/**
 * The event as it is to be brought; undefined where it would mean nothing here. A decision is for the call that it was about, or for the one of
 * the same tool that waits in its place.
 */
export function toBring(part: Part, event: ConversationEvent): ConversationEvent | undefined {
  const state = part.state();
  if (!state) return undefined;
  if (event.kind === 'interrupt-requested') return state.turn === null && part.track?.state().turn ? undefined : event;
  if (event.kind !== 'decided') return event;
  const waiting = approvalsOf(state);
  const { decision } = event;
  if (waiting.some(({ callId, conversation }) => callId === decision.callId && conversation === (decision.conversation ?? part.id)))
    return event;
  const then = part.track ? approvalsOf(part.track.state()).find(({ callId }) => callId === decision.callId) : undefined;
  const here = waiting.find(({ tool, kind }) => tool === then?.tool && kind === then.kind);
  if (!here) return undefined;
  const { hash: _, ...rest } = decision;
  return {
    ...event,
    decision: { ...rest, callId: here.callId, ...(here.conversation !== part.id && { conversation: here.conversation }) },
  };
}
