/**
 * What the store has taken, and what it owes.
 *
 * R1  A message leaves its text behind once it is recorded; until then state has it.
 * R2  A turn begins only with a recorded message and fresh settings.
 * R3  What the outbox gave to a `record` step stays in it until that step succeeded.
 * R4  A message that the store has under numbers that were never counted (uncounted.ts) is no duplicate, and none is in its way.
 */
import type { ConversationEvent } from './event.js';
import { isHeld, queuedId } from './control.js';
import type { Configured, MessageToRecord, QueuedAgain, RecordInput } from './effects.js';
import { beginTurn, endTurn } from './turn.js';
import { rejectInput, remember } from './arrivals.js';
import { mediaOf } from './media.js';
import { storeRetryAfter } from './retry.js';
import { isRewinding } from './rewinding.js';
import { withSlot } from './slots.js';
import { readBack, slotsToReadBack, spill } from './spill.js';
import type { QueuedMessage } from './queue-state.js';
import type { ConversationState } from './state.js';
import { estimateTokens } from './token-usage.js';
import { turnId, turnNumber } from './turn-id.js';
import { inFreshSlot, isUncounted, movedFrom } from './uncounted.js';
import { noteLateMessage } from './window.js';

type Of<Kind extends ConversationEvent['kind']> = Extract<ConversationEvent, { kind: Kind }>;

/** Messages and bytes of one `record` step: a local activity has a second, and one message may be 2 MiB. */
const BATCH_MESSAGES = 100;
const BATCH_BYTES = 2 * 1024 * 1024;

/** What a `record` step would write now; undefined when there is nothing. */
export function recordInput(state: ConversationState): RecordInput | undefined {
  const messages = messagesToRecord(state);
  const [head] = state.queue;
  const configures =
    state.turn === null &&
    head?.kind === 'message' &&
    !state.window.puttingAway &&
    !isRewinding(state) &&
    !isHeld(state, 'event', queuedId(head));
  const { settle, facts } = state.outbox;
  const readBack = slotsToReadBack(state.queue);
  if (messages.length + settle.length + facts.length + readBack.length === 0 && !configures) return undefined;
  return {
    identity: state.identity,
    messages,
    settle,
    facts,
    readBack,
    asksAttributes: state.attributes.known === 'unknown',
    opensSession: configures && state.context.length === 0 && state.memory.base === null,
    ...(state.startContext && { startContext: state.startContext }),
    configure: configures
      ? {
          agent: state.identity.agent,
          scope: state.identity.scope,
          model: state.modelOverride,
          knownHash: state.settings?.hash ?? null,
          ...(state.settings?.memory ? { knownMemory: state.settings.memory.version } : {}),
        }
      : null,
  };
}

export function acceptRecorded(state: ConversationState, event: Of<'recorded'>): ConversationState {
  const { recorded } = event;
  const { attributes } = recorded;
  const written: ConversationState = {
    ...clearOutbox(state),
    recording: false,
    storeRetry: null,
    ...(recorded.startContext === undefined ? {} : { appContext: { ref: recorded.startContext } }),
    ...(attributes ? { attributes: { ...state.attributes, known: attributes } } : {}),
    ...(recorded.base
      ? { memory: { ...state.memory, base: recorded.base.ref, baseTokens: estimateTokens(recorded.base.text.length) } }
      : {}),
  };
  const { startContext: _kept, ...rest } = written;
  const after = recorded.messages.reduce(
    (now, message) => {
      const item = now.queue.find((other): other is QueuedMessage => other.kind === 'message' && other.slot === message.slot);
      if (!item) return now;
      if (message.taken) return inFreshSlot(now, item);
      if (message.duplicate !== undefined) return acceptDuplicate(now, item, message.duplicate, message.first);
      if (item.joinedAs !== undefined) return joinContext(now, item);
      const {
        text: _text,
        images: _images,
        audio: _audio,
        video: _video,
        output: _output,
        context: _context,
        movedFrom: _from,
        ...light
      } = item;
      const { bytes, output, context } = message;
      const refs = { ...(output !== undefined && { outputRef: output }), ...(context !== undefined && { contextRef: context }) };
      return { ...now, queue: now.queue.map((other) => (other === item ? { ...light, ...refs, bytes, recorded: true } : other)) };
    },
    recorded.startContext === undefined ? written : rest,
  );
  const queued = withQueueInBounds(after, recorded.readBack ?? [], event.at);
  return recorded.configured ? beginIfReady(queued, recorded.configured) : queued;
}

export function failRecord(state: ConversationState, event: Of<'record-failed'>): ConversationState {
  const attempts = (state.storeRetry?.attempts ?? 0) + 1;
  return { ...state, recording: false, storeRetry: storeRetryAfter(event.failure, attempts, event.at) };
}

export function acceptPersisted(state: ConversationState, event: Of<'persisted'>): ConversationState {
  const unpersisted = state.unpersisted.filter((entry) => !event.slots.includes(entry.slot));
  return { ...state, persisting: false, storeRetry: null, unpersisted };
}

export function failPersist(state: ConversationState, event: Of<'persist-failed'>): ConversationState {
  const attempts = (state.storeRetry?.attempts ?? 0) + 1;
  return { ...state, persisting: false, storeRetry: storeRetryAfter(event.failure, attempts, event.at) };
}

function messagesToRecord(state: ConversationState): MessageToRecord[] {
  const batch: MessageToRecord[] = [];
  let bytes = 0;
  for (const item of state.queue) {
    if (item.kind !== 'message' || item.recorded || item.turn === 0) continue;
    if (batch.length > 0 && (batch.length === BATCH_MESSAGES || bytes + item.bytes > BATCH_BYTES)) break;
    bytes += item.bytes;
    batch.push({
      messageId: item.messageId,
      slot: item.slot,
      turn: turnId(item.turn),
      seq: item.joinedAs ?? 1,
      session: item.session,
      ts: item.at / 1000,
      text: item.text ?? '',
      ...(item.movedFrom !== undefined && { movedFrom: item.movedFrom }),
      ...mediaOf(item),
      ...(item.output && { output: item.output }),
      ...(item.context && { context: item.context }),
    });
  }
  return batch;
}

/** What the store has lost is healed once and read again; what is lost still is left out, and said. */
function withQueueInBounds(state: ConversationState, back: readonly QueuedAgain[], at: number): ConversationState {
  const lost = back.filter((message) => message.lost).map(({ slot }) => slot);
  if (lost.length > 0 && state.heal?.doing !== 'tried') return { ...state, heal: { slots: lost, doing: 'due' } };
  const queued: ConversationState = { ...state, heal: null, queue: spill(readBack(state.queue, back)) };
  return lost.reduce((now, slot) => {
    const reason = `a queued message was lost by the store and could not be rebuilt (slot ${slot})`;
    return rejectInput(now, { kind: 'input-rejected', name: 'message', reason, at });
  }, queued);
}

/** R2. A head that arrived while this step ran is not recorded yet: the next step has it. */
function beginIfReady(state: ConversationState, configured: Configured): ConversationState {
  const settled = configured.kind === 'settings' ? { ...state, settings: configured.settings } : state;
  const head = settled.queue[0];
  if (settled.turn || isRewinding(settled) || head?.kind !== 'message' || !head.recorded || isHeld(settled, 'event', queuedId(head)))
    return settled;
  const begun = beginTurn(settled, head);
  if (configured.kind !== 'unusable') return begun;
  return endTurn(begun, 'failed', { type: configured.type, message: configured.message });
}

function joinContext(state: ConversationState, item: QueuedMessage): ConversationState {
  const belongs = item.session === state.session;
  return {
    ...(belongs ? noteLateMessage(state, item.slot) : state),
    queue: state.queue.filter((other) => other !== item),
    context: belongs ? withSlot(state.context, item.slot) : state.context,
    contextTokens: belongs ? state.contextTokens + estimateTokens(item.bytes) : state.contextTokens,
  };
}

/** R4. Where older results do not say where the first one lies, they meant one that was counted. */
function acceptDuplicate(state: ConversationState, item: QueuedMessage, turn: string, first: number | undefined): ConversationState {
  const moves = first !== undefined && isUncounted(state, turnNumber(turn));
  return moves ? movedFrom(state, item, first) : dropDuplicate(state, item, turn);
}

/** The store knows this id from before the ids that state remembers: the earlier turn answers for it. */
function dropDuplicate(state: ConversationState, item: QueuedMessage, turn: string): ConversationState {
  return {
    ...state,
    queue: state.queue.filter((other) => other !== item),
    seen: remember(state.seen, item.messageId, turnNumber(turn)),
  };
}

/** R3. What was added since the step began is still owed; facts and settlements are only ever appended. */
function clearOutbox(state: ConversationState): ConversationState {
  const { sent } = state.outbox;
  return {
    ...state,
    outbox: {
      settle: state.outbox.settle.slice(sent.settle),
      facts: state.outbox.facts.slice(sent.facts),
      sent: { settle: 0, facts: 0 },
    },
  };
}

export function startRecord(state: ConversationState): ConversationState {
  const { settle, facts } = state.outbox;
  return { ...state, recording: true, outbox: { ...state.outbox, sent: { settle: settle.length, facts: facts.length } } };
}
