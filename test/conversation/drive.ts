/** The loop of the workflow with canned results: what a model and tools would answer is an argument, time is a counter. */
import { apply } from '../../src/conversation/apply.js';
import type { Consolidation } from '../../src/conversation/contract.js';
import type { AgentSettings, CallModelInput, ModelAnswer, Recorded, RecordInput } from '../../src/conversation/effects.js';
import type { AskMemoryInput, PutAway, PutAwayInput } from '../../src/conversation/memory-effects.js';
import type { CompactInput, Compacted } from '../../src/conversation/compaction-effects.js';
import type { RunToolInput, ToolFinished } from '../../src/conversation/tool-effects.js';
import type { ConversationEvent } from '../../src/conversation/event.js';
import type { AssistantBlock } from '../../src/conversation/message.js';
import { nextStep, type Step } from '../../src/conversation/next-step.js';
import { LATEST_RULES } from '../../src/conversation/rules.js';
import { openConversation, type ConversationState } from '../../src/conversation/state.js';

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
  memory: { window: 50, keep: 10, timeoutMs: 30_000, version: 'empty', forgotten: 0 },
};

export const USAGE = { inputTokens: 10, cachedTokens: 0, outputTokens: 5, costUsd: 0.001 };

export function open(): ConversationState {
  return openConversation({
    identity: { life: 'l1', agent: 'default', scope: 'default' },
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

export function answer(input: CallModelInput, more: Partial<ModelAnswer> = {}): ModelAnswer {
  const blocks: AssistantBlock[] = [{ kind: 'text', text: `answer of ${input.call}` }];
  return {
    life: 'l1',
    session: input.session,
    turn: input.turn,
    call: input.call,
    slot: input.slot,
    ts: 1,
    model: input.model,
    blocks,
    stop: 'end',
    usage: USAGE,
    plans: [],
    persisted: true,
    ...more,
  };
}

export function asking(input: CallModelInput, tools: number, plan = { local: false, repeatable: true, timeoutMs: 1000 }): ModelAnswer {
  const calls = Array.from({ length: tools }, (_, i) => ({
    kind: 'tool-call' as const,
    callId: `${input.turn}/c${input.firstToolCall + i}`,
    name: 'tool',
    input: {},
  }));
  return answer(input, { blocks: calls, stop: 'tool-calls', plans: calls.map(() => plan) });
}

export function finished(run: RunToolInput, more: Partial<ToolFinished> = {}): ToolFinished {
  return {
    life: 'l1',
    session: run.session,
    turn: run.turn,
    callId: run.callId,
    name: run.name,
    slot: run.slot,
    ts: 1,
    outcome: 'ok',
    text: `result of ${run.callId}`,
    persisted: true,
    ...more,
  };
}

export function recorded(input: RecordInput, more: Partial<Recorded> = {}): Recorded {
  return {
    messages: input.messages.map(({ messageId, slot, turn, session, ts, text }) => ({
      messageId,
      slot,
      turn,
      session,
      ts,
      bytes: text.length,
    })),
    configured: input.configure ? { kind: 'settings', settings: SETTINGS } : null,
    ...more,
  };
}

export function putAway({ session, recapSince }: PutAwayInput): PutAway {
  return { life: 'l1', session, finished: false, tokens: 0, ...(recapSince === null ? {} : { recap: { ref: 'recap', text: 'recap' } }) };
}

/** What becomes of each kind of step; a step without an entry stops the loop, as the caller's turn to decide. */
export interface Script {
  /** Without it a compaction finds nothing. */
  readonly compact?: (input: CompactInput) => Compacted;
  readonly record?: (input: RecordInput) => Recorded;
  readonly model?: (input: CallModelInput) => ModelAnswer;
  readonly tool?: (run: RunToolInput) => ToolFinished;
  /** Undefined: there is no answer yet. */
  readonly consolidate?: (input: AskMemoryInput) => Consolidation | undefined;
}

/** What becomes of a step that has to do with long-term memory; undefined for any other. */
export function memoryEvents(step: Step, at: number, script: Script = {}): ConversationEvent[] | undefined {
  switch (step.kind) {
    case 'consolidate':
      return [{ kind: 'consolidated', consolidation: 'nothing-to-do', at }];
    case 'ask-memory': {
      const { requestId } = step.input.request;
      const consolidation = (script.consolidate ?? (() => 'model' as const))(step.input);
      return [
        { kind: 'memory-ask-started', requestId, at },
        { kind: 'memory-asked', requestId, at },
        ...(consolidation ? [{ kind: 'consolidation-ended', requestId, consolidation, usage: null, at } as const] : []),
      ];
    }
    case 'put-away':
      return [
        { kind: 'put-away-started', at },
        { kind: 'put-away', result: putAway(step.input), at },
      ];
    default:
      return undefined;
  }
}

export interface Settled {
  readonly state: ConversationState;
  readonly steps: Step[];
  readonly events: ConversationEvent[];
}

/** Runs until nothing is left to do, performing every step at once. */
export function settle(before: ConversationState, script: Script = {}, most = 10_000): Settled {
  let state = before;
  const steps: Step[] = [];
  const events: ConversationEvent[] = [];
  const tell = (...told: ConversationEvent[]): void => {
    events.push(...told);
    state = applyAll(state, ...told);
  };
  for (let i = 0; i < most; i++) {
    const step = nextStep(state);
    steps.push(step);
    const at = state.now + 1;
    switch (step.kind) {
      case 'record':
        tell({ kind: 'record-started', at }, { kind: 'recorded', recorded: (script.record ?? recorded)(step.input), at });
        break;
      case 'persist':
        tell({ kind: 'persist-started', at }, { kind: 'persisted', slots: step.entries.map((entry) => entry.slot), at });
        break;
      case 'call-model':
        tell(
          { kind: 'model-call-started', call: step.input.call, at },
          { kind: 'model-answered', answer: (script.model ?? answer)(step.input), at },
        );
        break;
      case 'compact': {
        const { epoch } = step.input;
        const result = script.compact?.(step.input) ?? { kind: 'nothing-to-compact', epoch };
        tell({ kind: 'compact-started', epoch, at }, { kind: 'compacted', result, at });
        break;
      }
      case 'uncompact': {
        const { epoch } = step.input;
        tell({ kind: 'uncompact-started', epoch, at }, { kind: 'uncompacted', epoch, at });
        break;
      }
      case 'run-tools':
        tell(
          { kind: 'tools-started', callIds: step.runs.map(({ input }) => input.callId), at },
          ...step.runs.map(({ input }) => ({ kind: 'tool-finished', result: (script.tool ?? finished)(input), at }) as const),
        );
        break;
      default: {
        const more = memoryEvents(step, at, script);
        if (!more) return { state, steps, events };
        tell(...more);
      }
    }
  }
  throw new Error(`still not settled after ${most} steps`);
}
