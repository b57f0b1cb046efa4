/**
 * Pending writes: what the store does not have yet, and what it has taken.
 *
 * @rule outbox/text-until-written: The state has a message's text until the store has it; but one that workers stood still in, or ended in,
 *   gives way to a sentence that says so, or every later step would end a worker again. (test: test/conversation/turn/turns.test.ts)
 * @rule outbox/pending-until-receipt: A write is pending until a step reports it: a step that failed, or never started, changes nothing.
 *   While the store is down, steps repeat at most fifteen seconds apart (state/turn-access.ts), and the turn waits. (test:
 *   test/conversation/turn/turns.test.ts)
 * @rule outbox/no-write-twice-at-once: No two running steps carry the same write. (test: test/conversation/outbox/pending-writes.test.ts)
 * @rule outbox/earlier-message-wins: If the store remembers a message that the state has forgotten, the earlier one counts: the new slot
 *   stays empty, and the sender gets the earlier turn. (test: test/conversation/turn/turns.test.ts)
 * @rule outbox/large-message-in-parts: A message that is too large for one activity input is stored in parts, one step for each. (test:
 *   test/conversation/outbox/pending-writes.test.ts)
 */
import { inTokens } from '../state/compaction-state.js';
import { rejectInput, steeringBecomesNext } from '../inbox/arrivals.js';
import { payOnce } from '../state/budget.js';
import type { MessageToRecord, QueuedAgain, StepFailure, StoreStepInput, Writes, Written } from './writes.js';
import { isRunning, type Completed, type Failed } from '../effect.js';
import { pickContent } from '../../records/message.js';
import { messageTokens, type QueuedMessage, type Outbox } from '../state/queue-state.js';
import { storeRetryAfter, withoutRetry, withRetry } from '../state/turn-access.js';
import { listSlots, toRanges } from '../../records/slots.js';
import { rehydrate, slotsToRehydrate, spill, MAX_AT_HAND } from '../inbox/queue-editing.js';
import { assignTurn } from '../requests.js';
import type { ConversationState } from '../state.js';
import { utf8Length } from '../../records/text.js';
import { HUNG_WORKER } from '../../records/turn-end.js';
import { turnId, turnNumber } from '../../records/identity.js';

/** UTF-8 bytes of pending writes that one step carries. An activity's whole input may have 1 MiB. */
const STEP_BYTES = 768 * 1024;
/** Characters of a part, of at most three bytes each. */
const PART_CHARACTERS = 256 * 1024;
const MAX_BATCH = 100;
/** Bytes of queued text that the state holds before a step stores the oldest. */
const HELD_TEXT_BYTES = 256 * 1024;
/** Bytes of an unwritten message beside its text: they add up in a queue of short messages. */
const MESSAGE_BYTES = 150;

export interface Load {
  readonly write: Writes;
  /** False when more is pending than one step can carry. */
  readonly isAll: boolean;
}

/** What the next step would write, oldest first. */
export function pendingWrites(state: ConversationState): Load {
  const sent = sentBy(state);
  const room = createRoom();
  const { messages, settle, entries, feed, limit } = state.outbox;
  const load = {
    messages: messages.filter(({ slot }) => !sent.slots.has(slot)),
    entries: entries.filter(({ slot }) => !sent.slots.has(slot)),
    settle: settle.filter(({ effect }) => !sent.effects.has(effect)),
    feed: feed.filter(({ number }) => !sent.feed.has(number)),
  };
  const write: Writes = {
    messages: room.take(load.messages.map(toRecord), (_, i) => weightOf(load.messages[i] as QueuedMessage)),
    entries: room.take(load.entries, jsonBytes),
    settle: room.take(load.settle, jsonBytes),
    feed: room.take(load.feed, jsonBytes),
    ...(state.startContext && !sent.hasStartContext && { startContext: state.startContext }),
    ...(limit && limit.at !== sent.limitAt && { limit }),
  };
  const isWhole = (name: keyof typeof load): boolean => write[name].length === load[name].length;
  const isAll = (Object.keys(load) as (keyof typeof load)[]).every(isWhole) && messageInParts(messages) === undefined;
  return { write, isAll };
}

/** Writes for which no model call follows; undefined if none is left to send. */
export function storeStepInput(state: ConversationState): StoreStepInput | undefined {
  const large = messageInParts(state.outbox.messages);
  if (large) return { ...toInput(state, NO_WRITES), part: nextPart(large) };
  const { write } = pendingWrites(state);
  return isEmpty(write) ? undefined : toInput(state, write);
}

/** What this sub-agent gives back to its parent before it reports (turn/context-flows-back); undefined once that is done. */
export function handBackInput(state: ConversationState): StoreStepInput | undefined {
  const { parent, appContext: now, givenContext: given = null, handedBack } = state;
  if (!parent || !now || handedBack !== undefined || JSON.stringify(now) === JSON.stringify(given)) return undefined;
  const { conversation, life } = parent;
  return { ...toInput(state, NO_WRITES), handBack: { parent: { conversation, life }, given, now } };
}

/** Stores queued messages beyond what the state should hold, and reads back stored ones whose turn comes near. */
export function queueStepInput(state: ConversationState): StoreStepInput | undefined {
  const slots = slotsToRehydrate(state.queue);
  const early = isOverfull(state) ? messagesToStore(state) : [];
  const [first] = early;
  if (first && needsParts(first)) return { ...toInput(state, NO_WRITES), rehydrate: slots, part: nextPart(first) };
  if (early.length + slots.length === 0) return undefined;
  const messages = createRoom().take(early.map(toRecord), (_, i) => weightOf(early[i] as QueuedMessage));
  return { ...toInput(state, { ...NO_WRITES, messages }), rehydrate: slots };
}

/** Unwritten text that a hand-over would carry, in bytes. */
export function carriedText({ queue, outbox }: Pick<ConversationState, 'queue' | 'outbox'>): number {
  const waiting = queue.filter((item): item is QueuedMessage => item.kind === 'message' && !item.recorded);
  const messages = [...waiting, ...outbox.messages].reduce((sum, item) => sum + heldBytes(item), 0);
  return [...outbox.entries, ...outbox.settle].reduce((sum, one) => sum + jsonBytes(one), messages);
}

export function acceptStoreStep(state: ConversationState, { input, output, at }: Completed<'store-step'>): ConversationState {
  const written = acceptWritten(state, input.write, output.written);
  const stored = input.part && output.part !== undefined ? withPart(written, input.part.slot, output.part) : written;
  // A worker of an earlier version hands nothing back.
  const given = input.handBack ? { ...stored, handedBack: output.handedBack ?? null } : stored;
  return withQueueInBounds(given, output.rehydrated ?? [], at);
}

export function failStoreStep(failed: ConversationState, { input, failure, at }: Failed<'store-step'>): ConversationState {
  const state = withoutHungTexts(failed, input.write, failure);
  return withRetry(state, 'store', storeRetryAfter(failure, (state.retries['store']?.attempts ?? 0) + 1, at));
}

const WITHHELD = '[This message was not taken in: workers stood still, or ended, while they read it.]';

/**
 * After a step that has ended two workers, which may have been in a processor of its messages. What the store has taken meanwhile stays as
 * it is there: the first write of a slot counts.
 */
export function withoutHungTexts(state: ConversationState, { messages }: Writes, { type }: StepFailure): ConversationState {
  if (type !== HUNG_WORKER || messages.length === 0) return state;
  const slots = new Set(messages.map(({ slot }) => slot));
  // `bytes` stay: the receipt corrects what they count for.
  const withhold = (item: QueuedMessage): QueuedMessage =>
    slots.has(item.slot) && !item.recorded ? { ...withoutContent(item), text: WITHHELD, isWithheld: true } : item;
  return {
    ...state,
    queue: state.queue.map((item) => (item.kind === 'message' ? withhold(item) : item)),
    outbox: { ...state.outbox, messages: state.outbox.messages.map(withhold) },
  };
}

/** Removes the writes that the receipt confirms from the pending ones (outbox/text-until-written, outbox/pending-until-receipt). */
export function acceptWritten(state: ConversationState, write: Writes, written: Written): ConversationState {
  const { attributes, startContext } = written;
  const { startContext: _stored, ...rest } = state;
  const noted: ConversationState = {
    ...(startContext === undefined ? state : { ...rest, appContext: { ref: startContext } }),
    ...(attributes ? { attributes: { ...state.attributes, known: attributes } } : {}),
    outbox: without(state.outbox, write),
  };
  const paid = (written.committed ?? []).reduce((now, { effect, result }) => payOnce(now, effect, result), noted);
  return written.messages.reduce(acceptMessage, paid);
}

function acceptMessage(state: ConversationState, message: Written['messages'][number]): ConversationState {
  const { slot, bytes, tokens, output, context, tools, duplicate } = message;
  const size = { bytes, ...(tokens !== undefined && { tokens }) };
  const taken = state.outbox.messages.find((item) => item.slot === slot);
  const queued = state.queue.find((item): item is QueuedMessage => item.kind === 'message' && item.slot === slot);
  if (duplicate !== undefined) return dropDuplicate(state, slot, taken ?? queued, duplicate);
  if (taken) {
    const { turn } = state;
    const messages = state.outbox.messages.filter((item) => item !== taken);
    const isFirst = turn?.firstSlot === slot;
    return {
      ...state,
      outbox: { ...state.outbox, messages },
      contextTokens: Math.max(0, state.contextTokens + inTokens(state, messageTokens(size)) - inTokens(state, messageTokens(taken))),
      ...(isFirst && context !== undefined ? { appContext: { ref: context } } : {}),
      ...(isFirst && (output ?? tools) !== undefined ? { turn: { ...turn, ...pickRefs({ output, tools }) } } : {}),
    };
  }
  if (!queued) return state;
  const contextRef = context === undefined ? {} : { contextRef: context };
  const light: QueuedMessage = { ...withoutContent(queued), ...pickRefs({ output, tools }), ...contextRef, ...size, recorded: true };
  return { ...state, queue: state.queue.map((other) => (other === queued ? light : other)) };
}

function pickRefs({ output, tools }: Pick<Written['messages'][number], 'output' | 'tools'>): Pick<QueuedMessage, 'outputRef' | 'toolsRef'> {
  return { ...(output !== undefined && { outputRef: output }), ...(tools !== undefined && { toolsRef: tools }) };
}

/** Drops a repeated message with its turn; a turn that other messages joined goes on with them (outbox/earlier-message-wins). */
function dropDuplicate(state: ConversationState, slot: number, item: QueuedMessage | undefined, turn: string): ConversationState {
  if (!item) return state;
  const { messageId } = item;
  const dropped: ConversationState = {
    ...assignTurn(state, messageId, turnNumber(turn)),
    queue: state.queue.filter((other) => other !== item),
    outbox: { ...state.outbox, messages: state.outbox.messages.filter((other) => other !== item) },
    context: toRanges(listSlots(state.context).filter((other) => other !== slot)),
  };
  const running = dropped.turn;
  if (!running?.messageIds.includes(messageId)) return dropped;
  const messageIds = running.messageIds.filter((id) => id !== messageId);
  const left = { ...dropped, contextTokens: Math.max(0, dropped.contextTokens - inTokens(dropped, messageTokens(item))) };
  if (messageIds.length > 0) return { ...left, turn: { ...running, messageIds } };
  const call = running.phase.kind === 'model' ? running.phase.call.id : '';
  return steeringBecomesNext({ ...withoutRetry(left, call), turn: null });
}

/** Puts back the messages that were read. Lost ones are healed and read again once; those still lost are dropped and reported. */
function withQueueInBounds(state: ConversationState, back: readonly QueuedAgain[], at: number): ConversationState {
  const lost = back.filter((message) => message.lost).map(({ slot }) => slot);
  if (lost.length > 0 && !state.heal?.tried) return { ...state, heal: { slots: lost, tried: false } };
  const queued: ConversationState = { ...state, ...(back.length > 0 && { heal: null }), queue: spill(rehydrate(state.queue, back)) };
  return lost.reduce((now, slot) => {
    const reason = `a queued message was lost by the store and could not be rebuilt (slot ${slot})`;
    return rejectInput(now, { kind: 'input-rejected', name: 'message', reason, at });
  }, queued);
}

interface Sent {
  readonly slots: ReadonlySet<number>;
  readonly effects: ReadonlySet<string>;
  readonly feed: ReadonlySet<number>;
  readonly hasStartContext: boolean;
  readonly limitAt: number | undefined;
}

/** (outbox/no-write-twice-at-once) */
function sentBy({ inFlight }: ConversationState): Sent {
  const writes = inFlight.flatMap(({ input }) => ('write' in input ? [input.write] : []));
  return {
    slots: new Set(writes.flatMap(({ messages, entries }) => [...messages, ...entries].map(({ slot }) => slot))),
    effects: new Set(writes.flatMap(({ settle }) => settle.map(({ effect }) => effect))),
    feed: new Set(writes.flatMap(({ feed }) => feed.map(({ number }) => number))),
    hasStartContext: writes.some(({ startContext }) => startContext !== undefined),
    limitAt: writes.find(({ limit }) => limit)?.limit?.at,
  };
}

/** Messages stay: `acceptMessage` removes each one by its receipt. */
function without(outbox: Outbox, write: Writes): Outbox {
  const effects = new Set(write.settle.map(({ effect }) => effect));
  const slots = new Set(write.entries.map(({ slot }) => slot));
  const numbers = new Set(write.feed.map(({ number }) => number));
  const { limit } = outbox;
  return {
    messages: outbox.messages,
    settle: outbox.settle.filter(({ effect }) => !effects.has(effect)),
    entries: outbox.entries.filter(({ slot }) => !slots.has(slot)),
    feed: outbox.feed.filter(({ number }) => !numbers.has(number)),
    ...(limit && limit.at !== write.limit?.at && { limit }),
  };
}

const NO_WRITES: Writes = { messages: [], settle: [], entries: [], feed: [] };

function toInput(state: ConversationState, write: Writes): StoreStepInput {
  const { identity, session } = state;
  return { identity, session, write, rehydrate: [], ...(asksAttributes(state) && { asksAttributes: true }) };
}

/** True once in each run, for the first effect that can answer. */
export function asksAttributes(state: ConversationState): boolean {
  return state.attributes.known === 'unknown' && !isRunning(state, 'store-step', 'model-step');
}

function isEmpty({ messages, settle, entries, feed, startContext, limit }: Writes): boolean {
  return messages.length + settle.length + entries.length + feed.length === 0 && startContext === undefined && limit === undefined;
}

function isOverfull(state: ConversationState): boolean {
  return heldText(state) > (state.handOver === null ? HELD_TEXT_BYTES : HELD_TEXT_BYTES / 2) || state.queue.length > MAX_AT_HAND;
}

function heldText({ queue }: ConversationState): number {
  return queue.reduce((sum, item) => sum + (item.kind === 'message' && !item.recorded ? heldBytes(item) : 0), 0);
}

function heldBytes({ bytes, tools, echo }: QueuedMessage): number {
  return bytes + MESSAGE_BYTES + (tools ? jsonBytes(tools) : 0) + (echo ? jsonBytes(echo) : 0);
}

/** The oldest messages that have a turn: a steering message has none yet. */
function messagesToStore(state: ConversationState): QueuedMessage[] {
  const { slots } = sentBy(state);
  return state.queue
    .filter((item): item is QueuedMessage => item.kind === 'message' && !item.recorded && item.turn !== 0 && !slots.has(item.slot))
    .slice(0, MAX_BATCH);
}

function toRecord(item: QueuedMessage): MessageToRecord {
  const { messageId, slot, turn, seq = 1, session, at, parts, isWithheld } = item;
  const place = { messageId, slot, turn: turnId(turn), seq, session, ts: at / 1000, ...(isWithheld && { isWithheld }) };
  return parts ? { ...place, text: '', parts } : { ...place, ...pickContent(item) };
}

function withoutContent(item: QueuedMessage): QueuedMessage {
  const { text: _text, images: _images, audio: _audio, video: _video, documents: _documents, parts: _parts, ...rest } = item;
  const { output: _output, context: _context, tools: _tools, echo: _echo, ...light } = rest;
  return light;
}

function messageInParts(messages: readonly QueuedMessage[]): QueuedMessage | undefined {
  return messages.find(needsParts);
}

/** The text leaves the state with the last part (outbox/large-message-in-parts). */
function needsParts(item: QueuedMessage): boolean {
  return item.text !== undefined && weightOf(item) > STEP_BYTES;
}

function nextPart(item: QueuedMessage): { readonly slot: number; readonly text: string } {
  return { slot: item.slot, text: splitIntoParts(item)[item.parts?.length ?? 0] ?? '' };
}

function withPart(state: ConversationState, slot: number, ref: string): ConversationState {
  const change = (item: QueuedMessage): QueuedMessage => {
    const parts = [...(item.parts ?? []), ref];
    return parts.length < splitIntoParts(item).length ? { ...item, parts } : { ...withoutContent(item), parts };
  };
  const isTarget = (item: { readonly kind: string; readonly slot?: number }): boolean => item.kind === 'message' && item.slot === slot;
  return {
    ...state,
    queue: state.queue.map((item) => (isTarget(item) ? change(item as QueuedMessage) : item)),
    outbox: { ...state.outbox, messages: state.outbox.messages.map((item) => (isTarget(item) ? change(item) : item)) },
  };
}

/** Never splits a surrogate pair: a body is UTF-8. */
function splitIntoParts(item: QueuedMessage): string[] {
  const json = JSON.stringify(pickContent(item));
  const parts: string[] = [];
  for (let from = 0; from < json.length;) {
    const end = from + PART_CHARACTERS;
    const isHalf = end < json.length && (json.charCodeAt(end) & 0xfc00) === 0xdc00;
    parts.push(json.slice(from, isHalf ? end - 1 : end));
    from = isHalf ? end - 1 : end;
  }
  return parts;
}

/** Bytes as JSON; for a short message a cheap upper bound. */
function weightOf(item: QueuedMessage): number {
  if (item.text === undefined) return 1_000;
  const isText = !item.output && !item.context && !item.tools && !item.echo;
  return isText && item.bytes < 64 * 1024 ? 6 * item.bytes + 1_000 : jsonBytes(pickContent(item));
}

function jsonBytes(value: unknown): number {
  return utf8Length(JSON.stringify(value));
}

/** Takes the items that fit into one step; the very first always fits. */
function createRoom(): { take<T>(items: readonly T[], weigh: (item: T, index: number) => number): T[] } {
  let bytes = 0;
  return {
    take(items, weigh) {
      const taken: (typeof items)[number][] = [];
      for (const [i, item] of items.entries()) {
        const weight = weigh(item, i);
        if (bytes > 0 && (bytes + weight > STEP_BYTES || taken.length === MAX_BATCH)) break;
        bytes += weight;
        taken.push(item);
      }
      return taken;
    },
  };
}
