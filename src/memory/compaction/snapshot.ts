/**
 * The memory's part of a compaction snapshot, as text (seed 000, section 19): the same memory gives the same bytes. The two
 * headings and the way their items are marked are the seed's, literally; `[TASK]` is ours and pinned (design section 4).
 */
import type { EpisodicItem, SemanticItem } from '../../records/memory/items.js';
import { indented, oneLine, withoutHeadings, cut } from '../../records/text.js';
import { describeEpisodes, type Earlier } from './fold.js';
import type { Task } from '../../records/episodes.js';
import type { MemoryBundle } from '../facts.js';
import type { CountTokens } from '../tokens.js';

export interface SnapshotParts {
  /** In the order of showing; how many there are, `retrieve` decides. */
  readonly episodic?: readonly (Pick<EpisodicItem, 'summary'> & Partial<Pick<EpisodicItem, 'id' | 'turn_ids' | 'ts'>>)[];
  /** What stands for episodes before these. */
  readonly earlier?: Earlier;
  /** The tool that reads an episode is offered. */
  readonly canRead?: boolean;
  /** In the order of showing. */
  readonly semantic?: readonly Pick<SemanticItem, 'fact'>[];
  readonly goal?: string;
  readonly openTasks?: readonly string[];
}

/** Parts without content are left out; '' when all are. Does not end in a line feed. */
export function memoryBundle({ episodic = [], earlier, canRead = false, semantic = [], goal = '', openTasks = [] }: SnapshotParts): string {
  const summaries = episodic
    .filter(({ summary }) => indented(summary, '') !== '')
    .map(({ summary, id, turn_ids = [], ts = 0 }) =>
      [
        indented(withoutHeadings(summary), '   '),
        ...(id === undefined ? [] : [`   (${id}: ${describeEpisodes([{ turn_ids, ts }])})`]),
      ].join('\n'),
    );
  const facts = semantic.map(({ fact }) => withoutHeadings(oneLine(fact))).filter((fact) => fact !== '');
  const tasks = openTasks.map((task) => withoutHeadings(oneLine(task))).filter((task) => task !== '');
  const goalText = indented(withoutHeadings(goal), '  ');
  return [
    section('[MEMORY:EPISODIC]', [
      ...summaries.map((summary, i) => `${i + 1}) ${summary}`),
      ...(earlier ? [earlierText(earlier)] : []),
      ...(canRead && summaries.length > 0 ? ['read_episode shows what a summary stands for, by its id.'] : []),
    ]),
    section(
      '[MEMORY:SEMANTIC]',
      facts.map((fact) => `- ${fact}`),
    ),
    section('[TASK]', [
      ...(goalText === '' ? [] : [`Goal: ${goalText}`]),
      ...(tasks.length === 0 ? [] : ['Open tasks:', ...tasks.map((task) => `- ${task}`)]),
    ]),
  ]
    .filter((part) => part !== '')
    .join('\n\n');
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

interface BoundedParts extends MemoryBundle, Partial<Task> {
  /** The tool that reads an episode is offered. */
  readonly canRead?: boolean;
}

/**
 * `line`: tokens at which a compaction is due. The goal and the open tasks stay; the least salient facts go first, then the texts of
 * summaries, the oldest first, so that what was changed since is never all that is left of a thing; then the end of the newest.
 */
export function boundedBundle(parts: BoundedParts, line: number, count: CountTokens): string {
  let { episodic, semantic, earlier } = parts;
  for (;;) {
    const text = memoryBundle({ ...parts, episodic, semantic, ...(earlier && { earlier }) });
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
