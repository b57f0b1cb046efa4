/** A summary without a model: the same window gives the same summary, always, so that no compaction ever fails for want of one. */
import { shownText, type Entry } from '../../records/message.js';
import { turnNumber } from '../../records/identity.js';
import { cut, oneLine } from '../../records/text.js';
import { SUMMARY_LIMITS, type Summary } from './summary-answer.js';

const GOAL_CHARACTERS = 400;
const ASKED_CHARACTERS = 160;
const ANSWERED_CHARACTERS = 240;
const FACT_CHARACTERS = SUMMARY_LIMITS.fact - 20;
/** Facts by rule are the person's own words, but nobody has judged them. */
const REMEMBERED = { tags: ['remember'], confidence: 0.6, salience: 0.8 } as const;

/** `goal` defaults to the window's first user message. */
export function ruleSummary(entries: readonly Entry[], { goal }: { readonly goal?: string } = {}): Summary {
  const turns = turnsOf(entries);
  const first = goal ?? turns.find(({ asked }) => asked !== '')?.asked ?? '';
  const head = first === '' ? [] : [`Goal: ${cut(oneLine(first), GOAL_CHARACTERS)}`];
  const room = SUMMARY_LIMITS.summary - head.join('\n').length - 100;
  return {
    episodic: {
      summary: [...head, ...fitting(turns.map(turnLine), room)].join('\n') || 'Nothing was said.',
      tags: ['by-rule'],
      salience: 0.5,
    },
    semantic: rememberedIn(turns),
  };
}

interface ToldTurn {
  readonly number: number;
  /** All that the person said in it. */
  readonly asked: string;
  /** The last thing that the assistant said. */
  readonly answered: string;
  readonly tools: number;
}

function turnsOf(entries: readonly Entry[]): ToldTurn[] {
  return [...new Set(entries.map(({ turn }) => turn))].map((turn) => {
    const messages = entries.filter((entry) => entry.turn === turn).map(({ message }) => message);
    const asked = messages.flatMap((message) => (message.role === 'user' ? [shownText(message.text)] : []));
    const said = messages.flatMap((message) =>
      message.role === 'assistant' ? message.blocks.flatMap((block) => (block.kind === 'text' ? [shownText(block.text)] : [])) : [],
    );
    return {
      number: turnNumber(turn),
      asked: asked.join('\n'),
      answered: said.findLast((text) => text.trim() !== '') ?? '',
      tools: messages.filter(({ role }) => role === 'tool').length,
    };
  });
}

function turnLine({ number, asked, answered, tools }: ToldTurn): string {
  const used = tools === 0 ? '' : ` (${tools} tool ${tools === 1 ? 'call' : 'calls'})`;
  const reply = answered === '' ? 'no answer' : cut(oneLine(answered), ANSWERED_CHARACTERS);
  return `Turn ${number}: asked: ${cut(oneLine(asked), ASKED_CHARACTERS)} | answered${used}: ${reply}`;
}

/** The first and the last lines that have room, and how many are between. */
function fitting(lines: readonly string[], room: number): string[] {
  const total = lines.reduce((sum, line) => sum + line.length + 1, 0);
  if (total <= room) return [...lines];
  const head: string[] = [];
  const tail: string[] = [];
  let left = room;
  for (let i = 0; i < lines.length; i++) {
    const fromEnd = i % 2 === 0;
    const line = fromEnd ? lines[lines.length - 1 - i / 2] : lines[(i - 1) / 2];
    left -= (line ?? '').length + 1;
    if (line === undefined || left < 0) break;
    if (fromEnd) tail.unshift(line);
    else head.push(line);
  }
  return [...head, `[left out here: ${lines.length - head.length - tail.length} of ${lines.length} turns]`, ...tail];
}

/** Only what the person asked to be remembered, in so many (English) words. */
const ASKS_TO_REMEMBER = /\b(remember|don['’]t forget|do not forget|keep in mind|from now on)\b/i;

function rememberedIn(turns: readonly ToldTurn[]): Summary['semantic'] {
  const facts = turns.flatMap(({ asked }) =>
    asked
      .split(/(?<=[.!?])\s+|\n/)
      .map(oneLine)
      .filter((sentence) => ASKS_TO_REMEMBER.test(sentence) && !sentence.endsWith('?') && sentence.length <= FACT_CHARACTERS),
  );
  return [...new Set(facts)]
    .slice(-SUMMARY_LIMITS.facts)
    .map((fact) => ({ fact: `The person said: ${fact}`, ...REMEMBERED, tags: [...REMEMBERED.tags] }));
}
