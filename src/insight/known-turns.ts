/** Of which turns the next model call sees what: word for word, shortened, as a summary, or not at all. For people who miss something. */
import { MESSAGE_END_CHARACTERS, newFrom } from '../conversation/context/citing.js';
import type { ContextIndex } from '../conversation/protocol/contract.js';
import { messageItemId } from '../memory/channel/citations.js';
import { isBodyRef, isFromPerson, isNotice, type Body, type Entry } from '../records/message.js';
import { listSlots } from '../records/slots.js';
import { withoutSuperseded } from '../records/memory/items.js';
import type { EpisodeRecord } from '../stores/store.js';

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
