/** "Why did it forget?", in words. */
import type { Shortened } from '../../insight/known-turns.js';
import type { Why, WhyAnswer } from '../../insight/why.js';
import { turnNumber } from '../../records/identity.js';
import type { TimeFormat } from '../args/global-options.js';
import { toTerminalLine, type StyledLine } from '../terminal/terminal-text.js';
import { formatCount, formatTime } from './quantities.js';

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
