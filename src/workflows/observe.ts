/**
 * What happens to a conversation, told to the worker: for observers, and for replays that rebuild what a store has lost. One way:
 * nothing comes back, and on replay the worker decides whether to listen.
 */
import { proxySinks, type Sinks } from '@temporalio/workflow';
import type { ConversationEvent } from '../conversation/event.js';
import type { StateChange } from '../conversation/views/observation.js';
import type { ConversationState } from '../conversation/state.js';

export interface ConversationSinks extends Sinks {
  readonly conversation: {
    /** The state that a run begins with: empty, or carried over. */
    opened(state: ConversationState): void;
    /** With what it has changed, null where nothing that is told has; and with its mark (`createMarks`). */
    event(event: ConversationEvent, change: StateChange | null, mark: string): void;
  };
}

export const { conversation: observer } = proxySinks<ConversationSinks>();
