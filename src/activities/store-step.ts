/** The `store-step`: pending writes that no model call will carry, and queued messages that only the store has any more. */
import { estimateMediaTokens, estimateTokens } from '../records/token-estimate.js';
import { estimateMessageTokens } from '../memory/tokens.js';
import type {
  QueuedAgain,
  StoreStepInput,
  StoreStepResult,
  MessageToRecord,
  Writes,
  Written,
  Recalled,
  RecallInput,
} from '../conversation/outbox/writes.js';
import type { Applied, EffectClaim, LiveEvent } from '../stores/store.js';
import type { ActivityDependencies, ConversationDependencies, TraceStore } from './dependencies.js';
import type { FeedEvent } from '../conversation/protocol/contract.js';
import { type Entry, type JsonValue, type MessageContent, answerIn, mediaBytes } from '../records/message.js';
import { userEntry } from '../records/message-media.js';
import { truncate } from '../records/text.js';
import { mediaToRefs, RESULT_INLINE, TEXT_INLINE, toBody } from '../memory/bodies.js';
import { keepItems } from '../memory/channel/items-of-entries.js';
import { memoryIngest, type InputProcessor, processInput } from '../memory/processors.js';
import { turnEndsIn } from '../memory/past-life.js';
import { handBackContext } from './app-context.js';
import { retryWrite } from './effect.js';

export async function storeStep(dependencies: ConversationDependencies, input: StoreStepInput): Promise<StoreStepResult> {
  const { store, key, processors } = dependencies;
  const { write, rehydrate, part, asksAttributes, handBack } = input;
  const [{ written }, rehydrated, stored, attributes, handedBack] = await Promise.all([
    writePending(dependencies, write, { processors: processors?.input }),
    readAgain(dependencies, rehydrate),
    part && store.bodies.put(key, part.text),
    asksAttributes ? knownAttributes(dependencies) : undefined,
    handBack && handBackContext(dependencies, handBack),
  ]);
  return {
    life: key.life,
    written: { ...written, ...(attributes && { attributes }) },
    ...(rehydrated.length > 0 && { rehydrated }),
    ...(stored && { part: stored.ref }),
    ...(handedBack !== undefined && { handedBack }),
  };
}

export async function knownAttributes({
  hasSearchAttributes,
}: Pick<ActivityDependencies, 'hasSearchAttributes'>): Promise<'registered' | 'missing'> {
  return (await hasSearchAttributes?.()) ? 'registered' : 'missing';
}

async function readAgain({ store, key }: TraceStore, slots: readonly number[]): Promise<QueuedAgain[]> {
  if (slots.length === 0) return [];
  const entries = await store.entries.read(key, slots);
  return entries.map((entry, i) => {
    const slot = slots[i] ?? 0;
    if (entry?.message.role !== 'user' || entry.messageId === undefined) {
      return { slot, messageId: '', turn: '', session: 0, at: 0, bytes: 0, lost: true };
    }
    const { messageId, turn, session, ts, message } = entry;
    const bytes = typeof message.text === 'string' ? Buffer.byteLength(message.text) : message.text.bytes;
    const tokens = estimateMessageTokens(message);
    return { slot, messageId, turn, session, at: Math.round(ts * 1000), bytes, tokens };
  });
}

// The pending writes of a conversation, in one batch: messages after their input processors, outcomes, entries, events for watchers.

interface WrittenBatch {
  readonly written: Written;
  readonly applied: Applied;
  /** By how many estimated tokens processors have changed what the workflow counted. */
  readonly tokensMore: number;
  /** What the messages say, after the processors. */
  readonly texts: readonly string[];
}

/** `reserve`: an effect that begins with these writes. All of it may be done again. */
export async function writePending(
  dependencies: TraceStore,
  write: Writes,
  {
    processors = [],
    reserve,
  }: {
    readonly processors?: readonly InputProcessor[];
    readonly reserve?: { readonly claim: EffectClaim; readonly attempt: string };
  } = {},
): Promise<WrittenBatch> {
  const { store, key } = dependencies;
  const [messages, settled, startContext, news] = await Promise.all([
    Promise.all(write.messages.map((message) => prepareMessage(dependencies, message, processors))),
    Promise.all(write.settle.flatMap(({ entry }) => (entry ? [withTextStored(dependencies, entry)] : []))),
    putJson(dependencies, write.startContext),
    withAnswers(dependencies, write),
  ]);
  const limited = write.limit;
  const [applied] = await Promise.all([
    retryWrite(() =>
      store.writes.apply(key, {
        ...(messages.length > 0 && { record: messages.map(({ entry }) => entry) }),
        // Fence first, then answer in the effect's place: an effect that has committed keeps its entry.
        ...(write.settle.length > 0 && { fence: write.settle.map(({ effect }) => effect) }),
        ...(settled.length + write.entries.length > 0 && { append: [...write.entries, ...settled] }),
        ...(write.messages.length + write.feed.length > 0 && { publish: toLiveEvents(messages, news) }),
        ...(reserve && { reserve }),
      }),
    ),
    limited && retryWrite(() => store.budgets.limit(key, limited)),
  ]);
  if (write.entries.length > 0) await keepItems(store, key, write.entries);
  const ends = turnEndsIn(write.feed);
  if (ends.length > 0) await retryWrite(() => store.turnEnds.add(key, ends));
  const committed = applied.fenced.flatMap((fencing) =>
    fencing.status === 'committed' ? [{ effect: fencing.id, result: fencing.result }] : [],
  );
  const written: Written = {
    messages: messages.map(({ message, text, refs }, i) => {
      const { duplicate } = applied.recorded[i] ?? {};
      return {
        slot: message.slot,
        bytes: Buffer.byteLength(text) + mediaBytes(message),
        tokens: estimateTokens(text) + estimateMediaTokens(message),
        ...refs,
        ...(duplicate && { duplicate: duplicate.turn }),
      };
    }),
    ...(committed.length > 0 && { committed }),
    ...(startContext !== undefined && { startContext }),
  };
  const tokensMore = messages.reduce((sum, { message, text }) => sum + estimateTokens(text) - estimateTokens(message.text), 0);
  return { written, applied, tokensMore, texts: messages.map(({ text }) => text) };
}

interface PreparedMessage {
  /** As it came. */
  readonly message: MessageToRecord;
  readonly entry: Entry;
  /** What it says, after the processors. */
  readonly text: string;
  readonly refs: { readonly output?: string; readonly context?: string; readonly tools?: string };
}

async function prepareMessage(
  dependencies: TraceStore,
  given: MessageToRecord,
  processors: readonly InputProcessor[],
): Promise<PreparedMessage> {
  const { store, key } = dependencies;
  const message = await withParts(dependencies, given);
  const [output, context, tools] = await Promise.all([
    putJson(dependencies, message.output),
    putJson(dependencies, message.context),
    putJson(dependencies, message.tools as unknown as JsonValue | undefined),
  ]);
  let entry: Entry | undefined;
  const ingest = memoryIngest('MemoryIngestInputProcessor', async (text: string) => {
    const body = await toBody(store, key, text.toWellFormed(), TEXT_INLINE);
    entry = userEntry(message, body, await mediaToRefs(store, key, message), tools);
  });
  const text = await processInput(message.isWithheld ? [ingest] : [...processors, ingest], key, message);
  if (!entry) throw new Error(`message ${message.messageId} was not ingested`);
  return {
    message,
    entry,
    text,
    refs: {
      ...(output !== undefined && { output }),
      ...(context !== undefined && { context }),
      ...(tools !== undefined && { tools }),
    },
  };
}

/** What was too large for one input is put together again. */
async function withParts({ store, key }: TraceStore, message: MessageToRecord): Promise<MessageToRecord> {
  const { parts, ...rest } = message;
  if (!parts) return message;
  const texts = await Promise.all(parts.map((ref) => store.bodies.get(key, ref)));
  const lost = texts.filter((text) => text === undefined).length;
  if (lost > 0) return { ...rest, text: `[${lost} of the ${parts.length} parts of this message were lost by the store.]` };
  return { ...rest, ...(JSON.parse(texts.join('')) as MessageContent) };
}

/** Where it lies as JSON text; state and history carry the reference. */
async function putJson({ store, key }: TraceStore, value: JsonValue | undefined): Promise<string | undefined> {
  return value === undefined ? undefined : (await store.bodies.put(key, JSON.stringify(value))).ref;
}

/** A sub-agent's report, or a person's answer, may be long. */
async function withTextStored({ store, key }: TraceStore, entry: Entry): Promise<Entry> {
  const { message } = entry;
  if (message.role !== 'tool' || typeof message.text !== 'string') return entry;
  return { ...entry, message: { ...message, text: await toBody(store, key, message.text, RESULT_INLINE) } };
}

/** Each with an id, so that another attempt publishes none twice. `ts` is the time of arrival. */
function toLiveEvents(messages: readonly PreparedMessage[], feed: Writes['feed']): LiveEvent[] {
  const arrived = messages.map(({ message: { slot, turn, messageId, ts, text } }): LiveEvent => {
    const event: FeedEvent = { kind: 'message', turn, messageId, preview: truncate(text, 200), ts };
    return { id: `message/${slot}`, event: event as unknown as JsonValue };
  });
  return [...arrived, ...feed.map(({ number, event }) => ({ id: `event/${number}`, event: event as unknown as JsonValue }))];
}

/** Ends of turns with the text that the state does not have: it is in the store, or comes with these writes. */
async function withAnswers({ store, key }: TraceStore, { feed, entries, settle }: Writes): Promise<Writes['feed']> {
  const coming = [...entries, ...settle.flatMap(({ entry }) => entry ?? [])];
  return Promise.all(
    feed.map(async (one) => {
      const { event, answer: slot } = one;
      if (slot === undefined || event.kind !== 'turn-finished') return one;
      const found = coming.find((entry) => entry.slot === slot) ?? (await retryWrite(() => store.entries.read(key, [slot])))[0];
      const answer = found?.message.role === 'assistant' ? answerIn(found.message.blocks) : undefined;
      return answer ? { ...one, event: { ...event, result: { ...event.result, ...answer } } } : one;
    }),
  );
}

/** The assistant's text in one entry. */
export async function recall({ store, key }: TraceStore, { slot }: RecallInput): Promise<Recalled> {
  const [entry] = await store.entries.read(key, [slot]);
  if (!entry) return null;
  return (entry.message.role === 'assistant' ? answerIn(entry.message.blocks) : undefined) ?? { text: '' };
}
