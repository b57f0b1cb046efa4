/**
 * What the store must have held, from what happened: the fold of a run's events beside the fold of its state.
 *
 * H1  An entry is rebuilt exactly as it was written; only what was kept elsewhere (a body by reference) cannot be.
 * H2  What did not count then (a duplicate, a late or fenced result) does not come back.
 */
import { apply } from './apply.js';
import { assistantEntry, toolEntry } from './entries.js';
import type { MessageToRecord, RecordInput } from './effects.js';
import type { ConversationEvent } from './event.js';
import type { Entry } from './message.js';
import { recordInput } from './recording.js';
import type { ConversationState } from './state.js';
import { callsInFlight } from './turn.js';

/** One run of a conversation: the state it began with, and what happened in it. */
export interface Run {
  readonly opened: ConversationState;
  readonly events: readonly ConversationEvent[];
}

export interface Rebuilt {
  /** Messages with their text, for the caller to store as `record` would. */
  readonly messages: readonly MessageToRecord[];
  readonly entries: readonly Entry[];
  readonly state: ConversationState;
}

export function rebuild({ opened, events }: Run): Rebuilt {
  const messages: MessageToRecord[] = [];
  const entries: Entry[] = [];
  let recording: RecordInput | undefined;
  let state = opened;
  for (const event of events) {
    if (event.kind === 'record-started') recording = recordInput(state);
    if (event.kind === 'recorded') {
      const doubled = new Set(event.recorded.messages.filter((message) => message.duplicate !== undefined).map(({ slot }) => slot));
      messages.push(...(recording?.messages ?? []).filter(({ slot }) => !doubled.has(slot)));
      entries.push(...(recording?.settle ?? []).flatMap(({ entry }) => (entry ? [entry] : [])));
    }
    const entry = entryOf(state, event);
    if (entry) entries.push(entry);
    state = apply(state, event);
  }
  return { messages, entries, state };
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
