/** What happened in a conversation and why, for people who look into it: from Temporal's history, by the conversation's code. */
import type { ContextIndex, Status } from '../conversation/protocol/contract.js';
import { leavingsOf, type Run } from '../conversation/replay/past.js';
import type { ControlView } from '../conversation/protocol/stepping.js';
import type { FetchedRuns, History } from '../heal/fetch-runs.js';
import { findContextChanges, type ContextChange } from '../insight/compactions.js';
import { knownTurns, shortenedIn, type KnownTurns, findReasons, type WhyAnswer } from '../insight/why.js';
import {
  viewMoment,
  pageMoments,
  slotsAt,
  toReplayedPast,
  type MomentPage,
  type MomentView,
  type ReplayedPast,
  describeChunks,
  describeEntry,
  foldEarlier,
  type DebugChunk,
  type EarlierChunks,
} from '../insight/moments.js';
import { turnsNamedIn } from '../insight/timeline/read-run.js';
import type { RunHistory, TurnTimeline } from '../insight/timeline/shape.js';
import { buildTimeline } from '../insight/timeline/timeline.js';
import { inspectTurns, type InspectedTurn } from '../insight/turns.js';
import { redactor } from '../memory/documents/forgetting.js';
import { tokenCounterBy } from '../models/token-counter.js';
import { orUndefinedAfter } from '../platform/promises.js';
import { turnNumber } from '../records/identity.js';
import type { Entry } from '../records/message.js';
import { listSlots } from '../records/slots.js';
import type { ConversationKey, Store } from '../stores/store.js';
import type { Description } from './describe.js';
import { ClientError } from './errors.js';
import type { ReadingClient } from './reading.js';

/** Runs of the conversation with that workflow id, replayed by the workflow's code: it comes from where a worker may be loaded. */
export type Replay = (
  workflowId: string,
  histories: readonly History[],
) => Promise<{ readonly runs: readonly (Run | undefined)[]; readonly problems: readonly string[] }>;

/** Some of the turns of a conversation. */
export interface TurnPage {
  /** Oldest first. */
  readonly turns: readonly InspectedTurn[];
  /** There are earlier ones: ask for those before the first of these. */
  readonly more: boolean;
}

/** The context at a moment, piece by piece. */
export interface ContextView {
  readonly index: ContextIndex;
  /** null until the first turn. */
  readonly thresholds: ControlView['thresholds'];
  readonly chunks: readonly DebugChunk[];
  /** The messages before those of `chunks`, several as one, where only the latest were wanted. */
  readonly earlier?: readonly EarlierChunks[];
  readonly turns: KnownTurns;
}

/** The text of a piece of the context. */
export interface ChunkText {
  readonly id: string;
  readonly kind: DebugChunk['kind'];
  readonly turn: string | null;
  readonly role: string | null;
  readonly text: string;
  readonly offset: number;
  /** Of the whole text, in UTF-16 units. */
  readonly characters: number;
  readonly next: number | null;
}

/** What has changed the context, in its order. */
export interface ContextChanges {
  /** Oldest first; what stood before the messages, before and after, as far as the store has it. */
  readonly changes: readonly (ContextChange & { readonly beforeText: string | null; readonly afterText: string | null })[];
  readonly complete: boolean;
  readonly problems: readonly string[];
}

/** Looks into a conversation: its turns, moments and context, and why it is what it is. */
export interface InsightClient {
  /** Turns as they stand, latest page first: `before` names the turn before which the page ends. */
  turns(id: string, options?: { readonly limit?: number; readonly before?: string }): Promise<TurnPage>;
  /** What happened in a turn, when, and on which workers, from Temporal's history. */
  timeline(id: string, turn: string): Promise<TurnTimeline>;
  /** What the next model call sees, chunk by chunk, and of which turns. `last`: only so many messages one by one, the latest. */
  contextView(id: string, options?: { readonly last?: number }): Promise<ContextView>;
  /** The text of one chunk, `memory` or `chunk_<slot>`, in or out of the prompt; at most 64 Ki UTF-16 units from `offset` on. */
  chunk(id: string, chunk: string, offset?: number): Promise<ChunkText>;
  /** Why a turn is not in the prompt any more. */
  why(id: string, turn: string): Promise<WhyAnswer>;
  /** Each time that the prompt was made smaller, or a compaction was taken back. */
  contextChanges(id: string): Promise<ContextChanges>;
  /** Every event of its past, from `from` on: at most `MAX_PAGE`. */
  moments(id: string, options?: { readonly from?: number; readonly limit?: number }): Promise<MomentPage>;
  /** The state before and after one of them. */
  moment(id: string, position: number): Promise<MomentView>;
}

export interface InsightAccess {
  readonly namespace: string;
  readonly store: () => Promise<Store>;
  readonly keyOf: (id: string) => Promise<ConversationKey>;
  readonly describe: (id: string) => Promise<Description>;
  readonly status: (id: string) => Promise<Status>;
  readonly context: (id: string) => Promise<ContextIndex>;
  readonly control: (id: string) => Promise<ControlView>;
  readonly reading: ReadingClient;
  readonly runs: (id: string) => Promise<FetchedRuns>;
  readonly replay: Replay | undefined;
}

const MAX_TURNS = 500;
/** For a worker, where Temporal and the store tell the rest. */
const PATIENCE_MS = 2_000;
/** UTF-16 units. */
const MAX_CHUNK = 64 * 1024;
const MAX_BASE = 64 * 1024;
/** A system prompt, or a list of tools. */
const MAX_HEAD = 1024 * 1024;
/** Entries that are read at a time, from the end. */
const PAGE = 500;
/** A replayed past is a whole conversation in memory. */
const MAX_PASTS = 4;

/**
 * Entries of the latest turns before one, from the end of what is recorded backwards: of a long conversation not all is read for them. What
 * was queued was recorded before the answers to others, so it goes on until each of them has its first entry.
 */
async function latestTurns(
  reading: ReadingClient,
  id: string,
  { most, before }: { readonly most: number; readonly before: string | undefined },
): Promise<Entry[]> {
  const isWanted = ({ turn }: Entry): boolean => before === undefined || turnNumber(turn) < turnNumber(before);
  let found: Entry[] = [];
  let from: number | undefined;
  for (let last = PAGE; ; last *= 2) {
    const page = await reading.latest(id, { last, ...(from !== undefined && { before: from }) });
    found = [...page.entries.filter(isWanted), ...found];
    if (page.previous === null) return found;
    from = page.previous;
    const turns = [...new Set(found.map(({ turn }) => turn))];
    const begun = new Set(found.filter(({ seq }) => seq === 1).map(({ turn }) => turn));
    if (turns.length > most && turns.slice(-most).every((turn) => begun.has(turn))) return found;
  }
}

export function createInsight(access: InsightAccess): InsightClient {
  const { store, keyOf, describe, status, context, control, reading, runs, replay } = access;
  const pasts = createPasts(access);

  const replayPast = async (id: string): Promise<ReplayedPast> => {
    if (replay === undefined) {
      await describe(id);
      throw new ClientError('unavailable', `cannot replay ${id}: this client has no workflow code; \`perdura serve\` and the CLI have`);
    }
    return pasts(id, replay);
  };
  const indexOfRunning = async (id: string): Promise<ContextIndex | undefined> => {
    const { state } = await describe(id);
    return state === 'running'
      ? orUndefinedAfter(
          PATIENCE_MS,
          context(id).catch(() => undefined),
        )
      : undefined;
  };
  const bodyOf = async (id: string, ref: string | null, most = MAX_BASE): Promise<string | null> => {
    if (ref === null) return null;
    const text = await (await store()).bodies.get(await keyOf(id), ref);
    return text === undefined ? null : text.slice(0, most);
  };
  /** A prompt of the past had what was forgotten since; a line of words is of a length to be judged, and JSON is not. */
  const withoutForgotten = async (id: string, text: string | null): Promise<string | null> => {
    const key = await keyOf(id);
    return text === null ? null : redactor(await (await store()).documents.forgotten(key), key.scope)(text);
  };
  const readWords = async (id: string, ref: string | null, most?: number): Promise<string | null> =>
    withoutForgotten(id, await bodyOf(id, ref, most));

  return {
    async turns(id, { limit = 50, before } = {}) {
      const most = Math.min(limit, MAX_TURNS);
      const [entries, ends] = await Promise.all([latestTurns(reading, id, { most, before }), reading.turnEnds(id)]);
      const turns = inspectTurns(entries, ends, most + 1);
      return { turns: turns.slice(-most), more: turns.length > most };
    },

    async timeline(id, turn) {
      const description = await describe(id);
      const [{ histories, complete }, ends] = await Promise.all([runs(id), reading.turnEnds(id)]);
      const all = histories.map(toRunHistory);
      const named = relevantRuns(all, turnNumber(turn));
      const isRunning = description.state === 'running';
      const standing = isRunning ? status(id).catch(() => undefined) : Promise.resolve(undefined);
      const running = await orUndefinedAfter(PATIENCE_MS, standing);
      const isKnown = ends.some((end) => end.turn === turn) || (running !== undefined && turnNumber(turn) <= running.turns);
      const isEnded = !isRunning || isKnown || (running !== undefined && hasEnded(running, turnNumber(turn)));
      const timeline = buildTimeline(turn, named, { pending: description.pendingActivities, ended: isEnded, complete });
      const isBeforeFork = running?.origin?.turn !== undefined && turnNumber(turn) <= turnNumber(running.origin.turn);
      // One that a budget stopped before its first call has an end, and nothing else.
      if (timeline.from === null && complete && (isBeforeFork || !isKnown)) {
        throw new ClientError(
          'not-found',
          `${id} has no ${turn} of its own: a fork's first turns are in the conversation that it began with`,
        );
      }
      return timeline;
    },

    async contextView(id, { last } = {}) {
      const index = await context(id);
      const [view, entries, { episodes }] = await Promise.all([control(id), reading.history(id), reading.memory(id)]);
      const { count } = await tokenCounterBy(index.tokenizer, index.tokenRatio);
      const known = new Map(entries.map((entry) => [entry.slot, entry]));
      const chunks = describeChunks(index, known, view, count);
      return {
        index,
        thresholds: view.thresholds,
        ...(last === undefined ? { chunks } : foldEarlier(chunks, last)),
        turns: knownTurns(index, entries, episodes),
      };
    },

    async chunk(id, chunk, offset = 0) {
      const { kind, turn, role, text } = await readChunk(id, chunk, { reading, context, bodyOf, readWords });
      const end = Math.min(text.length, offset + MAX_CHUNK);
      return {
        id: chunk,
        kind,
        turn,
        role,
        text: text.slice(offset, end),
        offset,
        characters: text.length,
        next: end < text.length ? end : null,
      };
    },

    async why(id, turn) {
      const current = await reading.history(id);
      const { episodes } = await reading.memory(id);
      const branch = current.some((entry) => entry.turn === turn)
        ? undefined
        : (await reading.branches(id)).find(({ turns }) => turns.includes(turn));
      const all = branch ? await reading.history(id, { branch: branch.branch }) : current;
      const entries = all.filter((entry) => entry.turn === turn);
      if (entries.length === 0)
        throw new ClientError('not-found', `conversation ${id} has no ${turn}; \`perdura debug inspect ${id}\` shows the latest`);
      const { runs: replayed, complete, problems } = await replayPast(id);
      const turns = new Map(all.map((entry) => [entry.slot, entry.turn]));
      const slots = new Set(entries.map(({ slot }) => slot));
      const causes = findReasons(turn, leavingsOf(replayed, slots), episodes, (slot) => turns.get(slot));
      const index = await indexOfRunning(id);
      const found = { inPrompt: inPrompt(index, slots, causes), shortened: index ? explainShortened(index, current, turn) : [] };
      const isOver = index !== undefined && branch === undefined && entries.every(({ session }) => session < index.session);
      return {
        id,
        turn,
        hasEnded: isOver,
        ...(branch && { branch: branch.branch }),
        entries: entries.length,
        ...found,
        causes,
        complete,
        problems,
      };
    },

    async contextChanges(id) {
      const { runs: replayed, complete, problems } = await replayPast(id);
      const changes = findContextChanges(replayed);
      const texts = await Promise.all(
        changes.map(async ({ base, text }) => ({
          beforeText: await readWords(id, base.before),
          afterText: await (text === null ? readWords(id, base.after) : withoutForgotten(id, text.slice(0, MAX_BASE))),
        })),
      );
      return { changes: changes.map((change, at) => ({ ...change, text: null, ...(texts[at] ?? NO_TEXTS) })), complete, problems };
    },

    async moments(id, { from = 0, limit = 200 } = {}) {
      return pageMoments(await replayPast(id), from, limit);
    },

    async moment(id, position) {
      const past = await replayPast(id);
      if (position > past.past.last) {
        throw new ClientError('not-found', `${id} has no event ${position}: the last one is ${past.past.last}`);
      }
      const entries = await reading.entries(id, slotsAt(past, position)).catch((): Entry[] => []);
      const { count } = await tokenCounterBy(past.past.at(position).state.settings?.tokenizer);
      return viewMoment(id, past, position, new Map(entries.map((entry) => [entry.slot, entry])), count);
    },
  };
}

const NO_TEXTS = { beforeText: null, afterText: null };

/** A look at one event is followed by a look at the next: what was replayed is kept while nothing more has happened. */
function createPasts({ describe, keyOf, runs }: InsightAccess): (id: string, replay: Replay) => Promise<ReplayedPast> {
  const known = new Map<string, { readonly mark: string; readonly past: Promise<ReplayedPast> }>();
  return async (id, replay) => {
    const { runId, historyEvents, state } = await describe(id);
    const mark = `${runId}/${historyEvents}/${state}`;
    const before = known.get(id);
    if (before?.mark === mark) return before.past;
    const past = (async (): Promise<ReplayedPast> => {
      const [{ histories, complete }, key] = await Promise.all([runs(id), keyOf(id)]);
      const { runs: replayed, problems } = await replay(key.conversation, histories);
      const found = toReplayedPast(
        replayed.filter((run) => run !== undefined),
        complete,
        problems,
      );
      if (found) return found;
      if (problems[0] !== undefined) throw new ClientError('failed', `cannot replay ${id}: ${problems[0]}`);
      throw new ClientError('no-worker', `cannot replay ${id}: no worker has worked it yet; ask again once one has (\`perdura worker\`)`);
    })();
    known.delete(id);
    known.set(id, { mark, past });
    past.catch(() => known.delete(id));
    while (known.size > MAX_PASTS) known.delete(known.keys().next().value ?? '');
    return past;
  };
}

function toRunHistory({ events }: History): RunHistory {
  const run = events?.[0]?.workflowExecutionStartedEventAttributes?.originalExecutionRunId ?? '';
  return { run, events: events ?? [] };
}

/** Those that may say something of the turn: from the last one whose turns are all earlier, up to the first whose are all later. */
function relevantRuns(runs: readonly RunHistory[], turn: number): RunHistory[] {
  const found: RunHistory[] = [];
  for (const run of runs.toReversed()) {
    const named = turnsNamedIn(run);
    if (named !== undefined && named.lowest > turn) continue;
    if (named !== undefined && named.highest < turn) break;
    found.unshift(run);
  }
  return found;
}

function hasEnded({ phase, turn, turns }: Status, number: number): boolean {
  return number < turn || phase === 'idle' || turns >= number;
}

async function readChunk(
  id: string,
  chunk: string,
  {
    reading,
    context,
    bodyOf,
    readWords,
  }: Pick<InsightAccess, 'reading' | 'context'> &
    Readonly<Record<'bodyOf' | 'readWords', (id: string, ref: string | null, most?: number) => Promise<string | null>>>,
): Promise<{ readonly kind: DebugChunk['kind']; readonly turn: string | null; readonly role: string | null; readonly text: string }> {
  if (chunk === 'memory') {
    const { chunks } = await context(id);
    const text = await readWords(id, chunks.find(({ kind }) => kind === 'MEMORY')?.ref ?? null);
    if (text === null) throw new ClientError('not-found', `nothing stands before the messages of ${id}, or the store no longer has it`);
    return { kind: 'MEMORY', turn: null, role: null, text };
  }
  if (chunk === 'system' || chunk === 'tools') {
    const { chunks } = await context(id);
    const { ref = null, tools = null } = chunks.find(({ kind }) => kind === 'SYSTEM') ?? {};
    const text = await (chunk === 'system' ? readWords(id, ref, MAX_HEAD) : bodyOf(id, tools, MAX_HEAD));
    if (text === null) throw new ClientError('not-found', `${id} has made no prompt yet, or the store no longer has how it began`);
    return { kind: 'SYSTEM', turn: null, role: null, text };
  }
  const slot = Number(/^chunk_(\d{1,15})$/.exec(chunk)?.[1] ?? NaN);
  if (Number.isNaN(slot))
    throw new ClientError('invalid', `${JSON.stringify(chunk.slice(0, 40))} is no chunk with a text: system, tools, memory, chunk_12`);
  const [entry] = await reading.entries(id, [slot], { whole: true });
  if (!entry) throw new ClientError('not-found', `${id} has nothing at ${chunk}, or the store no longer has it`);
  return { kind: 'WORKING_FLOW', turn: entry.turn, role: entry.message.role, text: describeEntry(entry) };
}

function explainShortened({ chunks, cited = [] }: ContextIndex, entries: readonly Entry[], turn: string): WhyAnswer['shortened'] {
  const there = new Set(chunks.flatMap(({ slots = [] }) => listSlots(slots)));
  const shown = entries.filter(({ slot }) => there.has(slot));
  return shortenedIn(shown, new Set(listSlots(cited))).filter((one) => one.turn === turn);
}

/** As the conversation answers; where no worker answers for it, rebuilt from what happened to it. */
function inPrompt(index: ContextIndex | undefined, slots: ReadonlySet<number>, causes: WhyAnswer['causes']): number {
  if (index) return index.chunks.flatMap(({ slots: ranges = [] }) => listSlots(ranges)).filter((slot) => slots.has(slot)).length;
  const left = new Set(slots);
  for (const why of causes) for (const slot of why.slots) why.kind === 'returned' ? left.add(slot) : left.delete(slot);
  return left.size;
}
