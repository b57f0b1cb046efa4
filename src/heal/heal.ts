/**
 * Heal from history (design section 2): what a store has lost is read in the workflow's event history and written again. It is a
 * fold over effects (fold.ts): no workflow code runs, and no page of history keeps others waiting. Writing is idempotent, so healing may
 * run beside the conversation, twice, or be cut off.
 */
import pLimit from 'p-limit';
import { listSlots, type Beginning } from '../records/slots.js';
import { type InputProcessor, processInput } from '../memory/processors.js';
import { refuseDeleted } from '../memory/past-life.js';
import type { ConversationKey, Store } from '../stores/store.js';
import type { HistoryService } from './fetch-runs.js';
import { createFold, WRITING, type Fold, type Write } from './fold.js';
import { type ActivityHistory, readActivities } from './read-activities.js';
import { restoreMemory, type RememberedWrite } from './restore-memory.js';
import type { Entry, JsonObject, MessageContent } from '../records/message.js';
import { userEntry } from '../records/message-media.js';
import type { AppContextRef, ValuesRef, MessageToRecord } from '../conversation/outbox/writes.js';
import { listBodyRefs, mediaToRefs, RESULT_INLINE, TEXT_INLINE, toBody } from '../memory/bodies.js';
import { keepItems, speaksOfItems } from '../memory/channel/items-of-entries.js';
import type { ToolFinished } from '../conversation/turn/model-step-effects.js';
import { errorMessage } from '../platform/errors.js';

export interface Healed extends Omit<RestoredEntries, 'beginning'>, Pick<ActivityHistory, 'complete'> {
  /** Runs of the conversation that history still has, and their events. */
  readonly runs: number;
  readonly events: number;
}

export interface HealDependencies {
  readonly service: HistoryService;
  readonly store: Store;
  /** As messages were first written with: what they removed must not come back. */
  readonly processors?: readonly InputProcessor[];
  /** What history says was written to the scope's memory: forgotten facts must not come back. */
  readonly rememberedBy: (scope: string) => Promise<readonly RememberedWrite[]>;
}

/** `run`: one of the life's runs, where another life of the same conversation may be the latest. */
export async function heal(dependencies: HealDependencies, key: ConversationKey, run?: string): Promise<Healed> {
  const { service, store, processors, rememberedBy } = dependencies;
  await refuseDeleted(store, key, `heal ${key.conversation}`);
  const execution = { namespace: key.namespace, workflowId: key.conversation, ...(run === undefined ? {} : { runId: run }) };
  const { runs, complete, pages } = await readActivities(service, execution, WRITING);
  const fold = createFold();
  const writer = createEntryWriter(store, key, processors);
  const unreadable: string[] = [];
  let events = 0;
  for await (const page of pages) {
    events += page.events;
    unreadable.push(...page.problems);
    for (const activity of page.activities) await writer.write(fold.take(activity), activity.bytes);
  }
  const { beginning, problems, ...entries } = await writer.end();
  const unwritten = await restoreMemory(store, key, fold.end(), rememberedBy);
  const before = beginning ? await healShared(dependencies, key, beginning) : [];
  return {
    runs,
    events,
    ...entries,
    complete: complete && before.every((one) => one.complete),
    problems: [...unreadable, ...problems, ...unwritten, ...before.flatMap((one) => one.problems)],
  };
}

/** What these effects had written, in their order, for a conversation that is played again. */
export async function writeAgain(store: Store, key: ConversationKey, activities: Parameters<Fold['take']>[0][]): Promise<void> {
  const fold = createFold();
  const writer = createEntryWriter(store, key, undefined);
  for (const activity of activities) await writer.write(fold.take(activity), 0);
  await writer.end();
  await restoreMemory(store, key, fold.end(), () => Promise.resolve([]));
}

/** The lives that a life shares entries with, where these have lost them. */
async function healShared(
  dependencies: HealDependencies,
  key: ConversationKey,
  beginning: Beginning,
): Promise<Pick<Healed, 'complete' | 'problems'>[]> {
  const { store } = dependencies;
  const healed: Pick<Healed, 'complete' | 'problems'>[] = [];
  for (const { conversation, life, scope, run, slots } of beginning.shared) {
    const source = { namespace: key.namespace, conversation, life, scope };
    const isLost = (await store.entries.read(source, listSlots(slots))).includes(undefined);
    if (!isLost) continue;
    const done = run === undefined ? undefined : await heal(dependencies, source, run).catch((error: unknown) => String(error));
    if (typeof done === 'object') healed.push(done);
    else
      healed.push({
        complete: false,
        problems: [`the turns that are shared with ${conversation} are lost: ${done ?? 'its history is gone'}`],
      });
  }
  return healed;
}

// Writes what the fold says, many at a time: texts first, then what stands on them.

interface RestoredEntries {
  /** Entries that history knows of, those that were missing, and those that are back. */
  readonly known: number;
  readonly missing: number;
  readonly restored: number;
  /** Bodies that were only references and are gone: named in their place. */
  readonly lostBodies: readonly string[];
  readonly problems: readonly string[];
  readonly beginning: Beginning | undefined;
}

interface EntryWriter {
  /** `bytes`: about what they take. */
  write(writes: readonly Write[], bytes: number): Promise<void>;
  end(): Promise<RestoredEntries>;
}

const MAX_BATCH = 250;
const BATCH_BYTES = 512 * 1024;
const AT_ONCE = 16;

type Of<Kind extends Write['kind']> = Extract<Write, { kind: Kind }>;

function createEntryWriter(store: Store, key: ConversationKey, processors: readonly InputProcessor[] | undefined): EntryWriter {
  const few = pLimit(AT_ONCE);
  const known = new Set<number>();
  const references = new Set<string>();
  const ofItems: Entry[] = [];
  const problems: string[] = [];
  let batch: Write[] = [];
  let bytes = 0;
  let missing = 0;
  let restored = 0;
  let beginning: Beginning | undefined;
  let values: Of<'values'> | undefined;

  const put = async (value: unknown): Promise<string | undefined> =>
    value === undefined ? undefined : (await few(() => store.bodies.put(key, JSON.stringify(value)))).ref;

  const toMessageEntry = async ({ message, json, lost }: Of<'message'>): Promise<Entry | undefined> => {
    const whole = lost ? await joined(store, key, lost) : json;
    const { slot, turn } = message;
    if (lost && whole === undefined) {
      lost.forEach((ref) => references.add(ref));
      problems.push(`the message of ${turn} (slot ${slot}) came in parts, of which history has no longer all`);
      return undefined;
    }
    try {
      const full: MessageToRecord = whole === undefined ? message : { ...message, ...(JSON.parse(whole) as MessageContent) };
      const processed = await processInput(full.isWithheld ? [] : processors, key, full);
      const [text, media, tools] = await Promise.all([
        toBody(store, key, processed.toWellFormed(), TEXT_INLINE),
        mediaToRefs(store, key, full),
        put(full.tools),
        put(full.output),
        put(full.context),
      ]);
      return userEntry(full, text, media, tools);
    } catch (error) {
      problems.push(`the message of ${turn} (slot ${slot}) cannot be written again: ${errorMessage(error)}`);
      return undefined;
    }
  };

  const toEntry = async (write: Write): Promise<Entry | undefined> => {
    if (write.kind === 'message') return toMessageEntry(write);
    if (write.kind === 'answer') return withTextStored(store, key, write.entry);
    return write.kind === 'entry' ? write.entry : undefined;
  };

  const flush = async (): Promise<void> => {
    const writes = batch;
    batch = [];
    bytes = 0;
    const [made] = await Promise.all([
      Promise.all(writes.map(toEntry)),
      ...writes.map((write) => (write.kind === 'body' ? few(() => store.bodies.put(key, write.text)) : undefined)),
      ...writes.map((write) => (write.kind === 'citation' ? few(() => store.items.cite(key, write.item, write.citation)) : undefined)),
    ]);
    for (const write of writes) {
      if (write.kind === 'values') await healValues(store, key, (values = write));
      if (write.kind === 'cut') await store.lives.cut(key, write.cut);
      if (write.kind === 'beginning') await store.lives.begin(key, (beginning = write.beginning));
    }
    const ends = writes.flatMap((write) => (write.kind === 'turn-end' ? [write.end] : []));
    if (ends.length > 0) await store.turnEnds.add(key, ends);
    // First come, first kept, as in the store.
    const entries = made.filter((entry): entry is Entry => {
      if (!entry || known.has(entry.slot)) return false;
      known.add(entry.slot);
      return true;
    });
    for (const entry of entries) if (entry.messageId === undefined) listBodyRefs(entry).forEach((ref) => references.add(ref));
    ofItems.push(...entries.filter(speaksOfItems));
    await writeBack(entries);
  };

  const writeBack = async (entries: readonly Entry[]): Promise<void> => {
    if (entries.length === 0) return;
    const lost = await findMissing(store, key, entries);
    // Also those that are there: the index of their ids may be what was lost.
    const messages = entries.filter(({ messageId }) => messageId !== undefined);
    const others = lost.filter(({ messageId }) => messageId === undefined);
    if (messages.length + others.length > 0) await store.writes.apply(key, { record: messages, append: others });
    missing += lost.length;
    restored += lost.length - (lost.length === 0 ? 0 : (await findMissing(store, key, lost)).length);
  };

  return {
    async write(writes, size) {
      batch.push(...writes);
      bytes += size;
      if (batch.length >= MAX_BATCH || bytes >= BATCH_BYTES) await flush();
    },

    async end() {
      await flush();
      await keepItems(store, key, ofItems);
      // Those before it are used no longer.
      for (const ref of values ? [values.change.ref, values.whole?.ref] : []) if (ref !== undefined) references.add(ref);
      const there = await Promise.all([...references].map((ref) => few(() => store.bodies.get(key, ref))));
      const lostBodies = [...references].filter((_, i) => there[i] === undefined);
      return { known: known.size, missing, restored, lostBodies, problems, beginning };
    },
  };
}

async function findMissing(store: Store, key: ConversationKey, entries: readonly Entry[]): Promise<Entry[]> {
  const found = await store.entries.read(
    key,
    entries.map(({ slot }) => slot),
  );
  return entries.filter(({ messageId }, i) => !found[i] || found[i].messageId !== messageId);
}

/** Undefined when one of them is lost. */
async function joined(store: Store, key: ConversationKey, refs: readonly string[]): Promise<string | undefined> {
  const texts = await Promise.all(refs.map((ref) => store.bodies.get(key, ref)));
  return texts.every((text) => text !== undefined) ? texts.join('') : undefined;
}

/** A sub-agent's report, or a person's answer, may be long. */
async function withTextStored(store: Store, key: ConversationKey, entry: Entry): Promise<Entry> {
  const { message } = entry;
  if (message.role !== 'tool' || typeof message.text !== 'string') return entry;
  return { ...entry, message: { ...message, text: await toBody(store, key, message.text, RESULT_INLINE) } };
}

// Values that tools share (seed 003, Context), put together again from what tools have changed.

interface ChangedValues {
  readonly change: NonNullable<ToolFinished['contextChange']>;
  /** As they were after it. */
  readonly whole: AppContextRef | undefined;
}

/** Where one of the values that it stands on is lost, or the change was too long to travel, it stays lost. */
async function healValues(store: Store, key: ConversationKey, { change, whole }: ChangedValues): Promise<void> {
  const { values, on } = change;
  if (values === undefined) return;
  await store.bodies.put(key, JSON.stringify(values));
  const before = await Promise.all([...(on ? [on] : []), ...(on?.changes ?? [])].map((at) => read(store, key, at)));
  if (!whole || before.includes(undefined)) return;
  // As tools see them, and then as this one leaves them: in that order, since a key that went and came again stands last.
  const shared = withoutNulls(before.reduce<JsonObject>((all, one) => ({ ...all, ...one }), {}));
  await store.bodies.put(key, JSON.stringify(withoutNulls({ ...shared, ...values })));
}

async function read(store: Store, key: ConversationKey, { ref, origin }: ValuesRef): Promise<JsonObject | undefined> {
  const text = await store.bodies.get({ ...key, ...origin }, ref);
  return text === undefined ? undefined : (JSON.parse(text) as JsonObject);
}

function withoutNulls(values: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}
