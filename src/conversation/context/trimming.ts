/**
 * When what long-term memory has leaves the prompt, and what stands for it (seed 001, `trimBefore`; design section 4, Window).
 *
 * @rule context/only-covered-leaves: Only covered turns leave (context/covered-turns): whole turns, at a turn boundary, without the
 *   application's chunks that stay. (test: test/conversation/context/trimming.test.ts)
 * @rule context/trimmed-as-episode: Trimmed turns become an episode of this session. Its summary is their entry in HISTORY, or shortened
 *   lines if no model summarized; the goal and the open tasks stand beside it, as after a compaction. (test: test/activities/trim.test.ts)
 * @rule context/useless-trim-rests: A trim that would not make the prompt smaller changes nothing, and waits until more is covered. (test:
 *   test/conversation/context/trimming.test.ts)
 */
import { usageOf } from './call-gate.js';
import type { Evicted, TrimInput } from './memory-effects.js';
import { compactsAt, numbersOf } from './compaction.js';
import { listSlots, toRanges } from '../../records/slots.js';
import type { ConversationState } from '../state.js';
import { estimateTokens } from '../../records/token-usage.js';

/** Entries in which a session's first message is looked for. */
const OPENING = 16;

/** Undefined while nothing is to leave. */
export function trimInput(state: ConversationState): TrimInput | undefined {
  const { consolidation, compaction, settings } = state;
  const { covered, trimRest, since } = consolidation;
  if (covered.length === 0 || !isTrimDue(state)) return undefined;
  const there = slotsAtHand(state);
  // (context/only-covered-leaves)
  for (const { type, slot } of state.appEvents?.chunks ?? []) if (type !== 'WORKING_FLOW') there.delete(slot);
  const atHand = covered.flatMap(({ requestId, turns }) => {
    const slots = turns.flatMap((turn) => listSlots(turn.slots)).filter((slot) => there.has(slot));
    return slots.length === 0 ? [] : [{ requestId, slots: toRanges(slots) }];
  });
  const newest = newestOf(atHand);
  if (newest === undefined || newest === trimRest) return undefined; // (context/useless-trim-rests)
  const leaving = new Set(atHand.flatMap(({ slots }) => listSlots(slots)));
  return {
    covered: atHand,
    before: toRanges(beginningWithout(state, leaving)),
    leftOut: toRanges(listSlots(compaction.leftOut ?? []).filter((slot) => leaving.has(slot))),
    epoch: state.epoch + 1,
    number: compaction.compactions + 1,
    since,
    task: compaction.task,
    baseTokens: compaction.baseTokens,
    ...(settings && { line: compactsAt(settings) }),
  };
}

/** Of a rewound session older turns may stay: those that a summary has together with turns that were cut. */
function beginningWithout({ context }: ConversationState, leaving: ReadonlySet<number>): number[] {
  const slots = listSlots(context);
  const first = slots.findIndex((slot) => leaving.has(slot));
  return slots.slice(0, Math.min(Math.max(first, 0), OPENING));
}

function isTrimDue(state: ConversationState): boolean {
  const { settings } = state;
  if (!settings) return false;
  return settings.memory.trim === 'at-window' || usageOf(numbersOf(state), settings).suggestCompaction;
}

/** Its episode has that number from here on, whatever becomes of the trim: none is given twice. */
export function startTrim(state: ConversationState): ConversationState {
  const { compaction, consolidation } = state;
  return {
    ...state,
    compaction: { ...compaction, compactions: compaction.compactions + 1 },
    consolidation: { ...consolidation, trims: consolidation.trims + 1 },
  };
}

/** A new epoch begins. */
export function acceptTrim(state: ConversationState, input: TrimInput, { trimmed }: Evicted): ConversationState {
  const { compaction, consolidation, contextTokens } = state;
  const newest = newestOf(input.covered);
  // (context/useless-trim-rests)
  if (!trimmed) return { ...state, consolidation: { ...consolidation, ...(newest !== undefined && { trimRest: newest }) } };
  const left = new Set(input.covered.map(({ requestId }) => requestId));
  const { archived, messages, unsummarized, tokens, base, task } = trimmed;
  const gone = new Set(listSlots(archived));
  const baseTokens = estimateTokens(base.text.length);
  const fixed = state.settings?.fixedTokens ?? 0;
  const { trimRest: _, ...others } = consolidation;
  const before = consolidation.trimmed ?? { times: 0, messages: 0, unsummarized: 0 };
  return {
    ...state,
    epoch: state.epoch + 1,
    context: toRanges(listSlots(state.context).filter((slot) => !gone.has(slot))),
    contextTokens: Math.max(fixed + baseTokens, contextTokens - tokens - compaction.baseTokens + baseTokens),
    compaction: {
      ...compaction,
      ...{ base: base.ref, baseTokens, task },
      ...(compaction.leftOut && { leftOut: toRanges(listSlots(compaction.leftOut).filter((slot) => !gone.has(slot))) }),
      // What was before this cannot be brought back by undoing a compaction.
      ...{ reported: null, before: null },
    },
    consolidation: {
      ...others,
      covered: consolidation.covered.filter(({ requestId }) => !left.has(requestId)),
      trimmed: {
        times: before.times + 1,
        messages: before.messages + messages,
        unsummarized: before.unsummarized + unsummarized,
      },
    },
  };
}

/** In the context, or left out of the prompt until the next summary. */
export function slotsAtHand({ context, compaction }: ConversationState): Set<number> {
  return new Set(listSlots([...context, ...(compaction.leftOut ?? [])]));
}

function newestOf(covered: TrimInput['covered']): string | undefined {
  return covered[covered.length - 1]?.requestId;
}
