/**
 * The memory's part of a compaction snapshot, as text (seed 000, section 19): the same memory gives the same bytes. The two
 * headings and the way their items are marked are the seed's, literally; `[TASK]` is ours and pinned (design section 4).
 */
import type { EpisodicItem, SemanticItem } from '../../records/memory/items.js';
import { indented, oneLine, withoutHeadings } from '../../records/text.js';
import { describeEpisodes, type Earlier } from './fold.js';

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
