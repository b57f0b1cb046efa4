/**
 * A conversation up to one of its turns: what a fork, a resumed conversation or a rewind begins with. Pure.
 *
 * Turns stand in the order in which they began, and a rewind changes which ones a turn came after: turns are a tree, and before a turn
 * stands its line in that tree. The context is of the turn's session alone, as after a compaction: it leaves out turns, or parts of one,
 * that a summary of that time replaces, from a compaction or a trim.
 */
import { type Cut, type JoinedSessions, listSlots, toRanges, withSlot, type SlotRange } from '../records/slots.js';
import type { Entry } from '../records/message.js';
import { turnNumber } from '../records/identity.js';
import type { EpisodeRecord } from '../stores/store.js';
import { byAge, withoutSuperseded } from '../records/memory/items.js';

/** What the store has of one life, what it shares with others included. */
export interface Past {
  readonly entries: readonly Entry[];
  readonly cuts: readonly Cut[];
  readonly episodes: readonly EpisodeRecord[];
  readonly archived: readonly SlotRange[];
}

export interface PastTurn {
  readonly number: number;
  /** In the order of the turn. */
  readonly entries: readonly Entry[];
  readonly session: number;
  /** Slot of its first answer, or of its message where there is none: the order of these is that of the turns. */
  readonly begun: number;
  /** Epoch seconds of the last message in it. */
  readonly ended: number;
}

export interface Prefix {
  readonly turn: PastTurn;
  /** All turns up to it, of earlier sessions too. */
  readonly line: readonly PastTurn[];
  /** Of its session, also those that a summary replaces. Chunks of the application as they are at the end (placeChunks). */
  readonly session: readonly PastTurn[];
  /** Those that a model call sees word for word. */
  readonly context: readonly PastTurn[];
  /** Newest first. */
  readonly episodes: readonly EpisodeRecord[];
}

/** Without a `turn` it is empty. */
export type Beforehand = Omit<Prefix, 'turn'> & { readonly turn?: PastTurn };

/** In the order in which they began. */
export function groupTurns(entries: readonly Entry[]): PastTurn[] {
  const byTurn = new Map<number, Entry[]>();
  for (const entry of entries) {
    const number = turnNumber(entry.turn);
    const ofTurn = byTurn.get(number);
    if (ofTurn) ofTurn.push(entry);
    else byTurn.set(number, [entry]);
  }
  return [...byTurn].map(([number, ofTurn]) => toTurn(number, ofTurn)).sort((a, b) => a.begun - b.begun);
}

/** Undefined when there is no such turn. `atEnd`: with the summaries too that were made after it. */
export function findPrefix(past: Past, number: number, { atEnd = false }: { readonly atEnd?: boolean } = {}): Prefix | undefined {
  const all = groupTurns(past.entries);
  const last = all.find((one) => one.number === number);
  if (!last) return undefined;
  const turns = onPath(all, past.cuts, atEnd ? Infinity : last.begun);
  const turn = turns.find((one) => one.number === number) ?? last;
  const line = lineTo(turns, past.cuts, turn.begun);
  const had = sessionTo(turns, past.cuts, turn);
  const session = placeChunks(had, line);
  const here = new Set(slotsIn(had));
  const episodes = withoutSuperseded(episodesTo(past.episodes, past.cuts, { begun: turn.begun, until: atEnd ? Infinity : turn.ended }))
    .filter(({ slots }) => slots.length > 0 && listSlots(slots).every((slot) => here.has(slot)))
    .sort(byAge)
    // Told again for another session it is still one.
    .filter(({ slots }, at, all) => all.findIndex((other) => JSON.stringify(other.slots) === JSON.stringify(slots)) === at);
  const covered = new Set(episodes.flatMap(({ slots }) => listSlots(slots)));
  const context = session.flatMap((one) => {
    const entries = one.entries.filter(({ slot }) => !covered.has(slot));
    return entries.length > 0 ? [{ ...one, entries }] : one.number === turn.number ? [one] : [];
  });
  return { turn, line, session, episodes, context };
}

/** What a turn came after: what goes on without it, and with it nothing of another session. Undefined when there is no such turn. */
export function prefixBefore(past: Past, number: number): Beforehand | undefined {
  const whole = findPrefix(past, number);
  if (!whole) return undefined;
  const turn = whole.line.at(-2);
  // The first turn of a session has none of another in its context.
  const isFirst = !turn || !whole.session.some(({ number: other }) => other === turn.number);
  if (!isFirst) return findPrefix(past, turn.number);
  return { ...(turn && { turn }), line: whole.line.slice(0, -1), session: [], context: [], episodes: [] };
}

/** The turns that a conversation has now, without those that rewinds have cut. */
export function currentLine(entries: readonly Entry[], cuts: readonly Cut[]): PastTurn[] {
  return lineTo(onPath(groupTurns(entries), cuts, Infinity), cuts, Infinity);
}

/** The summaries that count now: not those of what was cut, nor those that were made of it, nor those that a later one replaces. */
export function episodesInSight(episodes: readonly EpisodeRecord[], cuts: readonly Cut[]): EpisodeRecord[] {
  return withoutSuperseded(episodesTo(episodes, cuts, { begun: Infinity, until: Infinity }));
}

/** Sessions of a line that go by several numbers. `known`: those that the life began with. */
export function joinedSessions(past: Past, line: readonly PastTurn[], known: readonly JoinedSessions[] = []): JoinedSessions[] {
  const turns = groupTurns(past.entries);
  const found: JoinedSessions[] = [];
  let left = line;
  for (let last = left.at(-1); last; last = left.at(-1)) {
    const { session } = last;
    const numbers = new Set(sessionTo(turns, past.cuts, last).map((turn) => turn.session));
    const of = [...numbers, ...known.flatMap((one) => (numbers.has(one.session) ? one.of : []))].filter((number) => number !== session);
    if (of.length > 0) found.unshift({ session, of });
    left = left.filter((turn) => !numbers.has(turn.session));
  }
  return found;
}

/** Entries with the number of their session. */
export function inJoined(entries: readonly Entry[], joined: readonly JoinedSessions[] = []): readonly Entry[] {
  if (joined.length === 0) return entries;
  const numbers = new Map(joined.flatMap(({ session, of }) => of.map((number) => [number, session] as const)));
  return entries.map((entry) => ({ ...entry, session: numbers.get(entry.session) ?? entry.session }));
}

export function toSlotRanges(turns: readonly PastTurn[]): readonly SlotRange[] {
  return slotsIn(turns).reduce<readonly SlotRange[]>(withSlot, []);
}

export function slotsIn(turns: readonly PastTurn[]): number[] {
  return turns.flatMap(({ entries }) => entries.map(({ slot }) => slot));
}

/** Ascending, so that slots of turns that ran into each other make few ranges. */
export function sortedRanges(slots: Iterable<number>): readonly SlotRange[] {
  return toRanges([...new Set(slots)].sort((a, b) => a - b));
}

function toTurn(number: number, ofTurn: readonly Entry[]): PastTurn {
  const entries = [...ofTurn].sort((a, b) => a.seq - b.seq || a.slot - b.slot);
  // A message that waited was given its slot and its session when it came; its answer when its turn began.
  const first = entries.find(({ message }) => message.role !== 'user') ?? entries[0];
  const ended = entries.reduce((latest, { ts }) => Math.max(latest, ts), 0);
  return { number, entries, session: first?.session ?? 0, begun: first?.slot ?? 0, ended };
}

/** The rewind after which something began. */
export function cutBefore(cuts: readonly Cut[], begun: number): Cut | undefined {
  return cuts.reduce<Cut | undefined>((latest, cut) => (cut.slot < begun && cut.slot >= (latest?.slot ?? -1) ? cut : latest), undefined);
}

/**
 * Turns without what the application added or removed in another branch: where a rewind has led back to a turn, the chunks that came next
 * are of that turn too.
 */
function onPath(turns: readonly PastTurn[], cuts: readonly Cut[], begun: number): PastTurn[] {
  if (cuts.length === 0) return [...turns];
  const path = new Set<Cut | undefined>([undefined]);
  for (let cut = cutBefore(cuts, begun); cut; cut = cutBefore(cuts, cut.begun)) path.add(cut);
  return turns.map((turn) => ({ ...turn, entries: turn.entries.filter((one) => !isOfApp(one) || path.has(cutBefore(cuts, one.slot))) }));
}

function isOfApp({ message }: Entry): boolean {
  return message.role === 'user' && (message.from === 'app' || message.removes !== undefined);
}

/**
 * An updated chunk has the place of its first version; a removed one is in no context.
 *
 * @rule memory/latest-chunks: Of the application's chunks, what goes on from a turn has those of its line that were there at its end, each in
 *   its latest version. (test: test/activities/chunks-of-lives.test.ts)
 */
function placeChunks(session: readonly PastTurn[], line: readonly PastTurn[]): PastTurn[] {
  const entries = line.flatMap((turn) => turn.entries);
  const latest = new Map<number, Entry>();
  const gone = new Set<number>();
  const first = firstVersions(entries);
  for (const entry of [...entries].sort((a, b) => a.slot - b.slot)) {
    const { message } = entry;
    if (message.role !== 'user') continue;
    for (const slot of message.removes ?? []) gone.add(slot);
    if (message.updates === undefined) continue;
    gone.add(message.updates);
    latest.set(first.get(entry.slot)?.slot ?? entry.slot, entry);
  }
  const here = new Set(slotsIn(session));
  return session.map((turn) => ({
    ...turn,
    entries: turn.entries.flatMap((entry) => {
      const { role } = entry.message;
      const newest = latest.get(entry.slot) ?? entry;
      const isElsewhere = role === 'user' && first.has(entry.slot) && newest === entry && here.has(first.get(entry.slot)?.slot ?? 0);
      if (gone.has(newest.slot) || isElsewhere || (role === 'user' && entry.message.removes)) return [];
      return [newest];
    }),
  }));
}

/** By the slot of each later version of a chunk. */
export function firstVersions(entries: readonly Entry[]): ReadonlyMap<number, Entry> {
  const bySlot = new Map(entries.map((entry) => [entry.slot, entry]));
  const first = new Map<number, Entry>();
  for (const entry of [...entries].sort((a, b) => a.slot - b.slot)) {
    const { message, slot } = entry;
    if (message.role !== 'user' || message.updates === undefined) continue;
    const earlier = first.get(message.updates) ?? bySlot.get(message.updates);
    if (earlier) first.set(slot, earlier);
  }
  return first;
}

function lineTo(turns: readonly PastTurn[], cuts: readonly Cut[], begun: number): PastTurn[] {
  const cut = cutBefore(cuts, begun);
  const later = turns.filter((turn) => turn.begun <= begun && turn.begun > (cut?.slot ?? -1));
  return cut ? [...lineTo(turns, cuts, cut.begun), ...later] : later;
}

function sessionTo(turns: readonly PastTurn[], cuts: readonly Cut[], { begun, session }: PastTurn): PastTurn[] {
  const cut = cutBefore(cuts, begun);
  const later = turns.filter((turn) => turn.begun <= begun && turn.begun > (cut?.slot ?? -1));
  if (!cut || session > cut.session) return later.filter((turn) => turn.session === session);
  const last = turns.find((turn) => turn.begun === cut.begun);
  return [...(last ? sessionTo(turns, cuts, last) : []), ...later];
}

function episodesTo(
  episodes: readonly EpisodeRecord[],
  cuts: readonly Cut[],
  { begun, until }: { readonly begun: number; readonly until: number },
): EpisodeRecord[] {
  const cut = cutBefore(cuts, begun);
  const later = episodes.filter(({ ts }) => ts <= until && ts > (cut?.at ?? -1));
  return cut ? [...later, ...episodesTo(episodes, cuts, { begun: cut.begun, until: Math.min(cut.since, until) })] : later;
}
