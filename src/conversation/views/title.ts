/**
 * Titles that no person has given: made of what is said first, once in a life. A worker makes them (activities/model-step/title-of.ts), after
 * input processors and without secrets. A person's own title stays, whenever it comes.
 */
import type { EventOf } from '../event.js';
import type { ConversationState } from '../state.js';

export function acceptTitle(state: ConversationState, title: string | undefined): ConversationState {
  return title === undefined || state.autoTitle !== 'wanted' ? state : { ...state, title, autoTitle: 'due' };
}

/** A person's own. A rename reaches lists too. */
export function rename({ autoTitle: _, ...state }: ConversationState, { title }: EventOf<'renamed'>): ConversationState {
  return { ...state, title };
}

/** That lists do not know yet: one event of history, once. */
export function titleDue({ title, autoTitle }: ConversationState): string | undefined {
  return autoTitle === 'due' && title !== null ? title : undefined;
}

export function noteTitled({ autoTitle: _, ...state }: ConversationState): ConversationState {
  return state;
}
