/** What differs between a conversation as recorded and as played, for people. Pure. */
import { withSortedKeys } from '../platform/json.js';
import type { ComparedTurn, PlayedLane, ReportedConversation, TurnSide, Verdict } from './report.js';

/** How one conversation stands: `acts` it acts otherwise, `words` it differs in requests or words alone. */
export type Standing = 'skipped' | 'stopped' | 'acts' | 'words' | 'same';

export const STANDING: Readonly<Record<Standing, string>> = {
  skipped: 'skipped',
  stopped: 'stopped',
  acts: 'acts otherwise',
  words: 'differs, acts alike',
  same: 'the same',
};

/** What a report is about: the candidate, or the baseline where it was played alone. */
export function mainLane(lanes: ReportedConversation['lanes']): PlayedLane | undefined {
  return lanes.candidate ?? lanes.baseline;
}

export function findStanding(line: ReportedConversation, lane: PlayedLane | undefined = mainLane(line.lanes)): Standing {
  if (lane === undefined) return 'skipped';
  if (lane.stopped !== undefined) return 'stopped';
  if (!lane.turns.every(actsAlike)) return 'acts';
  return lane.divergence === null ? 'same' : 'words';
}

/** Which tools were called with what, in their order, and how the turn ended. Its words are not compared: a model seldom repeats them. */
export function actsAlike({ recorded, played }: ComparedTurn): boolean {
  if (recorded === undefined || played === undefined) return recorded === played;
  return recorded.stopReason === played.stopReason && callsAlike(recorded, played);
}

function callsAlike({ calls }: TurnSide, { calls: others }: TurnSide): boolean {
  return (
    calls.length === others.length &&
    calls.every(({ name, input }, at) => name === others[at]?.name && canonical(input) === canonical(others[at]?.input ?? ''))
  );
}

/** Keys in one order; what was shortened is no JSON, and stays as it is. */
function canonical(input: string): string {
  try {
    return JSON.stringify(withSortedKeys<unknown>(JSON.parse(input)));
  } catch {
    return input;
  }
}

/** All where they are few; else those that differ, then the first. */
export function chooseTurns(
  turns: readonly ComparedTurn[],
  most: number,
  isAlike: (turn: ComparedTurn) => boolean = actsAlike,
): ReadonlySet<ComparedTurn> {
  if (turns.length <= most) return new Set(turns);
  return new Set([...new Set([...turns.filter((turn) => !isAlike(turn)), ...turns])].slice(0, most));
}

/** Of one that was stopped those before the turn in which it was: what would have followed is not known. */
export function countedTurns({ turns, stopped }: PlayedLane): readonly ComparedTurn[] {
  if (stopped === undefined) return turns;
  const at = turns.findIndex(({ turn }) => turn === stopped.turn);
  return at === -1 ? turns.filter(({ recorded, played }) => recorded !== undefined && played !== undefined) : turns.slice(0, at);
}

/** The part of a conversation that a person looks at first. */
export interface FirstDifference {
  /** `turn 3, call 1: tool calls differ`. */
  readonly where: string;
  readonly turn: string;
  readonly recorded: string;
  readonly played: string;
}

const WHAT: Readonly<Record<string, string>> = {
  system: 'the system prompt of the request',
  tools: 'the tools that the request offers',
  messages: 'the messages of the request',
  model: 'the model',
  'tool-calls': 'the tools it calls',
  text: 'the text of the answer',
  stop: 'how the answer ended',
  missing: 'one side has no such call',
};

export function shortTurn(turn: string): string {
  return turn.replace(/^turn_0*(?=\d)/, 'turn ');
}

/**
 * Where the two part; where that is a request, or words, what follows from it as well: the first answer that differs, or the first turn that
 * acts otherwise. A changed prompt differs at once, and says little.
 */
export function firstDifferences(lane: PlayedLane): readonly FirstDifference[] {
  const { divergence, answerDivergence } = lane;
  const found = [divergence, answerDivergence].flatMap((one) => one ?? []);
  const told = found.map(({ turn, call, of, what, recorded, played }) => ({
    where: `${shortTurn(turn)}, call ${call}${of === undefined ? '' : ` of its sub-agent ${of}`}: ${WHAT[what] ?? what}`,
    turn,
    recorded: recorded === '' ? NOTHING : recorded,
    played: played === '' ? NOTHING : played,
  }));
  if (found.some(({ what }) => ['tool-calls', 'stop', 'missing'].includes(what))) return told;
  const turns = countedTurns(lane);
  const acts = turns.find((one) => !actsAlike(one));
  if (acts !== undefined) return [...told, { where: `${shortTurn(acts.turn)} acts otherwise`, turn: acts.turn, ...describeBoth(acts) }];
  const words = found.some(({ what }) => what === 'text') ? undefined : turns.find((one) => one.recorded?.text !== one.played?.text);
  return words === undefined
    ? told
    : [...told, { where: `${shortTurn(words.turn)} has other words`, turn: words.turn, ...describeBoth(words) }];
}

const NOTHING = '(nothing)';

function describeBoth({ recorded, played }: ComparedTurn): Pick<FirstDifference, 'recorded' | 'played'> {
  return { recorded: describeSide(recorded), played: describeSide(played) };
}

/** Its calls, a line each, and how it ended. */
function describeSide(side: TurnSide | undefined): string {
  if (side === undefined) return '(there is no such turn)';
  const calls = side.calls.map(({ name, input }) => `${name} ${input}`);
  return [
    ...(calls.length === 0 ? ['(no tool is called)'] : calls),
    side.text,
    ...(side.stopReason === 'end' ? [] : [`(ended: ${side.stopReason})`]),
  ]
    .filter((line) => line !== '')
    .join('\n');
}

export function describeVerdict({ better, why, agreesWithItself }: Verdict): string {
  const words = {
    recorded: 'the candidate is worse',
    candidate: 'the candidate is better',
    same: 'both are as good',
    unreadable: 'its answer could not be read',
  };
  return `Judge: ${words[better]}${better === 'unreadable' || agreesWithItself ? '' : ', and it contradicts itself when the order changes'}. ${why}`;
}

/** How many UTF-16 units both begin and end with: what stands between is what differs. Never half of a character. */
export function commonEnds(a: string, b: string): { readonly head: number; readonly tail: number } {
  const least = Math.min(a.length, b.length);
  let head = 0;
  while (head < least && a[head] === b[head]) head += 1;
  if (head > 0 && isHighSurrogate(a.charCodeAt(head - 1))) head -= 1;
  let tail = 0;
  while (tail < least - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  if (tail > 0 && isLowSurrogate(a.charCodeAt(a.length - tail))) tail -= 1;
  return { head, tail };
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;

// Texts of models, tools and strangers.

const CONTROL = '\\p{Cc}\\p{Surrogate}\\u{2028}\\u{2029}\\u{fffe}\\u{ffff}';
const INVISIBLE = '\\p{Default_Ignorable_Code_Point}\\p{Bidi_Control}\\u{fff9}-\\u{fffb}';
// Variation selectors 15 and 16 stay: they choose between text and emoji.
const HIDDEN = new RegExp(`[[${CONTROL}${INVISIBLE}]--[\\n\\t\\u{fe0e}\\u{fe0f}]]`, 'gv');
/** Of scripts and emoji that need a joiner between two of them. */
const JOINED = /^[\p{L}\p{M}\p{Extended_Pictographic}\p{Emoji_Modifier}\u{fe0f}]/u;

/** What cannot be seen, or moves or reorders what stands beside it, is shown by its code: it counts where two texts are compared. */
export function withVisibleMarks(text: string): string {
  return text
    .replace(/\r\n/g, '\n')
    .replace(HIDDEN, (mark, at: number) => (isJoiner(mark, text, at) ? mark : `\\u{${(mark.codePointAt(0) ?? 0).toString(16)}}`));
}

function isJoiner(mark: string, text: string, at: number): boolean {
  if (mark !== '\u200c' && mark !== '\u200d') return false;
  const before = Array.from(text.slice(Math.max(0, at - 2), at)).at(-1) ?? '';
  return JOINED.test(before) && JOINED.test(text.slice(at + 1, at + 3));
}
