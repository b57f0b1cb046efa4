/**
 * A conversation that happened, read run by run: what came to it and when, and what its effects answered. Of a long one never more than three
 * runs are in memory.
 */
import { apply } from '../conversation/apply.js';
import { policyOf } from '../conversation/effect-table.js';
import type { Effect, EffectEvent } from '../conversation/effect.js';
import type { ConversationEvent } from '../conversation/event.js';
import type { Run } from '../conversation/replay/past.js';
import type { StepFailure } from '../conversation/outbox/writes.js';
import type { ChildNews } from '../conversation/protocol/human-input.js';
import type { ConversationState } from '../conversation/state.js';
import type { ModelStepInput, ModelStepResult, ToolFinished } from '../conversation/turn/model-step-effects.js';
import { findRuns, readPages, type FoundRun, type History, type HistoryEvent, type HistoryService } from '../heal/fetch-runs.js';
import type { JsonValue } from '../records/message.js';
import { counted } from '../records/text.js';
import type { ConversationKey, Store } from '../stores/store.js';
import { createTurnLog, type TurnLog } from './turn-log.js';

/** Where recorded conversations are. */
export interface Recordings {
  /** It is only read. */
  readonly store: Store;
  /** Rejects where there is none of that id, or none of its runs can be replayed. */
  open(id: string): Promise<RecordedConversation>;
}

/** One conversation, or one sub-agent of it. */
export interface RecordedConversation {
  readonly id: string;
  readonly key: ConversationKey;
  /** Oldest first. */
  readonly runs: AsyncIterator<Run>;
  /** What is known to be missing, a line each. */
  readonly gaps: readonly string[];
}

/** What came to it from outside of its workflow, in the order in which it heard of it. */
export type Happening =
  /** `turn`: the number of the turn that was running; null: none was. */
  | { readonly kind: 'input'; readonly event: ConversationEvent; readonly turn: number | null; readonly at: number }
  /** Of an effect, or of a wait (`time-passed`). `event`: what another conversation of the same tree sent. */
  | { readonly kind: 'end'; readonly effect: string; readonly of: string; readonly at: number; readonly event?: ConversationEvent };

export interface RecordedEffect {
  readonly effect: Effect;
  readonly startedAt: number;
  readonly ended?: Extract<EffectEvent, { kind: 'effect-completed' | 'effect-failed' }>;
}

/** A model step of the recording. Without `result` and `failure`: it has no end there. */
export interface RecordedStep {
  readonly input: ModelStepInput;
  readonly result?: ModelStepResult;
  readonly failure?: StepFailure;
}

export interface Track {
  readonly conversation: RecordedConversation;
  /** The state that its first run began with. */
  readonly opened: ConversationState;
  readonly log: TurnLog;
  /** What its workflow heard of at once; undefined once all is over. The same one until it is taken. */
  batch(): readonly Happening[] | undefined;
  /** It came with the beginning of a run: nothing of that run happens before. */
  opensRun(): boolean;
  /** After so many steps since the last batch its run was to end; undefined: not before the next batch. */
  handOverAfter(): number | undefined;
  /** That has been brought. */
  take(): Promise<void>;
  /** Of a model call, in the order in which they were tried. */
  steps(call: string): readonly RecordedStep[];
  /** Of this kind and name, in their order; see `nameEffect`. */
  effects(effect: string, of: string): readonly RecordedEffect[];
  tool(call: string): ToolFinished | undefined;
  /** What the store had of an effect that was given up, when it was told so; undefined: nothing. */
  committed(effect: string): JsonValue | undefined;
  /** All model steps that are in memory. */
  known(): Iterable<RecordedStep>;
  /** Effects of this kind and name that have not come to an end yet, and are in memory. */
  pending(effect: string, of: string): number;
  /** Sub-agents that its runs in memory begin. */
  children(): readonly string[];
  /** As far as it has been brought. */
  state(): ConversationState;
}

const INPUTS: ReadonlySet<ConversationEvent['kind']> = new Set([
  ...([
    'message-received',
    'withdraw-requested',
    'decided',
    'app-event-received',
    'mode-set',
    'breakpoints-set',
    'step-requested',
  ] as const),
  ...(['queue-edited', 'budget-raised', 'model-set', 'reset-requested', 'compaction-requested', 'truncation-requested'] as const),
  ...(['chunks-chosen', 'undo-requested', 'rewind-requested', 'interrupt-requested', 'close-requested', 'renamed'] as const),
  ...(['input-rejected', 'consolidation-ended'] as const),
]);
const RELATIVES: ReadonlySet<ConversationEvent['kind']> = new Set([
  'child-asks',
  'child-stepped',
  'child-ended',
  'parent-ordered',
] as const);
/** A sub-agent hears these of its parent, which is played too. */
const FROM_PARENT: ReadonlySet<ConversationEvent['kind']> = new Set(['decided', 'interrupt-requested'] as const);

/** Effects of one kind that may run beside each other are told apart by what they are for: their numbers differ from run to run. */
export function nameEffect({ effect, id, input }: Pick<Effect, 'effect' | 'id'> & { readonly input: unknown }): string {
  if (effect === 'model-step') return (input as ModelStepInput).call.id;
  return effect === 'run-tool' ? id : '';
}

/** The same, of an activity: its effect's id is not known here. */
export function nameActivity(effect: string, input: unknown): string {
  return nameEffect({ effect, id: (input as { callId?: string }).callId ?? '', input } as Parameters<typeof nameEffect>[0]);
}

export async function openTrack(conversation: RecordedConversation, options: { readonly consolidates: boolean }): Promise<Track> {
  const { runs } = conversation;
  const windows: Window[] = [];
  let isOver = false;
  const load = async (): Promise<void> => {
    if (isOver) return;
    const next = await runs.next();
    if (next.done === true) isOver = true;
    else windows.push(readWindow(next.value, options));
  };
  await load();
  const [first] = windows;
  if (!first) throw new Error(`nothing of ${conversation.id} is recorded`);
  // The next run's calls may begin before its first event is brought.
  await load();
  const opened = first.run.opened;
  const log = createTurnLog();
  let state = opened;
  /** Of the run whose events are brought. */
  let here = 0;
  let at = 0;
  let folded = 0;
  let handOver: number | undefined;

  const fold = (window: Window, until: number): void => {
    for (; folded < until; folded++) {
      const event = window.run.events[folded];
      if (!event) continue;
      state = apply(state, event);
      log.add(event, state);
    }
  };
  const forward = async (): Promise<void> => {
    for (let window = windows[here]; window && at >= window.batches.length; window = windows[here]) {
      fold(window, window.run.events.length);
      const next = windows[here + 1];
      if (!next) return;
      // What has ended in a run is heard of when it is over.
      if (here === 0) here = 1;
      else windows.shift();
      at = 0;
      folded = 0;
      state = next.run.opened;
      await load();
    }
  };
  await forward();

  return {
    conversation,
    opened,
    log,
    batch: () => windows[here]?.batches[at]?.happenings,
    opensRun: () => windows[here]?.batches[at]?.opens === true,
    handOverAfter: () => handOver,
    async take() {
      const window = windows[here];
      const batch = window?.batches[at];
      if (!window || !batch) return;
      at += 1;
      handOver = batch.handOver;
      for (const one of batch.happenings) if (one.kind === 'end') count(window.unended, `${one.effect}/${one.of}`, -1);
      fold(window, batch.end);
      await forward();
    },
    steps: (call) => windows.flatMap(({ steps }) => steps.get(call) ?? []),
    effects: (effect, of) => windows.flatMap(({ effects }) => effects.get(`${effect}/${of}`) ?? []),
    tool: (call) => windows.reduce<ToolFinished | undefined>((found, { tools }) => tools.get(call) ?? found, undefined),
    committed: (effect) => windows.reduce<JsonValue | undefined>((found, { committed }) => committed.get(effect) ?? found, undefined),
    pending(effect, of) {
      return windows.reduce((sum, { unended }) => sum + (unended.get(`${effect}/${of}`) ?? 0), 0);
    },
    children: () => windows.flatMap(({ children }) => children),
    *known() {
      for (const { steps } of windows) for (const tried of steps.values()) yield* tried;
    },
    state: () => state,
  };
}

interface Batch {
  readonly happenings: Happening[];
  end: number;
  /** See `opensRun`. */
  readonly opens: boolean;
  /** See `handOverAfter`. */
  handOver?: number;
}

interface Window {
  readonly run: Run;
  /** `end`: how many events of the run there are up to its last one. */
  readonly batches: readonly Batch[];
  readonly steps: ReadonlyMap<string, readonly RecordedStep[]>;
  readonly effects: ReadonlyMap<string, readonly RecordedEffect[]>;
  readonly tools: ReadonlyMap<string, ToolFinished>;
  readonly committed: ReadonlyMap<string, JsonValue>;
  /** By kind and name: effects whose ends have not been brought, or never came. */
  readonly unended: Map<string, number>;
  readonly children: readonly string[];
}

function count(counts: Map<string, number>, name: string, more: number): void {
  counts.set(name, (counts.get(name) ?? 0) + more);
}

function readWindow(run: Run, { consolidates }: { readonly consolidates: boolean }): Window {
  const batches: Batch[] = [];
  const steps = new Map<string, RecordedStep[]>();
  const effects = new Map<string, RecordedEffect[]>();
  const tools = new Map<string, ToolFinished>();
  const committed = new Map<string, JsonValue>();
  const unended = new Map<string, number>();
  const children: string[] = [];
  const running = new Map<string, { readonly name: string; readonly at: number; readonly effect: Effect; readonly step: number }>();
  let state = run.opened;
  let isOpen = false;
  let stepped = 0;
  const isSubAgent = run.opened.parent !== undefined;
  const add = (happening: Happening, end: number): void => {
    const last = batches.at(-1)?.happenings.at(-1);
    // What people send is heard before what has ended, where both come at once.
    if (happening.kind === 'input' && last?.kind === 'end') isOpen = false;
    if (!isOpen) batches.push({ happenings: [], end, opens: end === 1 });
    stepped = 0;
    const batch = batches[batches.length - 1];
    if (batch) batch.end = end;
    batch?.happenings.push(happening);
    isOpen = true;
  };

  for (const [index, event] of run.events.entries()) {
    const { at } = event;
    const end = index + 1;
    const last = batches.at(-1);
    if (isStep(event)) stepped += 1;
    if (event.kind === 'hand-over-due' && last) last.handOver = stepped;
    if (event.kind === 'effect-started') {
      isOpen = false;
      const { kind: _, at: __, ...effect } = event;
      const of = nameEffect(effect);
      const name = `${effect.effect}/${of}`;
      const others = effects.get(name) ?? [];
      effects.set(name, others);
      others.push({ effect, startedAt: at });
      if (policyOf(effect)) count(unended, name, 1);
      if (effect.effect === 'start-child') children.push(effect.input.child);
      running.set(`${effect.effect}/${effect.id}`, { name, at, effect, step: others.length - 1 });
      if (effect.effect === 'model-step') {
        const tried = steps.get(of) ?? [];
        steps.set(of, tried);
        tried.push({ input: effect.input });
      }
    } else if (event.kind === 'effect-completed' || event.kind === 'effect-failed') {
      const begun = running.get(`${event.effect}/${event.id}`);
      running.delete(`${event.effect}/${event.id}`);
      if (begun) {
        const of = nameEffect(begun.effect);
        const all = effects.get(begun.name);
        if (all) all[begun.step] = { effect: begun.effect, startedAt: begun.at, ended: event };
        if (begun.effect.effect === 'model-step') {
          const tried = steps.get(of);
          const step = tried?.pop();
          if (step && event.kind === 'effect-failed') tried?.push({ ...step, failure: event.failure });
          if (step && event.kind === 'effect-completed' && event.effect === 'model-step') tried?.push({ ...step, result: event.output });
        }
        if (event.kind === 'effect-completed') noteOutput(event, { tools, committed });
        // Sub-agents are begun and heard without an activity.
        if (policyOf(begun.effect)) add({ kind: 'end', effect: event.effect, of, at }, end);
        else isOpen = false;
      }
    } else if (
      RELATIVES.has(event.kind) ||
      (isSubAgent && FROM_PARENT.has(event.kind)) ||
      (consolidates && event.kind === 'consolidation-ended')
    ) {
      const of = 'callId' in event ? event.callId : '';
      count(unended, `${event.kind}/${of}`, 1);
      isOpen = false;
      add({ kind: 'end', effect: event.kind, of, at, event }, end);
      isOpen = false;
    } else if (event.kind === 'time-passed') {
      count(unended, `${TIMER.effect}/${TIMER.of}`, 1);
      isOpen = false;
      add({ kind: 'end', ...TIMER, at }, end);
      isOpen = false;
    } else if (INPUTS.has(event.kind)) add({ kind: 'input', event, turn: state.turn?.number ?? null, at }, end);
    else isOpen = false;
    state = apply(state, event);
  }
  return { run, batches, steps, effects, tools, committed, unended, children };
}

function noteOutput(
  event: Extract<EffectEvent, { kind: 'effect-completed' }>,
  { tools, committed }: { readonly tools: Map<string, ToolFinished>; readonly committed: Map<string, JsonValue> },
): void {
  if (event.effect === 'run-tool') tools.set(event.output.callId, event.output);
  if (event.effect === 'model-step') for (const tool of event.output.tools) tools.set(tool.callId, tool);
  if (event.effect !== 'model-step' && event.effect !== 'store-step') return;
  for (const { effect, result } of event.output.written.committed ?? []) committed.set(effect, result);
}

/** Of what a conversation does by itself, that on which others wait. */
export function isStep({ kind }: ConversationEvent): boolean {
  return kind === 'effect-started' || kind === 'turn-begun';
}

export const TIMER = { effect: 'time-passed', of: '' } as const;
export const NEXT_RUN = { effect: 'run-continued', of: '' } as const;

/**
 * As `nameEffect`, for a timer, for a run that is to begin, and for what one conversation of a tree sends another by a signal: the event
 * that it becomes.
 */
export function nameSignal(
  signal: string,
  argument: unknown,
): { readonly effect: ConversationEvent['kind']; readonly of: string } | undefined {
  const { callId = '', kind } = (argument ?? {}) as { readonly callId?: string; readonly kind?: ChildNews['kind'] };
  switch (signal) {
    case 'child':
      return { effect: kind === 'asks' ? 'child-asks' : kind === 'control' ? 'child-stepped' : 'child-ended', of: callId };
    case 'parent':
      return { effect: 'parent-ordered', of: '' };
    case 'decide':
      return { effect: 'decided', of: '' };
    case 'interrupt':
      return { effect: 'interrupt-requested', of: '' };
    case 'timer':
      return TIMER;
    case 'next-run':
      return NEXT_RUN;
    case 'consolidated':
      return { effect: 'consolidation-ended', of: '' };
    default:
      return undefined;
  }
}

// Recorded conversations as Temporal and the store have them: each run is fetched and replayed when it is its turn.

export interface RecordingAccess {
  readonly service: HistoryService;
  readonly namespace: string;
  readonly store: Store;
  readonly findKey: (id: string) => Promise<ConversationKey>;
  /** By the workflow's code. */
  readonly replay: (
    id: string,
    histories: readonly History[],
  ) => Promise<{ readonly runs: readonly (Run | undefined)[]; readonly problems: readonly string[] }>;
}

export function readRecordings({ service, namespace, store, findKey, replay }: RecordingAccess): Recordings {
  const replayed = async (id: string, run: FoundRun): Promise<Run> => {
    const events: HistoryEvent[] = [];
    for await (const page of readPages(service, run)) events.push(...page);
    const { runs, problems } = await replay(id, [{ events }]);
    const [found] = runs;
    // Of a run that does not replay there is a part: what came after it would be made up.
    if (found && problems.length === 0) return found;
    throw new Error(
      problems[0] === undefined
        ? `cannot play ${id}: no worker has worked it yet`
        : `cannot play ${id}: its history is not replayed by this version (${problems[0]}); \`perdura check-upgrade\` says of all which are`,
    );
  };
  return {
    store,
    async open(id): Promise<RecordedConversation> {
      const key = await findKey(id);
      const [deleted] = await store.lives.deleted(key);
      if (deleted?.life === key.life) throw new Error(`cannot play ${id}: it was deleted`);
      const { runs, complete } = await findRuns(service, { namespace, workflowId: id });
      const each = async function* (): AsyncGenerator<Run> {
        for (const run of runs) yield await replayed(id, run);
      };
      return { id, key, runs: each(), gaps: await findGaps(store, key, complete) };
    },
  };
}

async function findGaps(store: Store, key: ConversationKey, complete: boolean): Promise<string[]> {
  const [forgotten, page] = await Promise.all([store.documents.forgotten(key), store.entries.page(key, 0, 1)]);
  return [
    ...(complete ? [] : ['its first runs are past the retention of Temporal: it is played from the first run that is left']),
    ...(forgotten.length > 0
      ? [`${counted(forgotten.length, 'thing')} of its scope ${forgotten.length === 1 ? 'was' : 'were'} forgotten, and are in no prompt`]
      : []),
    ...(page.last === 0 ? ['the store has none of its messages'] : []),
  ];
}
