/** Of which turns the next model call sees what: word for word, shortened, as a summary, or not at all. For people who miss something. */
import { MESSAGE_END_CHARACTERS, newFrom } from '../../conversation/context/citing.js';
import type { ContextIndex } from '../../conversation/protocol/contract.js';
import { messageItemId } from '../../memory/channel/cite-messages.js';
import { isBodyRef, isFromPerson, isNotice, type Body, type Entry } from '../../records/message.js';
import { turnNumber } from '../../records/identity.js';
import { slotsOf } from '../../records/slots.js';
import { withoutSuperseded } from '../../records/memory/items.js';
import type { EpisodeRecord } from '../../stores/store.js';
import type { StyledLine } from '../terminal/terminal-text.js';

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
  const inPrompt = new Set(chunks.flatMap(({ slots = [] }) => slotsOf(slots)));
  const out = new Set(slotsOf(leftOut));
  const spoken = entries.filter(({ message }) => !isNotice(message));
  const turns = [...new Set(spoken.map(({ turn }) => turn))];
  const of = (turn: string): Entry[] => spoken.filter((entry) => entry.turn === turn);
  const there = turns.filter((turn) => of(turn).some(({ slot }) => inPrompt.has(slot)));
  const counting = withoutSuperseded(episodes.filter((episode) => episode.session === session));
  const summarized = counting
    .map(({ id, turn_ids }) => ({ episode: id, turns: turn_ids.filter((turn) => turns.includes(turn)) }))
    .filter((one) => one.turns.length > 0);
  const covered = new Set(summarized.flatMap((one) => one.turns));
  return {
    whole: there.filter((turn) => of(turn).every(({ slot }) => inPrompt.has(slot))),
    inPart: there.filter((turn) => !of(turn).every(({ slot }) => inPrompt.has(slot))),
    shortened: shortenedIn(
      entries.filter(({ slot }) => inPrompt.has(slot)),
      new Set(slotsOf(cited)),
    ),
    summarized,
    leftOut: turns.filter((turn) => of(turn).some(({ slot }) => out.has(slot))),
    earlierSessions: turns.filter(
      (turn) => !there.includes(turn) && !covered.has(turn) && of(turn).every((entry) => entry.session < session),
    ),
  };
}

/** `entries`: those of the prompt, in their order. */
export function shortenedIn(entries: readonly Entry[], cited: ReadonlySet<number>): Shortened[] {
  const border = newFrom(entries.map(({ message }) => message));
  return entries.flatMap(({ slot, turn, message }, at): Shortened[] => {
    if (isFromPerson(message) && cited.has(slot) && lengthOf(message.text) > 2 * MESSAGE_END_CHARACTERS)
      return [{ turn, kind: 'message', item: messageItemId(slot) }];
    return message.role === 'tool' && message.item && at < border ? [{ turn, kind: 'result', item: message.item.id }] : [];
  });
}

function lengthOf(text: Body): number {
  return isBodyRef(text) ? text.bytes : text.length;
}

export function renderKnown(id: string, known: KnownTurns): StyledLine[] {
  const { whole, inPart, shortened, summarized, leftOut, earlierSessions } = known;
  const missing = inPart.length + shortened.length + summarized.length + leftOut.length + earlierSessions.length;
  if (missing === 0) return [];
  const fact = (name: string, text: string): StyledLine => [{ text: `  ${name.padEnd(14)}`, style: 'dim' }, { text }];
  const cutIn = (kind: Shortened['kind']): Shortened[] => shortened.filter((one) => one.kind === kind);
  const [messages, results] = [cutIn('message'), cutIn('result')];
  return [
    [],
    [{ text: 'what the model sees of each turn' }],
    ...(whole.length === 0 ? [] : [fact('word for word', spans(whole))]),
    ...(inPart.length === 0 ? [] : [fact('in part', spans(inPart))]),
    ...(messages.length === 0
      ? []
      : [fact('by its ends', `a long message of ${spans(messages.map(({ turn }) => turn))}; ${rest(messages)}`)]),
    ...(results.length === 0 ? [] : [fact('by a line', `long results of ${spans(results.map(({ turn }) => turn))}; ${rest(results)}`)]),
    ...summarized.map(({ episode, turns }) => fact('as a summary', `${spans(turns)}: ${episode} (perdura memory list ${id})`)),
    ...(leftOut.length === 0
      ? []
      : [fact('not now', `${spans(leftOut)}: left out until the next summary; perdura context ${id} --compact makes one`)]),
    ...(earlierSessions.length === 0
      ? []
      : [
          fact(
            'no longer',
            `${spans(earlierSessions)}: of a session that /new ended; MEMORY.md and \`perdura history\` have what was kept of it`,
          ),
        ]),
    [{ text: `  why a turn is not there: perdura context ${id} --why TURN`, style: 'dim' }],
  ];
}

function rest(some: readonly Shortened[]): string {
  const [first] = some;
  return `the rest by retrieve_from_memory (${some.length === 1 ? (first?.item ?? '') : `${first?.item ?? ''}, …`})`;
}

/** `turns 1–4, 7`. */
export function spans(turns: readonly string[]): string {
  const numbers = [...new Set(turns.map(turnNumber))].sort((a, b) => a - b);
  const found: [number, number][] = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  const text = found.map(([first, last]) => (first === last ? String(first) : `${first}–${last}`)).join(', ');
  return `${numbers.length === 1 ? 'turn' : 'turns'} ${text}`;
}
