/** What stands before the messages of an epoch, small enough for the model that reads it: memory must not take the place of the talk. */
import { cut } from '../../records/text.js';
import type { Task } from '../../records/episodes.js';
import type { MemoryBundle } from '../facts.js';
import type { CountTokens } from '../tokens.js';
import { memoryBundle } from './snapshot.js';

/** Of the line at which a compaction is due. */
const SHARE = 1 / 3;
/** The newest summary keeps at least these. */
const MIN_SUMMARY = 200;

export interface BoundedParts extends MemoryBundle, Partial<Task> {
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
