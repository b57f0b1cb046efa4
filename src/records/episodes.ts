/** What compaction makes of older turns: their summary, what was learned, and what the conversation is for. */

/** Kept with the episode, so that "why did it forget?" has an answer: the episode has the turns and the summary. */
export interface CompactionRecord {
  /** sha256, hex, of what it was made of: the messages, the goal, the open tasks, the progress and the facts known by then. */
  readonly inputsHash: string;
  /** `WorkingFlowCompactor`, or a custom one. */
  readonly compactor: string;
  readonly method: 'model' | 'repaired' | 'rules' | 'compactor';
  /** `provider/model` that was available. */
  readonly model: string;
  /** Why not the agent's compactor, or not at the first try. */
  readonly failure?: string;
  /** Tools (or `file`, `application`) that spoke in what it was made of, as far as their word is not enough. */
  readonly tools?: readonly string[];
  /** Estimates of the messages before and after, the base with them. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
}

/** What the conversation is for; pinned, whatever else becomes memory (design section 4). */
export interface Task {
  /** What the agent has set, else what a summary says, else the words that the session began with. */
  readonly goal: string;
  readonly openTasks: readonly string[];
  /** Absent: the agent has set it. */
  readonly goalFrom?: 'beginning' | 'summary';
  /** The open tasks too. Absent: the agent has set them, or there are none. */
  readonly tasksFrom?: 'summary';
}

/** The agent pins again: all open tasks anew; a goal stays until it sets another. */
export function pinnedAgain(before: Task | null, { goal, openTasks }: Pick<Task, 'goal' | 'openTasks'>): Task {
  if (goal !== '' || before === null) return { goal, openTasks };
  return { goal: before.goal, openTasks, ...(before.goalFrom && { goalFrom: before.goalFrom }) };
}

/** A summary says what the session is for and what is open. What the agent has set stays; `beginning`: where neither has a goal. */
export function summarizedTask(
  before: Task | null,
  { goal = '', openTasks }: { readonly goal?: string | undefined; readonly openTasks?: readonly string[] | undefined },
  beginning: string,
): Task {
  const isSet = before !== null && before.goal !== '' && before.goalFrom === undefined;
  const known: Pick<Task, 'goal' | 'goalFrom'> =
    before !== null && before.goal !== '' && before.goalFrom !== 'beginning' ? before : { goal: beginning, goalFrom: 'beginning' };
  const isListed = before !== null && before.openTasks.length > 0 && before.tasksFrom === undefined;
  const open = isListed ? before.openTasks : (openTasks ?? before?.openTasks ?? []);
  return {
    ...(isSet || goal === ''
      ? { goal: known.goal, ...(known.goalFrom && { goalFrom: known.goalFrom }) }
      : { goal, goalFrom: 'summary' as const }),
    openTasks: open,
    ...(!isListed && open.length > 0 && { tasksFrom: 'summary' as const }),
  };
}

/** As seed 000, section 21, names and writes them. */
export interface Episode {
  readonly id: string;
  /** Epoch seconds. */
  readonly ts: number;
  readonly turn_ids: readonly string[];
  readonly summary: string;
  readonly tags: readonly string[];
  readonly salience: number;
}

/** How an episode relates to earlier ones of its session; beyond the seed's fields. */
export interface EpisodeLinks {
  /** It replaces these: they were made by rules, and a model has read their turns since. */
  readonly supersedes?: readonly string[];
  /** What prompts have in place of episodes that are no longer shown one by one. */
  readonly fold?: EpisodeFold;
  /** What the session was for when it was made, and what was open. */
  readonly task?: Task;
  /** Epoch seconds of the first and the last message that it is about; `ts` is when it was made. */
  readonly about?: readonly [number, number];
  /** Of the messages that people sent with pictures or documents: the newest. */
  readonly files?: readonly SentFiles[];
}

/** The pictures, sound, video and documents of one message. */
export interface SentFiles {
  readonly slot: number;
  readonly turn: string;
  readonly count: number;
}

/** What stands for older episodes that are no longer shown one by one. */
export interface EpisodeFold {
  readonly text: string;
  /** The newest one that it stands for; it stands for all before it too. */
  readonly through: string;
}

/** A fact that counts no longer, by its words. */
export interface Replacement {
  readonly fact: string;
  /** The words of the fact that replaced it; null where none did. */
  readonly by: string | null;
  /** Epoch seconds. */
  readonly ts: number;
}

/** A fact that a compaction has found. */
export interface Fact {
  readonly id: string;
  readonly ts: number;
  readonly fact: string;
  readonly tags: readonly string[];
  readonly confidence: number;
  readonly salience: number;
}
