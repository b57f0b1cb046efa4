/** What a model call sees: the entries of the context, in order, with every text at hand. */
import { log } from '@temporalio/activity';
import { isKept, citedTokens } from '../../conversation/context/citing.js';
import { isBodyRef, isFromPerson, shownText, sourcesIn, type ConversationMessage, type Entry } from '../../records/message.js';
import { withoutMedia } from '../../records/message-media.js';
import { listSlots, type SlotRange, toRanges } from '../../records/slots.js';
import { hasBodies, withBodies } from '../../memory/bodies.js';
import { addressIn } from '../../memory/recall/indexed-texts.js';
import { citeMessage, KEPT, messageItemId, withoutMiddle } from '../../memory/channel/citations.js';
import { framedBase, namesGoal, describePins } from '../../memory/compaction/snapshot.js';
import { MessageTooLarge, selectMessages } from '../../memory/select-messages.js';
import { estimateMessageTokens, countMessageTokens, type CountTokens, entryTokens } from '../../memory/tokens.js';
import { ModelFailure } from '../../models/model.js';
import { withoutForgotten } from '../../memory/documents/forgetting.js';
import { NO_MEMORY_VERSION } from '../../records/memory/documents.js';
import { countHeal } from '../../telemetry/metrics.js';
import { healMemory } from '../memory/decide-memory.js';
import type { ActivityDependencies, ConversationDependencies, TraceStore } from '../dependencies.js';
import type { TruncateInput, Truncated } from '../../conversation/context/compaction-effects.js';
import { selectCites } from '../../memory/compaction/window.js';
import { chosenTruncation, selectTruncation } from '../../memory/compaction/truncation.js';
import { tokenCounterBy } from '../../models/token-counter.js';
import { hasMemoryChannel } from '../tools/tools-of.js';

/** Of a prompt's budget: an earlier message that takes more is shown by its ends where not all fits. */
const LONG_SHARE = 0.25;
/** Of each end. */
const KEPT_CHARACTERS = 1_000;

/** An entry as a model call sees it; of one that is lost there is only the line that names it. */
export type ContextMessage = Pick<Entry, 'message'> & Partial<Entry>;

/** How long results are shown; absent: as they are. */
export interface Citing {
  /** Before any text is read. In the order of `messages`. */
  readonly citeOld: (messages: readonly ConversationMessage[]) => Promise<readonly ConversationMessage[]>;
  readonly frameNew: (messages: readonly ConversationMessage[]) => readonly ConversationMessage[];
}

/** A gap is healed from history. What cannot be is named in its place, in words that the model can read. */
export async function loadContext(
  dependencies: ConversationDependencies,
  { context: ranges, cited: byEnds = [] }: { readonly context: readonly SlotRange[]; readonly cited?: readonly SlotRange[] | undefined },
  citing: Promise<Citing | undefined>,
  opens: Promise<boolean> = Promise.resolve(false),
): Promise<ContextMessage[]> {
  const slots = listSlots(ranges);
  const entries = await readHealed(dependencies, slots);
  const stored = entries.map((entry, i) => entry?.message ?? placeholder(slots[i] ?? 0));
  const channel = await citing;
  const { citeOld, frameNew } = channel ?? SHOWN_WHOLE;
  const canOpen = await opens;
  const where = (at: number): string | undefined => (canOpen ? addressIn(dependencies.key, slots[at] ?? 0) : undefined);
  const messages = [...(await citeOld(withoutOldMedia(stored, where)))];
  const long = messages.flatMap((message, i) => (hasBodies(message) ? [{ message, i }] : []));
  await Promise.all(long.map(async (one) => (messages[one.i] = await withBodies(dependencies.store, dependencies.key, one))));
  const short = new Set(listSlots(byEnds));
  if (short.size > 0)
    entries.forEach((entry, i) => {
      const message = messages[i];
      if (entry && message && short.has(entry.slot)) messages[i] = citeMessage(message, channel && messageItemId(entry.slot));
    });
  return frameNew(messages).map((message, i) => {
    const entry = entries[i];
    return entry?.message === message ? entry : { ...entry, message };
  });
}

/** Files of tools that a prompt shows: from so many on the oldest leave it together, so that its beginning changes seldom. */
const MAX_FILES = 20;
const FEWEST_FILES = 10;

/**
 * A loop that looks at a screen makes more pictures than a request may have. Those of people stay. `where`: the address by which open_memory
 * shows them again.
 */
function withoutOldMedia(
  messages: readonly ConversationMessage[],
  where: (at: number) => string | undefined,
): readonly ConversationMessage[] {
  const count = (message: ConversationMessage): number => (message.role === 'tool' ? sourcesIn(message).length : 0);
  const all = messages.reduce((sum, message) => sum + count(message), 0);
  if (all <= MAX_FILES) return messages;
  let left = Math.floor((all - FEWEST_FILES - 1) / (MAX_FILES - FEWEST_FILES)) * (MAX_FILES - FEWEST_FILES);
  return messages.map((message, at) => {
    const files = count(message);
    if (files === 0 || left <= 0 || message.role !== 'tool') return message;
    left -= files;
    const address = where(at);
    const how = address === undefined ? '' : `; open_memory shows ${files === 1 ? 'it' : 'them'} again, at ${address}`;
    const note = `[${files === 1 ? 'a file' : `${files} files`} of this result, shown before, and not any more${how}]`;
    const text = isBodyRef(message.text) ? { ...message.text, preview: `${note}\n${message.text.preview}` } : `${message.text}\n${note}`;
    return { ...withoutMedia(message), text };
  });
}

/** Without a memory channel nothing says that a result is kept elsewhere. */
const SHOWN_WHOLE: Citing = {
  citeOld: async (messages) => messages,
  frameNew: (messages) =>
    messages.map((message) => {
      if (!isKept(message)) return message;
      const { item: _, ...plain } = message;
      return plain;
    }),
};

type Healing = TraceStore & Pick<ActivityDependencies, 'heal'>;

/** Entries as they are, after healing when one is missing. */
export async function readHealed(dependencies: Healing, slots: readonly number[]): Promise<(Entry | undefined)[]> {
  const { store, key } = dependencies;
  const entries = await store.entries.read(key, slots);
  const missing = slots.filter((_, i) => !entries[i]).length;
  if (missing === 0) return entries;
  await healFromHistory(dependencies, `${missing} entries`);
  return store.entries.read(key, slots);
}

/**
 * What is left of earlier epochs, and the facts: one message before all others. A store that was emptied has lost it with the
 * messages: what heals those, `context`, is waited for, so that one healing does for both.
 */
export async function loadBase(
  dependencies: ConversationDependencies,
  { ref, forgotten }: { readonly ref: string | null; readonly forgotten: number },
  context: Promise<unknown>,
): Promise<ConversationMessage[]> {
  if (ref === null) return [];
  const text = await bodyHealed(dependencies, ref, context);
  if (text === undefined) return [{ role: 'user', text: '[What was remembered of the earlier conversation was lost by the store.]' }];
  if (forgotten === 0) return [{ role: 'user', text: framedBase(text) }];
  const { store, key } = dependencies;
  // Written before it was to be forgotten; the epoch goes on without it.
  const left = withoutForgotten(text, await store.documents.forgotten(key), key.scope);
  return left.trim() === '' ? [] : [{ role: 'user', text: framedBase(left) }];
}

async function bodyHealed(dependencies: ConversationDependencies, ref: string, context: Promise<unknown>): Promise<string | undefined> {
  const read = (): Promise<string | undefined> => dependencies.store.bodies.get(dependencies.key, ref);
  let text = await read();
  if (text === undefined) {
    await context;
    text = await read();
  }
  if (text === undefined) {
    await healFromHistory(dependencies, 'what this epoch begins with');
    text = await read();
  }
  return text;
}

/** MEMORY.md as it was at the turn's start. A version that stays lost is the one that there is now. */
export async function loadMemory(
  { store, key, rememberedBy, lostMemories }: ConversationDependencies,
  version: string | undefined,
): Promise<string> {
  if (version === undefined || version === NO_MEMORY_VERSION) return '';
  const text = await store.documents.memoryText(key, version);
  if (text !== undefined) return text;
  // Once: a version that a person had made by hand is in no history.
  if (lostMemories?.has(version) !== true) await healMemory(store, rememberedBy, key);
  lostMemories?.add(version);
  return (await store.documents.memoryText(key, version)) ?? (await store.documents.memory(key)).text;
}

async function healFromHistory({ heal, key }: Healing, lost: string): Promise<void> {
  if (!heal) return;
  log.warn('the store has lost traces: healing from history', { lost });
  const healed = await heal(key);
  countHeal(healed);
  log.info('healed from history', { ...healed });
}

/**
 * The guard of seed 002: a notice names what is left out, with what was pinned in it, and its traces are kept. `base`: what stands before the
 * messages. Throws ModelFailure `too-large` when one message alone is too much.
 */
export function fitting(
  messages: readonly ConversationMessage[],
  budget: number,
  count: CountTokens,
  base: readonly ConversationMessage[] = [],
): readonly ConversationMessage[] {
  // Nearly always, and no tokenizer makes more tokens of a text than it has bytes.
  if (countMessageTokens(messages, mostTokens) <= budget || countMessageTokens(messages, count) <= budget) return messages;
  try {
    const shorter = withLongOnesCut(messages, budget, count);
    const { selected, overflow } = selectMessages(shorter, budget, (message) => estimateMessageTokens(message, count));
    if (!overflow) return selected;
    const { droppedCount, estimatedDroppedTokens } = overflow;
    log.warn('the context did not fit: its beginning was left out', { droppedCount, estimatedDroppedTokens });
    const shown = new Set(selected);
    const pins = describePins(
      shorter.filter((message) => !shown.has(message)),
      !base.some((message) => message.role === 'user' && namesGoal(shownText(message.text))),
    );
    return [
      {
        role: 'user',
        from: 'notice',
        text: `[${droppedCount} earlier messages are left out here, because they did not fit. They are kept in the traces.]${pins}`,
      },
      ...selected,
    ];
  } catch (error) {
    if (error instanceof MessageTooLarge) throw new ModelFailure('too-large', error.message, { cause: error });
    throw error;
  }
}

/**
 * A long text of an earlier turn, such as one that was too much for the model, is not why all before it is left out: its beginning and
 * its end stay. The question itself is never cut.
 */
function withLongOnesCut(messages: readonly ConversationMessage[], budget: number, count: CountTokens): readonly ConversationMessage[] {
  const question = messages.findLastIndex(isFromPerson);
  return messages.map((message, at) => {
    if (message.role !== 'user' || typeof message.text !== 'string' || at >= question) return message;
    if (count(message.text) <= budget * LONG_SHARE) return message;
    return { ...message, text: withoutMiddle(message.text, KEPT_CHARACTERS, KEPT) };
  });
}

/** A character of UTF-16 takes three bytes at most. */
function mostTokens({ length }: string): number {
  return length * 3;
}

function placeholder(slot: number): ConversationMessage {
  return { role: 'user', text: `[Message ${slot} of this conversation was lost by the store and could not be rebuilt from its history.]` };
}

// The `truncate` step: says what leaves the prompt, and writes the notice that replaces it. Long messages that can be read again
// are cited first: these stay. Done again it says the same.

/** Of what is too much: less is not worth its loss, and would cost another summary. */
const WORTH_LOSING = 0.1;
const NOTHING_CITED = { cites: [], saved: 0 } as const;

export async function truncate(dependencies: ConversationDependencies, input: TruncateInput): Promise<Truncated> {
  const { agentHash, epoch, context, cited, base, excess, currentTurn, chosen, notice, tokenizer, tokenRatio } = input;
  const { store, key, identity } = dependencies;
  const [read, before = '', { count }, { config }] = await Promise.all([
    readHealed(dependencies, listSlots(context)),
    base === undefined ? undefined : store.bodies.get(key, base),
    tokenCounterBy(tokenizer, tokenRatio),
    dependencies.agents(identity.agent, identity.scope, agentHash),
  ]);
  const entries = read.filter((entry) => entry !== undefined);
  const citing = { cited: new Set(listSlots(cited)), currentTurn: currentTurn ?? undefined };
  const countEntry = entryTokens(entries, { count, cited: citing.cited });
  const isReadable = !chosen && hasMemoryChannel(config, dependencies.tools);
  const { cites, saved } = isReadable ? selectCites(entries, excess, { ...citing, countEntry }) : NOTHING_CITED;
  const shown = (entry: Entry): number => (cites.includes(entry) ? citedTokens(entry.message, countEntry(entry)) : countEntry(entry));
  const found = chosen
    ? chosenTruncation(entries, new Set(listSlots(chosen.slots)), currentTurn, shown)
    : selectTruncation(entries, excess - saved, currentTurn, shown);
  const { dropped, tokens } = found.tokens + saved < excess * WORTH_LOSING ? { dropped: [], tokens: 0 } : found;
  const result = {
    ...{ life: key.life, epoch, dropped: toRanges(dropped.map(({ slot }) => slot)), tokens: tokens + saved, entries: dropped.length },
    ...(cites.length > 0 && { cited: toRanges(cites.map(({ slot }) => slot)) }),
  };
  if (dropped.length === 0) return result;
  const leaving = await Promise.all(dropped.map((entry) => withBodies(store, key, entry)));
  const pins = describePins(leaving, !namesGoal(before));
  const text =
    `[${dropped.length} earlier messages (about ${tokens} tokens) were left out of this prompt, ${chosen ? 'as the application asked' : 'because the context was full'}. ` +
    `They are kept in the traces, and become part of the next summary.]${pins}`;
  // The time of what it stands for: another attempt writes the same.
  const standIn: Entry = { v: 1, ...notice, ts: dropped[0]?.ts ?? 0, message: { role: 'user', text, from: 'notice' } };
  await store.entries.append(key, [standIn]);
  return { ...result, notice: standIn };
}
