/** How handlers refuse: by a failure that names what is wrong. */
import { ApplicationFailure } from '@temporalio/workflow';
import type { Checked } from '../conversation/protocol/fields.js';
import type { ConversationState } from '../conversation/state.js';
import { FAILURES } from './messages.js';

export function accepted<T>(checked: Checked<T>): T {
  if (checked.ok) return checked.value;
  throw ApplicationFailure.nonRetryable(checked.reason, FAILURES.invalidMessage);
}

export function refuseWhenClosing(state: ConversationState): void {
  if (state.closing === 'no') return;
  throw ApplicationFailure.nonRetryable('the conversation is closing and takes no new messages; start another', FAILURES.closing);
}

export function askAgain(why: string): ApplicationFailure {
  return ApplicationFailure.create({ message: `${why}; ask again with the same id`, type: FAILURES.continues });
}
