/**
 * What the store must have had, folded from the effects that history has: each write to it was the input or the result of one.
 *
 * @rule heal/entry-as-written: A healed entry is what was written, byte for byte; only a body that travelled as a reference is not known
 *   here. (test: test/heal/fold.test.ts)
 * @rule heal/void-stays-void: A duplicate message and the result of a fenced effect do not come back. (test: test/heal/fold.test.ts)
 * @rule heal/result-with-its-step: A result that the store did not take comes with the step that wrote it later, never by itself. (test:
 *   test/heal/fold.test.ts)
 * @rule heal/failed-step-wrote-nothing: A step that did not succeed has written nothing that is known; a later step carried the same again.
 *   (test: test/heal/fold.test.ts)
 * @rule heal/committed-before-fence: An effect that had committed before its fence keeps its entry: the step that came too late has its
 *   result. (test: test/heal/fold.test.ts)
 * @rule heal/highest-move-counts: Of moves in and out of the archive the one with the highest number counts, slot by slot. (test:
 *   test/heal/fold.test.ts)
 */
import type { Fact, Replacement } from '../records/episodes.js';
import { assistantEntry, toolEntry, type Entry, type JsonValue } from '../records/message.js';
import type { AppContextRef, MessageToRecord, Settlement, Writes, Written } from '../conversation/outbox/writes.js';
import type { ModelAnswer, ModelStepResult, ToolFinished } from '../conversation/turn/model-step-effects.js';
import type { EffectName, Effects } from '../conversation/effect.js';
import type { Resumption } from '../conversation/lineage/lineage-effects.js';
import { turnEndsIn } from '../memory/past-life.js';
import { type Beginning, type Cut, listSlots, toRanges, type SlotRange } from '../records/slots.js';
import type { TurnEnd } from '../records/turn-end.js';
import type { EpisodeRecord } from '../stores/store.js';
import type { Activity } from './read-activities.js';

/** Effects that write, by the names that their activities have in history. */
export const WRITING = [
  'model-step',
  'store-step',
  'run-tool',
  'compact',
  'truncate',
  'uncompact',
  'evict',
  'open-origin',
  'rewind',
] as const satisfies readonly EffectName[];

type WritingEffect = (typeof WRITING)[number];

/** What is written as soon as it is known; in this order, each harmless when it is there. */
export type Write =
  /** `json`: its text, media, output and context, where these were too large to travel with it; `lost` where no history has it any more. */
  | { readonly kind: 'message'; readonly message: MessageToRecord; readonly json?: string; readonly lost?: readonly string[] }
  | { readonly kind: 'entry'; readonly entry: Entry }
  /** In the place of an effect's result; a long text goes to the store. */
  | { readonly kind: 'answer'; readonly entry: Entry }
  | { readonly kind: 'body'; readonly text: string }
  /** What a model has made to stand for a long result. */
  | { readonly kind: 'citation'; readonly item: string; readonly citation: string }
  /** Values that tools share, as one of them has changed them. */
  | { readonly kind: 'values'; readonly change: ToolFinished['contextChange'] & object; readonly whole: AppContextRef | undefined }
  | { readonly kind: 'turn-end'; readonly end: TurnEnd }
  | { readonly kind: 'beginning'; readonly beginning: Beginning }
  | { readonly kind: 'cut'; readonly cut: Cut };

/** What a compaction has learnt. */
export interface FoldedFacts {
  readonly epoch: number;
  readonly turns: readonly string[];
  readonly tools?: readonly string[];
  readonly facts: readonly Fact[];
  readonly replaced: readonly Replacement[];
}

/** What is known only at the end, since later effects take back what earlier ones did. */
export interface Remainder {
  /** Summaries that compactions and trims have made, or that were written again for this life or a session of it. */
  readonly episodes: readonly EpisodeRecord[];
  readonly facts: readonly FoldedFacts[];
  /** Compactions that were taken back. */
  readonly undone: readonly { readonly epoch: number; readonly episode: string }[];
  /** What went to HISTORY as it was. */
  readonly fallbacks: NonNullable<Effects['evict']['output']['fallbacks']>;
  /** Where every slot is that was ever moved, and the number of the last move. */
  readonly archived: readonly SlotRange[];
  readonly active: readonly SlotRange[];
  readonly move: number;
  /** Parts of a message that is not written yet. */
  readonly parts: readonly string[];
}

export interface Fold {
  /** In the order of history. */
  take(activity: Pick<Activity, 'kind' | 'name' | 'input' | 'output'>): readonly Write[];
  end(): Remainder;
}

type Handlers = { readonly [N in WritingEffect]: (input: Effects[N]['input'], output: Effects[N]['output']) => readonly Write[] };

export function createFold(): Fold {
  const seqs = new Map<string, number>();
  const parts = new Map<string, string>();
  // Of an id the first counts, as in the store.
  const episodes = new Map<string, EpisodeRecord>();
  const facts = new Map<number, FoldedFacts>();
  const undone: Remainder['undone'][number][] = [];
  const fallbacks: Remainder['fallbacks'][number][] = [];
  const moves = createMoves();

  const messages = (write: Writes, written: Written): Write[] => {
    const receipts = new Map(written.messages.map((receipt) => [receipt.slot, receipt]));
    return write.messages.flatMap((message): Write[] => {
      const receipt = receipts.get(message.slot);
      const { parts: refs, ...rest } = message;
      const texts = (refs ?? []).map((ref) => parts.get(ref));
      for (const ref of refs ?? []) parts.delete(ref);
      if (!receipt || receipt.duplicate !== undefined) return []; // (heal/void-stays-void)
      if (!refs) return [{ kind: 'message', message }];
      const isWhole = texts.every((text) => text !== undefined);
      return [{ kind: 'message', message: rest, ...(isWhole ? { json: texts.join('') } : { lost: refs }) }];
    });
  };

  const settlement = ({ effect, entry }: Settlement, committed: ReadonlyMap<string, JsonValue>): Write[] => {
    const result = committed.get(effect);
    if (result !== undefined) return ofCommitted(result, seqs.get(effect) ?? entry?.seq); // (heal/committed-before-fence)
    return entry ? [{ kind: 'answer', entry }] : [];
  };

  const written = (write: Writes, receipt: Written): Write[] => {
    const committed = new Map((receipt.committed ?? []).map(({ effect, result }) => [effect, result]));
    return [
      ...(write.startContext ? [body(JSON.stringify(write.startContext))] : []),
      ...messages(write, receipt),
      ...write.entries.map((entry): Write => ({ kind: 'entry', entry })),
      ...write.settle.flatMap((one) => settlement(one, committed)),
      ...turnEndsIn(write.feed).map((end): Write => ({ kind: 'turn-end', end })),
    ];
  };

  const addEpisode = (episode: EpisodeRecord): void => {
    if (!episodes.has(episode.id)) episodes.set(episode.id, episode);
  };

  const resumed = ({ base, episodes: carried }: Resumption): Write[] => {
    for (const { episode, ...place } of carried) addEpisode({ ...episode, ...place, epoch: 0 });
    return base ? [body(base.text)] : [];
  };

  const handlers: Handlers = {
    'model-step': (input, output) => {
      const riding = new Map(input.tools.map((tool) => [tool.callId, tool.seq]));
      return [
        ...written(input.write, output.written),
        ...output.tools.flatMap((tool) => ofTool(tool, riding.get(tool.callId))),
        ...found(output),
        ...(output.kind === 'answered' ? ofAnswer(output.answer, input.call.seq) : []),
      ];
    },
    'store-step': (input, output) => {
      const writes = written(input.write, output.written);
      if (input.part && output.part !== undefined) parts.set(output.part, input.part.text);
      return writes;
    },
    'run-tool': (input, output) => ofTool(output, input.seq),
    compact: ({ session, move }, output) => {
      if (output.kind !== 'compacted') return [];
      const { episode, epoch, archived: slots, covers = slots, record: made, base, replaced = [] } = output;
      addEpisode({ ...episode, session, epoch, slots: covers, made });
      if (!facts.has(epoch)) {
        const learnt = { epoch, turns: episode.turn_ids, facts: output.facts, replaced };
        facts.set(epoch, made.tools ? { ...learnt, tools: made.tools } : learnt);
      }
      moves.archive(slots, move);
      return [body(base.text)];
    },
    truncate: (_input, { notice }) => (notice ? [{ kind: 'entry', entry: notice }] : []),
    uncompact: ({ episode, epoch, archived, move }) => {
      episodes.delete(episode);
      facts.delete(epoch);
      undone.push({ epoch, episode });
      moves.restore(archived, move);
      return [];
    },
    evict: ({ session, move, what }, { fallbacks: written = [], trimmed }) => {
      fallbacks.push(...written);
      if (what.kind === 'session-end') moves.archive(what.archive, move);
      if (what.kind !== 'trim' || !trimmed) return [];
      const { episode, archived, covers = archived, base } = trimmed;
      addEpisode({ ...episode, session, epoch: what.epoch, slots: covers });
      moves.archive(archived, move);
      return [body(base.text)];
    },
    'open-origin': (_input, output) => [{ kind: 'beginning', beginning: output.beginning }, ...resumed(output)],
    rewind: ({ move }, output) => {
      const { cut, context } = output;
      if (cut) moves.archive(cut.slots, move);
      moves.restore(context, move);
      return [...(cut ? [{ kind: 'cut', cut } as const] : []), ...resumed(output)];
    },
  };

  return {
    take({ kind, name, input, output }) {
      if (!isWriting(name)) return [];
      if (kind === 'completed') return (handlers[name] as (input: unknown, output: unknown) => readonly Write[])(input, output);
      for (const [effect, seq] of listSeqs(name, input)) seqs.set(effect, seq); // nothing more (heal/failed-step-wrote-nothing)
      return [];
    },
    end: () => ({
      episodes: [...episodes.values()],
      facts: [...facts.values()],
      undone,
      fallbacks,
      ...moves.end(),
      parts: [...parts.values()],
    }),
  };
}

function isWriting(name: string): name is WritingEffect {
  return (WRITING as readonly string[]).includes(name);
}

/** Where a result would stand in its turn: known when the effect starts, in case only a fence has its result. */
function listSeqs(name: WritingEffect, input: unknown): (readonly [effect: string, seq: number])[] {
  if (name === 'run-tool') {
    const { callId, seq } = input as Effects['run-tool']['input'];
    return [[callId, seq]];
  }
  if (name !== 'model-step') return [];
  const { tools, call } = input as Effects['model-step']['input'];
  return [[call.id, call.seq], ...tools.map(({ callId, seq }) => [callId, seq] as const)];
}

/** As the ledger has it: of a model call, or of a tool. */
function ofCommitted(result: JsonValue, seq: number | undefined): Write[] {
  const { answer, ...more } = result as { readonly answer?: ModelAnswer } & Pick<ModelStepResult, 'base' | 'citations'>;
  return answer ? [...found(more), ...ofAnswer(answer, seq)] : ofTool(result as unknown as ToolFinished, seq);
}

function found({ base, citations = [] }: Pick<ModelStepResult, 'base' | 'citations'>): Write[] {
  return [...(base ? [body(base.text)] : []), ...citations.map(({ item, citation }) => ({ kind: 'citation', item, citation }) as const)];
}

/** (heal/void-stays-void, heal/result-with-its-step) */
function ofAnswer(answer: ModelAnswer, seq: number | undefined): Write[] {
  if (answer.fenced || !answer.persisted || seq === undefined) return [];
  const entry = assistantEntry(answer, seq);
  return entry ? [{ kind: 'entry', entry }] : [];
}

function ofTool(tool: ToolFinished, seq: number | undefined): Write[] {
  if (tool.fenced) return [];
  const { contextChange: change, appContext: whole, persisted } = tool;
  return [
    ...(change ? [{ kind: 'values', change, whole } as const] : []),
    ...(persisted && seq !== undefined ? [{ kind: 'entry', entry: toolEntry(tool, seq) } as const] : []),
  ];
}

function body(text: string): Write {
  return { kind: 'body', text };
}

/** (heal/highest-move-counts) */
function createMoves() {
  const last = new Map<number, { readonly move: number; readonly isArchived: boolean }>();
  let highest = 0;
  const note = (ranges: readonly SlotRange[], move: number, isArchived: boolean): void => {
    highest = Math.max(highest, move);
    for (const slot of listSlots(ranges)) if ((last.get(slot)?.move ?? 0) <= move) last.set(slot, { move, isArchived });
  };
  const those = (wanted: boolean): readonly SlotRange[] =>
    toRanges([...last].flatMap(([slot, { isArchived }]) => (isArchived === wanted ? [slot] : [])).sort((a, b) => a - b));
  return {
    archive: (ranges: readonly SlotRange[], move: number) => note(ranges, move, true),
    restore: (ranges: readonly SlotRange[], move: number) => note(ranges, move, false),
    end: () => ({ archived: those(true), active: those(false), move: highest }),
  };
}
