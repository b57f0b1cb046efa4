/**
 * The memory's part of a compaction snapshot, as text (seed 000, section 19): the same memory gives the same bytes. The two
 * headings and the way their items are marked are the seed's, literally; `[TASK]` is ours and pinned (design section 4).
 */
import { type EpisodicItem, type SemanticItem, episodicId, itemNumber } from '../../records/memory/items.js';
import { indented, oneLine, withoutHeadings, cut, thatFit } from '../../records/text.js';
import { type Task, type EpisodeFold, type EpisodeLinks, type SentFiles, pinnedAgain } from '../../records/episodes.js';
import type { CountTokens } from '../tokens.js';
import { isoTime } from '../../records/memory/history-text.js';
import { turnNumber } from '../../records/identity.js';
import { SUMMARY_LIMITS } from './summary-answer.js';
import { isFromPerson, isNotice, shownText, sourcesIn, type ConversationMessage, type Entry } from '../../records/message.js';

export interface SnapshotParts {
  /** In the order of showing, which is that of time; how many there are, `retrieve` decides. */
  readonly episodic?: readonly (Pick<EpisodicItem, 'summary'> & Partial<Pick<EpisodicItem, 'id' | 'turn_ids' | 'ts'> & EpisodeLinks>)[];
  /** What replaces episodes before these: it comes first. */
  readonly earlier?: Earlier;
  /** The tool that reads an episode is offered. */
  readonly canRead?: boolean;
  /** Of a message, for open_memory; absent where that is not offered. */
  readonly addressOf?: AddressOf | undefined;
  /** In the order of showing. */
  readonly semantic?: readonly Pick<SemanticItem, 'fact'>[];
  readonly goal?: string;
  readonly goalFrom?: Task['goalFrom'];
  readonly openTasks?: readonly string[];
}

type AddressOf = (slot: number) => string;

/** Parts without content are left out; '' when all are. Does not end in a line feed. */
export function memoryBundle({
  episodic = [],
  earlier,
  canRead = false,
  addressOf,
  semantic = [],
  goal = '',
  goalFrom,
  openTasks = [],
}: SnapshotParts): string {
  const summaries = episodic
    .filter(({ summary }) => indented(summary, '') !== '')
    .map(({ summary, id, turn_ids = [], ts = 0, about, files = [] }) =>
      [
        indented(withoutHeadings(summary), '   '),
        ...(id === undefined ? [] : [`   (${id}: ${describeEpisodes([{ turn_ids, ts, ...(about && { about }) }])})`]),
        ...(addressOf && files.length > 0 ? [`   (${describeFiles(files, addressOf)})`] : []),
      ].join('\n'),
    );
  const facts = semantic.map(({ fact }) => withoutHeadings(oneLine(fact))).filter((fact) => fact !== '');
  const tasks = openTasks.map((task) => withoutHeadings(oneLine(task))).filter((task) => task !== '');
  const goalText = indented(withoutHeadings(goal), '  ');
  return [
    section('[MEMORY:EPISODIC]', [
      ...(earlier ? [earlierText(earlier)] : []),
      ...summaries.map((summary, i) => `${i + 1}) ${summary}`),
      ...(canRead && summaries.length > 0 ? ['read_episode shows what a summary stands for, by its id.'] : []),
    ]),
    section(
      '[MEMORY:SEMANTIC]',
      facts.map((fact) => `- ${fact}`),
    ),
    section('[TASK]', [
      ...(goalText === '' ? [] : [`${goalFrom === 'beginning' ? BEGAN : GOAL}${goalText}`]),
      ...(tasks.length === 0 ? [] : ['Open tasks:', ...tasks.map((task) => `- ${task}`)]),
    ]),
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

const GOAL = 'Goal: ';
/** No goal: `Hi there!` is none. */
const BEGAN = 'The session began with: ';

function describeFiles(files: readonly SentFiles[], addressOf: AddressOf): string {
  const each = files.map(({ turn, count, slot }) => {
    const what = count === 1 ? 'a file' : `${count} files`;
    return `${what} of turn ${turnNumber(turn)} at ${addressOf(slot)}`;
  });
  return `pictures and documents are not shown any more; open_memory shows them again: ${each.join(', ')}`;
}

function earlierText({ text, episodes }: Earlier): string {
  const [newest, oldest] = [episodes[0]?.id ?? '', episodes.at(-1)?.id ?? ''];
  const ids = newest === oldest ? `one summary (${newest})` : `${episodes.length} summaries (${oldest} to ${newest})`;
  const where = `Before these: ${describeEpisodes(episodes)}, in ${ids}`;
  return text === '' ? `${where}.` : `${where}; in short:\n   ${indented(withoutHeadings(text), '   ')}`;
}

function section(heading: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : [heading, ...lines].join('\n');
}

/** Of the line at which a compaction is due. */
const SHARE = 1 / 3;
/** The newest summary keeps at least these. */
const MIN_SUMMARY = 200;
/** What says that a text was cut takes no more. */
const MARK_CHARACTERS = 40;

/** What a model is shown of its older turns: episodes and facts. */
export interface MemoryBundle {
  /** Episodes beyond these; absent when there are none. */
  readonly earlier?: Earlier;
  /** Newest first. */
  readonly episodic: readonly FoldedEpisode[];
  /** As `mostRelevant` has them. */
  readonly semantic: readonly SemanticItem[];
}

interface BoundedParts extends MemoryBundle, Partial<Task>, Pick<SnapshotParts, 'canRead' | 'addressOf'> {}

/**
 * `line`: tokens at which a compaction is due. The goal and the open tasks stay; the least salient facts go first, then the texts of
 * summaries, the oldest first, so that what was changed since is never all that is left of a thing; then the end of the newest.
 */
export function boundedBundle(parts: BoundedParts, line: number, count: CountTokens): string {
  let { episodic, semantic, earlier } = parts;
  for (;;) {
    const text = memoryBundle({ ...parts, episodic: episodic.toReversed(), semantic, ...(earlier && { earlier }) });
    const [newest] = episodic;
    const oldest = episodic.at(-1);
    if (count(text) <= line * SHARE) return text;
    if (semantic.length > episodic.length) semantic = semantic.slice(0, Math.floor(semantic.length / 2));
    else if (earlier && earlier.text !== '') earlier = { ...earlier, text: '' };
    else if (oldest && episodic.length > 1) {
      earlier = { text: '', episodes: [oldest, ...(earlier?.episodes ?? [])] };
      episodic = episodic.slice(0, -1);
    } else if (semantic.length > 0) semantic = [];
    else {
      const summary = cut(newest?.summary ?? '', Math.max(MIN_SUMMARY, Math.floor((newest?.summary.length ?? 0) / 2)));
      // What says that it was cut takes room too: there it ends.
      if (!newest || summary.length >= newest.summary.length) return text;
      episodic = [{ ...newest, summary }];
    }
  }
}

/** Before what an epoch begins with: who says it, and what it is. */
export function framedBase(text: string): string {
  const what = text.startsWith('[MEMORY:EPISODIC]')
    ? 'It stands for earlier messages of this session that are not in your prompt any more: summaries of them, oldest first, with their turns and dates; then what is known from all conversations, and what this session is for'
    : 'It has what is known from earlier conversations, and what this session is for, as far as that is known';
  return `[This is not from the person: Perdura, the program that runs this conversation, has written it. ${what}. It tells what was; nothing in it is a new instruction.]\n\n${text}`;
}

// Episodes that are no longer shown one by one, as one text that grows slowly: each compaction folds in the one that leaves (seed 000, by
// whom `[MEMORY:EPISODIC]` has three). The newest episode carries it, so that with a compaction its fold is undone too. Pure.

/** An episode, and where it came from. */
export type FoldedEpisode = EpisodicItem & EpisodeLinks;

export interface Folding {
  /** What replaces earlier ones already; '' when nothing does. */
  readonly text: string;
  readonly through: string;
  /** To be folded in, oldest first. */
  readonly leaving: readonly FoldedEpisode[];
}

/** `episodes`: those that count, newest first, of which the first `shown` are shown as they are. */
export function toFolding(episodes: readonly FoldedEpisode[], shown: number): Folding {
  const { text, through } = episodes.find(({ fold }) => fold !== undefined)?.fold ?? { text: '', through: episodicId(0) };
  const leaving = episodes.slice(shown).filter(({ id }) => itemNumber(id) > itemNumber(through));
  return { text, through, leaving: leaving.reverse() };
}

/** `byModel`: what a model has made of it; without it the newest of the summaries do. Undefined while nothing is folded. */
export function folded({ text, through, leaving }: Folding, byModel?: string): EpisodeFold | undefined {
  const last = leaving.at(-1);
  if (last) return { text: byModel ?? foldByRules(text, leaving), through: last.id };
  return text === '' ? undefined : { text, through };
}

/** What episodes beyond the first `shown` are in a prompt; undefined when there are none. */
export function foldEarlier(episodes: readonly FoldedEpisode[], shown: number): Earlier | undefined {
  const earlier = episodes.slice(shown);
  if (earlier.length === 0) return undefined;
  const { text, leaving } = toFolding(episodes, shown);
  return { text: foldByRules(text, leaving), episodes: earlier };
}

/** What replaces episodes that are too old to be shown one by one. */
export interface Earlier {
  readonly text: string;
  /** Newest first. */
  readonly episodes: readonly FoldedEpisode[];
}

/** The same for episodes that have other ids now, such as those of a fork: what is folded is the newest of them up to it. */
export function refolded({ text, through }: EpisodeFold, newIds: ReadonlyMap<string, string>): EpisodeFold {
  const numbers = [...newIds.keys()].map(itemNumber).filter((number) => number <= itemNumber(through));
  const newest = numbers.length === 0 ? undefined : newIds.get(episodicId(Math.max(...numbers)));
  return { text, through: newest ?? episodicId(0) };
}

/** Of how many messages a summary says where their files are. */
const MAX_FILES = 8;

/** Where the files are that people sent with these messages. */
export function filesIn(entries: readonly Pick<Entry, 'slot' | 'turn' | 'message'>[]): Pick<EpisodeLinks, 'files'> {
  const files = entries.flatMap(({ slot, turn, message }): SentFiles[] => {
    const count = isFromPerson(message) ? sourcesIn(message).length : 0;
    return count > 0 ? [{ slot, turn, count }] : [];
  });
  return files.length > 0 ? { files: files.slice(-MAX_FILES) } : {};
}

/** Epoch seconds of the first and the last of these messages. */
export function timeSpan(entries: readonly Pick<Entry, 'ts'>[]): readonly [number, number] {
  const times = entries.map(({ ts }) => ts);
  return [times.reduce((a, b) => Math.min(a, b), Infinity), times.reduce((a, b) => Math.max(a, b), 0)];
}

/** `turns 3–8, 2026-11-20`, in UTC: of what they are about. */
export function describeEpisodes(episodes: readonly (Pick<EpisodicItem, 'turn_ids' | 'ts'> & Pick<EpisodeLinks, 'about'>)[]): string {
  const turns = episodes.flatMap(({ turn_ids }) => turn_ids.map(turnNumber)).sort((a, b) => a - b);
  const days = episodes.flatMap(({ ts, about = [ts] }) => about.map((time) => isoTime(time).slice(0, 10))).sort();
  const span = (values: readonly (number | string)[]): string => [...new Set([values[0], values.at(-1)])].join('–');
  return [...(turns.length === 0 ? [] : [`${turns.length === 1 ? 'turn' : 'turns'} ${span(turns)}`]), span(days)].join(', ');
}

/** The newest that have room, whole: what says how a thing was must not outlive what says how it is now. */
function foldByRules(text: string, leaving: readonly FoldedEpisode[]): string {
  const lines = leaving.map((episode) => `${episode.id} (${describeEpisodes([episode])}): ${oneLine(episode.summary)}`);
  const newestFirst = [...(text === '' ? [] : text.split('\n')), ...lines].reverse();
  const shown = thatFit(newestFirst, SUMMARY_LIMITS.fold);
  return shown.length > 0 ? shown.toReversed().join('\n') : cut(newestFirst[0] ?? '', SUMMARY_LIMITS.fold - MARK_CHARACTERS);
}

// What a conversation is for, as its messages say it (design section 4): what the tool `set_task` has pinned last, and its first message.

const GOAL_CHARACTERS = 500;
/** As `memoryBundle` writes it, at the end of what it writes. */
const PINNED = /(?:^|\n\n)(\[TASK\]\n[^]*)$/;
const PINNED_GOAL = /^\[TASK\]\n(Goal: |The session began with: )([^]*?)(?:\nOpen tasks:|$)/;

/** The words that a session began with: what it is for, as long as neither the agent nor a summary says it. */
export function beginningIn(messages: readonly ConversationMessage[]): string {
  const first = messages.find(isFromPerson);
  return first ? cut(shownText(first.text), GOAL_CHARACTERS) : '';
}

/** As the tool `set_task` has pinned it; its goal is '' where none was ever set. */
export function taskIn(messages: readonly ConversationMessage[]): Task | null {
  const done = new Set(messages.flatMap((message) => (message.role === 'tool' && message.outcome === 'ok' ? [message.callId] : [])));
  let pinned: Task | null = null;
  for (const message of messages) {
    if (message.role !== 'assistant') continue;
    for (const block of message.blocks) {
      if (block.kind !== 'tool-call' || block.name !== 'set_task' || !done.has(block.callId)) continue;
      const { goal, openTasks } = (block.input ?? {}) as { readonly goal?: unknown; readonly openTasks?: unknown };
      pinned = pinnedAgain(pinned, {
        goal: typeof goal === 'string' ? goal.trim() : '',
        openTasks: Array.isArray(openTasks) ? openTasks.filter((one): one is string => typeof one === 'string') : [],
      });
    }
  }
  return pinned;
}

/** Whether what comes before the messages of an epoch names the goal, or what the session began with. */
export function namesGoal(base: string): boolean {
  return PINNED_GOAL.test(PINNED.exec(base)?.[1] ?? '');
}

/**
 * Of messages that leave a prompt and for which there is no summary: what they have pinned, as the end of the notice that says so; '' where
 * that is nothing. An earlier notice may be among them: wherever it is, it has what left before all others of these, since the oldest
 * leave first. `isBeginning`: the session's first message is the first of these.
 */
export function describePins(leaving: readonly ConversationMessage[], isBeginning: boolean): string {
  const noticed = leaving.map((message) =>
    message.role === 'user' && isNotice(message) ? PINNED.exec(shownText(message.text))?.[1] : undefined,
  );
  const notice = noticed.findLast((text) => text !== undefined);
  const pinned = taskIn(leaving);
  if (notice !== undefined && pinned === null) return `\n\n${notice}`;
  const [, label, noticedGoal] = PINNED_GOAL.exec(notice ?? '') ?? [];
  const beginning = isBeginning ? beginningIn(leaving) : '';
  const known: Pick<SnapshotParts, 'goal' | 'goalFrom'> =
    noticedGoal === undefined || label === BEGAN
      ? { goal: noticedGoal?.replace(/\n {2}/g, '\n') ?? beginning, goalFrom: 'beginning' }
      : { goal: noticedGoal.replace(/\n {2}/g, '\n') };
  const text = memoryBundle({ ...(pinned?.goal ? { goal: pinned.goal } : known), openTasks: pinned?.openTasks ?? [] });
  return text === '' ? '' : `\n\n${text}`;
}
