/**
 * Reports as a what-if writes them, of a book of expenses: the same again, a candidate that forgets to use its tool, a model that is noisy by
 * itself, and what is hard to show. The same seed makes the same report.
 */
import { createTotals } from '../../src/whatif/totals.js';
import type {
  ComparedTurn,
  Divergence,
  Lane,
  PlayedLane,
  PlayedSum,
  ReportedCall,
  ReportedConversation,
  ReportHeader,
  ReportLine,
  TurnSide,
} from '../../src/whatif/report.js';

export const HOSTILE = [
  '<script>window.ran = 1</script><img src=x onerror="window.ran = 2"></p></details></div></body><svg onload="window.ran = 3">',
  '" onmouseover="window.ran = 4" x="\' `',
  ']]><!--</failure></testcase></testsuites>&lt;&#0;',
  '\u001b[2J\u001b[31mred\u001b]8;;https://evil.example\u0007link\u001b]8;;\u0007 \u0000 \u0008\u0008 \u009b1m',
  'paid to \u202egpj.evil\u202c and \u2066hidden\u2069 \u200bzero\u200b \ud800half',
  '{{7*7}} ${7*7} <style>*{display:none}</style><base href="https://evil.example/"><meta http-equiv="refresh" content="0;url=https://evil.example">',
].join('\n');

export interface SampleOptions {
  readonly conversations?: number;
  readonly turns?: number;
  readonly seed?: number;
  readonly lanes?: readonly Lane[];
  readonly changes?: readonly string[];
  readonly judge?: string;
  /** `worse`: the candidate does not book. `stopped`: it calls what no recording knows. */
  readonly candidate?: 'same' | 'worse' | 'noisy' | 'stopped' | 'words';
  readonly baseline?: 'same' | 'noisy';
  /** Every so many conversations are of this kind. */
  readonly skippedEach?: number;
  readonly gapsEach?: number;
  /** In place of what people and models write. */
  readonly text?: string;
}

/** As it is written: header, conversations, totals. */
export async function* sampleReport(options: SampleOptions = {}): AsyncGenerator<ReportLine, void> {
  const totals = createTotals();
  for (const line of sampleLines(options)) {
    if (line.kind === 'conversation') totals.add(line);
    // As a file's lines arrive: each after the one before it.
    await Promise.resolve();
    yield line;
  }
  yield totals.end();
}

/** The file of it. */
export async function sampleFile(options: SampleOptions = {}): Promise<string> {
  let text = '';
  for await (const line of sampleReport(options)) text += `${JSON.stringify(line)}\n`;
  return text;
}

export function* sampleLines({
  conversations = 20,
  turns = 3,
  seed = 1,
  lanes = ['baseline', 'candidate'],
  changes = ['prompt: agents/default/SOUL.md, one sentence'],
  judge,
  candidate = 'same',
  baseline = 'same',
  skippedEach = Infinity,
  gapsEach = Infinity,
  text,
}: SampleOptions = {}): Generator<ReportHeader | ReportedConversation, void> {
  yield {
    kind: 'header',
    version: 1,
    madeAt: '2026-11-29T12:00:00.000Z',
    changes,
    policy: 'stop',
    memory: 'recorded',
    lanes,
    ...(judge !== undefined && { judge }),
  };
  const random = createChance(seed);
  for (let at = 1; at <= conversations; at += 1) {
    const base = { kind: 'conversation' as const, id: `expenses-${String(at).padStart(3, '0')}`, agent: 'default', turns };
    if (at % skippedEach === 0) {
      yield { ...base, skipped: 'its history was deleted after its retention', gaps: [], lanes: {} };
      continue;
    }
    const recorded = Array.from({ length: turns }, (_, turn) => recordTurn(turn, random, text));
    yield {
      ...base,
      gaps: at % gapsEach === 0 ? ['turn 2: its texts were forgotten'] : [],
      lanes: Object.fromEntries(
        lanes.map((lane) => [
          lane,
          playLane(recorded, lane === 'candidate' ? candidate : baseline, random, lane === 'candidate' && candidate !== 'same'),
        ]),
      ),
      ...(judge !== undefined && {
        verdict: {
          better: candidate === 'worse' ? ('recorded' as const) : ('same' as const),
          why: '(A is the recorded one, B the candidate one) A books the expense, and B only claims to.',
          agreesWithItself: at % 5 !== 0,
        },
      }),
    };
  }
}

const EXPENSES = [
  ['tea', 350],
  ['a train ticket', 4_900],
  ['lunch with a customer', 3_150],
  ['printer paper', 799],
] as const;

interface Spoken {
  readonly turn: string;
  readonly message: string;
  readonly side: TurnSide;
}

function recordTurn(at: number, random: () => number, text: string | undefined): Spoken {
  const [what, cents] = EXPENSES[Math.floor(random() * EXPENSES.length)] ?? EXPENSES[0];
  const amount = (cents / 100).toFixed(2);
  const call = book(text ?? what, cents);
  return {
    turn: `turn_${String(at + 1).padStart(4, '0')}`,
    message: text ?? `I had ${what} for ${amount}, please book it.`,
    side: {
      text: text ?? `I have booked ${what} for ${amount}.`,
      stopReason: 'end',
      calls: [call],
      sum: sum(2, 1_900 + 40 * at + random() * 60, 60 + random() * 20),
    },
  };
}

function book(what: string, cents: number): ReportedCall {
  return {
    name: 'book_expense',
    input: JSON.stringify({ what, cents }),
    outcome: 'ok',
    result: `Booked ${what}. The total is ${(cents / 100).toFixed(2)}.`,
    source: 'recording',
  };
}

function playLane(
  recorded: readonly Spoken[],
  how: NonNullable<SampleOptions['candidate']>,
  random: () => number,
  isOtherPrompt: boolean,
): PlayedLane {
  const turns: ComparedTurn[] = [];
  let stopped: PlayedLane['stopped'];
  for (const { turn, message, side } of recorded) {
    const played = playTurn(side, how, random);
    turns.push({ turn, message, recorded: side, played });
    if (how !== 'stopped') continue;
    stopped = { turn, why: 'lookup_rate {"currency":"EUR"} is in no recording' };
    break;
  }
  const shown = (side: TurnSide | undefined): string => JSON.stringify([side?.text, side?.calls]);
  const other = turns.find(({ recorded: was, played }) => shown(was) !== shown(played));
  const divergence: Divergence | null = isOtherPrompt
    ? { turn: 'turn_0001', call: 1, what: 'system', recorded: 'Book every expense with book_expense.', played: 'Be friendly and brief.' }
    : other === undefined
      ? null
      : {
          turn: other.turn,
          call: 1,
          what: 'tool-calls',
          recorded: other.recorded?.calls[0]?.input ?? '',
          played: other.played?.calls[0]?.input ?? '(no call)',
        };
  return {
    divergence,
    turns,
    ...(stopped && { stopped }),
    sum: addAll(turns.map(({ played }) => played)),
    recordedSum: addAll(recorded.map(({ side }) => side)),
  };
}

function playTurn(side: TurnSide, how: NonNullable<SampleOptions['candidate']>, random: () => number): TurnSide {
  switch (how) {
    case 'same':
      return side;
    case 'words':
      return { ...side, text: `${side.text} Anything else?`, sum: sum(2, side.sum.inputTokens, side.sum.outputTokens + 5) };
    case 'worse':
      return {
        ...side,
        text: side.text.replace('I have booked', 'Sure! I will remember'),
        calls: [],
        sum: sum(1, side.sum.inputTokens * 0.5, 25 + random() * 5),
      };
    case 'stopped':
      return {
        ...side,
        text: '',
        stopReason: 'stopped',
        calls: [{ name: 'lookup_rate', input: '{"currency":"EUR"}', result: '', source: 'none' }],
      };
    case 'noisy': {
      const isOther = random() < 0.06;
      const tokens = sum(2, side.sum.inputTokens, side.sum.outputTokens + (random() - 0.5) * 20);
      return isOther
        ? { ...side, calls: [...side.calls, { ...book('a tip', 50), source: 'stub' }], sum: { ...tokens, modelCalls: 3 } }
        : { ...side, sum: tokens };
    }
  }
}

function sum(modelCalls: number, input: number, output: number): PlayedSum {
  const [inputTokens, outputTokens] = [Math.round(input), Math.round(output)];
  return {
    modelCalls,
    inputTokens,
    outputTokens,
    cachedTokens: 0,
    costUsd: (inputTokens * 3 + outputTokens * 15) / 1e6,
    modelMs: Math.round(400 * modelCalls + 12 * outputTokens),
  };
}

function addAll(sides: readonly (TurnSide | undefined)[]): PlayedSum {
  const of = (pick: (one: PlayedSum) => number): number => sides.reduce((all, side) => all + (side === undefined ? 0 : pick(side.sum)), 0);
  return {
    modelCalls: of((one) => one.modelCalls),
    inputTokens: of((one) => one.inputTokens),
    cachedTokens: of((one) => one.cachedTokens),
    outputTokens: of((one) => one.outputTokens),
    costUsd: of((one) => one.costUsd ?? 0),
    modelMs: of((one) => one.modelMs),
  };
}

/** Numbers from 0 to 1 (mulberry32). */
export function createChance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
