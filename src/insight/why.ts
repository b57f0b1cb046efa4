/** "Why did it forget?": what took a turn out of the prompt, and what stands for it. */
import type { Leaving } from '../conversation/replay/past.js';
import type { EpisodeRecord } from '../stores/store.js';
import type { Shortened } from './known-turns.js';

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
      turns: compaction?.turns ?? listTurns(allSlots, turnOf),
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

function listTurns(slots: readonly number[], turnOf: (slot: number) => string | undefined): string[] {
  return [...new Set(slots.flatMap((slot) => turnOf(slot) ?? []))].sort();
}

/** Why something stands in the context, or does not. */
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
