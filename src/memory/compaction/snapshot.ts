/**
 * The memory's part of a compaction snapshot, as text (seed 000, section 19): the same memory gives the same bytes. The two
 * headings and the way their items are marked are the seed's, literally; `[TASK]` is ours and pinned (design section 4).
 */
import type { EpisodicItem, SemanticItem } from '../../records/memory/items.js';
import { indented, oneLine, withoutHeadings } from '../../records/text.js';
import { MAX_EPISODIC_ITEMS, MAX_SEMANTIC_ITEMS } from '../facts.js';

export interface SnapshotParts {
  /** In the order of showing; more than three are left out. */
  readonly episodic?: readonly Pick<EpisodicItem, 'summary'>[];
  /** In the order of showing; more than twenty are left out. */
  readonly semantic?: readonly Pick<SemanticItem, 'fact'>[];
  readonly goal?: string;
  readonly openTasks?: readonly string[];
}

/** Parts without content are left out; '' when all are. Does not end in a line feed. */
export function memoryBundle({ episodic = [], semantic = [], goal = '', openTasks = [] }: SnapshotParts): string {
  const summaries = episodic.map(({ summary }) => indented(withoutHeadings(summary), '   ')).filter((summary) => summary !== '');
  const facts = semantic.map(({ fact }) => withoutHeadings(oneLine(fact))).filter((fact) => fact !== '');
  const tasks = openTasks.map((task) => withoutHeadings(oneLine(task))).filter((task) => task !== '');
  const goalText = indented(withoutHeadings(goal), '  ');
  return [
    section(
      '[MEMORY:EPISODIC]',
      summaries.slice(0, MAX_EPISODIC_ITEMS).map((summary, i) => `${i + 1}) ${summary}`),
    ),
    section(
      '[MEMORY:SEMANTIC]',
      facts.slice(0, MAX_SEMANTIC_ITEMS).map((fact) => `- ${fact}`),
    ),
    section('[TASK]', [
      ...(goalText === '' ? [] : [`Goal: ${goalText}`]),
      ...(tasks.length === 0 ? [] : ['Open tasks:', ...tasks.map((task) => `- ${task}`)]),
    ]),
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

function section(heading: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : [heading, ...lines].join('\n');
}
