/**
 * The state that a run begins with: of a start that was checked, or of what the run before has handed over. A sub-agent begins with its
 * task, which is its one turn.
 */
import * as v from 'valibot';
import { apply } from './apply.js';
import { withOrigin } from './lineage/lineage.js';
import { nextStep } from './next-step.js';
import type { ReadStart } from './protocol/input.js';
import { refuse, type Checked, id, is, json, list, part, read, text, time } from './protocol/schema.js';
import { openConversation, type ConversationState } from './state.js';
import type { AgentSettings } from './state/settings.js';
import { detailsOf } from './views/view.js';
import { isScope } from './protocol/limits.js';
import { approvalsOf } from './turn/approvals.js';
import { countSlots, type SlotRange } from '../records/slots.js';
import { isRecord } from '../platform/json.js';

/**
 * Which decisions a new run follows (design section 1, Rules are pinned): a history replays by the rules that it began with. Raising it takes
 * a new `patched` in the workflow.
 */
export const LATEST_RULES = 1;

/** What Temporal and the run know of it. */
interface Run {
  readonly conversation: string;
  readonly life: string;
  readonly rules: number;
  readonly at: number;
}

export function openStarted(
  {
    agent,
    scope,
    delegation,
    origin,
    tenant: _tenant,
    publicId: _publicId,
    message: _message,
    into: _into,
    first: _first,
    ...rest
  }: ReadStart,
  { conversation, life, rules, at }: Run,
): ConversationState {
  const opened = openConversation({ ...rest, identity: { life, agent, scope }, conversation, delegation, rules, at });
  if (!delegation) return origin === null ? opened : withOrigin(opened, origin);
  const withTask = apply(opened, { kind: 'message-received', messageId: 'task', text: delegation.task, delivery: 'queue', at });
  return apply(withTask, { kind: 'close-requested', at });
}

/** What passes for a state and throws all the same is refused too: it would fail each workflow task of its run, for ever. */
export function openCarried(carried: unknown, { conversation, life, rules, at }: Run): Checked<ConversationState> {
  const read = readCarriedState(carried, life);
  if (!read.ok) return refuse(`what no conversation has (${read.reason})`);
  try {
    const state = apply({ ...read.value, conversation, rules }, { kind: 'run-continued', at });
    nextStep(state);
    detailsOf(state);
    return { ok: true, value: state };
  } catch (error) {
    return refuse(`what cannot be gone on with (${String(error)})`);
  }
}

// The state that a run gets from the one before it, checked before it is used: any workflow may continue as a conversation with a state
// of its making. The outline is read, and each list of slots, so that no such state holds up the worker of others; what is wrong further in
// ends that conversation alone, in words. With a key, a worker takes only a state that one of ours has signed (state-seal.ts).

/** A state holds at most 1.5 MB of JSON. */
const MOST = { depth: 100, values: 1_500_000 };
/** Slots in all that one list of ranges may stand for: the longest sessions have far fewer in their context. */
const MAX_SLOTS = 1_000_000;

const number = is<number>('a number', (value) => typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER);
const numbers = v.pipe(is<object>('an object', isRecord), v.record(text, number));
const slots = is<readonly SlotRange[]>('ranges of slots', isSlots);
const withSlots = list(part({ slots }));
const calls = v.optional(list(part({ id: text, name: text, target: text })));
const event = part({ number, event: part({ kind: text }), answer: v.optional(number) });

const outline = part({
  v: v.literal(1, 'must be 1'),
  identity: part({ life: text, agent: id, scope: is<string>('a scope', isScope) }),
  // Nothing is in flight when a run hands over.
  inFlight: list(json, 0),
  now: time,
  counters: numbers,
  requests: part({
    pending: list(
      part({
        kind: text,
        id: text,
        input: v.optional(v.union([number, slots, part({ to: text })], 'must be a number, ranges of slots or a turn')),
      }),
    ),
    answered: list(part({ kind: text, id: text })),
  }),
  queue: list(
    part({
      kind: text,
      number,
      messageId: v.optional(text),
      turn: v.optional(number),
      text: v.optional(text),
      slots: v.optional(slots),
    }),
  ),
  outbox: part({ messages: list(part({ text: v.optional(text) })), settle: list(json), feed: list(event), entries: list(json) }),
  settings: v.nullable(
    part({
      ...{ maxTokens: number, contextBudget: number, compactionRatio: number, fixedTokens: number, handOver: numbers },
      thresholds: part({ soft: number, hard: number, truncation: number }),
    }),
  ),
  turn: v.nullable(part({ phase: part({ kind: text, calls, riding: calls }) })),
  context: slots,
  compaction: part({
    baseTokens: number,
    leftOut: v.optional(slots),
    chosenOut: v.optional(slots),
    refused: v.optional(slots),
    cited: v.optional(slots),
    before: v.nullable(part({ context: slots, cited: v.optional(slots), leftOut: v.optional(slots), archived: slots })),
  }),
  consolidation: part({
    turns: withSlots,
    pending: v.nullable(part({ slots })),
    covered: list(part({ turns: withSlots })),
    ending: v.nullable(part({ awaited: withSlots })),
    pendingRequests: withSlots,
  }),
  // Events that wait until the conversation is opened are applied then.
  lineage: v.optional(part({ held: list(part({ kind: text, slots: v.optional(slots) })) })),
});

/** `life` is the one that Temporal says it is: a state of another life would read and write what is not this one's. */
export function readCarriedState(value: unknown, life: string): Checked<ConversationState> {
  const state = read(outline, value, 'carried', MOST);
  if (!state.ok) return state;
  if (state.value.identity.life !== life) return refuse('carried.identity.life is another conversation’s');
  return { ok: true, value: value as ConversationState };
}

function isSlots(value: unknown): boolean {
  return Array.isArray(value) && value.every(isRange) && countSlots(value as SlotRange[]) <= MAX_SLOTS;
}

function isRange(range: unknown): boolean {
  if (!Array.isArray(range) || range.length !== 2 || !range.every((slot) => Number.isSafeInteger(slot))) return false;
  const [first, last] = range as [number, number];
  return 0 <= first && first <= last;
}

// When a run hands over to the next (continue-as-new): before its history is long. Whether it can at once is for next-step.ts
// (conversation/nothing-in-flight), and workflows/conversation.ts does it (workflows/handlers-answered).

type RunLength = AgentSettings['handOver'];

/** Well before the server's limits; an agent may ask for less (`limits.handOver`). */
export const HAND_OVER: RunLength = { events: 3_000, bytes: 2 * 1024 * 1024, updates: 1_500 };

/** Characters of state that a continue-as-new may carry; the server terminates the workflow at 2 MiB. */
const MAX_STATE = 1_500_000;

/** How much longer a run may be that waits for a tool which hears no stop: the next run would not hear its result. */
const WAITING = 3;

/** What is due a hand-over, for people; undefined while none is due, and while one has been decided already. */
export function handOverReason(state: ConversationState, length: RunLength): string | undefined {
  if (state.handOver !== null) return undefined;
  const limits = state.settings?.handOver ?? HAND_OVER;
  const times = state.stoppedTools === undefined ? 1 : WAITING;
  const reached = (['events', 'bytes', 'updates'] as const).find((unit) => length[unit] >= limits[unit] * times);
  const reason = reached !== undefined ? `${length[reached]} ${reached}` : isUpgradeDue(state) ? 'another build' : undefined;
  return reason !== undefined && JSON.stringify(state).length <= MAX_STATE ? reason : undefined;
}

/**
 * Whether the next run may be another build's: between turns. A turn ends on the build that began it, unless an operator wants those that
 * wait for a person, and have nothing in flight, to move too.
 */
function isUpgradeDue(state: ConversationState): boolean {
  return state.upgrade !== undefined && state.stoppedTools === undefined && nextBuild(state) === 'current';
}

/** Which build the next run begins on: where a turn goes on, the one that began it. */
export function nextBuild(state: ConversationState): 'current' | 'same' {
  const isParked = state.upgrade === 'parked-too' && state.inFlight.length === 0 && approvalsOf(state).length > 0;
  return state.turn === null || isParked ? 'current' : 'same';
}

/**
 * The moments at which it matters whether another build takes new runs: before a turn, and once nothing goes on. Each has its name,
 * since the answer is kept in history; undefined at all others. A sub-agent has one turn, and ends where it began.
 */
export function upgradeMoment(state: ConversationState, step: 'begin-turn' | 'wait'): string | undefined {
  if (state.turn !== null || state.parent || state.handOver !== null || state.upgrade !== undefined) return undefined;
  return `${step === 'wait' ? 'after' : 'before'}-${state.turnsEnded}`;
}
