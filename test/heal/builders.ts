/** Effects in a few words, as a conversation's history has them. */
import type { Compacted, CompactInput } from '../../src/conversation/context/compaction-effects.js';
import type { MessageToRecord, StoreStepInput, Writes, Written } from '../../src/conversation/outbox/writes.js';
import type {
  ModelAnswer,
  ModelStepInput,
  ModelStepResult,
  RunToolInput,
  ToolFinished,
} from '../../src/conversation/turn/model-step-effects.js';
import type { EffectName, Effects } from '../../src/conversation/effect.js';
import type { Resumption } from '../../src/conversation/lineage/lineage-effects.js';
import type { Entry, Usage } from '../../src/records/message.js';
import type { SlotRange } from '../../src/records/slots.js';
import { turnId } from '../../src/records/identity.js';
import type { Activity } from '../../src/heal/read-activities.js';

export const identity = { life: 'l1', agent: 'default', scope: 'default' };
const usage: Usage = { inputTokens: 10, cachedTokens: 0, outputTokens: 5, costUsd: 0.001 };
const plan = { rides: true, repeatable: true, timeoutMs: 1_000 };
export const NOTHING: Writes = { messages: [], settle: [], entries: [], feed: [] };

/** One that has started and ended. */
export function done<N extends EffectName>(name: N, input: Effects[N]['input'], output: Effects[N]['output']): Activity[] {
  return [started(name, input), { kind: 'completed', name, input, output, at: 2_000, bytes: 100 }];
}

export function started<N extends EffectName>(name: N, input: Effects[N]['input']): Activity {
  return { kind: 'scheduled', name, input, output: undefined, at: 1_000, bytes: 50 };
}

export function message(slot: number, turn: number, over: Partial<MessageToRecord> = {}): MessageToRecord {
  return { messageId: `m${slot}`, slot, turn: turnId(turn), seq: 1, session: 1, ts: slot, text: `question in ${slot}`, ...over };
}

/** All of it is written. */
export function receipt(write: Writes, over: Partial<Written> = {}): Written {
  return { messages: write.messages.map(({ slot, text }) => ({ slot, bytes: text.length })), ...over };
}

export interface StepMade {
  readonly turn: number;
  readonly slot: number;
  readonly write?: Partial<Writes>;
  readonly written?: Partial<Written>;
  readonly tools?: readonly ToolFinished[];
  readonly answer?: Partial<ModelAnswer>;
  readonly base?: ModelStepResult['base'];
  readonly citations?: ModelStepResult['citations'];
  readonly ends?: 'answered' | 'failed' | 'deferred';
}

/** A model step that answers `answer in <slot>`. Its call is `<turn>/m1`, its `seq` 2; tools ride with `seq` 3 and on. */
export function stepInput({ turn, slot, write, tools = [] }: StepMade): ModelStepInput {
  return {
    identity,
    session: 1,
    turn: turnId(turn),
    write: { ...NOTHING, ...write },
    tools: tools.map(({ callId, name, slot: at }, i) => ({ callId, name, slot: at, seq: 3 + i, askedIn: 1, plan, target: '' })),
    configure: null,
    numbers: { contextTokens: 0, shownOnce: 0, reported: null, truncatesFrom: null, compactsFrom: null, usage, budget: null },
    settings: null,
    call: { id: `${turnId(turn)}/m1`, slot, seq: 2, context: [], base: null, firstToolCall: 1, soFar: { usage, toolCalls: 0 } },
  };
}

export function modelStep(made: StepMade): Activity[] {
  const { turn, answer, base, citations, ends = 'answered', tools = [] } = made;
  const input = stepInput(made);
  const told = {
    life: 'l1',
    session: 1,
    turn: turnId(turn),
    call: input.call.id,
    written: receipt(input.write, made.written),
    tools,
    ...(base && { base }),
    ...(citations && { citations }),
  };
  if (ends === 'deferred') return done('model-step', input, { ...told, kind: ends, reason: 'duplicate' });
  if (ends === 'failed')
    return done('model-step', input, { ...told, kind: ends, failure: { type: 'overloaded', message: '', transient: true } });
  return done('model-step', input, { ...told, kind: ends, answer: answerIn(input, answer) });
}

export function answerIn({ turn, call: { id, slot } }: ModelStepInput, over: Partial<ModelAnswer> = {}): ModelAnswer {
  return {
    life: 'l1',
    session: 1,
    turn,
    call: id,
    slot,
    ts: slot,
    model: 'scripted/one',
    blocks: [{ kind: 'text', text: `answer in ${slot}` }],
    stop: 'end',
    usage,
    plans: [],
    persisted: true,
    ...over,
  };
}

export function storeStep(write: Partial<Writes>, written: Partial<Written> = {}, over: Partial<StoreStepInput> = {}): Activity[] {
  const input: StoreStepInput = { identity, session: 1, write: { ...NOTHING, ...write }, rehydrate: [], ...over };
  return done('store-step', input, { life: 'l1', written: receipt(input.write, written) });
}

export function partStep(slot: number, text: string, ref: string): Activity[] {
  const input: StoreStepInput = { identity, session: 1, write: NOTHING, rehydrate: [], part: { slot, text } };
  return done('store-step', input, { life: 'l1', written: receipt(NOTHING), part: ref });
}

export function finished(turn: number, call: number, slot: number, over: Partial<ToolFinished> = {}): ToolFinished {
  return {
    life: 'l1',
    session: 1,
    turn: turnId(turn),
    callId: `${turnId(turn)}/c${call}`,
    name: 'look',
    slot,
    ts: slot,
    ms: 1,
    outcome: 'ok',
    text: `result in ${slot}`,
    persisted: true,
    ...over,
  };
}

export function toolInput({ turn, callId, name, slot }: ToolFinished, seq = 3): RunToolInput {
  return { identity, session: 1, turn, callId, name, target: '', slot, seq, askedIn: 1, plan };
}

export function runTool(result: ToolFinished, seq = 3): Activity[] {
  return done('run-tool', toolInput(result, seq), result);
}

export function userSaid(slot: number, turn: number, text = `question in ${slot}`): Entry {
  const message = { role: 'user', text } as const;
  return { v: 1, slot, session: 1, turn: turnId(turn), seq: 1, ts: slot, message, messageId: `m${slot}` };
}

export function modelSaid(slot: number, turn: number, text = `answer in ${slot}`): Entry {
  const message = { role: 'assistant', blocks: [{ kind: 'text', text }], model: 'scripted/one', stop: 'end' } as const;
  return { v: 1, slot, session: 1, turn: turnId(turn), seq: 2, ts: slot, message };
}

export function toolSaid(
  slot: number,
  turn: number,
  call: number,
  { seq = 3, text = `result in ${slot}`, outcome = 'ok' as Outcome } = {},
): Entry {
  const message = { role: 'tool', callId: `${turnId(turn)}/c${call}`, name: 'look', outcome, text } as const;
  return { v: 1, slot, session: 1, turn: turnId(turn), seq, ts: slot, message };
}

type Outcome = ToolFinished['outcome'];

export function compaction(n: number, archived: readonly SlotRange[], move: number): Activity[] {
  const input: CompactInput = {
    identity,
    session: 2,
    epoch: n + 1,
    number: n,
    attempt: n,
    move,
    cause: 'asked',
    leftOut: [],
    context: [],
    cited: [],
    contextTokens: 0,
    ...{ line: 0, enough: 0, free: 0, atLeast: 0 },
    currentTurn: null,
    task: null,
    model: 'scripted/one',
    agentHash: 'a1',
  };
  const record = {
    inputsHash: 'h',
    compactor: 'WorkingFlowCompactor',
    method: 'model',
    model: 'scripted/one',
    tokensBefore: 9,
    tokensAfter: 3,
  } as const;
  const output: Compacted = {
    kind: 'compacted',
    life: 'l1',
    epoch: n + 1,
    kept: [],
    archived,
    turns: ['turn_0001'],
    task: { goal: 'g', openTasks: [] },
    base: { ref: `b:${n}`, text: `base ${n}` },
    episode: { id: `ep_000${n}`, ts: n, turn_ids: ['turn_0001'], summary: `summary ${n}`, tags: [], salience: 0.5 },
    facts: [{ id: 'sem_0001', ts: n, fact: `fact ${n}`, tags: [], confidence: 1, salience: 0.5 }],
    method: 'model',
    record,
    tokensBefore: 9,
    tokensAfter: 3,
    usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 1, costUsd: 0 },
  };
  return done('compact', input, output);
}

export function undo(n: number, archived: readonly SlotRange[], move: number): Activity[] {
  return done('uncompact', { identity, move, epoch: n + 1, episode: `ep_000${n}`, archived }, undefined);
}

/** A reset that did not wait for its consolidation, of which `raw` went to HISTORY. */
export function evict(archive: readonly SlotRange[], move: number, raw = 'raw'): Activity[] {
  const input = { identity, session: 1, move, what: { kind: 'session-end', archive, unfinished: [], task: null } } as const;
  return done('evict', input, {
    life: 'l1',
    session: 1,
    finished: false,
    fallbacks: [{ requestId: `ask-${move}`, ts: 7, text: raw }],
  });
}

/** Of which `archived` left the prompt; without it nothing did. */
export function trim(n: number, covered: readonly SlotRange[], move: number, archived?: readonly SlotRange[]): Activity[] {
  const asked = [{ requestId: 's1/1-9', slots: covered }];
  const of = { leftOut: [], before: [], epoch: n + 1, number: n, since: 1, task: null, baseTokens: 0 };
  const trimmed = archived && {
    archived,
    ...{ messages: 2, unsummarized: 0, tokens: 5, task: { goal: 'g', openTasks: [] }, base: { ref: `b:t${n}`, text: `base of trim ${n}` } },
    episode: { id: `ep_000${n}`, ts: n, turn_ids: ['turn_0001'], summary: `summary ${n}`, tags: ['trimmed'], salience: 0.5 },
  };
  const input = { identity, session: 1, move, what: { kind: 'trim', covered: asked, ...of } } as const;
  return done('evict', input, { life: 'l1', session: 1, finished: true, ...(trimmed && { trimmed }) });
}

export const RESUMED: Resumption = { context: [], task: null, episodes: [], compactions: 0, tokens: 0 };

export function rewind(cut: readonly SlotRange[], context: readonly SlotRange[], move: number, over: Partial<Resumption> = {}): Activity[] {
  const input = {
    identity,
    requestId: `r${move}`,
    move,
    branch: 1,
    to: 'turn_0001',
    slot: 9,
    waiting: [],
    session: 1,
    at: 5,
    compactions: 0,
  };
  const made = { v: 1, id: `r${move}`, branch: 1, to: 1, begun: 2, since: 3, slot: 9, at: 5, session: 1, slots: cut } as const;
  return done('rewind', input, { ...RESUMED, ...over, context, life: 'l1', cut: cut.length === 0 ? null : made, turns: 1, session: 1 });
}
