/**
 * What the store must have held, from what happened: the fold of a run's events beside the fold of its state.
 *
 * H1  An entry is rebuilt exactly as it was written; only what was kept elsewhere (a body by reference) cannot be.
 * H2  What did not count then (a duplicate, a late or fenced result) does not come back.
 */
import { apply } from './apply.js';
import { assistantEntry, toolEntry } from './entries.js';
import type { Compacted } from './compaction-effects.js';
import type { MessageToRecord, RecordInput } from './effects.js';
import type { PutAwayInput } from './memory-effects.js';
import type { RetoldEpisode } from './lineage-effects.js';
import type { ConversationEvent } from './event.js';
import type { Beginning, Cut } from './lives.js';
import type { Entry } from './message.js';
import { recordInput } from './recording.js';
import type { SlotRange } from './slots.js';
import type { ConversationState } from './state.js';
import { callsInFlight } from './turn-access.js';
import { putAwayInput } from './window.js';

/** One run of a conversation: the state it began with, and what happened in it. */
export interface Run {
  readonly opened: ConversationState;
  readonly events: readonly ConversationEvent[];
}

/** What a compaction made of older turns. */
export interface RebuiltMemory {
  readonly session: number;
  readonly compacted: Extract<Compacted, { kind: 'compacted' }>;
}

export interface Rebuilt {
  readonly memories: readonly RebuiltMemory[];
  /** Epochs of compactions that were taken back, of this run or an earlier one. */
  readonly undone: readonly number[];
  /** What left the context for good, at a session's end or when the window was full. */
  readonly putAway: readonly SlotRange[];
  /** Texts that sessions and epochs began with, and what is left of trimmed messages. */
  readonly bases: readonly string[];
  /** Where the life comes from. */
  readonly beginning?: Beginning;
  /** What rewinds have cut, and which slots each has made active again. */
  readonly rewinds: readonly { readonly cut: Cut | null; readonly context: readonly SlotRange[] }[];
  /** Summaries that were told again for this life, or for a session of it. */
  readonly retold: readonly RetoldEpisode[];
  /** Messages with their text, for the caller to store as `record` would. */
  readonly messages: readonly MessageToRecord[];
  readonly entries: readonly Entry[];
  readonly state: ConversationState;
}

export function rebuild({ opened, events }: Run): Rebuilt {
  const messages: MessageToRecord[] = [];
  const entries: Entry[] = [];
  const memories: RebuiltMemory[] = [];
  const bases: string[] = [];
  const undone: number[] = [];
  const putAway: SlotRange[] = [];
  const rewinds: Rebuilt['rewinds'][number][] = [];
  const retold: RetoldEpisode[] = [];
  let beginning: Beginning | undefined;
  let puttingAway: PutAwayInput | undefined;
  let recording: RecordInput | undefined;
  let state = opened;
  for (const event of events) {
    if (event.kind === 'record-started') recording = recordInput(state);
    if (event.kind === 'recorded') {
      const unwritten = new Set(
        event.recorded.messages.filter(({ duplicate, taken }) => duplicate !== undefined || taken).map(({ slot }) => slot),
      );
      messages.push(...(recording?.messages ?? []).filter(({ slot }) => !unwritten.has(slot)));
      entries.push(...(recording?.settle ?? []).flatMap(({ entry }) => (entry ? [entry] : [])));
    }
    if (event.kind === 'recorded' && event.recorded.base) bases.push(event.recorded.base.text);
    if (event.kind === 'compacted' && event.result.kind === 'compacted' && state.memory.doing?.epoch === event.result.epoch) {
      memories.push({ session: state.session, compacted: event.result });
    }
    if (event.kind === 'truncated' && event.result.notice && state.memory.doing?.kind === 'truncate') entries.push(event.result.notice);
    if (event.kind === 'put-away-started') puttingAway = putAwayInput(state);
    if (event.kind === 'put-away') {
      putAway.push(...(puttingAway?.archive ?? []));
      if (event.result.recap) bases.push(event.result.recap.text);
    }
    if (event.kind === 'origin-opened') beginning = event.result.beginning;
    if (event.kind === 'rewound') rewinds.push({ cut: event.result.cut, context: event.result.context });
    if (event.kind === 'origin-opened' || event.kind === 'rewound') {
      const { base, recap, episodes } = event.result;
      bases.push(...[base, recap].flatMap((body) => body?.text ?? []));
      retold.push(...episodes);
    }
    if (event.kind === 'uncompacted') undone.push(event.epoch);
    const entry = entryOf(state, event);
    if (entry) entries.push(entry);
    state = apply(state, event);
  }
  return { messages, entries, memories, undone, putAway, bases, rewinds, retold, ...(beginning ? { beginning } : {}), state };
}

function entryOf(state: ConversationState, event: ConversationEvent): Entry | undefined {
  const doing = state.turn?.doing;
  if (event.kind === 'model-answered') {
    const call = doing?.kind === 'model' && callsInFlight(state).includes(event.answer.call) ? doing.call : undefined;
    return call && !event.answer.fenced ? assistantEntry(event.answer, call.seq) : undefined;
  }
  if (event.kind === 'tool-finished') {
    const { result } = event;
    const call = doing?.kind === 'tools' ? doing.calls.find(({ id, status }) => id === result.callId && status === 'running') : undefined;
    return call && !result.fenced ? toolEntry(result, call.seq) : undefined;
  }
  return undefined;
}
