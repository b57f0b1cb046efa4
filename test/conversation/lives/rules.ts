/** What must hold in every life, beside a small model of what was said, decided and started. What does not is noted in `problems`. */
import type { Approval, Decision } from '../../../src/conversation/protocol/human-input.js';
import { EFFECTS } from '../../../src/conversation/effect-table.js';
import type { ModelStepInput } from '../../../src/conversation/turn/model-step-effects.js';
import type { EvictInput } from '../../../src/conversation/context/compaction-effects.js';
import type { DueEvent } from '../../../src/conversation/outbox/webhook-effects.js';
import type { ConversationEvent } from '../../../src/conversation/event.js';
import type { Effect, EffectName } from '../../../src/conversation/effect.js';
import { carriedText } from '../../../src/conversation/outbox/pending-writes.js';
import { pendingRequests } from '../../../src/conversation/requests.js';
import { isStoreUpToDate } from '../../../src/conversation/state/queue-state.js';
import type { ConversationState } from '../../../src/conversation/state.js';
import { approvalsOf } from '../../../src/conversation/turn/approvals.js';
import { listSlots } from '../../../src/records/slots.js';
import { MODELS } from './activities.js';
import type { World } from './world.js';

/** Characters of JSON: what a server takes of a run that continues as new, and far more than any of these lives has at rest. */
export const [MAX_CARRIED, MAX_RESTING] = [2_000_000, 120_000];
/** Above it a turn goes on until it has taken what steers it, though a hand-over is due. */
const MAX_CARRIED_TEXT = 1_200_000;

const MAX_TOOLS = 16;
/** Started at most once in a life: none of them is tried again under the same name. */
const ONCE: readonly EffectName[] = [
  'run-tool',
  'start-child',
  'rewind',
  'title',
  'compact',
  'truncate',
  'uncompact',
  'open-origin',
  'report',
];
const RETRIED_AS: { readonly [Name in EffectName]?: string } = { 'store-step': 'store', heal: 'store', evict: 'evict', deliver: 'deliver' };

/** After each event. */
export function checkChange(world: World, before: ConversationState, event: ConversationEvent): void {
  const { state, problems, plans } = world;
  checkMonotone(world, before, state);
  noteEnds(world, before, event);
  checkMessages(world, before);
  const isNewSession = state.session > before.session && !(event.kind === 'effect-completed' && event.effect !== 'evict');
  if (isNewSession) world.always.clear();
  if (isNewSession && state.context.length > 0) problems.push(`session ${state.session} begins with a context`);
  for (const { callId, kind } of approvalsOf(state)) {
    if (kind !== 'approval' && plans.has(callId) && !isAllowed(world, callId)) problems.push(`${callId} waits for its ${kind} unapproved`);
  }
  if (event.kind === 'effect-failed' && event.effect === 'rewind' && isAwaited(before, event)) {
    const said = pendingRequests(before, 'rewind').find(({ id }) => id === event.id)?.input.messageId;
    // (lineage/failed-rewind-changes-nothing)
    if (said !== undefined && before.queue.some((item) => item.kind === 'message' && item.messageId === said)) world.withdrawn.add(said);
  }
  if (event.kind === 'decided') checkDecided(world, before, event.decision);
  if (event.kind === 'effect-completed' && isAwaited(before, event)) {
    const retriedAs = RETRIED_AS[event.effect] ?? event.id;
    const isRetried = event.effect !== 'deliver' && event.effect !== 'heal' && state.retries[retriedAs] !== undefined;
    if (isRetried && event.effect !== 'model-step') problems.push(`${retriedAs} is tried again though it is done`);
  }
}

/** A decision is about one call, and about no other unless it allows them all. */
function checkDecided({ state, problems }: World, before: ConversationState, { callId, conversation, always }: Decision): void {
  if (state.rejected.count > before.rejected.count || conversation !== undefined) return;
  const isIn = (list: readonly Approval[], one: Approval): boolean =>
    list.some((other) => other.callId === one.callId && other.kind === one.kind);
  const after = approvalsOf(state);
  for (const one of approvalsOf(before)) {
    if (one.callId === callId && isIn(after, one)) problems.push(`${callId} was decided and waits still`);
    if (one.callId !== callId && !always && state.turn && !isIn(after, one))
      problems.push(`${one.callId} waits no longer, and ${callId} was decided`);
  }
}

/** (conversation/answered-once), and the order of arrival. */
function checkMessages(world: World, before: ConversationState): void {
  const { state, problems, taken, withdrawn, said, moved } = world;
  const { turn } = state;
  if (!turn || turn === before.turn) return;
  for (const id of turn.messageIds) {
    const turns = taken.get(id) ?? new Set();
    if (!turns.has(turn.number) && withdrawn.has(id)) problems.push(`${id} is answered though it was withdrawn`);
    taken.set(id, turns.add(turn.number));
    if (!said.has(id) && id !== 'hello') problems.push(`${id} is answered though it was refused`);
    if (turns.size > 1) problems.push(`${id} is in the turns ${[...turns].join()}`);
  }
  const [first = ''] = turn.messageIds;
  if (before.turn !== null || said.get(first) !== 'queue' || moved.has(first)) return;
  for (const [id, delivery] of said) {
    if (id === first) return;
    const isPassed =
      delivery === 'queue' &&
      !taken.has(id) &&
      !moved.has(id) &&
      !withdrawn.has(id) &&
      state.queue.some((item) => item.kind === 'message' && item.messageId === id);
    if (isPassed) problems.push(`${first} is taken before ${id}, which came earlier`);
  }
}

function noteEnds(world: World, before: ConversationState, event: ConversationEvent): void {
  const last = before.ended[before.ended.length - 1];
  const more = world.state.ended.slice(last ? world.state.ended.lastIndexOf(last) + 1 : 0);
  const isUnusable =
    event.kind === 'effect-completed' &&
    event.effect === 'model-step' &&
    event.output.configured?.kind === 'unusable' &&
    !before.turn?.stopping;
  if ((world.state.settings === null && !isUnusable) || world.state.parent) return;
  world.ends.push(...more.filter(({ stopReason }) => stopReason !== 'withdrawn').map(({ number }) => number));
}

export function noteDelivered(world: World, event: DueEvent): void {
  const last = world.delivered[world.delivered.length - 1] ?? 0;
  if (event.number <= last) world.problems.push(`event ${event.number} went out after ${last}`);
  world.delivered.push(event.number);
  if (event.kind === 'turn-ended') world.endsDelivered.push(event.ended.number);
}

/** Before each effect. */
export function checkStart(world: World, { effect, id, input }: Effect): void {
  const { problems, state, flying } = world;
  const { waitsFor } = EFFECTS[effect];
  const awaited = flying.filter((one) => isAwaited(state, one));
  for (const other of awaited) {
    if (waitsFor.includes(EFFECTS[other.effect].lane)) problems.push(`${effect} beside ${other.effect}`);
    if (other.effect === effect && other.id === id) problems.push(`${effect} ${id} is started twice`);
  }
  if (state.inFlight.some((one) => !awaited.some((other) => other.effect === one.effect && other.id === one.id)))
    problems.push('something is in flight that nobody has started');
  const couldHandOver = state.handOver !== null && carriedText(state) <= MAX_CARRIED_TEXT;
  if (couldHandOver && effect !== 'store-step' && effect !== 'heal') problems.push(`${effect} while a hand-over is due`);
  const inContext = listSlots(state.context);
  // (conversation/store-up-to-date-first)
  if (['past', 'context'].includes(EFFECTS[effect].lane) && !isStoreUpToDate(state))
    problems.push(`${effect} before all is with the store`);
  checkOnce(world, { effect, id } as Effect);
  switch (effect) {
    case 'model-step':
      checkStopped(world, id);
      checkAsked(world, input, id);
      checkCall(world, input);
      break;
    case 'start-child':
      checkStopped(world, id);
      checkApproved(world, id);
      break;
    case 'run-tool':
      if (awaited.filter((other) => other.effect === 'run-tool').length >= MAX_TOOLS) problems.push('too many tools at once');
      checkStopped(world, id);
      checkApproved(world, id);
      if (!world.entries.has(input.askedIn)) problems.push(`${id} runs before the store has its arguments`);
      break;
    case 'compact':
    case 'truncate':
      checkWritten(world, listSlots(input.context), new Set(), effect);
      break;
    case 'ask-memory':
      for (const slot of listSlots(input.request.slots)) {
        const before = world.asked.get(slot);
        if (before !== undefined && before !== id) problems.push(`slot ${slot} is asked for in ${before} and ${id}`);
        world.asked.set(slot, id);
      }
      break;
    case 'evict':
      if (state.turn) problems.push('messages leave the context inside a turn');
      const leaving = leavingSlots(input.what);
      const there = [...inContext, ...listSlots(state.compaction.leftOut ?? [])];
      for (const slot of leaving) if (!there.includes(slot)) problems.push(`slot ${slot} leaves the context twice`);
      checkWritten(world, leaving, new Set(), effect);
      break;
    case 'rewind':
      if (state.turn) problems.push('rewind inside a turn');
      break;
    case 'report':
      if (!state.parent) problems.push('a report of one that is no sub-agent');
      break;
    default:
  }
}

function checkOnce({ started, problems, state }: World, { effect, id }: Pick<Effect, 'effect' | 'id'>): void {
  const name = `${effect} ${id}`;
  const times = (started.get(name) ?? 0) + 1;
  started.set(name, times);
  if (times > 1 && ONCE.includes(effect)) problems.push(`${name} is started ${times} times`);
  const retry = state.retries[RETRIED_AS[effect] ?? id];
  if (retry && state.now < retry.until) problems.push(`${name} is tried again too early`);
}

/** What works for a turn does not begin once that turn is to stop. */
function checkStopped({ state: { turn }, stoppedTurns, stopped, problems }: World, id: string): void {
  if (!turn) return void problems.push(`${id} begins outside a turn`);
  if (stoppedTurns.has(turn.number)) problems.push(`${id} begins though its turn was interrupted`);
  if (stopped.has(turn.messageIds[0] ?? '')) problems.push(`${id} begins for a message that was stopped`);
}

/** (turn/approved-before-run) */
function checkApproved(world: World, callId: string): void {
  if (!isAllowed(world, callId)) world.problems.push(`${callId} runs without the approval that it needs`);
  if (world.decided.get(callId) === 'deny') world.problems.push(`${callId} runs though a person has denied it`);
}

function isAllowed({ plans, decided, always }: World, callId: string): boolean {
  const approval = plans.get(callId)?.approval;
  if (!approval) return true;
  if (approval.policy === 'deny') return false;
  return decided.get(callId) === 'approve' || (approval.same !== undefined && always.has(approval.same));
}

/** Which model is asked, with what in mind, and what was said to it before. */
function checkAsked(world: World, { configure, settings, tools }: ModelStepInput, id: string): void {
  const { problems, state, steering, lastCall, plans, model } = world;
  const asked = configure ? (configure.fallback ?? configure.model ?? MODELS[0]) : settings?.model;
  const isWanted = model === null ? MODELS.includes(asked ?? '') : asked === model;
  if (!isWanted) problems.push(`${id} asks ${asked}, not ${model ?? 'a model of the agent'}`);
  for (const { callId } of tools) {
    const plan = plans.get(callId);
    if (plan && (!plan.rides || plan.approval || plan.workflowAction)) problems.push(`${callId} rides, which it must not`);
  }
  if (lastCall && lastCall.id !== id && lastCall.id.split('/')[0] === id.split('/')[0]) {
    for (const item of state.queue) {
      if (item.kind !== 'message' || item.turn !== 0) continue;
      if ((steering.get(item.messageId) ?? Infinity) < lastCall.at)
        problems.push(`${item.messageId} does not reach ${id}, which it came long before`);
    }
  }
  if (world.maxTokens !== undefined) world.limits.set(id, world.maxTokens);
  world.lastCall = lastCall?.id === id ? lastCall : { id, at: world.at };
}

/** A call is answered in one place. */
export function noteAnswered({ answers, problems }: World, callId: string, slot: number): void {
  const before = answers.get(callId);
  if (before !== undefined && before !== slot) problems.push(`${callId} is answered in the slots ${before} and ${slot}`);
  answers.set(callId, slot);
}

function leavingSlots(what: EvictInput['what']): number[] {
  if (what.kind === 'trim') return what.covered.flatMap(({ slots }) => listSlots(slots));
  return what.kind === 'session-end' ? listSlots(what.archive) : [];
}

/** (turn/results-before-next-call, conversation/step-carries-writes) */
function checkCall(world: World, { write, tools, call }: ModelStepInput): void {
  const { problems, state } = world;
  const entries = [...write.entries, ...write.settle.flatMap(({ entry }) => entry ?? [])];
  const here = new Set([...write.messages, ...entries, ...tools].map(({ slot }) => slot));
  const slots = listSlots(call.context);
  checkWritten(world, slots, here, call.id);
  if (new Set(slots).size !== slots.length) problems.push(`a slot is in the context twice: ${slots.join()}`);
  const answered = new Map(world.answers);
  for (const { callId, slot } of tools) answered.set(callId, slot);
  for (const { slot, message } of entries) if (message.role === 'tool') answered.set(message.callId, slot);
  for (const slot of slots) {
    for (const callId of world.asks.get(slot) ?? []) {
      if (!slots.includes(answered.get(callId) ?? -1)) problems.push(`${callId} has no answer in the context of ${call.id}`);
    }
  }
  const { messages, settle, entries: owed, feed } = state.outbox;
  if (write.messages.length !== messages.length || write.settle.length !== settle.length) problems.push(`${call.id} leaves something owed`);
  if (write.entries.length !== owed.length || write.feed.length !== feed.length) problems.push(`${call.id} leaves something owed`);
}

function checkWritten({ entries, problems }: World, slots: readonly number[], here: ReadonlySet<number>, by: string): void {
  for (const slot of slots) if (!entries.has(slot) && !here.has(slot)) problems.push(`${by} sees slot ${slot}, which was never written`);
}

export function isAwaited({ inFlight }: ConversationState, { effect, id }: { readonly effect: string; readonly id: string }): boolean {
  return inFlight.some((one) => one.effect === effect && one.id === id);
}

/** (conversation/counters-never-back, turn/ends-once) */
function checkMonotone(world: World, before: ConversationState, after: ConversationState): void {
  const names = Object.keys(before.counters) as (keyof ConversationState['counters'])[];
  for (const name of names) if (after.counters[name] < before.counters[name]) world.problems.push(`${name} went back`);
  if (after.session < before.session || after.turnsEnded < before.turnsEnded) world.problems.push('session or turns went back');
  const numbers = after.ended.map((turn) => turn.number);
  if (new Set(numbers).size !== numbers.length) world.problems.push(`a turn ended twice: ${numbers.join()}`);
}
