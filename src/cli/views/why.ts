/** "Why did it forget?": what took a turn out of the prompt, and what stands for it. */
import type { Leaving } from '../../conversation/replay/leaving.js';
import type { EpisodeRecord } from '../../stores/store.js';
import type { TimeFormat } from '../args/global-options.js';
import { toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { turnNumber } from '../../records/identity.js';
import type { Shortened } from './known-turns.js';
import { formatCount, formatTime } from './quantities.js';

/** One thing that took entries of the turn out of the prompt, or brought them back, with what the store knows of it. */
export interface Why {
  readonly kind: Leaving['kind'];
  /** Epoch milliseconds. */
  readonly at: number;
  readonly epoch: number;
  readonly session: number;
  readonly slots: readonly number[];
  /** All that left with it. */
  readonly turns: readonly string[];
  readonly tokens: Leaving['tokens'] | null;
  /** `provider/model` that summarized, and how; null where no model did, or an earlier version did not keep it. */
  readonly model: string | null;
  readonly method: string | null;
  readonly inputsHash: string | null;
  /** Why no model's summary, or none at the first try; null where there was nothing amiss. */
  readonly failure: string | null;
  readonly episode: string | null;
  /** As the store has it, so without what was forgotten since. */
  readonly summary: string | null;
  readonly consolidation: string | null;
  readonly from: 'history' | 'store';
}

/** Oldest first: causes from the history, and those of compactions that took what had left the prompt before, or that only the store still knows. */
export function whyOf(
  turn: string,
  leavings: readonly Leaving[],
  episodes: readonly EpisodeRecord[],
  turnOf: (slot: number) => string | undefined,
): Why[] {
  const explained = leavings.map((leaving): Why => {
    const { kind, at, epoch, session, slots, allSlots, tokens, compaction, consolidation } = leaving;
    const episode = compaction && episodes.find((one) => one.id === compaction.episode && one.epoch === epoch);
    const made = episode?.made;
    return {
      ...{ kind, at, epoch, session, slots, tokens },
      turns: compaction?.turns ?? turnsOf(allSlots, turnOf),
      model: made?.model ?? compaction?.model ?? null,
      method: compaction?.method ?? null,
      inputsHash: made?.inputsHash ?? compaction?.inputsHash ?? null,
      failure: made?.failure ?? null,
      episode: compaction?.episode ?? null,
      summary: episode?.summary ?? null,
      consolidation: consolidation ?? null,
      from: 'history',
    };
  });
  const known = new Set(explained.map(({ episode }) => episode));
  const older = episodes
    .filter(({ id, turn_ids }) => turn_ids.includes(turn) && !known.has(id))
    .map((episode): Why => {
      const { id, ts, turn_ids, epoch, session, summary, made, tags } = episode;
      return {
        ...{
          kind: tags.includes('trimmed') ? 'trimmed' : 'compacted',
          at: ts * 1000,
          epoch,
          session,
          slots: [],
          turns: turn_ids,
          tokens: null,
          summary,
          consolidation: null,
          from: 'store',
        },
        model: made?.model ?? null,
        method: made?.method ?? null,
        inputsHash: made?.inputsHash ?? null,
        failure: made?.failure ?? null,
        episode: id,
      };
    });
  return [...older, ...explained].sort((a, b) => a.at - b.at);
}

function turnsOf(slots: readonly number[], turnOf: (slot: number) => string | undefined): string[] {
  return [...new Set(slots.flatMap((slot) => turnOf(slot) ?? []))].sort();
}

export interface WhyAnswer {
  readonly id: string;
  readonly turn: string;
  /** `/new` has ended its session: its summaries are in no prompt any more. */
  readonly hasEnded: boolean;
  /** It was cut out by a rewind, and is in this branch. */
  readonly branch?: number;
  readonly entries: number;
  /** Of those in the prompt, what is not shown whole there. */
  readonly shortened: readonly Shortened[];
  /** How many of them the next model call sees word for word. */
  readonly inPrompt: number;
  readonly causes: readonly Why[];
  /** False when earlier runs are no longer in Temporal's history. */
  readonly complete: boolean;
  readonly problems: readonly string[];
}

export function renderWhy(
  { id, turn, hasEnded, branch, entries, shortened, inPrompt, causes, complete, problems }: WhyAnswer,
  timeFormat: TimeFormat,
  now: number,
): StyledLine[] {
  const all = `${formatCount(entries)} ${entries === 1 ? 'message' : 'messages'}`;
  const show = `perdura show ${id}${branch === undefined ? '' : ` --branch ${branch}`} --turn ${turnNumber(turn)}`;
  const head =
    inPrompt < entries
      ? inPrompt > 0
        ? `${turn} is partly in the prompt: ${inPrompt} of its ${all}`
        : `${turn} is no longer in the prompt: none of its ${all} is`
      : shortened.length > 0
        ? `${turn} is in the prompt, and not all of it word for word`
        : `${turn} is not forgotten: all of its ${all} ${entries === 1 ? 'is' : 'are'} in the prompt`;
  const last = causes.findLast(({ kind }) => kind !== 'returned');
  const stands = inPrompt < entries && last ? standsFor(hasEnded ? { ...last, kind: 'session-ended' } : last, id, turn) : undefined;
  const line = (text: string): StyledLine => [{ text: `  ${text}` }];
  return [
    [{ text: head, style: 'bold' }],
    ...shortened.map((one) => line(SHORTENED[one.kind](one.item))),
    ...(hasEnded ? [line('/new has ended its session')] : []),
    ...(stands === undefined ? [] : [line(`what the model has instead: ${stands}`)]),
    ...(inPrompt < entries || shortened.length > 0 ? [line(`word for word: ${show}`)] : []),
    ...causes.flatMap((why) => drawWhy(why, timeFormat, now)),
    ...(causes.length === 0 && inPrompt < entries
      ? [[{ text: '  what took it out is not known any more', style: 'yellow' }] as StyledLine]
      : []),
    ...(complete
      ? []
      : [
          [{ text: '  earlier runs have passed their retention: what happened in them, only the store knows', style: 'dim' }] as StyledLine,
        ]),
    ...problems.map((problem): StyledLine => [
      { text: `  a run cannot be replayed with this version: ${toTerminalLine(problem, 300)}`, style: 'yellow' },
    ]),
  ];
}

const IN_WORDS: Readonly<Record<Why['kind'], string>> = {
  compacted: 'compaction: older turns were summarized, and the summary takes their place',
  truncated: 'truncation: the context was over its last threshold, so the oldest was left out until the next summary',
  trimmed: 'trim: long-term memory has these turns, and the prompt has their summary instead',
  'session-ended': 'reset: /new ended the session, and the next one begins without its turns',
  rewound: 'rewind: it was cut out, and is a branch now',
  returned: 'undo: the compaction was taken back, and it was in the prompt again',
  other: 'an event took it out',
};

const SHORTENED: Readonly<Record<Shortened['kind'], (item: string) => string>> = {
  message: (item) => `its long message is shown by beginning and end only; the model reads the rest by retrieve_from_memory (${item})`,
  result: (item) => `a long tool result was shown once, and is a line now; the model reads it by retrieve_from_memory (${item})`,
};

/** In the place of what left. */
function standsFor({ kind, episode }: Why, id: string, turn: string): string | undefined {
  switch (kind) {
    case 'compacted':
    case 'trimmed':
      return `the summary ${episode ?? ''} below: whole while it is among the newest, then in short; read_episode reads the turns again`;
    case 'truncated':
      return `a notice that something was left out, until the next summary; \`perdura context ${id} --compact\` makes one now`;
    case 'session-ended':
      return 'MEMORY.md, and what search_history finds; `perdura memory show` and `perdura history` have both';
    case 'rewound':
      return `nothing, since a person took it back; \`perdura fork ${id} --at ${turnNumber(turn)}\` goes on from it`;
    case 'returned':
    case 'other':
      return undefined;
  }
}

function drawWhy(why: Why, timeFormat: TimeFormat, now: number): StyledLine[] {
  const { kind, at, epoch, session, turns, tokens, model, method, inputsHash, failure, episode, summary, consolidation } = why;
  const fact = (name: string, text: string): StyledLine => [{ text: `    ${name.padEnd(9)}`, style: 'dim' }, { text }];
  const by =
    kind === 'trimmed'
      ? method === 'rules'
        ? 'shortened lines, since no model had summarized them'
        : 'long-term memory, when it was consolidated'
      : method === 'rules'
        ? `rules, since ${model ?? 'the model'} gave no usable summary`
        : (model ?? 'not kept by the version that did it');
  return [
    [
      { text: `  ${formatTime(at, timeFormat, now)}  `, style: 'dim' },
      { text: IN_WORDS[kind], style: 'cyan' },
    ],
    fact('epoch', `${epoch}, session ${session}`),
    ...(turns.length === 0 ? [] : [fact('turns', turns.length > 8 ? `${turns[0]} … ${turns.at(-1)} (${turns.length})` : turns.join(', '))]),
    ...(tokens === null ? [] : [fact('context', `${formatCount(tokens.before)} → ${formatCount(tokens.after)} tokens`)]),
    ...(episode === null
      ? []
      : [
          fact('by', by),
          ...(failure === null ? [] : [fact('since', toTerminalLine(failure, 300))]),
          ...(kind === 'trimmed'
            ? []
            : [fact('inputs', inputsHash === null ? 'not kept by the version that did it' : `sha256 ${inputsHash}`)]),
        ]),
    ...(episode === null ? [] : [fact(episode, summary === null ? 'is not in the store any more' : toTerminalLine(summary, 2000))]),
    ...(consolidation === null
      ? []
      : [fact('memory', `consolidation ${toTerminalLine(consolidation, 100)}; \`perdura history\` has what became of it`)]),
  ];
}
