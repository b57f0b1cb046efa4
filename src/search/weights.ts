/**
 * What counts how much in the ranking, and the bounds of its work. The values come from a measurement on real conversations, one step at a
 * time; they are few and round on purpose.
 */
export const WEIGHTS = {
  /** BM25: how soon the same word again adds nothing more. */
  saturation: 1.2,
  /** BM25: how far a long text pays for its length. Half of the textbook's: the longer messages of a talk are those with the facts. */
  length: 0.5,
  /** A question and its answer are different messages: a turn has a part of what its neighbours have. */
  neighbour: 0.5,
  secondNeighbour: 0.25,
  /** What the stretch of talk around it is about; more lets one long session win. */
  session: 0.07,
  /** The question names who wrote it. */
  speaker: 1.5,
  /** A question is rarely the answer. */
  question: 0.9,
  /** Of a turn with a date in it, where the question asks when. */
  dated: 1.3,
  /** The question names a time, and the turn was at that time, or mentions it. */
  time: 1,
  /**
   * Where there are vectors: of the question's words, how much the passage that is most like it is worth. They are added to the words,
   * each scaled by itself, since that has one number to choose and keeps how much better the best is, which ranks alone do not (Bruch and
   * others, An Analysis of Fusion Functions for Hybrid Retrieval, 2023).
   */
  meaning: 0.5,
  /**
   * A passage is like a question only as far as it is more like it than others are, in standard deviations: from the first number on, and
   * fully at the second. What is near in one model is far in another; and among many that have nothing to do with it, some come to three.
   */
  likeFrom: 2,
  likeFully: 6,
} as const;

export type Weights = { readonly [name in keyof typeof WEIGHTS]: number };

export const BOUNDS = {
  /** Turns in a window of a session. */
  windowTurns: 30,
  /** Silence after which talk in the same session is about something else, in seconds. */
  windowGap: 4 * 60 * 60,
  /** Characters of a question that are read. */
  questionCharacters: 8_192,
  /** Different words of a question that are looked for; of more the first ones. */
  questionWords: 48,
  /** Words of one passage that are read; a letter of a script without blanks may be one. */
  passageWords: 2_048,
  /** UTF-16 units of a word; of a longer one its beginning is looked for. */
  wordLength: 48,
  /** Characters of a passage, about: a long text is several. */
  passage: 1_600,
  /** Characters of one text that can be found; what is beyond them cannot. */
  text: 256 * 1024,
  /** Passages that a search answers at most. */
  hits: 200,
} as const;

/** The score of its words alone that a hit must have to be sure of: a rare word alone in a large index, two in a small one. */
export const SURE = 4;
