/** A conversation's past for a reader who goes through it event by event: what each did, and the scene before and after. */
import { createPast, type Past, type Run, type Moment } from '../conversation/replay/past.js';
import { eventName } from '../conversation/views/observation.js';
import { turnId } from '../records/identity.js';
import { type Entry, answerText, shownText } from '../records/message.js';
import { type CountTokens, entryTokens, estimateMessageTokens } from '../memory/tokens.js';
import { listSlots } from '../records/slots.js';
import { describeEvent } from './event-words.js';
import { isRecord } from '../platform/json.js';
import type { ContextIndex, QueuedEvent, Status } from '../conversation/protocol/contract.js';
import type { Approval } from '../conversation/protocol/human-input.js';
import type { ControlView } from '../conversation/protocol/stepping.js';
import type { ConversationState } from '../conversation/state.js';
import { approvalsOf } from '../conversation/turn/approvals.js';
import { contextOf, controlViewOf, queueOf, statusOf } from '../conversation/views/view.js';
import { selectTruncation } from '../memory/compaction/truncation.js';

export interface ReplayedPast {
  readonly past: Past;
  readonly runs: readonly Run[];
  /** False when earlier runs have passed their retention. */
  readonly complete: boolean;
  /** Why a run is not in it. */
  readonly problems: readonly string[];
}

export interface MomentLine {
  readonly position: number;
  /** `model-step-completed`; null at the beginning of a run. */
  readonly event: string | null;
  readonly words: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly run: number;
}

/** Some of the moments of a conversation. */
export interface MomentPage {
  readonly last: number;
  readonly moments: readonly MomentLine[];
  readonly turns: readonly { readonly turn: string; readonly position: number }[];
  readonly complete: boolean;
  readonly problems: readonly string[];
}

/** What happened at a moment, and what was after it. */
export interface MomentView extends MomentLine {
  readonly last: number;
  /** null at the very beginning. */
  readonly before: DebugScene | null;
  readonly after: DebugScene;
  /** What the event changed, by the path of each field: at most `MAX_CHANGES`. */
  readonly changes: readonly FieldChange[];
  readonly more: boolean;
}

export interface FieldChange {
  readonly path: string;
  /** JSON, shortened; null: it was not there. */
  readonly before: string | null;
  readonly after: string | null;
}

export const MAX_PAGE = 500;
const MAX_CHANGES = 200;
const MAX_VALUE = 300;
const MAX_DEPTH = 12;
/** The clock moves with each event; and who shows a capability of `subAgents` speaks in a sub-agent's name. */
const UNSHOWN: ReadonlySet<string> = new Set(['now', 'subAgents']);
const SECRET = 'capability';
/** Chunks of a scene: what is further back is in the context view. */
const MAX_CHUNKS = 200;

export function toReplayedPast(runs: readonly Run[], complete: boolean, problems: readonly string[]): ReplayedPast | undefined {
  return runs.length === 0 ? undefined : { past: createPast(runs), runs, complete, problems };
}

export function pageMoments({ past, complete, problems }: ReplayedPast, from: number, limit: number): MomentPage {
  const first = Math.max(0, Math.min(from, past.last));
  const end = Math.min(past.last, first + Math.min(limit, MAX_PAGE) - 1);
  const moments: MomentLine[] = [];
  for (let position = first; position <= end; position++) moments.push(toLine(past, position));
  return {
    last: past.last,
    moments,
    turns: past.turns.map(({ turn, position }) => ({ turn: turnId(turn), position })),
    complete,
    problems,
  };
}

/** Slots whose entries `viewMoment` is to be given. */
export function slotsAt({ past }: ReplayedPast, position: number): number[] {
  const states = [past.at(position - 1).state, past.at(position).state];
  return [...new Set(states.flatMap(({ context }) => listSlots(context).slice(-MAX_CHUNKS)))];
}

export function viewMoment(
  id: string,
  { past }: ReplayedPast,
  position: number,
  entries: ReadonlyMap<number, Entry>,
  count?: CountTokens,
): MomentView {
  const line = toLine(past, position);
  const before = line.position === 0 ? undefined : past.at(line.position - 1);
  const after = past.at(line.position);
  const changes = before === undefined || line.event === null ? [] : changesBetween(before.state, after.state);
  const scene = (moment: { readonly state: typeof after.state; readonly position: number }): DebugScene => {
    const whole = pastScene(id, moment, entries, count);
    return { ...whole, chunks: whole.chunks.slice(-MAX_CHUNKS), queue: whole.queue.slice(0, MAX_CHUNKS) };
  };
  return {
    ...line,
    last: past.last,
    before: before === undefined ? null : scene(before),
    after: scene(after),
    changes: changes.slice(0, MAX_CHANGES),
    more: changes.length > MAX_CHANGES,
  };
}

function toLine(past: Past, wanted: number): MomentLine {
  const { position, event, run, state } = past.at(wanted);
  return { position, event: event === undefined ? null : eventName(event), words: describeEvent(event), at: event?.at ?? state.now, run };
}

/** Fields that differ, in the order of their paths. An identical object has no differences: `apply` shares what it does not change. */
export function changesBetween(before: unknown, after: unknown): FieldChange[] {
  const found: FieldChange[] = [];
  const walk = (old: unknown, now: unknown, path: string, depth: number): void => {
    if (old === now || found.length > MAX_CHANGES) return;
    if (isRecord(old) && isRecord(now) && depth < MAX_DEPTH) {
      for (const key of new Set([...Object.keys(old), ...Object.keys(now)])) {
        if (key === SECRET || (depth === 0 && UNSHOWN.has(key))) continue;
        walk(readField(old, key), readField(now, key), path === '' ? key : `${path}.${key}`, depth + 1);
      }
      return;
    }
    if (Array.isArray(old) && Array.isArray(now) && depth < MAX_DEPTH && Math.max(old.length, now.length) <= MAX_CHANGES) {
      for (let at = 0; at < Math.max(old.length, now.length); at++) walk(old[at], now[at], `${path}[${at}]`, depth + 1);
      return;
    }
    const [was, is] = [toJson(old), toJson(now)];
    if (was !== is) found.push({ path, before: shortened(was), after: shortened(is) });
  };
  walk(before, after, '', 0);
  return found;
}

/** Names come from outside too: `toString` is none that every object has here. */
function readField(object: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function toJson(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value, (key, inner: unknown) => (key === SECRET ? '***' : inner));
}

function shortened(text: string | null): string | null {
  return text === null || text.length <= MAX_VALUE ? text : `${text.slice(0, MAX_VALUE)}… (${text.length} characters)`;
}

// What a debugger shows of one state: the same facts, whether a worker gave them or they were folded from the history.

export interface DebugScene {
  readonly id: string;
  readonly status: Status;
  readonly queue: readonly QueuedEvent[];
  readonly index: ContextIndex;
  /** null from a worker of an earlier version. */
  readonly control: ControlView | null;
  readonly approvals: readonly Approval[];
  readonly chunks: readonly DebugChunk[];
}

/** A piece of the context. */
export interface DebugChunk {
  /** As in a step's result: `chunk_<slot>`. */
  readonly id: string;
  readonly kind: 'SYSTEM' | 'MEMORY' | 'WORKING_FLOW';
  readonly tokens: number;
  readonly turn: string;
  readonly role: string;
  readonly words: string;
  /** The next truncation takes it. */
  readonly drops: boolean;
  readonly slot?: number;
}

/** More than a line of any screen. */
const LINE_CHARACTERS = 500;

export function pastScene(
  id: string,
  { state, position }: Pick<Moment, 'state' | 'position'>,
  entries: ReadonlyMap<number, Entry>,
  count?: CountTokens,
): DebugScene {
  const index = contextOf(state);
  const control = controlViewOf(state);
  return {
    id,
    status: statusOf(state, position),
    queue: queueOf(state),
    index,
    control,
    approvals: approvalsOf(state),
    chunks: describeChunks(index, entries, control, count),
  };
}

/** One line of `-o json`: enough to find a moment by. */
export function summarizeState(state: ConversationState): object {
  const { phase, session, turn, turns, epoch, mode, stepLock, pausedBy, queued, context, usage } = statusOf(state, 0);
  const running = controlViewOf(state).turn;
  return {
    ...{ phase, mode, session, turn, turns, epoch, queued, stepLock, pausedBy },
    tokens: context.tokens,
    chunks: context.chunks,
    running: running && { id: running.id, calls: running.calls.map(({ id, name, status }) => ({ id, name, status })) },
    costUsd: usage.costUsd,
  };
}

/** With nothing too much, what would be the first to go. */
export function describeChunks(
  index: ContextIndex,
  entries: ReadonlyMap<number, Entry>,
  control: ControlView | null,
  count?: CountTokens,
): DebugChunk[] {
  const flow = index.chunks.flatMap(({ slots = [] }) => listSlots(slots));
  const known = flow.flatMap((slot) => entries.get(slot) ?? []);
  const excess = Math.max(1, index.total - (control?.thresholds?.hard ?? index.total));
  const next = new Set(
    selectTruncation(known, excess, control?.turn?.id ?? null, entryTokens(known, { count })).dropped.map(({ slot }) => slot),
  );
  return [
    ...index.chunks.flatMap(({ kind, tokens, ref }): DebugChunk[] =>
      kind === 'WORKING_FLOW'
        ? []
        : [
            {
              id: kind.toLowerCase(),
              kind,
              tokens,
              turn: '',
              role: '',
              words: kind === 'SYSTEM' ? 'system prompt and tools' : `what older turns became (${ref ?? ''})`,
              drops: false,
            },
          ],
    ),
    ...flow.map((slot): DebugChunk => {
      const entry = entries.get(slot);
      return {
        id: `chunk_${slot}`,
        kind: 'WORKING_FLOW',
        tokens: entry ? estimateMessageTokens(entry.message, count) : 0,
        turn: entry?.turn ?? '',
        role: entry?.message.role ?? '?',
        words: entry ? describeEntry(entry).slice(0, LINE_CHARACTERS) : 'the store does not have it',
        drops: next.has(slot),
        slot,
      };
    }),
  ];
}

/** Neighbouring messages of the prompt, as one. */
export interface EarlierChunks {
  /** Of the first of them. */
  readonly chunk: string;
  readonly turns: readonly [first: string, last: string];
  readonly messages: number;
  readonly tokens: number;
  readonly drops: boolean;
}

/** Pieces of a picture: more cannot be told apart. */
const MAX_EARLIER = 200;

/** The latest `last` messages one by one, those before them only as much as a picture needs: a life of thousands is megabytes. */
export function foldEarlier(
  chunks: readonly DebugChunk[],
  last: number,
): { readonly chunks: readonly DebugChunk[]; readonly earlier: readonly EarlierChunks[] } {
  const fixed = chunks.filter(({ kind }) => kind !== 'WORKING_FLOW');
  const flow = chunks.slice(fixed.length);
  const before = flow.slice(0, Math.max(0, flow.length - last));
  const many = Math.ceil(before.length / MAX_EARLIER);
  const earlier: EarlierChunks[] = [];
  for (let at = 0; at < before.length; at += many) {
    const part = before.slice(at, at + many);
    const [first, end] = [part[0], part.at(-1)];
    if (first === undefined || end === undefined) break;
    earlier.push({
      ...{ chunk: first.id, turns: [first.turn, end.turn], messages: part.length },
      tokens: part.reduce((sum, { tokens }) => sum + tokens, 0),
      drops: part.some(({ drops }) => drops),
    });
  }
  return { chunks: [...fixed, ...flow.slice(before.length)], earlier };
}

export function describeEntry(entry: Entry): string {
  const { message } = entry;
  switch (message.role) {
    case 'user':
      return shownText(message.text);
    case 'tool':
      return `${message.name} (${message.callId}) ${message.outcome}: ${shownText(message.text)}`;
    case 'assistant': {
      const calls = message.blocks.flatMap((block) =>
        block.kind === 'tool-call' ? [`${block.name}(${JSON.stringify(block.input)})`] : [],
      );
      return [answerText(entry.message), ...calls].filter((part) => part !== '').join(' ');
    }
  }
}
