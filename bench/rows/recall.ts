/** Whether what was said is found again by a question in other words, how fast, and in how much memory; and what each ingredient adds. */
import { indexOf, partsFound, recallOf, STEPS, timesOf } from '../recall/measure.js';
import { talkOf } from '../recall/talk.js';
import type { Measured, Row } from '../row.js';

const QUESTIONS = 400;
const SEED = 1;
const MIN_FOUND = 0.85;
const MIN_PARTS = 0.45;
const MAX_INDEXING_MS = 1;
const MAX_BYTES = 300;
/** Milliseconds by messages: of the middle question, and of the one in twenty that takes longest. */
const MAX_TIMES: readonly (readonly [turns: number, p50: number, p95: number])[] = [
  [100_000, 20, 80],
  [Infinity, 100, 400],
];

export const recall: Row = {
  name: 'recall',
  measure: (_, { recalled }) => Promise.resolve(recalled.flatMap(measureTalk)),
};

function measureTalk(turns: number): Measured[] {
  const talk = talkOf(turns, QUESTIONS, SEED);
  const begin = performance.now();
  const index = indexOf(talk.said);
  const indexing = (performance.now() - begin) / talk.said.length;
  const whole = recallOf(index, talk.questions);
  const times = timesOf(index, talk);
  const [p50, p95] = [0.5, 0.95].map((share) => times[Math.floor(times.length * share)] ?? 0) as [number, number];
  const [, most50, most95] = MAX_TIMES.find(([most]) => turns <= most) ?? [0, 0, 0];
  const bytes = index.bytes() / talk.said.length;
  const row = `recall, ${turns.toLocaleString('en')} messages`;
  // Of a million the ingredients take long to measure and say nothing new.
  const steps = turns > 100_000 ? [] : STEPS;
  return [
    {
      row: `${row}: answers in the first ten`,
      product: 100 * whole.at10,
      unit: '%',
      toHold: `≥ ${100 * MIN_FOUND} %`,
      holds: whole.at10 >= MIN_FOUND,
      notes: steps.map(({ name, weights }) => {
        const { at5, at10, at20 } = recallOf(index, talk.questions, weights);
        return `${name}: @5 ${at5.toFixed(3)}, @10 ${at10.toFixed(3)}, @20 ${at20.toFixed(3)}`;
      }),
    },
    {
      row: `${row}: of what a question for two things asks, in the first ten`,
      product: 100 * partsFound(index, talk.doubles),
      unit: '%',
      toHold: `≥ ${100 * MIN_PARTS} %`,
      holds: partsFound(index, talk.doubles) >= MIN_PARTS,
    },
    { row: `${row}: a question, p50`, product: p50, unit: 'ms', toHold: `≤ ${most50}`, holds: p50 <= most50 },
    { row: `${row}: a question, p95`, product: p95, unit: 'ms', toHold: `≤ ${most95}`, holds: p95 <= most95 },
    {
      row: `${row}: indexing a message`,
      product: indexing,
      unit: 'ms',
      toHold: `≤ ${MAX_INDEXING_MS}`,
      holds: indexing <= MAX_INDEXING_MS,
    },
    { row: `${row}: memory of a message`, product: bytes, unit: 'B', toHold: `≤ ${MAX_BYTES}`, holds: bytes <= MAX_BYTES },
  ];
}
