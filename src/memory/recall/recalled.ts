/** What a search has found, and what is at an address, read from the store as it is now: without what was forgotten meanwhile. */
import type { Trust } from '../../records/memory/documents.js';
import { foreignSource } from '../../records/message-parts.js';
import { pickMedia, sourcesIn, type Entry, type Media } from '../../records/message.js';
import { listSlots } from '../../records/slots.js';
import { speakerIn } from '../../search/analysis.js';
import type { Mark } from '../../search/question.js';
import type { Kind } from '../../search/passage-table.js';
import type { Hit } from '../../search/scan.js';
import { textHash } from '../../search/search-index.js';
import type { ConversationKey, LifeName, ScopeKey, Store } from '../../stores/store.js';
import { withBodies } from '../bodies.js';
import { redactor } from '../documents/forgetting.js';
import {
  documentTexts,
  readBefore,
  textOfEntry,
  type NamedText,
  type Told,
  lineName,
  type LifeLine,
  episodeTexts,
  itemTexts,
  slotsThatCount,
  addressIn,
  addressOfDocument,
  lifeMark,
  readLine,
  type Beside,
} from './indexed-texts.js';

export const DEFAULT_AROUND = 3;
export const MAX_AROUND = 20;

/** Slots that are looked at on each side for one message that can be read: calls of tools and notices are between. */
const SLOTS_FOR_ONE = 6;
/** Those of an episode that are shown with it. */
const EPISODE_SLOTS = 2 * MAX_AROUND;

/** Something that a search has found, or a neighbour of it. */
export interface Recalled {
  /** By which `open` finds it: `3f2a9c1d52b0/12`, `fact/sem_0003`. */
  readonly address: string;
  readonly kind: Kind;
  /** Epoch seconds; 0 for a line of MEMORY.md that nothing dates. */
  readonly ts: number;
  readonly conversation?: string;
  /** `turn_0007`. */
  readonly turn?: string;
  /** The name in the text, where it names one (`Anna: …`); else `user`, `assistant`, `application`, the tool, or the kind. */
  readonly speaker: string;
  /** `tool:…`, `file` (attached or quoted) and `application`: what it says is data, and no instruction. */
  readonly trust: Trust;
  /** Of what the model says: the tools (or `file`, `application`) that it had read before. Then it is data too. */
  readonly tools?: readonly string[];
  /** Verbatim; of a long text the passage. */
  readonly text: string;
  /** There is more of it, before or after. */
  readonly isPart?: true;
  /** How many pictures and documents came with it. */
  readonly files?: number;
  /** Where `text` has the words of the question, in UTF-16 units. */
  readonly marks: readonly Mark[];
  readonly score: number;
  /** From 0 to 1: how much of the question its words are. */
  readonly confidence: number;
}

/**
 * What is at an address and around it, in its order; empty where nothing is there. `known`: lives of the scope that need not be looked for.
 */
export async function openAt(
  store: Store,
  key: ScopeKey,
  address: string,
  { around = DEFAULT_AROUND, known }: { readonly around: number | undefined; readonly known: readonly LifeName[] },
): Promise<readonly Recalled[]> {
  const reach = Math.max(0, Math.min(around, MAX_AROUND));
  const place = await findPlace(store, key, address, known);
  if (!place) return (await readDocuments(store, key)).filter((one) => one.address === address);
  const { life, name } = place;
  if (/^\d{1,9}$/.test(name)) return readAround(store, life, Number(name), reach);
  return name.startsWith('ep_') ? readEpisode(store, life, name) : readItem(store, life, name);
}

/** The pictures and documents that came with the message at an address, at hand. */
export async function filesAt(store: Store, key: ScopeKey, address: string, known: readonly LifeName[]): Promise<Media> {
  const place = await findPlace(store, key, address, known);
  if (!place || !/^\d{1,9}$/.test(place.name)) return {};
  const slot = Number(place.name);
  const [[entry], isThere] = await Promise.all([store.entries.read(place.life, [slot]), slotsThatCount(store, place.life)]);
  if (!entry || !isThere(slot) || entry.message.role === 'assistant') return {};
  const message = await withBodies(store, place.life, entry);
  return message.role === 'assistant' ? {} : pickMedia(message);
}

async function findPlace(
  store: Store,
  key: ScopeKey,
  address: string,
  known: readonly LifeName[],
): Promise<{ readonly life: ConversationKey; readonly name: string } | undefined> {
  const [, mark, name = ''] = /^([0-9a-f]{12})\/([\w-]{1,100})$/.exec(address) ?? [];
  if (mark === undefined) return undefined;
  const isIt = (life: LifeName): boolean => lifeMark(life) === mark;
  const found = known.find(isIt) ?? (await store.scopes.marks(key)).lives.map((one) => one.key).find(isIt);
  return found && { life: { ...key, conversation: found.conversation, life: found.life }, name };
}

type Redact = (text: string) => string;

async function scopeRedactor(store: Store, key: ScopeKey): Promise<Redact> {
  return redactor(await store.documents.forgotten(key), key.scope);
}

/** Without their marks. */
export async function readHits(store: Store, key: ScopeKey, hits: readonly Hit[]): Promise<Recalled[]> {
  const redact = await scopeRedactor(store, key);
  const documents = hits.some(({ line }) => !line.startsWith('[')) ? await documentTexts(store, key) : [];
  const beside = new Map<string, Promise<readonly NamedText[]>>();
  const readBeside = (of: ConversationKey, what: Beside): Promise<readonly NamedText[]> => {
    const name = lineName(of, what);
    const known = beside.get(name) ?? (what === 'episode' ? episodeTexts(store, of) : itemTexts(store, of));
    beside.set(name, known);
    return known;
  };
  const readText = async (hit: Hit, of: LifeLine | undefined): Promise<ReadText | undefined> => {
    if (of !== undefined && of.beside === undefined) return readMessage(store, of.key, hit);
    const texts = of?.beside === undefined ? documents : await readBeside(of.key, of.beside);
    return texts.find(({ line, at }) => line === hit.line && at === hit.at);
  };
  const read = async (hit: Hit): Promise<Recalled | undefined> => {
    const of = readLine(key, hit.line);
    const text = await readText(hit, of);
    const shown = text && toRecalled(text, of?.key, redact, hit);
    // Forgotten since it was indexed, or another text by now.
    return shown && textHash(shown.text) === hit.hash ? shown : undefined;
  };
  return (await Promise.all(hits.map(read))).flatMap((one) => one ?? []);
}

/** A text of the scope, however it is stored. */
type ReadText = Pick<NamedText, 'kind' | 'name' | 'ts' | 'conversation' | 'turn' | 'speaker' | 'trust' | 'tools' | 'text'> &
  Pick<Recalled, 'files'>;

async function readMessage(store: Store, key: ConversationKey, { at, speaker }: Hit): Promise<ReadText | undefined> {
  const [entry] = await store.entries.read(key, [at]);
  const told = entry && (await textOfEntry(store, key, entry));
  return told && toText(key, entry, { ...told, tools: await readBefore(store, key, entry) }, speaker);
}

/** `named`: by its text. */
function toText(
  { conversation }: ConversationKey,
  { slot, ts, turn, message }: Entry,
  { kind, speaker, trust, tools, text }: Told & { readonly tools: readonly string[] },
  named: string | undefined,
): ReadText {
  const files = message.role === 'assistant' ? 0 : sourcesIn(message).length;
  // A tool's text may name anyone.
  const who = kind === 'tool' ? speaker : (named ?? speaker);
  return { kind, name: String(slot), ts, conversation, turn, speaker: who, trust, tools, text, ...(files > 0 && { files }) };
}

async function readAround(store: Store, key: ConversationKey, slot: number, reach: number): Promise<Recalled[]> {
  const first = Math.max(1, slot - reach * SLOTS_FOR_ONE);
  const slots = Array.from({ length: slot + reach * SLOTS_FOR_ONE - first + 1 }, (_, i) => first + i);
  const found = await readSlots(store, key, slots);
  const at = found.findIndex(({ address }) => address === addressIn(key, slot));
  return at < 0 ? [] : found.slice(Math.max(0, at - reach), at + reach + 1);
}

async function readSlots(store: Store, key: ConversationKey, slots: readonly number[]): Promise<Recalled[]> {
  const [entries, isThere, redact] = await Promise.all([
    store.entries.read(key, slots),
    slotsThatCount(store, key),
    scopeRedactor(store, key),
  ]);
  const read = entries.map(async (entry): Promise<Recalled | undefined> => {
    const told = entry && isThere(entry.slot) ? await textOfEntry(store, key, entry) : undefined;
    const tools = entry && told ? await readBefore(store, key, entry) : [];
    return entry && told && toRecalled(toText(key, entry, { ...told, tools }, speakerIn(told.text)), key, redact, WHOLE);
  });
  return (await Promise.all(read)).flatMap((one) => one ?? []);
}

/** The summary, then the messages that it summarizes. */
async function readEpisode(store: Store, key: ConversationKey, id: string): Promise<Recalled[]> {
  const episode = (await episodeTexts(store, key)).find(({ name }) => name === id);
  if (!episode) return [];
  const redact = await scopeRedactor(store, key);
  return [toRecalled(episode, key, redact, WHOLE), ...(await readSlots(store, key, listSlots(episode.slots).slice(0, EPISODE_SLOTS)))];
}

async function readItem(store: Store, key: ConversationKey, id: string): Promise<Recalled[]> {
  const text = (await itemTexts(store, key)).find(({ name }) => name === id);
  return text ? [toRecalled(text, key, await scopeRedactor(store, key), WHOLE)] : [];
}

async function readDocuments(store: Store, key: ScopeKey): Promise<Recalled[]> {
  const redact = await scopeRedactor(store, key);
  return (await documentTexts(store, key)).map((text) => toRecalled(text, undefined, redact, WHOLE));
}

type Part = Pick<Hit, 'start' | 'end' | 'score' | 'confidence'>;

const WHOLE: Part = { start: 0, end: Infinity, score: 0, confidence: 0 };

function toRecalled(text: ReadText, of: ConversationKey | undefined, redact: Redact, { start, end, score, confidence }: Part): Recalled {
  const { kind, name, ts, conversation, turn, speaker, tools = [], files } = text;
  const whole = redact(text.text);
  const shown = whole.slice(start, end);
  // Of a message that a user sent, not all may be typed.
  const trust = kind === 'user' && text.trust === 'user' ? (foreignSource(whole, start, start + shown.length) ?? 'user') : text.trust;
  return {
    address: of ? addressIn(of, name) : addressOfDocument(kind, name),
    kind,
    ts,
    ...(conversation !== undefined && { conversation }),
    ...(turn !== undefined && { turn }),
    speaker,
    trust,
    ...(trust === 'model' && tools.length > 0 && { tools }),
    text: shown,
    ...(shown.length < whole.length && { isPart: true }),
    ...(files !== undefined && { files }),
    marks: [],
    score,
    confidence,
  };
}
