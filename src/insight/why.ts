/** "Why did it forget?": which turns the next model call sees, what took a turn out of the prompt, and what replaces it there. */
import type { Leaving } from '../conversation/replay/past.js';
import type { EpisodeRecord } from '../stores/store.js';
import { MESSAGE_END_CHARACTERS, newFrom } from '../conversation/context/citing.js';
import type { ContextIndex } from '../conversation/protocol/contract.js';
import { messageItemId } from '../memory/channel/citations.js';
import { isBodyRef, isFromPerson, isNotice, type Body, type Entry } from '../records/message.js';
import { listSlots } from '../records/slots.js';
import { withoutSuperseded } from '../records/memory/items.js';

/** One thing that took entries of the turn out of the prompt, or brought them back, with what the store knows of it. */
export interface Why {
  readonly kind: Leaving['kind'];
  /** Epoch milliseconds. */
  readonly at: number;
  readonly epoch: number;
  readonly session: number;
  readonly slots: readonly number[];
  /** All that left with it. */
  readonly turns: readonly string[];
  readonly tokens: Leaving['tokens'] | null;
  /** `provider/model` that summarized, and how; null where no model did, or an earlier version did not keep it. */
  readonly model: string | null;
  readonly method: string | null;
  readonly inputsHash: string | null;
  /** Why no model's summary, or none at the first try; null where there was nothing amiss. */
  readonly failure: string | null;
  readonly episode: string | null;
  /** As the store has it, so without what was forgotten since. */
  readonly summary: string | null;
  readonly consolidation: string | null;
  readonly from: 'history' | 'store';
}

/**
 * Oldest first: causes from the history, and those of compactions that took what had left the prompt before, or that only the store still
 * knows.
 */
export function findReasons(
  turn: string,
  leavings: readonly Leaving[],
  episodes: readonly EpisodeRecord[],
  turnOf: (slot: number) => string | undefined,
): Why[] {
  const explained = leavings.map((leaving): Why => {
    const { kind, at, epoch, session, slots, allSlots, tokens, compaction, consolidation } = leaving;
    const episode = compaction && episodes.find((one) => one.id === compaction.episode && one.epoch === epoch);
    const made = episode?.made;
    return {
      ...{ kind, at, epoch, session, slots, tokens },
      turns: compaction?.turns ?? listTurns(allSlots, turnOf),
      model: made?.model ?? compaction?.model ?? null,
      method: compaction?.method ?? null,
      inputsHash: made?.inputsHash ?? compaction?.inputsHash ?? null,
      failure: made?.failure ?? null,
      episode: compaction?.episode ?? null,
      summary: episode?.summary ?? null,
      consolidation: consolidation ?? null,
      from: 'history',
    };
  });
  const known = new Set(explained.map(({ episode }) => episode));
  const older = episodes
    .filter(({ id, turn_ids }) => turn_ids.includes(turn) && !known.has(id))
    .map((episode): Why => {
      const { id, ts, turn_ids, epoch, session, summary, made, tags } = episode;
      return {
        ...{
          kind: tags.includes('trimmed') ? 'trimmed' : 'compacted',
          at: ts * 1000,
          epoch,
          session,
          slots: [],
          turns: turn_ids,
          tokens: null,
          summary,
          consolidation: null,
          from: 'store',
        },
        model: made?.model ?? null,
        method: made?.method ?? null,
        inputsHash: made?.inputsHash ?? null,
        failure: made?.failure ?? null,
        episode: id,
      };
    });
  return [...older, ...explained].sort((a, b) => a.at - b.at);
}

function listTurns(slots: readonly number[], turnOf: (slot: number) => string | undefined): string[] {
  return [...new Set(slots.flatMap((slot) => turnOf(slot) ?? []))].sort();
}

/** Why something stands in the context, or does not. */
export interface WhyAnswer {
  readonly id: string;
  readonly turn: string;
  /** `/new` has ended its session: its summaries are in no prompt any more. */
  readonly hasEnded: boolean;
  /** It was cut out by a rewind, and is in this branch. */
  readonly branch?: number;
  readonly entries: number;
  /** Of those in the prompt, what is not shown whole there. */
  readonly shortened: readonly Shortened[];
  /** How many of them the next model call sees word for word. */
  readonly inPrompt: number;
  readonly causes: readonly Why[];
  /** False when earlier runs are no longer in Temporal's history. */
  readonly complete: boolean;
  readonly problems: readonly string[];
}

// Of which turns the next model call sees what: word for word, shortened, as a summary, or not at all. For people who miss something.

/** Of what is in the prompt and not shown whole there. */
export interface Shortened {
  readonly turn: string;
  readonly kind: 'message' | 'result';
  /** By which the model reads the rest. */
  readonly item: string;
}

/** Turns, each in one list of them but for those of which parts are here and parts there. */
export interface KnownTurns {
  readonly whole: readonly string[];
  /** A part of the turn left the prompt. */
  readonly inPart: readonly string[];
  readonly shortened: readonly Shortened[];
  readonly summarized: readonly { readonly episode: string; readonly turns: readonly string[] }[];
  /** Out of the prompt, and no summary has them yet. */
  readonly leftOut: readonly string[];
  readonly earlierSessions: readonly string[];
}

type Index = Pick<ContextIndex, 'session' | 'chunks' | 'cited' | 'leftOut'>;

/** `entries`: of the conversation as it stands, in their order. */
export function knownTurns(
  { session, chunks, cited = [], leftOut = [] }: Index,
  entries: readonly Entry[],
  episodes: readonly EpisodeRecord[],
): KnownTurns {
  const inPrompt = new Set(chunks.flatMap(({ slots = [] }) => listSlots(slots)));
  const out = new Set(listSlots(leftOut));
  // A life of thousands of turns is gone through once, not once for each of them.
  const spoken = byTurn(entries.filter(({ message }) => !isNotice(message)));
  const turns = [...spoken.keys()];
  const of = (turn: string): readonly Entry[] => spoken.get(turn) ?? [];
  const there = new Set(turns.filter((turn) => of(turn).some(({ slot }) => inPrompt.has(slot))));
  const counting = withoutSuperseded(episodes.filter((episode) => episode.session === session));
  const summarized = counting
    .map(({ id, turn_ids }) => ({ episode: id, turns: turn_ids.filter((turn) => spoken.has(turn)) }))
    .filter((one) => one.turns.length > 0);
  const covered = new Set(summarized.flatMap((one) => one.turns));
  return {
    whole: [...there].filter((turn) => of(turn).every(({ slot }) => inPrompt.has(slot))),
    inPart: [...there].filter((turn) => !of(turn).every(({ slot }) => inPrompt.has(slot))),
    shortened: shortenedIn(
      entries.filter(({ slot }) => inPrompt.has(slot)),
      new Set(listSlots(cited)),
    ),
    summarized,
    leftOut: turns.filter((turn) => of(turn).some(({ slot }) => out.has(slot))),
    earlierSessions: turns.filter((turn) => !there.has(turn) && !covered.has(turn) && of(turn).every((entry) => entry.session < session)),
  };
}

function byTurn(entries: readonly Entry[]): ReadonlyMap<string, readonly Entry[]> {
  const turns = new Map<string, Entry[]>();
  for (const entry of entries) {
    const ofTurn = turns.get(entry.turn);
    if (ofTurn === undefined) turns.set(entry.turn, [entry]);
    else ofTurn.push(entry);
  }
  return turns;
}

/** `entries`: those of the prompt, in their order. */
export function shortenedIn(entries: readonly Entry[], cited: ReadonlySet<number>): Shortened[] {
  const border = newFrom(entries.map(({ message }) => message));
  return entries.flatMap(({ slot, turn, message }, at): Shortened[] => {
    if (isFromPerson(message) && cited.has(slot) && measureBody(message.text) > 2 * MESSAGE_END_CHARACTERS)
      return [{ turn, kind: 'message', item: messageItemId(slot) }];
    return message.role === 'tool' && message.item && at < border ? [{ turn, kind: 'result', item: message.item.id }] : [];
  });
}

function measureBody(text: Body): number {
  return isBodyRef(text) ? text.bytes : text.length;
}
